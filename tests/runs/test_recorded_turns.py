"""What a log of answers without words says when it is sent through the engine."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from runs.engine.parsing import parse_reply
from runs.engine.types import Answer, AnswerKind, Question
from runs.importers.records import TurnRecord
from runs.models import DebateSet
from runs.protocols.presets import load_preset
from runs.providers.base import Origin, ProviderRequest
from runs.queries import ArmContext, recorded_provider
from runs.services.imports import import_debates
from tests.runs import factories
from tests.runs.services.test_frozen_rows import a_debate

pytestmark = pytest.mark.django_db

REPLAY = load_preset("du_replay")


def sent_through(turn: TurnRecord) -> Answer:
    """Return what the engine makes of the one turn of a log."""
    log = replace(a_debate(), rounds=((turn,),))
    home = factories.workspace()
    import_debates(workspace=home, name="log", format_name="jsonl", records=[log])
    stored = DebateSet.objects.get(workspace=home)
    model = recorded_provider(
        debate_set_id=stored.pk,
        question_id=stored.question_set.questions.get().pk,
        question_hash="h",
        seed=1,
        context=ArmContext(0, REPLAY, {}, {}, {}),
    )
    origin = Origin(question_hash="h", agent_id="a", t=0)
    reply = asyncio.run(model.complete(ProviderRequest("recorded:log", (), 9, 1.0, origin=origin)))
    return parse_reply(
        reply.raw, question=Question("q", "?", "number"), protocol=REPLAY, prompt=(),
        finish_reason=reply.finish_reason,
    ).answer  # fmt: skip


def test_an_answer_without_words_is_read_again() -> None:
    assert sent_through(TurnRecord(agent_id="a", answer="18")).value == "18"


@pytest.mark.parametrize("said", ["abstain", "ABSTAIN "])
def test_an_abstention_without_words_stays_one(said: str) -> None:
    assert sent_through(TurnRecord(agent_id="a", answer=said)).kind is AnswerKind.ABSTAIN


def test_words_go_before_the_answer_that_the_log_took_from_them() -> None:
    turn = TurnRecord(agent_id="a", answer="18", text="So it is \\boxed{4}.")
    assert sent_through(turn).value == "4"

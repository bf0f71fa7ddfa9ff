"""A log that would be read in part is refused before anything starts."""

from __future__ import annotations

import pytest

from debateweb.access import ensure_default_workspace
from runs.importers.records import AgentRecord, DebateRecord, QuestionRecord, TurnRecord
from runs.models import DebateSet
from runs.protocols.presets import load_preset
from runs.services.imports import import_debates
from runs.services.recorded import recorded_faults

pytestmark = pytest.mark.django_db

QUESTION = QuestionRecord(id="q", question="2+2?", reference=("4",), answer_type="number")


def faults(*debates: DebateRecord, seeds: tuple[int, ...] = (1,)) -> list[str]:
    import_debates(
        workspace=ensure_default_workspace(), name="log", format_name="jsonl", records=debates
    )
    made = DebateSet.objects.get()
    return list(
        recorded_faults(
            debate_set_id=made.pk,
            protocol=load_preset("du_replay"),
            questions=list(made.question_set.questions.all()),
            seeds=seeds,
        )
    )


def debate(name: str, *, agents: str = "abc", seed: int | None = None) -> DebateRecord:
    return DebateRecord(
        debate_id=name,
        question=QUESTION,
        protocol="du",
        agents=tuple(AgentRecord(agent_id=a, model="m") for a in agents),
        rounds=(tuple(TurnRecord(agent_id=a, answer="4") for a in agents),),
        seed=seed,
    )


def test_one_debate_a_question_needs_no_seed() -> None:
    assert faults(debate("one")) == []


def test_more_agents_than_the_protocol_has_are_not_dropped_silently() -> None:
    (fault,) = faults(debate("one", agents="abcd"))
    assert "4 agents and the protocol 3" in fault


def test_several_debates_are_told_apart_by_the_runs_seed() -> None:
    assert faults(debate("one", seed=1), debate("two", seed=2), seeds=(1, 2)) == []


def test_several_debates_that_no_seed_tells_apart_are_refused() -> None:
    (fault,) = faults(debate("one"), debate("two"))
    assert "several debates of 1 of the questions" in fault

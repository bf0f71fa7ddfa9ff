"""Replies that mean harm, stored: no byte of them breaks a round, a row or a replay (S35)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs.models import AttemptOutcome
from runs.providers.base import ProviderReply
from tests.runs import factories
from tests.runs.checks import assert_balanced, assert_verified
from tests.runs.scripted import Call, ScriptedGateway, replied

#: Text with what PostgreSQL's text and jsonb refuse, and what pages must not show as it is.
NASTY = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\x00\ud800\udfff\u202e\u2066\ufeff\x1b<&'\"\\{}"),
    ),
    max_size=40,
)
#: All that a reply can be asked for.
EVERYTHING = {"format": "json", "claims": True, "confidence": True, "change_reason": True}
ANSWER = st.one_of(NASTY, st.integers(), st.floats(), st.none(), st.just("2"))


def reply_in_json(answer: Any, reason: str, claim: str, confidence: Any) -> bytes:
    body = {
        "answer": answer,
        "reasoning": reason,
        "justification": reason,
        "claims": [{"claim_id": claim, "text": reason}, claim],
        "evidence_refs": [claim],
        "unresolved": [reason],
        "confidence": confidence,
        "change": {"kind": claim, "claim_id": claim, "text": reason},
    }
    return json.dumps(body).encode()


REPLIES = st.one_of(
    st.binary(max_size=60),
    NASTY.map(lambda text: f"{text} So the answer is 2{text}.".encode("utf-8", "surrogatepass")),
    NASTY.map(lambda text: f"So the answer is {text}".encode("utf-8", "surrogatepass")),
    st.builds(reply_in_json, ANSWER, NASTY, NASTY, ANSWER),
)


@pytest.mark.django_db
@pytest.mark.parametrize("output", [{"format": "text"}, EVERYTHING], ids=["text", "json"])
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(replies=st.lists(REPLIES, min_size=3, max_size=9))
def test_any_bytes_are_stored_as_they_came_and_replay_alike(
    tmp_path: Path, output: dict[str, Any], replies: list[bytes]
) -> None:
    def script(call: Call) -> ProviderReply:
        place = "abc".index(call.agent_id) + 3 * call.t
        return replied(replies[place % len(replies)], finish_reason="stop")

    with transaction.atomic():
        made = factories.experiment(tmp_path, protocol={"output": output})
        factories.finish(made, ScriptedGateway(script))
        run = made.runs.get()
        assert run.stop_reason != "error"
        assert run.crashes == 0
        for outcome in AttemptOutcome.objects.all():
            assert bytes(outcome.raw) in replies
        assert_verified(made)
        assert_balanced()
        transaction.set_rollback(True)


@pytest.mark.django_db
def test_a_long_reply_and_long_names_are_stored(tmp_path: Path) -> None:
    reply = replied(
        b"So the answer is 2. " * 100_000, finish_reason="x" * 200, model_version="v" * 200
    )
    made = factories.finish(factories.experiment(tmp_path), ScriptedGateway(lambda _call: reply))
    assert made.runs.get().crashes == 0
    assert len(bytes(AttemptOutcome.objects.first().raw)) == 2_000_000  # type: ignore[union-attr]
    assert_verified(made)

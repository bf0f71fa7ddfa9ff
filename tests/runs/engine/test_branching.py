"""Runs that start from another run's initial answers, byte for byte."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from runs.engine.branching import branch_commit
from runs.engine.errors import InconsistentInputError
from runs.engine.types import Status, StopReason
from tests.runs.engine.builders import protocol, state
from tests.runs.engine.debates import debate, says

FIRST = {"a": "Final answer: 1", "b": "Final answer: 2", "c": None}


def test_a_branch_has_the_same_states_snapshot_and_active_set_as_its_origin() -> None:
    origin = debate(protocol(), says(FIRST, {"a": "Final answer: 1"}, {"b": "Final answer: 1"}))
    states = origin.rounds[0].states
    alone = protocol(
        topology={"kind": "none"}, prompts={"initial": "{{question}}", "revision": "Again."}
    )
    commit = branch_commit(protocol=alone, states=reversed(states))
    assert commit.snapshot.states == states
    assert commit.snapshot.snapshot_hash == origin.rounds[1].snapshot_hash
    assert commit.active == ("a", "b")
    assert [v.status for v in commit.verdicts] == [
        Status.SUCCEEDED,
        Status.SUCCEEDED,
        Status.INACTIVE,
    ]
    assert commit.stop is None


def test_a_branched_run_goes_on_with_who_has_a_state() -> None:
    branched = (state("a", "alpha"), state("c", "gamma"))
    record = debate(protocol(rounds=1), says({}, {"a": "Final answer: 5"}), branched=branched)
    assert [v.status for v in record.rounds[1].verdicts] == [
        Status.SUCCEEDED,
        Status.INACTIVE,
        Status.TIMEOUT,
    ]
    assert record.rounds[1].states[0].parent_version == 1


def test_stops_at_zero_apply_to_a_branch_too() -> None:
    assert branch_commit(protocol=protocol(rounds=0), states=[state("a", "x")]).stop is not None
    nobody = branch_commit(protocol=protocol(), states=[]).stop
    assert nobody is not None
    assert nobody.reason is StopReason.NO_ADMITTED_INITIAL_STATES
    triggered = protocol(stopping={"unanimous_at_zero": True})
    same = [state(agent_id, agent_id, value="7") for agent_id in "abc"]
    unanimous = branch_commit(protocol=triggered, states=same).stop
    assert unanimous is not None
    assert unanimous.reason is StopReason.UNANIMOUS
    assert branch_commit(protocol=triggered, states=same[:2]).stop is None


@pytest.mark.parametrize(
    ("changes", "says_why"),
    [
        ({"agent_id": "zoe"}, "unknown agent 'zoe'"),
        ({"round": 1}, "no initial answer"),
        ({"state_version": 2, "parent_version": 1}, "no initial answer"),
        ({"text": "other words"}, "not what was hashed"),
        ({"raw_hash": "0" * 64}, "not what was hashed"),
    ],
)
def test_a_state_that_is_no_true_initial_answer_is_refused(
    changes: dict[str, Any], says_why: str
) -> None:
    with pytest.raises(InconsistentInputError, match=says_why):
        branch_commit(protocol=protocol(), states=[replace(state("a", "alpha"), **changes)])


def test_two_states_of_one_agent_are_refused() -> None:
    with pytest.raises(InconsistentInputError, match="two branched states"):
        branch_commit(protocol=protocol(), states=[state("a", "x"), state("a", "y")])

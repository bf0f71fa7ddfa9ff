"""Why a run ends, judged from states and verdicts alone (S12, S13)."""

from __future__ import annotations

from typing import Any

import pytest

from runs.engine.replay import RunRecord
from runs.engine.stopping import HOST_STOPS
from runs.engine.types import AnswerKind, StopReason
from tests.runs.engine.builders import protocol
from tests.runs.engine.debates import debate, says


def final(*values: str | None) -> dict[str, str | None]:
    """One round of a, b, c: None failed, "?" is a reply without an answer."""
    texts = {None: None, "?": "who knows", "abstain": "I abstain."}
    said = zip("abc", values, strict=False)
    return {agent: texts.get(value, f"Final answer: {value}") for agent, value in said}


def run(*rounds: dict[str, str | None], skipped: Any = None, **parts: Any) -> RunRecord:
    return debate(protocol(**parts), says(*rounds), skipped=skipped or {})


def reason(record: RunRecord) -> StopReason:
    assert record.stop is not None
    return record.stop.reason


ALL_STOPS = {"stable_candidates": True, "unanimous": True, "unanimous_at_zero": True}


def test_without_rules_a_run_ends_with_its_last_round() -> None:
    record = run(final("1", "1", "1"), final("1", "1", "1"), final("1", "1", "1"))
    assert reason(record) is StopReason.ROUND_LIMIT
    assert len(record.rounds) == 3
    assert run(final("1", "2", "3"), rounds=0).stop is not None


def test_no_admitted_initial_state_comes_before_everything_else() -> None:
    record = run(final(None, "?", None), rounds=0)
    assert reason(record) is StopReason.NO_ADMITTED_INITIAL_STATES
    assert record.outcome is not None
    assert record.outcome.unresolved
    assert record.outcome.open_issues == ("the run stopped: no_admitted_initial_states",)


def test_a_budget_that_lets_nobody_start_leaves_no_initial_state() -> None:
    record = run(final(), skipped={0: ("a", "b", "c")})
    assert reason(record) is StopReason.NO_ADMITTED_INITIAL_STATES
    assert record.stop is not None
    assert record.stop.observables["skipped_budget"] == 3


def test_a_round_in_which_the_budget_allowed_no_call_is_a_budget_stop() -> None:
    record = run(final("1", "2", "3"), {}, skipped={1: ("a", "b", "c")})
    assert reason(record) is StopReason.WORKER_BUDGET
    assert len(record.rounds) == 2
    assert record.outcome is not None
    assert record.outcome.counts == (("1", 1), ("2", 1), ("3", 1))


def test_one_agent_within_the_budget_keeps_the_run_going() -> None:
    record = run(final("1", "2", "3"), final("2"), final("2", "2", "3"), skipped={1: ("b", "c")})
    assert reason(record) is StopReason.ROUND_LIMIT


def test_a_round_without_an_admission_ends_the_run() -> None:
    record = run(final("1", "2", "3"), final("?", None, None))
    assert reason(record) is StopReason.NO_ADMITTED_UPDATES
    assert len(record.rounds) == 2


def test_no_admitted_updates_comes_before_the_round_limit() -> None:
    assert reason(run(final("1", "2"), final("?"), rounds=1)) is StopReason.NO_ADMITTED_UPDATES


def test_unanimity_at_zero_ends_a_run_only_where_the_protocol_says_so() -> None:
    same = final("1", "1.0", "1")
    assert reason(run(same, stopping=ALL_STOPS)) is StopReason.UNANIMOUS
    later = run(same, final("1", "1", "1"), stopping={"unanimous": True})
    assert reason(later) is StopReason.UNANIMOUS
    assert len(later.rounds) == 2


@pytest.mark.parametrize(
    "answers", [("1", "1", None), ("1", "1", "?"), ("1", "1", "abstain"), ("1", "1", "2")]
)
def test_missing_and_abstaining_agents_agree_with_nobody_at_zero(answers: tuple[str]) -> None:
    record = run(final(*answers), final("1", "2", "3"), rounds=1, stopping=ALL_STOPS)
    assert reason(record) is StopReason.ROUND_LIMIT


def test_agents_who_all_abstain_are_stable_but_not_unanimous() -> None:
    nobody = final("abstain", "abstain", "abstain")
    record = run(nobody, nobody, stopping=ALL_STOPS)
    assert reason(record) is StopReason.STABLE_CANDIDATES
    assert record.outcome is not None
    assert record.outcome.answer.kind is AnswerKind.ABSTAIN


def test_answers_are_stable_when_every_scheduled_agent_was_admitted_and_none_changed() -> None:
    stopping = {"stable_candidates": True}
    record = run(final("1", "2", "2"), final("1.0", "2", "2"), stopping=stopping)
    assert reason(record) is StopReason.STABLE_CANDIDATES
    assert record.stop is not None
    assert record.stop.observables == {
        "t": 1,
        "active": 3,
        "scheduled": 3,
        "skipped_budget": 0,
        "admitted": 3,
        "changed_answers": 0,
        "distinct_answers": 2,
    }


@pytest.mark.parametrize("third", [None, "?"])
def test_one_missing_update_makes_neither_stability_nor_unanimity(third: str | None) -> None:
    stopping = {"stable_candidates": True, "unanimous": True}
    record = run(final("1", "1", "1"), final("1", "1", third), rounds=1, stopping=stopping)
    assert reason(record) is StopReason.ROUND_LIMIT


def test_an_agent_that_left_at_zero_does_not_hold_up_stability() -> None:
    stopping = {"stable_candidates": True}
    record = run(final("1", "2", None), final("1", "2"), stopping=stopping)
    assert reason(record) is StopReason.STABLE_CANDIDATES


def test_unanimity_is_named_before_stability_and_before_the_last_round() -> None:
    stopping = {"stable_candidates": True, "unanimous": True}
    record = run(final("1", "1", "1"), final("1", "1", "1"), rounds=1, stopping=stopping)
    assert reason(record) is StopReason.UNANIMOUS


def test_what_a_host_may_declare_is_never_derived_but_for_the_budget() -> None:
    assert {r.value for r in HOST_STOPS} == {
        "worker_budget",
        "insufficient_final_budget",
        "work_deadline",
        "cancelled",
        "error",
    }

"""From votes to one answer, whatever order they stand in (S14, S26, S27)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.aggregation import (
    UnsupportedAggregationError,
    aggregate,
    judged_candidates,
    unresolved,
)
from runs.engine.draws import Draws
from runs.engine.hashing import snapshot_hash
from runs.engine.types import AnswerKind, Outcome, Snapshot, State
from runs.protocols.spec import Protocol
from tests.runs.engine.builders import protocol, state

AGENTS = ("a", "b", "c", "d", "e")
DRAWS = Draws(run_seed=7, question_hash="0" * 64)
NO_VOTE = {"ABSTAIN": "abstain", "REFUSAL": "refusal", "INVALID": "invalid"}


def snapshot(votes: Mapping[str, str]) -> Snapshot:
    """Return a read buffer in which agents hold these values, or kinds that are no vote."""
    states = tuple(
        state(agent, f"I say {vote}", value=vote, kind=NO_VOTE.get(vote, "value"))
        for agent, vote in votes.items()
    )
    return buffer(states)


def buffer(states: tuple[State, ...]) -> Snapshot:
    return Snapshot(t=1, states=states, history=states, snapshot_hash=snapshot_hash(1, states))


def said(votes: str) -> Snapshot:
    """``"A B -"``: what the agents a, b, c hold, in their order; ``-`` holds nothing."""
    held = zip(AGENTS, votes.split(), strict=False)
    return snapshot({agent: vote for agent, vote in held if vote != "-"})


def counting(kind: str = "plurality", tie: tuple[str, ...] = ("abstain",), **more: Any) -> Protocol:
    return protocol(agents=AGENTS, aggregation={"kind": kind, "tie": tie, **more})


def outcome(votes: str, of: Protocol, zero: str | None = None, t: int = 1) -> Outcome:
    before = said(zero) if zero is not None else None
    return aggregate(protocol=of, snapshot=said(votes), t=t, zero=before, draws=DRAWS)


def test_plurality_is_the_most_frequent_value() -> None:
    found = outcome("A B A C B", counting())
    assert found.tied
    found = outcome("A B A C", counting())
    assert (found.answer.value, found.tied) == ("A", False)
    assert found.counts == (("A", 2), ("B", 1), ("C", 1))


def test_abstentions_refusals_and_invalid_answers_are_no_votes() -> None:
    found = outcome("ABSTAIN ABSTAIN INVALID REFUSAL A", counting())
    assert (found.answer.value, found.counts) == ("A", (("A", 1),))


@pytest.mark.parametrize("kind", ["plurality", "strict_majority"])
@pytest.mark.parametrize("votes", ["- - -", "ABSTAIN INVALID REFUSAL"])
def test_without_a_valid_vote_the_outcome_abstains(kind: str, votes: str) -> None:
    found = outcome(votes, counting(kind))
    assert (found.answer.kind, found.answer.reason) == (AnswerKind.ABSTAIN, "no valid votes")


@pytest.mark.parametrize(
    ("votes", "value"),
    [("A A B", "A"), ("A A B B", ""), ("A A B C", ""), ("A A ABSTAIN INVALID B", "A"), ("A", "A")],
)
def test_a_strict_majority_is_more_than_half_of_the_valid_votes(votes: str, value: str) -> None:
    found = outcome(votes, counting("strict_majority"))
    assert found.answer.value == value
    assert found.answer.is_vote == bool(value)


def test_equal_first_places_without_a_majority_go_through_the_tie_policies() -> None:
    of = counting("strict_majority", ("round_zero_plurality", "abstain"))
    found = outcome("A B C", of, "C C C")
    assert (found.answer.value, found.tied, found.tie_resolved_by) == (
        "C",
        True,
        "round_zero_plurality",
    )
    alone = outcome("A A B C", counting("strict_majority", ("agent_order",)))
    assert (alone.answer.kind, alone.answer.reason) == (AnswerKind.ABSTAIN, "no strict majority")


def test_only_agents_that_vote_are_counted() -> None:
    advocate = protocol(agents=[{"id": "a", "votes": False}, {"id": "b"}, {"id": "c"}])
    found = outcome("A B -", advocate)
    assert (found.answer.value, found.counts) == ("B", (("B", 1),))


def test_the_single_voting_agents_answer_is_the_outcome_whatever_its_kind() -> None:
    alone = protocol(agents=["a"], aggregation={"kind": "single"})
    assert outcome("A", alone).answer.value == "A"
    assert outcome("REFUSAL", alone).answer.kind is AnswerKind.REFUSAL
    assert outcome("-", alone).answer.kind is AnswerKind.ABSTAIN


@pytest.mark.parametrize(
    ("tie", "zero", "value", "by"),
    [
        (("abstain",), "A A B", "", "abstain"),
        (("round_zero_plurality", "abstain"), "A A B", "A", "round_zero_plurality"),
        (("round_zero_plurality", "abstain"), "A B C", "", "abstain"),
        (("round_zero_plurality", "abstain"), None, "", "abstain"),
        (("round_zero_plurality", "agent_order"), "C C C", "B", "agent_order"),
        (("agent_order",), None, "B", "agent_order"),
        (("track_record",), None, "A", "track_record"),
    ],
)
def test_a_tie_goes_through_the_policies_in_order(
    tie: tuple[str, ...], zero: str | None, value: str, by: str
) -> None:
    record = {"b": 0.3, "c": 0.1, "a": 0.2} if "track_record" in tie else {}
    found = outcome("B A ABSTAIN", counting(tie=tie, track_record=record), zero)
    assert (found.answer.value, found.tied, found.tie_resolved_by) == (value, True, by)


def test_records_are_added_exactly() -> None:
    of = counting(
        tie=("track_record", "abstain"), track_record={"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.0}
    )
    assert outcome("A A B B", of).tie_resolved_by == "abstain"


def test_a_lot_is_the_same_in_every_process_and_differs_between_rounds() -> None:
    lot = counting(tie=("seeded_lot",))
    drawn = [outcome("A B C", lot, t=t).answer.value for t in range(40)]
    assert drawn == [outcome("A B C", lot, t=t).answer.value for t in range(40)]
    assert set(drawn) == {"A", "B", "C"}


def test_what_takes_a_model_call_is_refused_by_name() -> None:
    judge = {"prompt": "Which is better?"}
    with pytest.raises(UnsupportedAggregationError, match="judge: was not asked"):
        outcome("A B", counting(tie=("judge",), judge=judge))
    with pytest.raises(UnsupportedAggregationError, match="judge: was not asked"):
        outcome("A B", counting("judge", judge=judge))


def test_a_judge_is_not_asked_where_nothing_is_tied() -> None:
    of = counting(tie=("judge",), judge={"prompt": "Which?"})
    shown = said("A A B")
    found = aggregate(protocol=of, snapshot=shown, t=1, zero=None, draws=DRAWS, judged=())
    assert found.answer.value == "A"
    assert judged_candidates(protocol=of, snapshot=shown, zero=None, t=1, draws=DRAWS) == ()


def test_a_judge_is_asked_about_what_the_policies_before_it_leave_tied() -> None:
    of = counting(tie=("round_zero_plurality", "judge"), judge={"prompt": "Which?"})
    shown = said("B A A B C")
    asked = partial(judged_candidates, protocol=of, snapshot=shown, t=1, draws=DRAWS)
    assert asked(zero=said("A B C C C")) == ("B", "A")
    assert asked(zero=said("A A B C C")) == ()


def test_the_fallback_lists_candidates_and_open_issues_and_answers_nothing() -> None:
    held = said("A ABSTAIN B")
    first = replace(held.states[0], unresolved=("is it 2?",))
    shown = buffer((first, *held.states[1:]))
    found = unresolved(protocol=counting(), snapshot=shown, t=2, issues=("deadline",))
    assert (found.unresolved, found.answer.kind, found.t) == (True, AnswerKind.ABSTAIN, 2)
    assert found.candidates == (("a", "A"), ("b", "abstain"), ("c", "B"))
    assert found.open_issues == ("deadline", "a: is it 2?")
    assert found.counts == (("A", 1), ("B", 1))


def test_the_fallback_needs_no_candidate() -> None:
    found = unresolved(protocol=counting(), snapshot=None, t=0, issues=("nothing admitted",))
    assert (found.unresolved, found.candidates) == (True, ())


def test_a_protocol_without_an_aggregator_ends_in_its_candidates() -> None:
    found = outcome("A B A", counting("none"))
    assert found.unresolved
    assert len(found.candidates) == 3


VOTES = st.lists(st.sampled_from(["A", "B", "C", *NO_VOTE]), min_size=1, max_size=5)
RULES = st.sampled_from(["plurality", "strict_majority"])
POLICIES = st.sampled_from(
    [("abstain",), ("agent_order",), ("seeded_lot",), ("round_zero_plurality", "abstain")]
)


@given(VOTES, VOTES, RULES, POLICIES, st.randoms(use_true_random=False))
def test_the_order_in_which_states_stand_decides_nothing(
    votes: list[str], before: list[str], kind: str, tie: tuple[str, ...], source: Any
) -> None:
    of, zero = counting(kind, tie), said(" ".join(before))
    straight = said(" ".join(votes))
    mixed = list(straight.states)
    source.shuffle(mixed)
    ways = [
        aggregate(protocol=of, snapshot=shown, t=1, zero=zero, draws=DRAWS)
        for shown in (straight, buffer(tuple(mixed)))
    ]
    assert ways[0] == ways[1]


@given(VOTES, st.permutations(["A", "B", "C"]), RULES)
def test_renaming_the_values_renames_the_outcome_and_changes_nothing_else(
    votes: list[str], names: list[str], kind: str
) -> None:
    renamed = dict(zip("ABC", names, strict=True))
    plain = outcome(" ".join(votes), counting(kind))
    other = outcome(" ".join(renamed.get(v, v) for v in votes), counting(kind))
    assert other.answer.value == renamed.get(plain.answer.value, "")
    assert other.tied == plain.tied
    assert dict(other.counts) == {renamed[value]: n for value, n in plain.counts}


@given(st.lists(st.sampled_from("ABC"), min_size=1, max_size=3), st.sampled_from([*NO_VOTE]), RULES)
def test_agents_without_a_vote_change_no_count(votes: list[str], extra: str, kind: str) -> None:
    alone = outcome(" ".join(votes), counting(kind))
    joined = outcome(" ".join([*votes, extra, extra]), counting(kind))
    assert joined == alone

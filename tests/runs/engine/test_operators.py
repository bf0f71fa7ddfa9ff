"""A round in one piece: the order in which calls end can change nothing (S8–S12)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.errors import InconsistentInputError, UnsupportedProtocolError
from runs.engine.hashing import raw_digest, snapshot_preimage
from runs.engine.operators import commit_round, initial_snapshot, plan_round
from runs.engine.snapshots import snapshot_at
from runs.engine.types import (
    CallKind,
    CallResult,
    CallStatus,
    RoundCommit,
    RoundPlan,
    Snapshot,
    Status,
)
from runs.protocols.spec import Protocol
from tests.runs.engine.builders import (
    PROMPTS,
    QUESTION,
    answered,
    histories,
    protocol,
    snapshot_of,
)
from tests.runs.engine.debates import debate, drawn, outcomes, says

ABC = ("a", "b", "c")
ONE_ROUND = snapshot_of([{"a": "alpha", "b": "beta", "c": "gamma"}], ABC)


def plan(of: Protocol, snapshot: Snapshot, **changes: Any) -> RoundPlan:
    active = None if snapshot.t == 0 else tuple(s.agent_id for s in snapshot.states)
    settings: dict[str, Any] = {"active": active, "run_seed": 1, "t": snapshot.t, **changes}
    return plan_round(protocol=of, question=QUESTION, evidence=(), snapshot=snapshot, **settings)


def commit(
    of: Protocol, planned: RoundPlan, snapshot: Snapshot, results: Any, **changes: Any
) -> RoundCommit:
    active = None if snapshot.t == 0 else tuple(s.agent_id for s in snapshot.states)
    settings: dict[str, Any] = {"active": active, "run_seed": 1, **changes}
    return commit_round(
        protocol=of,
        question=QUESTION,
        plan=planned,
        snapshot=snapshot,
        results=results,
        **settings,
    )


def statuses(done: RoundCommit) -> dict[str, Status]:
    return {verdict.agent_id: verdict.status for verdict in done.verdicts}


# Planning


def test_everyone_is_asked_at_zero_and_the_active_set_afterwards() -> None:
    of = protocol()
    first = plan(of, initial_snapshot())
    assert first.scheduled == ABC
    assert {call.kind for call in first.calls} == {CallKind.INITIAL}
    later = plan(of, snapshot_of([{"c": "gamma", "a": "alpha"}], ABC))
    assert later.scheduled == ("a", "c")
    assert [call.parent_version for call in later.calls] == [1, 1]


@given(snapshot=histories(ABC))
def test_at_zero_no_state_changes_a_byte_of_any_call(snapshot: Snapshot) -> None:
    """Blindness (S8): even a read buffer that holds states could not reach a prompt."""
    of = protocol(selection={"own_history": "all", "include_self": True})
    leaky = replace(snapshot, t=0)
    blind = plan(of, initial_snapshot())
    assert plan(of, leaky).calls == blind.calls
    assert all(call.read_set.entries == () for call in blind.calls)


def test_a_bound_covers_every_byte_of_the_prompt_and_the_digest_what_is_asked() -> None:
    of = protocol()
    call = plan(of, ONE_ROUND).calls[0]
    assert call.input_token_bound >= sum(len(m.content.encode()) for m in call.prompt)
    warmer = protocol(agents=({"id": "a", "decoding": {"temperature": 0.7}}, "b", "c"))
    digests = {plan(p, ONE_ROUND).calls[0].request_digest for p in (of, warmer)}
    assert len(digests) == 2


def test_a_seed_is_sent_only_where_asked_and_differs_by_agent_round_and_run() -> None:
    of = protocol(agents=[{"id": i, "decoding": {"seeded": True}} for i in ABC])
    seeds = [
        call.seed
        for snapshot, run_seed in ((initial_snapshot(), 1), (ONE_ROUND, 1), (ONE_ROUND, 2))
        for call in plan(of, snapshot, run_seed=run_seed).calls
    ]
    assert len(set(seeds)) == 9
    assert {call.seed for call in plan(protocol(), ONE_ROUND).calls} == {None}


def test_a_protocol_that_is_not_carried_out_is_refused_when_a_round_is_planned() -> None:
    with pytest.raises(UnsupportedProtocolError, match="sequential"):
        plan(protocol(operator={"kind": "sequential"}), initial_snapshot())
    slots = {**PROMPTS, "revision": "{{peers}}{{majority}}"}
    with pytest.raises(UnsupportedProtocolError, match="majority"):
        plan(protocol(prompts=slots), initial_snapshot())


@pytest.mark.parametrize(
    "changes",
    [{"t": 2}, {"active": None}, {"active": ("a", "zoe")}],
    ids=["round", "no active set", "active without a state"],
)
def test_values_that_do_not_belong_together_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InconsistentInputError):
        plan(protocol(), ONE_ROUND, **changes)


def test_a_plan_of_another_snapshot_or_run_is_not_committed() -> None:
    of = protocol(agents=[{"id": i, "decoding": {"seeded": True}} for i in ABC])
    planned = plan(of, ONE_ROUND)
    other = snapshot_of([{"a": "x", "b": "beta", "c": "gamma"}], ABC)
    with pytest.raises(InconsistentInputError, match="snapshot"):
        commit(of, planned, other, ())
    with pytest.raises(InconsistentInputError, match="seed"):
        commit(of, planned, ONE_ROUND, (), run_seed=2)


# Committing


@st.composite
def rounds(draw: st.DrawFn) -> tuple[Protocol, Snapshot, RoundPlan, list[CallResult]]:
    of = protocol(rounds=4, stopping={"stable_candidates": True, "unanimous": True})
    snapshot = draw(st.one_of(st.just(initial_snapshot()), histories(ABC)))
    planned = plan(of, snapshot)
    return of, snapshot, planned, [r for call in planned.calls for r in draw(outcomes(call))]


@given(case=rounds(), data=st.data())
def test_any_order_and_any_duplicates_give_the_same_commit(
    case: tuple[Protocol, Snapshot, RoundPlan, list[CallResult]], data: st.DataObject
) -> None:
    of, snapshot, planned, results = case
    once = commit(of, planned, snapshot, results)
    again = data.draw(st.lists(st.sampled_from(results), max_size=4)) if results else []
    shuffled = commit(of, planned, snapshot, data.draw(st.permutations(results + again)))
    assert shuffled == once
    assert snapshot_preimage(once.snapshot.t, once.snapshot.states) == snapshot_preimage(
        shuffled.snapshot.t, shuffled.snapshot.states
    )


@given(case=rounds(), data=st.data())
def test_late_results_change_nothing(
    case: tuple[Protocol, Snapshot, RoundPlan, list[CallResult]], data: st.DataObject
) -> None:
    of, snapshot, planned, results = case
    late = [
        replace(result, late=True) for call in planned.calls for result in data.draw(outcomes(call))
    ]
    mixed = data.draw(st.permutations([*late, *results]))
    assert commit(of, planned, snapshot, mixed) == commit(of, planned, snapshot, results)


@given(case=rounds())
def test_a_state_changes_only_by_admission_and_by_one_version(
    case: tuple[Protocol, Snapshot, RoundPlan, list[CallResult]],
) -> None:
    of, snapshot, planned, results = case
    done = commit(of, planned, snapshot, results)
    assert tuple(v.agent_id for v in done.verdicts) == ABC
    for verdict in done.verdicts:
        before, after = (s.state_of(verdict.agent_id) for s in (snapshot, done.snapshot))
        assert verdict.admitted == (verdict.status is Status.SUCCEEDED)
        if not verdict.admitted:
            assert after == before
            continue
        assert after == verdict.state
        assert after is not None
        assert after.parent_version == (before.state_version if before else 0)
        assert (after.state_version, after.round) == (after.parent_version + 1, snapshot.t)
    assert snapshot_at(done.snapshot, snapshot.t) == snapshot


@given(data=st.data())
def test_versions_of_a_whole_debate_are_an_unbroken_chain(data: st.DataObject) -> None:
    record = debate(protocol(rounds=3), drawn(data))
    states = [s for stored in record.rounds for s in stored.states]
    for agent_id in ABC:
        own = [s for s in states if s.agent_id == agent_id]
        assert [s.state_version for s in own] == list(range(1, len(own) + 1))
        assert [s.parent_version for s in own] == list(range(len(own)))
        assert [s.round for s in own] == sorted({s.round for s in own})


def test_an_agent_without_an_initial_state_stays_in_every_record() -> None:
    record = debate(
        protocol(rounds=1),
        says(
            {"a": "Final answer: 1", "b": None, "c": "nothing"},
            {"a": "Final answer: 2"},
        ),
    )
    assert [v.status for v in record.rounds[0].verdicts] == [
        Status.SUCCEEDED,
        Status.FAILED,
        Status.INVALID,
    ]
    assert [v.status for v in record.rounds[1].verdicts] == [
        Status.SUCCEEDED,
        Status.INACTIVE,
        Status.INACTIVE,
    ]
    assert record.rounds[1].active == ("a",)


def test_of_several_admissible_results_the_first_attempt_wins_then_the_lowest_hash() -> None:
    of = protocol()
    planned = plan(of, initial_snapshot())
    call = planned.calls[0]
    texts = sorted(
        (f"Final answer: {n}" for n in range(6)),
        key=lambda text: raw_digest(text.encode()),
    )
    doubled = [answered(call, text, attempt=1) for text in texts]
    first = answered(call, "Final answer: 99", attempt=0)
    failed = answered(call, b"", status=CallStatus.FAILED, attempt=0)

    def text_of(results: list[CallResult]) -> str:
        state = commit(of, planned, initial_snapshot(), results).snapshot.state_of("a")
        assert state is not None
        return state.text

    assert text_of([*doubled, failed]) == texts[0]
    assert text_of([*doubled, first]) == "Final answer: 99"


def test_a_verdict_without_an_admission_is_the_last_attempts() -> None:
    of = protocol()
    planned = plan(of, initial_snapshot())
    a, b, c = planned.calls
    results = [
        answered(a, b"", status=CallStatus.TIMEOUT, attempt=1),
        answered(a, b"", status=CallStatus.FAILED, attempt=0),
        replace(answered(b, "Final answer: 1"), request_digest="0" * 64),
        answered(c, "Final answer: 1", late=True),
    ]
    done = commit(of, planned, initial_snapshot(), results)
    assert [(v.status, v.reason) for v in done.verdicts] == [
        (Status.TIMEOUT, "timeout"),
        (Status.INVALID, "rejected:request_digest"),
        (Status.TIMEOUT, "no_result"),
    ]


def test_an_agent_that_the_budget_kept_from_a_call_is_told_apart_from_a_silent_one() -> None:
    of = protocol()
    planned = plan(of, ONE_ROUND)
    done = commit(of, planned, ONE_ROUND, [], skipped=("b",))
    assert statuses(done) == {
        "a": Status.TIMEOUT,
        "b": Status.SKIPPED_BUDGET,
        "c": Status.TIMEOUT,
    }


def test_a_result_for_nobody_in_the_plan_is_nobodys() -> None:
    of = protocol()
    snapshot = snapshot_of([{"a": "alpha", "b": "beta"}], ABC)
    planned = plan(of, snapshot)
    stray = replace(answered(planned.calls[0], "Final answer: 1"), agent_id="c")
    done = commit(of, planned, snapshot, [stray, replace(stray, agent_id="zoe")])
    assert statuses(done)["c"] is Status.INACTIVE
    assert done.snapshot.states == snapshot.states

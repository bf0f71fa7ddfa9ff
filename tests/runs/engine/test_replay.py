"""Replay (S34): the records agree with themselves, and a changed one is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs.engine.replay import RunRecord, replay
from runs.engine.types import (
    Answer,
    AnswerKind,
    CallKind,
    CallStatus,
    Claim,
    Dropped,
    Evidence,
    PromptMessage,
    ReadEntry,
    ReadSet,
    Status,
    Stop,
    StopReason,
)
from runs.protocols.spec import Protocol
from tests.runs.engine.builders import protocol, state
from tests.runs.engine.debates import debate, drawn, says

EVIDENCE = (Evidence("e1", "Six sevens are forty-two."), Evidence("e2", "Other."))
RICH = protocol(
    rounds=2,
    agents=[{"id": i, "decoding": {"seeded": True}} for i in "abcd"],
    topology={"kind": "k_regular", "k": 2},
    selection={"order": "seeded_shuffle", "own_history": "all", "total_cap_chars": 8000},
    aggregation={"kind": "plurality", "tie": ["round_zero_plurality", "seeded_lot"]},
)


def rich_run() -> RunRecord:
    return debate(
        RICH,
        says(
            {"a": "Final answer: 1", "b": "Final answer: 2", "c": "Final answer: 1", "d": None},
            {"a": "Final answer: 2", "b": "who knows", "c": "Final answer: 1"},
            {"a": "Final answer: 2", "b": "Final answer: 2", "c": "Final answer: 1"},
        ),
        evidence=EVIDENCE,
        run_seed=7,
    )


@st.composite
def protocols(draw: st.DrawFn) -> Protocol:
    return protocol(
        rounds=draw(st.integers(0, 3)),
        topology=draw(
            st.sampled_from([{"kind": "full"}, {"kind": "ring"}, {"kind": "k_regular", "k": 1}])
        ),
        selection={
            "own_history": draw(st.sampled_from(["none", "last", "all"])),
            "order": draw(st.sampled_from(["by_id", "seeded_shuffle"])),
            "rounds": draw(st.sampled_from(["last", "all"])),
            "message_cap_chars": 20,
            "total_cap_chars": draw(st.sampled_from([30, 400])),
        },
        aggregation={
            "kind": draw(st.sampled_from(["plurality", "strict_majority"])),
            "tie": [draw(st.sampled_from(["abstain", "seeded_lot", "agent_order"]))],
        },
    )


@given(of=protocols(), data=st.data(), seed=st.integers(0, 2**40))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_every_run_agrees_with_its_records(of: Protocol, data: st.DataObject, seed: int) -> None:
    skipped = {t: ("b",) for t in range(3) if data.draw(st.booleans())}
    record = debate(of, drawn(data), evidence=EVIDENCE, run_seed=seed, skipped=skipped)
    assert replay(record) == []
    shuffled = tuple(
        replace(stored, results=tuple(data.draw(st.permutations(stored.results))))
        for stored in record.rounds
    )
    assert replay(replace(record, rounds=shuffled)) == []


def test_a_branched_run_agrees_with_and_without_its_round_zero() -> None:
    branched = (state("a", "alpha"), state("b", "beta"))
    record = debate(protocol(rounds=1), says({}, {"a": "Final answer: 5"}), branched=branched)
    assert replay(record) == []
    assert replay(replace(record, rounds=record.rounds[1:])) == []
    other = replace(record, branched=branched[:1])
    assert replay(other)[0].where == "round 0, agent b"


def test_a_run_that_goes_on_has_neither_stop_nor_outcome() -> None:
    done = rich_run()
    running = replace(done, rounds=done.rounds[:2], stop=None, outcome=None)
    assert replay(running) == []
    assert replay(replace(running, rounds=())) == []
    assert [d.field for d in replay(replace(running, outcome=done.outcome))] == ["outcome"]


@pytest.mark.parametrize("reason", ["cancelled", "work_deadline", "worker_budget", "error"])
def test_a_stop_that_only_the_host_knew_of_is_taken_from_the_record(reason: str) -> None:
    done = rich_run()
    stop = Stop(StopReason(reason), {"by": "host"})
    partial = replace(done, rounds=done.rounds[:2], stop=stop)
    assert {d.field.split(".")[0] for d in replay(partial)} == {"outcome"}
    first = replay(replace(done, stop=replace(stop, reason=StopReason.WORK_DEADLINE)))[0]
    assert (first.where, first.field, first.stored) == (
        "run",
        "stop.reason",
        "work_deadline",
    )


Tamper = Callable[[RunRecord], RunRecord]


def at_round(t: int, /, **changes: Callable[[Any], Any]) -> Tamper:
    def tamper(record: RunRecord) -> RunRecord:
        rounds = list(record.rounds)
        rounds[t] = changed(rounds[t], changes)
        return replace(record, rounds=tuple(rounds))

    return tamper


def changed(value: Any, changes: dict[str, Callable[[Any], Any]]) -> Any:
    return replace(value, **{k: change(getattr(value, k)) for k, change in changes.items()})


def first(**changes: Callable[[Any], Any]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Change fields of the first of a sequence of values."""
    return lambda values: (changed(values[0], changes), *values[1:])


def to(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def bumped(number: int) -> int:
    return number + 1


def edited(text: str) -> str:
    return text + "x"


ANSWER = Answer(raw="9", kind=AnswerKind.VALUE, value="9")

TAMPERINGS: dict[str, tuple[Tamper, str, str]] = {
    "snapshot": (at_round(1, snapshot_hash=edited), "round 1", "snapshot_hash"),
    "a call's agent": (at_round(1, calls=first(agent_id=to("d"))), "round 1, agent d", "call"),
    "a call removed": (at_round(1, calls=lambda c: c[1:]), "round 1, agent a", "call"),
    "kind": (at_round(1, calls=first(kind=to(CallKind.INITIAL))), "round 1, agent a", "kind"),
    "prompt": (
        at_round(
            1, calls=first(prompt=lambda p: (*p[:-1], PromptMessage("user", p[-1].content + " ")))
        ),
        "round 1, agent a",
        "prompt",
    ),
    "read version": (
        at_round(
            1,
            calls=first(
                read_set=lambda r: ReadSet((changed(r.entries[0], {"state_version": bumped}),))
            ),
        ),
        "round 1, agent a",
        "read_set",
    ),
    "read entry added": (
        at_round(0, calls=first(read_set=to(ReadSet(entries=(ReadEntry("b", 1, "0" * 64, 0),))))),
        "round 0, agent a",
        "read_set",
    ),
    "dropped added": (
        at_round(
            0,
            calls=first(read_set=to(ReadSet(dropped=(Dropped("b", 1, "0" * 64, "total_cap"),)))),
        ),
        "round 0, agent a",
        "read_set",
    ),
    "parent": (
        at_round(1, calls=first(parent_version=bumped)),
        "round 1, agent a",
        "parent_version",
    ),
    "digest": (
        at_round(1, calls=first(request_digest=edited)),
        "round 1, agent a",
        "request_digest",
    ),
    "raw bytes": (
        at_round(0, results=first(raw=to(b"Final answer: 3"))),
        "round 0, agent a",
        "state.text",
    ),
    "result status": (
        at_round(0, results=first(status=to(CallStatus.FAILED))),
        "round 0, agent a",
        "verdict.status",
    ),
    "finish reason": (
        at_round(0, results=first(finish_reason=to("length"))),
        "round 0, agent a",
        "verdict.status",
    ),
    "result digest": (
        at_round(0, results=first(request_digest=edited)),
        "round 0, agent a",
        "verdict.status",
    ),
    "result parent": (
        at_round(0, results=first(parent_version=bumped)),
        "round 0, agent a",
        "verdict.status",
    ),
    "result late": (
        at_round(0, results=first(late=to(True))),
        "round 0, agent a",
        "verdict.status",
    ),
    "result round": (at_round(0, results=first(t=bumped)), "round 0, agent a", "verdict.status"),
    "result's agent": (
        at_round(0, results=first(agent_id=to("d"))),
        "round 0, agent a",
        "verdict.status",
    ),
    "result removed": (at_round(0, results=lambda r: r[1:]), "round 0, agent a", "verdict.status"),
    "skipped": (
        at_round(1, skipped=to(("b",)), results=lambda r: (r[0], *r[2:])),
        "round 1, agent b",
        "verdict.status",
    ),
    "verdict status": (
        at_round(1, verdicts=lambda v: (v[0], replace(v[1], status=Status.FAILED), *v[2:])),
        "round 1, agent b",
        "verdict.status",
    ),
    "verdict reason": (
        at_round(1, verdicts=first(reason=to("because"))),
        "round 1, agent a",
        "verdict.reason",
    ),
    "verdict round": (at_round(1, verdicts=first(t=bumped)), "round 1, agent a", "verdict.t"),
    "verdict removed": (at_round(1, verdicts=lambda v: v[1:]), "round 1", "verdict agents"),
    "active": (at_round(1, active=to(("a", "b", "c", "d"))), "round 1", "active"),
    "state removed": (at_round(1, states=lambda s: s[1:]), "round 1", "state agents"),
    "state.version": (
        at_round(1, states=first(state_version=bumped)),
        "round 1, agent a",
        "state.state_version",
    ),
    "state.parent": (
        at_round(1, states=first(parent_version=bumped)),
        "round 1, agent a",
        "state.parent_version",
    ),
    "state.round": (at_round(1, states=first(round=bumped)), "round 1, agent a", "state.round"),
    "state.text": (at_round(1, states=first(text=edited)), "round 1, agent a", "state.text"),
    "state.answer": (
        at_round(1, states=first(answer=to(ANSWER))),
        "round 1, agent a",
        "state.answer",
    ),
    "state.raw_hash": (
        at_round(1, states=first(raw_hash=edited)),
        "round 1, agent a",
        "state.raw_hash",
    ),
    "state.content_hash": (
        at_round(1, states=first(content_hash=edited)),
        "round 1, agent a",
        "state.content_hash",
    ),
    "state.claims": (
        at_round(1, states=first(claims=to((Claim("c1", "x", "0"),)))),
        "round 1, agent a",
        "state.claims",
    ),
    "state.evidence": (
        at_round(1, states=first(evidence_refs=to(("e1",)))),
        "round 1, agent a",
        "state.evidence_refs",
    ),
    "state.unresolved": (
        at_round(1, states=first(unresolved=to(("x",)))),
        "round 1, agent a",
        "state.unresolved",
    ),
    "state.confidence": (
        at_round(1, states=first(confidence=to("0.9"))),
        "round 1, agent a",
        "state.confidence",
    ),
    "state.change": (
        at_round(1, states=first(change=to((("text", "x"),)))),
        "round 1, agent a",
        "state.change",
    ),
    "round number": (at_round(1, t=bumped), "round 2", "t"),
    "round repeated": (lambda r: replace(r, rounds=(*r.rounds, r.rounds[-1])), "round 2", "t"),
    "round removed": (lambda r: replace(r, rounds=r.rounds[:-1]), "run", "stop"),
    "protocol": (
        lambda r: replace(r, protocol=r.protocol.model_copy(update={"revision_rounds": 3})),
        "run",
        "protocol_hash",
    ),
    "protocol hash": (lambda r: replace(r, protocol_hash="0"), "run", "protocol_hash"),
    "question": (
        lambda r: replace(r, question=replace(r.question, text="What is 6 + 7?")),
        "run",
        "question_hash",
    ),
    "question hash": (lambda r: replace(r, question_hash="0"), "run", "question_hash"),
    "evidence": (lambda r: replace(r, evidence=EVIDENCE[:1]), "run", "evidence_hash"),
    "evidence hash": (lambda r: replace(r, evidence_hash="0"), "run", "evidence_hash"),
    "seed": (lambda r: replace(r, run_seed=8), "round 0, agent a", "request_digest"),
    "stop": (
        lambda r: replace(r, stop=Stop(StopReason.STABLE_CANDIDATES)),
        "run",
        "stop.reason",
    ),
    "stop removed": (lambda r: replace(r, stop=None), "run", "stop"),
    "observables": (
        lambda r: replace(r, stop=Stop(StopReason.ROUND_LIMIT, {"t": 2})),
        "run",
        "stop.observables",
    ),
    "outcome removed": (lambda r: replace(r, outcome=None), "run", "outcome"),
}


def with_outcome(field: str, value: object) -> Tamper:
    return lambda record: replace(record, outcome=changed(record.outcome, {field: to(value)}))


for _field, _value in {
    "t": 1,
    "aggregator": "single",
    "answer": ANSWER,
    "counts": (("1", 3),),
    "tied": True,
    "tie_resolved_by": "seeded_lot",
    "unresolved": True,
    "candidates": (("a", "1"),),
    "open_issues": ("x",),
}.items():
    TAMPERINGS[f"outcome.{_field}"] = (with_outcome(_field, _value), "run", f"outcome.{_field}")


@pytest.mark.parametrize("name", TAMPERINGS)
def test_a_changed_record_is_found_and_the_first_disagreement_names_it(name: str) -> None:
    tamper, where, field = TAMPERINGS[name]
    genuine = rich_run()
    assert replay(genuine) == []
    found = replay(tamper(genuine))
    assert (found[0].where, found[0].field) == (where, field)
    assert found[0].stored != found[0].recomputed


def test_a_late_difference_in_a_long_value_is_shown_where_it_is() -> None:
    def end_changed(prompt: tuple[PromptMessage, ...]) -> tuple[PromptMessage, ...]:
        long = PromptMessage("user", prompt[-1].content + "y" * 900 + "z")
        return (*prompt[:-1], long)

    found = replay(at_round(0, calls=first(prompt=end_changed))(rich_run()))[0]
    assert len(found.stored) < 400
    assert "yyy" in found.stored
    assert str(found).startswith("round 0, agent a: prompt: stored …")


def test_a_record_that_fits_nothing_is_a_disagreement_and_no_crash() -> None:
    genuine = rich_run()
    other = protocol(agents="xy", topology={"kind": "full"})
    found = replay(replace(genuine, protocol=other))
    assert found[0].field == "protocol_hash"
    bad_branch = replace(genuine, branched=(state("zoe", "x"),), rounds=())
    assert "zoe" in str(replay(bad_branch)[-1])

"""
Replay (S34): everything that follows from a run's records, computed again without a model.

Selection, prompts, admission, votes and stops must come out exactly as stored. What a model
said, and how its call ended, is what replay starts from; that these bytes are the ones that
came is for a bundle's hashes to prove.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from runs.engine.aggregation import aggregate
from runs.engine.branching import branch_commit
from runs.engine.draws import Draws
from runs.engine.errors import EngineError
from runs.engine.finish import final_outcome
from runs.engine.hashing import evidence_hash, question_hash
from runs.engine.judging import plan_judging, read_verdicts
from runs.engine.operators import commit_round, plan_round
from runs.engine.snapshots import initial_snapshot
from runs.engine.stopping import HOST_STOPS
from runs.engine.types import (
    CallKind,
    CallPlan,
    CallResult,
    Evidence,
    JudgePlan,
    JudgeVerdict,
    Outcome,
    PromptMessage,
    Question,
    ReadSet,
    RoundCommit,
    RoundPlan,
    Snapshot,
    State,
    Status,
    Stop,
    StopReason,
    Verdict,
)
from runs.protocols.digest import protocol_hash
from runs.protocols.spec import Protocol

_SHOWN_CHARS = 300
_BEFORE_CHARS = 60

#: Stops that a host may declare even of a round after which the engine would have stopped.
_OVERRIDES = frozenset((StopReason.CANCELLED, StopReason.ERROR))


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call as its attempts stored it; retries of a call repeat the same record."""

    agent_id: str
    kind: CallKind
    prompt: tuple[PromptMessage, ...]
    read_set: ReadSet
    parent_version: int
    request_digest: str

    @classmethod
    def of(cls, call: CallPlan) -> CallRecord:
        return cls(**{field.name: getattr(call, field.name) for field in fields(cls)})


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """
    One committed round.

    ``snapshot_hash`` is of the round's read buffer. ``results`` are all outcomes that came, late
    ones too; ``skipped`` the agents that the budget kept from a call. Of a verdict, agent,
    status and reason are compared; ``states`` are the states admitted in this round, in the
    order of the configured agents; ``outcome`` is the aggregate after it, where it was stored.
    """

    t: int
    snapshot_hash: str
    calls: tuple[CallRecord, ...]
    results: tuple[CallResult, ...]
    verdicts: tuple[Verdict, ...]
    states: tuple[State, ...]
    active: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class JudgingRecord:
    """
    What a judge was asked at the end of a run, and said (S28).

    ``t`` is the stage's place among the run's rounds; ``calls`` and ``results`` are as in a
    round; ``verdicts`` stand in the order of the plan's presentations.
    """

    t: int
    calls: tuple[CallRecord, ...]
    results: tuple[CallResult, ...]
    verdicts: tuple[JudgeVerdict, ...]

    @property
    def skipped(self) -> tuple[str, ...]:
        return tuple(v.call_id for v in self.verdicts if v.status is Status.SKIPPED_BUDGET)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """
    One run on one question.

    ``judging`` is None where no judge was asked; ``is_judging`` is true while its calls are still
    under way, so that there is a stop and no outcome. ``branched`` is None where t = 0 was
    sampled; else the states taken over, and the records may begin at t = 0 (without calls) or at
    t = 1. ``stop`` is None while the run goes on.
    """

    protocol: Protocol
    protocol_hash: str
    question: Question
    question_hash: str
    evidence: tuple[Evidence, ...]
    evidence_hash: str
    run_seed: int
    rounds: tuple[RoundRecord, ...]
    branched: tuple[State, ...] | None = None
    stop: Stop | None = None
    outcome: Outcome | None = None
    judging: JudgingRecord | None = None
    is_judging: bool = False


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One stored value that replay computes otherwise; both are cut for display."""

    where: str
    field: str
    stored: str
    recomputed: str

    def __str__(self) -> str:
        return f"{self.where}: {self.field}: stored {self.stored}, recomputed {self.recomputed}"


def replay(record: RunRecord) -> list[Disagreement]:
    """
    Return every disagreement in the order in which a run is made; empty: all agrees.

    After the first one the rest follows from the recomputed values, so only the first is sure to
    name a cause. Never raises for what a record holds.
    """
    try:
        return list(_disagreements(record))
    except EngineError as exc:
        return [*_identity(record), Disagreement("run", "record", "a run", str(exc))]


def _disagreements(record: RunRecord) -> Iterator[Disagreement]:
    yield from _identity(record)
    reached = _Reached(record)
    for stored in record.rounds:
        yield from reached.round(stored)
        if reached.is_over:
            break
    yield from reached.end()


def _identity(record: RunRecord) -> Iterator[Disagreement]:
    """Compare what the run is bound to (S2)."""
    pairs = (
        ("protocol_hash", record.protocol_hash, protocol_hash(record.protocol)),
        ("question_hash", record.question_hash, question_hash(record.question)),
        ("evidence_hash", record.evidence_hash, evidence_hash(record.evidence)),
    )
    for field, stored, recomputed in pairs:
        yield from _compare("run", field, stored, recomputed)


class _Reached:
    """How far a replay has come: the snapshot that opens the next round, and why it ended."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record
        self._opened = 0
        self._snapshot = initial_snapshot()
        self._zero: Snapshot | None = None
        self._active: tuple[str, ...] | None = None
        self._stop: Stop | None = None
        self.is_over = False
        self._skip_to_one()

    def _skip_to_one(self) -> None:
        starts_at = self._record.rounds[0].t if self._record.rounds else 1
        if self._record.branched is not None and starts_at != 0:
            self._take(branch_commit(protocol=self._record.protocol, states=self._record.branched))

    def round(self, stored: RoundRecord) -> Iterator[Disagreement]:
        where = f"round {stored.t}"
        if self._stop is not None or stored.t != self._opened:
            due = "none" if self._stop is not None else str(self._opened)
            yield Disagreement(where, "t", str(stored.t), due)
            self.is_over = True
            return
        yield from _compare(
            where, "snapshot_hash", stored.snapshot_hash, self._snapshot.snapshot_hash
        )
        if stored.t == 0 and self._record.branched is not None:
            yield from _compare(where, "calls", len(stored.calls), 0)
            commit = branch_commit(protocol=self._record.protocol, states=self._record.branched)
        else:
            plan = self._plan()
            yield from _calls(where, stored, plan)
            commit = self._commit(stored, plan)
        yield from _commit(where, stored, commit)
        self._take(commit)
        yield from self._round_outcome(where, stored)

    def end(self) -> Iterator[Disagreement]:
        """Compare the stop and the final answer."""
        stored, reached = self._record.stop, self._stop
        if not _may_declare(stored, reached):
            yield from _compare_parts("run", "stop", stored, reached)
        stop = stored or reached
        if self._record.outcome is None and self._record.is_judging:
            return
        if stop is None or self._record.outcome is None:
            yield from _compare("run", "outcome", self._record.outcome is None, stop is None)
            return
        judged: tuple[JudgeVerdict, ...] | None = None
        plan = self._judging(stop)
        if plan is not None:
            judged = self._judged(plan)
            yield from _judging("the judge", self._record.judging, plan, judged)
        elif self._record.judging is not None and stop.reason not in _OVERRIDES:
            yield Disagreement("the judge", "calls", "made", "not planned")
        due = self._outcome(stop, judged)
        yield from _compare_parts("run", "outcome", self._record.outcome, due)

    def _judging(self, stop: Stop) -> JudgePlan | None:
        record = self._record
        return plan_judging(
            protocol=record.protocol,
            question=record.question,
            evidence=record.evidence,
            zero=self._zero or self._snapshot,
            last=self._snapshot,
            stop=stop,
            t=max(self._opened - 1, 0),
            stage_t=record.judging.t if record.judging is not None else self._opened,
            run_seed=record.run_seed,
        )

    def _judged(self, plan: JudgePlan) -> tuple[JudgeVerdict, ...]:
        """Read the verdicts again from what came back (S34)."""
        stored = self._record.judging
        return read_verdicts(
            protocol=self._record.protocol,
            plan=plan,
            results=stored.results if stored is not None else (),
            skipped=stored.skipped if stored is not None else (),
        )

    def _plan(self) -> RoundPlan:
        return plan_round(
            protocol=self._record.protocol,
            question=self._record.question,
            evidence=self._record.evidence,
            snapshot=self._snapshot,
            active=self._active,
            run_seed=self._record.run_seed,
            t=self._opened,
        )

    def _commit(self, stored: RoundRecord, plan: RoundPlan) -> RoundCommit:
        return commit_round(
            protocol=self._record.protocol,
            question=self._record.question,
            plan=plan,
            snapshot=self._snapshot,
            results=stored.results,
            skipped=stored.skipped,
            active=self._active,
            run_seed=self._record.run_seed,
        )

    def _take(self, commit: RoundCommit) -> None:
        self._snapshot, self._active, self._stop = commit.snapshot, commit.active, commit.stop
        self._zero = self._zero or commit.snapshot
        self._opened += 1

    def _round_outcome(self, where: str, stored: RoundRecord) -> Iterator[Disagreement]:
        if stored.outcome is None:
            return
        recomputed = aggregate(
            protocol=self._record.protocol,
            snapshot=self._snapshot,
            t=stored.t,
            zero=self._zero or self._snapshot,
            draws=Draws(self._record.run_seed, question_hash(self._record.question)),
        )
        yield from _compare_parts(where, "outcome", stored.outcome, recomputed)

    def _outcome(self, stop: Stop, judged: tuple[JudgeVerdict, ...] | None) -> Outcome:
        return final_outcome(
            protocol=self._record.protocol,
            zero=self._zero or self._snapshot,
            last=self._snapshot,
            stop=stop,
            t=max(self._opened - 1, 0),
            run_seed=self._record.run_seed,
            question=self._record.question,
            judged=judged,
        )


def _may_declare(stored: Stop | None, due: Stop | None) -> bool:
    """Whether ``stored`` is a stop that only the host could know of, and may be true."""
    if stored is None or stored.reason not in HOST_STOPS:
        return False
    return due is None or stored.reason in _OVERRIDES


def _calls(where: str, stored: RoundRecord, plan: RoundPlan) -> Iterator[Disagreement]:
    """Compare the calls that were made; a planned call may be missing if nothing came of it."""
    planned = {call.agent_id: CallRecord.of(call) for call in plan.calls}
    made = {call.agent_id for call in stored.calls}
    for call in stored.calls:
        at = f"{where}, agent {call.agent_id}"
        if call.agent_id not in planned:
            yield Disagreement(at, "call", "made", "not planned")
            continue
        yield from _compare_parts(at, "", call, planned[call.agent_id])
    for agent_id in sorted({r.agent_id for r in stored.results if r.t == stored.t} - made):
        yield Disagreement(f"{where}, agent {agent_id}", "call", "missing", "made")


def _judging(
    where: str,
    stored: JudgingRecord | None,
    plan: JudgePlan,
    verdicts: tuple[JudgeVerdict, ...],
) -> Iterator[Disagreement]:
    """Compare what the judge was asked and said with what follows from the records (S28)."""
    if stored is None:
        yield Disagreement(where, "verdicts", "missing", f"{len(verdicts)} presentations")
        return
    planned = {call.agent_id: CallRecord.of(call) for call in plan.calls}
    for call in stored.calls:
        at = f"{where}, call {call.agent_id}"
        if call.agent_id not in planned:
            yield Disagreement(at, "call", "made", "not planned")
            continue
        yield from _compare_parts(at, "", call, planned[call.agent_id])
    made = {call.agent_id for call in stored.calls}
    for call_id in sorted({result.agent_id for result in stored.results} - made):
        yield Disagreement(f"{where}, call {call_id}", "call", "missing", "made")
    ids = tuple(v.call_id for v in stored.verdicts)
    yield from _compare(where, "verdict calls", ids, tuple(v.call_id for v in verdicts))
    for left, right in zip(stored.verdicts, verdicts, strict=False):
        yield from _compare_parts(f"{where}, call {left.call_id}", "verdict", left, right)


def _commit(where: str, stored: RoundRecord, commit: RoundCommit) -> Iterator[Disagreement]:
    yield from _aligned(
        where, "verdict", stored.verdicts, commit.verdicts, parts=("status", "reason", "t")
    )
    admitted = tuple(v.state for v in commit.verdicts if v.state is not None)
    yield from _aligned(where, "state", stored.states, admitted)
    yield from _compare(where, "active", stored.active, commit.active)


def _aligned(
    where: str,
    field: str,
    stored: Sequence[Any],
    recomputed: Sequence[Any],
    parts: Sequence[str] = (),
) -> Iterator[Disagreement]:
    """Compare two sequences of values that each name their agent."""
    ids = tuple(value.agent_id for value in stored)
    due = tuple(value.agent_id for value in recomputed)
    if ids != due:
        yield from _compare(where, f"{field} agents", ids, due)
        return
    for left, right in zip(stored, recomputed, strict=True):
        yield from _compare_parts(f"{where}, agent {left.agent_id}", field, left, right, parts)


def _compare_parts(
    where: str, field: str, stored: Any, recomputed: Any, parts: Iterable[str] = ()
) -> Iterator[Disagreement]:
    """Compare two values of one dataclass field by field, so that the field is named."""
    if stored is None or recomputed is None:
        yield from _compare(where, field, stored, recomputed)
        return
    for name in parts or (part.name for part in fields(stored)):
        path = f"{field}.{name}" if field else name
        yield from _compare(where, path, getattr(stored, name), getattr(recomputed, name))


def _compare(where: str, field: str, stored: Any, recomputed: Any) -> Iterator[Disagreement]:
    if stored != recomputed:
        left, right = (str(v) if isinstance(v, str) else repr(v) for v in (stored, recomputed))
        start = _first_difference(left, right)
        yield Disagreement(where, field, _shown(left, start), _shown(right, start))


def _first_difference(left: str, right: str) -> int:
    both = min(len(left), len(right))
    return next((i for i in range(both) if left[i] != right[i]), both)


def _shown(text: str, start: int) -> str:
    """Cut a long value to what surrounds the first difference."""
    if len(text) <= _SHOWN_CHARS:
        return text
    begin = max(0, start - _BEFORE_CHARS)
    return f"…{text[begin : begin + _SHOWN_CHARS]}… (from character {begin} of {len(text)})"

"""
Typed stops (S13), judged from states and verdicts and never from what a model says of itself.

``stop_after`` knows the stops that follow from a committed round. A run's other ends (no final
budget, a deadline, an overrun, a cancellation, a fault) are the host's to declare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runs.engine.types import AnswerKind, Snapshot, State, Status, Stop, StopReason, Verdict
from runs.protocols.spec import Protocol

#: What a host may declare of its own. Replay cannot derive these from a run's records.
HOST_STOPS = frozenset(
    (
        StopReason.WORKER_BUDGET,
        StopReason.INSUFFICIENT_FINAL_BUDGET,
        StopReason.WORK_DEADLINE,
        StopReason.CANCELLED,
        StopReason.ERROR,
    )
)

_NOT_SCHEDULED = frozenset((Status.INACTIVE, Status.NOT_SCHEDULED))


@dataclass(frozen=True, slots=True)
class _Round:
    """What stops are judged by: counts over the scheduled, answers over the active."""

    scheduled: tuple[Verdict, ...]
    before: tuple[State, ...]
    after: tuple[State, ...]
    active: tuple[str, ...]

    @property
    def admitted(self) -> int:
        return sum(verdict.admitted for verdict in self.scheduled)

    @property
    def skipped(self) -> int:
        return sum(verdict.status is Status.SKIPPED_BUDGET for verdict in self.scheduled)

    @property
    def dispatched(self) -> int:
        return len(self.scheduled) - self.skipped

    @property
    def is_complete(self) -> bool:
        return self.admitted == len(self.scheduled)

    @property
    def changed(self) -> int:
        """How many agents now count for another answer than before."""
        old = {state.agent_id: counted(state) for state in self.before}
        return sum(counted(state) != old.get(state.agent_id) for state in self.after)

    @property
    def answers(self) -> set[tuple[AnswerKind, str]]:
        return {counted(state) for state in self.after}

    @property
    def is_unanimous(self) -> bool:
        """Whether all active agents give one and the same vote; refusals are none."""
        return len(self.answers) == 1 and all(state.answer.is_vote for state in self.after)

    def observables(self) -> dict[str, Any]:
        return {
            "active": len(self.active),
            "scheduled": len(self.scheduled),
            "skipped_budget": self.skipped,
            "admitted": self.admitted,
            "changed_answers": self.changed,
            "distinct_answers": len(self.answers),
        }


def counted(state: State) -> tuple[AnswerKind, str]:
    """Return what a state counts for: its normalised answer (S26)."""
    return state.answer.kind, state.answer.value


def stop_after(
    *,
    protocol: Protocol,
    t: int,
    before: Snapshot,
    after: Snapshot,
    verdicts: Sequence[Verdict],
    active: Sequence[str],
) -> Stop | None:
    """
    Return why the run ends after round ``t``, or None where the next round opens.

    ``before`` is the round's read buffer, ``after`` the next one, ``active`` the active set
    after the round. The first reason that holds is given: no active agent; no call dispatched
    (``worker_budget`` where the budget kept all scheduled agents from a call); nothing admitted
    in a revision round; the protocol's own rules; the last round.
    """
    seen = _Round(
        # At t = 0 everybody is scheduled, an agent without a branched state too.
        scheduled=tuple(v for v in verdicts if t == 0 or v.status not in _NOT_SCHEDULED),
        before=before.states,
        after=after.states,
        active=tuple(active),
    )
    reason = _reason(protocol, t, seen)
    return Stop(reason, {"t": t, **seen.observables()}) if reason is not None else None


def _reason(protocol: Protocol, t: int, seen: _Round) -> StopReason | None:
    if not seen.active:
        return StopReason.NO_ADMITTED_INITIAL_STATES
    if t > 0 and not seen.dispatched:
        return StopReason.WORKER_BUDGET if seen.skipped else StopReason.NO_JOBS_DISPATCHED
    if t > 0 and not seen.admitted:
        return StopReason.NO_ADMITTED_UPDATES
    if seen.is_complete:
        by_rule = _by_rule_at_zero(protocol, seen) if t == 0 else _by_rule(protocol, seen)
        if by_rule is not None:
            return by_rule
    return StopReason.ROUND_LIMIT if t >= protocol.revision_rounds else None


def _by_rule_at_zero(protocol: Protocol, seen: _Round) -> StopReason | None:
    # Complete means here that every configured agent was admitted: a missing one agrees with
    # nobody.
    if protocol.stopping.unanimous_at_zero and seen.is_unanimous:
        return StopReason.UNANIMOUS
    return None


def _by_rule(protocol: Protocol, seen: _Round) -> StopReason | None:
    if protocol.stopping.unanimous and seen.is_unanimous:
        return StopReason.UNANIMOUS
    if protocol.stopping.stable_candidates and not seen.changed:
        return StopReason.STABLE_CANDIDATES
    return None


def after_overrun(*, t: int, overran: bool) -> Stop | None:
    """Return the stop of a run whose calls used more than they had reserved (S31)."""
    return Stop(StopReason.WORKER_BUDGET, {"t": t, "overran": True}) if overran else None

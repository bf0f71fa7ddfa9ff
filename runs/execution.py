"""
A round on its way: open, plan, reserve, call, collect, admit, commit (S9–S14, S33).

This is the order of the steps and nothing more: what is planned, admitted, stopped and counted
is the engine's, what is written and in which transaction the services'. Calls are never inside
a transaction.
"""

from __future__ import annotations

import logging
import time

from runs.calls import CallDesk
from runs.dispatch import ring
from runs.engine.draws import Draws
from runs.engine.finish import final_outcome
from runs.engine.hashing import question_hash
from runs.engine.operators import commit_round, plan_round
from runs.engine.snapshots import snapshot_at
from runs.engine.stopping import after_overrun
from runs.engine.topology import readers_of
from runs.engine.types import Outcome, RoundPlan, Snapshot, Stop, StopReason
from runs.leases import LeaseKeeper, Watch
from runs.providers.gateway import Gateway
from runs.queries import arm_context, question_by_id, snapshot_of_run
from runs.services import finish, rounds, starting
from runs.services.crash import after_crash
from runs.services.ledger import LeaseLostError
from runs.services.rounds import CommitDraft, Lease

logger = logging.getLogger(__name__)


def execute_round(
    run_id: int, t: int, *, worker: str, gateway: Gateway, keeper: LeaseKeeper
) -> None:
    """
    Execute round ``t`` of a run if it is due and nobody else does.

    A second delivery of the same doorbell, or one for a round that is over, does nothing.
    """
    lease = rounds.claim(run_id=run_id, t=t, worker=worker)
    if lease is None:
        return
    try:
        with keeper.holding(lease) as watch:
            stop = _Round(lease, watch, gateway).execute()
    except LeaseLostError:
        logger.info("run %s: another worker has taken over round %s", run_id, t)
    except Exception:
        logger.exception("run %s: round %s broke", run_id, t)
        after_crash(lease)
    else:
        if stop is None:
            ring(run_id, t + 1)
        else:
            starting.after_run(lease.experiment_id)


class _Round:
    """One execution of one round under one lease."""

    def __init__(self, lease: Lease, watch: Watch, gateway: Gateway) -> None:
        self.lease = lease
        self.watch = watch
        self.gateway = gateway
        self.arm = arm_context(lease.arm_id)
        self.protocol = self.arm.protocol
        self.question = question_by_id(lease.question_id)
        self.draws = Draws(lease.seed, question_hash(self.question))

    def execute(self) -> Stop | None:
        """Return the stop that the run ended with, or None where another round follows."""
        snapshot = snapshot_of_run(
            run_id=self.lease.run_id, t=self.lease.t, agent_ids=self.protocol.agent_ids
        )
        early = self._stop_before_opening()
        if early is not None:
            return self._end_unopened(snapshot, early)
        limits = self.protocol.limits
        epoch = rounds.open_epoch(
            self.lease,
            round_seconds=limits.round_timeout_seconds,
            final_seconds=limits.final_time_cap_seconds,
        )
        ends_at = time.monotonic() + epoch.remaining_seconds
        plan = self._plan(snapshot)
        desk = self._desk(snapshot, ends_at)
        if epoch.resumed:
            desk.restore(plan.calls)
        if epoch.remaining_seconds > 0:
            desk.call_all(plan.calls)
        desk.collect()
        return self._commit(plan, snapshot, desk)

    def _stop_before_opening(self) -> Stop | None:
        if self.lease.cancelled:
            return Stop(StopReason.CANCELLED, {"t": self.lease.t})
        left = self.lease.deadline_seconds - self.protocol.limits.final_time_cap_seconds
        if left <= 0:
            return Stop(StopReason.WORK_DEADLINE, {"t": self.lease.t})
        return None

    def _plan(self, snapshot: Snapshot) -> RoundPlan:
        if snapshot.snapshot_hash != self.lease.snapshot_hash:
            raise RuntimeError(f"run {self.lease.run_id}: stored states do not hash to its buffer")
        return plan_round(
            protocol=self.protocol,
            question=self.question,
            evidence=self.question.evidence,
            snapshot=snapshot,
            active=self.lease.active,
            run_seed=self.lease.seed,
            t=self.lease.t,
        )

    def _desk(self, snapshot: Snapshot, ends_at: float) -> CallDesk:
        return CallDesk(
            lease=self.lease,
            watch=self.watch,
            gateway=self.gateway,
            arm=self.arm,
            question=self.question,
            snapshot=snapshot,
            draws=self.draws,
            ends_at=ends_at,
        )

    def _commit(self, plan: RoundPlan, snapshot: Snapshot, desk: CallDesk) -> Stop | None:
        done = commit_round(
            protocol=self.protocol,
            question=self.question,
            plan=plan,
            snapshot=snapshot,
            results=desk.results,
            skipped=desk.skipped,
            active=self.lease.active,
            run_seed=self.lease.seed,
        )
        t = self.lease.t
        stop = done.stop or after_overrun(t=t, overran=desk.overran)
        if desk.cancelled:
            stop = Stop(StopReason.CANCELLED, {"t": t})
        draft = CommitDraft(
            next_round=t + 1,
            snapshot_hash=done.snapshot.snapshot_hash,
            active=done.active,
            closes_epoch=True,
            scheduled=plan.scheduled,
            verdicts=done.verdicts,
            attempts=desk.deciding_attempts(done.verdicts),
            recipients=readers_of(self.protocol.topology, self.protocol.agent_ids, self.draws),
            stop=stop,
            outcome=self._final(done.snapshot, stop, t) if stop is not None else None,
        )
        finish.commit_and_close(self.lease, draft)
        return stop

    def _end_unopened(self, snapshot: Snapshot, stop: Stop) -> Stop:
        draft = CommitDraft(
            next_round=self.lease.t,
            snapshot_hash=snapshot.snapshot_hash,
            active=self.lease.active or (),
            closes_epoch=False,
            stop=stop,
            outcome=self._final(snapshot, stop, max(self.lease.t - 1, 0)),
        )
        finish.commit_and_close(self.lease, draft)
        return stop

    def _final(self, last: Snapshot, stop: Stop, t: int) -> Outcome:
        return final_outcome(
            protocol=self.protocol,
            question=self.question,
            zero=snapshot_at(last, 1),
            last=last,
            stop=stop,
            t=t,
            run_seed=self.lease.seed,
        )

"""
A round on its way: open, plan, reserve, call, collect, admit, commit (S9–S14, S33); and the
judge's calls after the last one, where a judge decides (S28).

This is the order of the steps and nothing more: what is planned, admitted, stopped and counted
is the engine's, what is written and in which transaction the services'. Calls are never inside
a transaction.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from runs.calls import CallDesk
from runs.dispatch import ring
from runs.engine.draws import Draws
from runs.engine.finish import final_outcome
from runs.engine.hashing import question_hash
from runs.engine.judge_combining import JudgeVerdicts
from runs.engine.judging import asked_in, final_seconds, plan_judging, read_verdicts
from runs.engine.operators import commit_round, plan_round
from runs.engine.snapshots import snapshot_at
from runs.engine.stopping import after_overrun
from runs.engine.topology import readers_of
from runs.engine.types import (
    JudgePlan,
    JudgeVerdict,
    Outcome,
    Question,
    RoundPlan,
    Snapshot,
    Stop,
    StopReason,
)
from runs.leases import LeaseKeeper, Watch
from runs.providers.gateway import Gateway
from runs.queries import arm_context, committed_rounds, question_by_id, snapshot_of_run
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
            due = _Judging if lease.stop is not None else _Round
            next_t = due(lease, watch, gateway).execute()
    except LeaseLostError:
        logger.info("run %s: another worker has taken over round %s", run_id, t)
    except Exception:
        logger.exception("run %s: round %s broke", run_id, t)
        after_crash(lease)
    else:
        if next_t is not None:
            ring(run_id, next_t)
        else:
            starting.after_run(lease.experiment_id)


class _Step:
    """One execution of one step of a run under one lease."""

    def __init__(self, lease: Lease, watch: Watch, gateway: Gateway) -> None:
        self.lease = lease
        self.watch = watch
        self.gateway = gateway
        self.arm = arm_context(lease.arm_id)
        self.protocol = self.arm.protocol
        self.question = question_by_id(lease.question_id)
        self.draws = Draws(lease.seed, question_hash(self.question))

    def _snapshot(self, t: int) -> Snapshot:
        """Return the snapshot that opens round ``t``, as it was published."""
        snapshot = snapshot_of_run(run_id=self.lease.run_id, t=t, agent_ids=self.protocol.agent_ids)
        if snapshot.snapshot_hash != self.lease.snapshot_hash:
            raise RuntimeError(f"run {self.lease.run_id}: stored states do not hash to its buffer")
        return snapshot

    def _desk(
        self, snapshot: Snapshot, ends_at: float, asked: Mapping[str, Question] | None = None
    ) -> CallDesk:
        return CallDesk(
            lease=self.lease,
            watch=self.watch,
            gateway=self.gateway,
            arm=self.arm,
            question=self.question,
            snapshot=snapshot,
            draws=self.draws,
            ends_at=ends_at,
            asked=asked,
        )

    def _judge_plan(self, last: Snapshot, stop: Stop, t: int, stage_t: int) -> JudgePlan | None:
        return plan_judging(
            protocol=self.protocol,
            question=self.question,
            evidence=self.question.evidence,
            zero=snapshot_at(last, 1),
            last=last,
            stop=stop,
            t=t,
            stage_t=stage_t,
            run_seed=self.lease.seed,
        )

    def _final(
        self, last: Snapshot, stop: Stop, t: int, judged: JudgeVerdicts | None = None
    ) -> Outcome:
        return final_outcome(
            protocol=self.protocol,
            question=self.question,
            zero=snapshot_at(last, 1),
            last=last,
            stop=stop,
            t=t,
            run_seed=self.lease.seed,
            judged=judged,
        )


class _Round(_Step):
    """A round of the debate."""

    def execute(self) -> int | None:
        """Return the round, or the judge's stage, that is due now; None where the run is over."""
        snapshot = self._snapshot(self.lease.t)
        early = self._stop_before_opening()
        if early is not None:
            return self._end_unopened(snapshot, early)
        limits = self.protocol.limits
        epoch = rounds.open_epoch(
            self.lease,
            round_seconds=limits.round_timeout_seconds,
            final_seconds=final_seconds(self.protocol),
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
        left = self.lease.deadline_seconds - final_seconds(self.protocol)
        if left <= 0:
            return Stop(StopReason.WORK_DEADLINE, {"t": self.lease.t})
        return None

    def _plan(self, snapshot: Snapshot) -> RoundPlan:
        return plan_round(
            protocol=self.protocol,
            question=self.question,
            evidence=self.question.evidence,
            snapshot=snapshot,
            active=self.lease.active,
            run_seed=self.lease.seed,
            t=self.lease.t,
        )

    def _commit(self, plan: RoundPlan, snapshot: Snapshot, desk: CallDesk) -> int | None:
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
        judges = stop is not None and self._is_judged(done.snapshot, stop, t)
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
            outcome=self._final(done.snapshot, stop, t)
            if stop is not None and not judges
            else None,
            to_be_judged=judges,
        )
        finish.commit_and_close(self.lease, draft)
        return None if draft.ends_run else draft.next_round

    def _is_judged(self, last: Snapshot, stop: Stop, t: int) -> bool:
        return self._judge_plan(last, stop, t, self.lease.t + 1) is not None

    def _end_unopened(self, snapshot: Snapshot, stop: Stop) -> int | None:
        t = max(self.lease.t - 1, 0)
        judges = self._is_judged(snapshot, stop, t)
        draft = CommitDraft(
            # An earlier worker may have left attempts of this round: the judge has its own.
            next_round=self.lease.t + 1 if judges else self.lease.t,
            snapshot_hash=snapshot.snapshot_hash,
            active=self.lease.active or (),
            closes_epoch=False,
            stop=stop,
            outcome=None if judges else self._final(snapshot, stop, t),
            to_be_judged=judges,
        )
        finish.commit_and_close(self.lease, draft)
        return draft.next_round if judges else None


class _Judging(_Step):
    """The last step of a run whose answer a judge decides: its calls, kept back for (S28, S30)."""

    def execute(self) -> None:
        """Ask the judge in every presentation and end the run with what it said."""
        stop, opened = self.lease.stop, committed_rounds(self.lease.run_id)
        if stop is None:
            raise RuntimeError(f"run {self.lease.run_id}: its rounds are not over")
        # A round that was left without a commit stands between this snapshot and the stage.
        snapshot, t = self._snapshot(opened), max(opened - 1, 0)
        if self.lease.cancelled:
            return self._end(snapshot, Stop(StopReason.CANCELLED, {"t": t}), t)
        plan = self._judge_plan(snapshot, stop, t, self.lease.t)
        if plan is None:
            raise RuntimeError(f"run {self.lease.run_id}: there is nothing to judge")
        desk = self._asked(plan, snapshot)
        if desk.cancelled:
            return self._end(snapshot, Stop(StopReason.CANCELLED, {"t": t}), t)
        judged = read_verdicts(
            protocol=self.protocol, plan=plan, results=desk.results, skipped=desk.skipped
        )
        attempts = {v.call_id: desk.attempt_id(v.call_id, v.attempt) for v in judged}
        return self._end(snapshot, stop, t, judged, attempts)

    def _asked(self, plan: JudgePlan, snapshot: Snapshot) -> CallDesk:
        """Return the desk after every call has ended, those of an earlier worker among them."""
        epoch = finish.open_judging(self.lease, final_seconds=final_seconds(self.protocol))
        ends_at = time.monotonic() + epoch.remaining_seconds
        desk = self._desk(snapshot, ends_at, asked_in(self.protocol, plan))
        if epoch.resumed:
            desk.restore(plan.calls)
        if epoch.remaining_seconds > 0:
            desk.call_all(plan.calls)
        desk.collect()
        return desk

    def _end(
        self,
        snapshot: Snapshot,
        stop: Stop,
        t: int,
        judged: tuple[JudgeVerdict, ...] | None = None,
        attempts: dict[str, int | None] | None = None,
    ) -> None:
        draft = CommitDraft(
            next_round=self.lease.t,
            snapshot_hash=snapshot.snapshot_hash,
            active=self.lease.active or (),
            closes_epoch=False,
            attempts=attempts,
            stop=stop,
            outcome=self._final(snapshot, stop, t, judged),
            judged=judged or (),
        )
        finish.commit_and_close(self.lease, draft)

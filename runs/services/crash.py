"""Runs whose round broke in our own code: given back, and ended after a few times (S14)."""

from __future__ import annotations

import logging

from django.db import DatabaseError

from runs.engine.finish import final_outcome
from runs.engine.snapshots import snapshot_at
from runs.engine.types import Answer, AnswerKind, Outcome, Stop, StopReason
from runs.queries import arm_context, committed_rounds, question_by_id, snapshot_of_run
from runs.services import finish, rounds, starting
from runs.services.rounds import CommitDraft, Lease

logger = logging.getLogger(__name__)

UNRESOLVED = "unresolved"


def after_crash(lease: Lease) -> None:
    """
    Give a run back whose round broke, or end it with ``error`` after the allowed number.

    A database that is away breaks rounds too: then nothing can be written here either, the
    lease runs out, and the sweep rings again.
    """
    try:
        crashes = rounds.release(lease, crashed=True)
        if crashes is None or crashes < rounds.CRASHES_ALLOWED:
            return
        again = rounds.claim(run_id=lease.run_id, t=lease.t, worker=lease.worker)
        if again is not None:
            finish.commit_and_close(again, _error(again, crashes))
            starting.after_run(lease.experiment_id)
    except Exception:
        logger.exception("run %s: could not be given back", lease.run_id)


def _error(lease: Lease, crashes: int) -> CommitDraft:
    stop = Stop(StopReason.ERROR, {"t": lease.t, "crashes": crashes})
    try:
        snapshot_hash, outcome = _aggregated(lease, stop)
    except DatabaseError:
        raise
    except Exception:  # Whatever happens ends in a result (S14), though aggregation breaks too.
        logger.exception("run %s: its records could not be aggregated", lease.run_id)
        snapshot_hash, outcome = lease.snapshot_hash, _bare(lease)
    return CommitDraft(
        next_round=lease.t,
        snapshot_hash=snapshot_hash,
        active=lease.active or (),
        closes_epoch=False,
        stop=stop,
        outcome=outcome,
    )


def _aggregated(lease: Lease, stop: Stop) -> tuple[str, Outcome]:
    """Return the newest snapshot's hash and the result over what was admitted."""
    protocol = arm_context(lease.arm_id).protocol
    opened = committed_rounds(lease.run_id)
    last = snapshot_of_run(run_id=lease.run_id, t=opened, agent_ids=protocol.agent_ids)
    outcome = final_outcome(
        protocol=protocol,
        question=question_by_id(lease.question_id),
        zero=snapshot_at(last, 1) if opened > 0 else last,
        last=last,
        stop=stop,
        t=max(opened - 1, 0),
        run_seed=lease.seed,
    )
    return last.snapshot_hash, outcome


def _bare(lease: Lease) -> Outcome:
    return Outcome(
        t=max(lease.t - 1, 0),
        aggregator=UNRESOLVED,
        answer=Answer(raw="", kind=AnswerKind.ABSTAIN, reason=UNRESOLVED),
        counts=(),
        unresolved=True,
        open_issues=("the run stopped: error", "its records could not be aggregated"),
    )

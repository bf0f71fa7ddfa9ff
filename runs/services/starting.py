"""
The bounded dispatcher (S30, S31): which pending runs may start, and how an experiment ends.

At most ``window`` runs of an experiment are under way, so the broker holds a few doorbells and
never a queue of thousands. A run that ends lets the next one start.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import connection, transaction
from django.db.models.functions import Now

from debateweb.audit import record
from runs.dispatch import ring
from runs.engine.branching import branch_commit
from runs.engine.draws import Draws
from runs.engine.finish import final_outcome
from runs.engine.ledger import Amount
from runs.engine.snapshots import initial_snapshot
from runs.engine.topology import readers_of
from runs.engine.types import Outcome, Snapshot, Stop, StopReason
from runs.models import Experiment, ExperimentStatus, Run, RunStatus
from runs.queries import arm_context, engine_state, question_by_id, states_of_run
from runs.services import finish, ledger, rounds
from runs.services.rounds import CommitDraft, Lease, claim

#: The worker's name on acts of the dispatcher.
DISPATCHER = "dispatcher"

_PICK = """
SELECT r.id FROM runs_run r
JOIN runs_experiment e ON e.id = r.experiment_id
LEFT JOIN runs_run source ON source.id = r.branch_source_id
WHERE r.experiment_id = %(experiment)s AND r.status = 'PENDING' AND e.status = 'RUNNING'
  AND (r.in_stage OR e.stage_questions IS NULL OR e.stage_confirmed_at IS NOT NULL)
  -- A branch starts from stored initial answers: they have to be there.
  AND (source.id IS NULL OR source.next_round > 0 OR source.status = 'DONE')
ORDER BY r.position LIMIT %(most)s
FOR UPDATE OF r SKIP LOCKED
"""

_COUNT = """
SELECT count(*) FILTER (WHERE r.status = 'RUNNING'), count(*) FILTER (WHERE r.status = 'PENDING'),
    count(*) FILTER (WHERE r.status = 'PENDING' AND r.in_stage)
FROM runs_run r WHERE r.experiment_id = %(experiment)s AND r.status <> 'DONE'
"""


def start_runs(*, experiment_id: int) -> list[tuple[int, int]]:
    """
    Start due runs until ``window`` are under way. Returns (run_id, t) of what to ring for.

    Ends the experiment, or stops it for confirmation, where nothing is left to start or running.
    """
    experiment = Experiment.objects.get(pk=experiment_id)
    if experiment.status == ExperimentStatus.CANCELLED:
        end_unstarted(experiment, StopReason.CANCELLED)
    if experiment.status != ExperimentStatus.RUNNING:
        return []
    running, pending, _ = _counts(experiment_id)
    started: list[tuple[int, int]] = []
    while pending and running + len(started) < experiment.window:
        some = _start_some(experiment, most=experiment.window - running - len(started))
        started.extend(some)
        if not some:
            break
    if not started and running == 0:
        _settle_down(experiment)
    return started


def after_run(experiment_id: int) -> None:
    """Start what may start now that a run has ended, and end the experiment with its last run."""
    for run_id, t in start_runs(experiment_id=experiment_id):
        ring(run_id, t)


def _counts(experiment_id: int) -> tuple[int, int, int]:
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, {"experiment": experiment_id})
        running, pending, staged = cursor.fetchone()
    return int(running), int(pending), int(staged)


@transaction.atomic
def _start_some(experiment: Experiment, *, most: int) -> list[tuple[int, int]]:
    with connection.cursor() as cursor:
        cursor.execute(_PICK, {"experiment": experiment.pk, "most": most})
        ids = [row[0] for row in cursor.fetchall()]
    runs = Run.objects.filter(pk__in=ids).select_related("account", "arm__protocol")
    started = []
    for run in runs.order_by("position"):
        cap = Amount(run.account.cap_microusd or 0, run.account.cap_output_tokens or 0)
        if not ledger.take(account_id=experiment.account_id, run_id=run.pk, amount=cap):
            break  # What running runs give back may let it start later.
        if not _begin(run, experiment):
            continue
        started.append((run.pk, 1 if run.branch_source_id is not None else 0))
    return started


def _begin(run: Run, experiment: Experiment) -> bool:
    """Set a run going; False where it ended in the same breath. Its experiment has paid."""
    limits = arm_context(run.arm_id).protocol.limits
    Run.objects.filter(pk=run.pk, status=RunStatus.PENDING).update(
        status=RunStatus.RUNNING,
        started_at=Now(),
        rung_at=Now(),
        deadline_at=Now() + timedelta(seconds=experiment.deadline_seconds),
    )
    final = Amount(microusd=limits.final_microusd)
    if not ledger.take(account_id=run.account_id, run_id=run.pk, amount=final):
        stop = Stop(StopReason.INSUFFICIENT_FINAL_BUDGET, {"t": 0})
        finish.commit_and_close(_lease(run), _unstarted(run, stop))
        return False
    if run.branch_source_id is not None:
        return _branch(run)
    return True


def _lease(run: Run) -> Lease:
    lease = claim(run_id=run.pk, t=0, worker=DISPATCHER)
    if lease is None:
        raise RuntimeError(f"run {run.pk} was started and cannot be claimed")
    return lease


def _unstarted(run: Run, stop: Stop) -> CommitDraft:
    """Return the end of a run that made no call: the local fallback over nothing (S14)."""
    empty = initial_snapshot()
    return CommitDraft(
        next_round=0,
        snapshot_hash=empty.snapshot_hash,
        active=(),
        closes_epoch=False,
        stop=stop,
        outcome=_final(run, empty, stop),
    )


def _final(run: Run, snapshot: Snapshot, stop: Stop) -> Outcome:
    return final_outcome(
        protocol=arm_context(run.arm_id).protocol,
        question=question_by_id(run.question_id),
        zero=snapshot,
        last=snapshot,
        stop=stop,
        t=0,
        run_seed=run.seed,
    )


def _branch(run: Run) -> bool:
    """
    Commit round 0 of a branch with the stored initial answers of its source, same bytes.

    Returns False where the run is over with it: nothing to revise, or no revision rounds.
    """
    context = arm_context(run.arm_id)
    protocol = context.protocol
    rows = [row for row in states_of_run(run.branch_source_id or 0) if row.round == 0]
    done = branch_commit(protocol=protocol, states=[engine_state(row) for row in rows])
    draws = Draws(run.seed, run.question_hash)
    draft = CommitDraft(
        next_round=1,
        snapshot_hash=done.snapshot.snapshot_hash,
        active=done.active,
        closes_epoch=True,
        verdicts=done.verdicts,
        origins={row.agent_id: row.pk for row in rows},
        recipients=readers_of(protocol.topology, protocol.agent_ids, draws),
        stop=done.stop,
        outcome=None if done.stop is None else _final(run, done.snapshot, done.stop),
    )
    finish.commit_and_close(_lease(run), draft)
    return done.stop is None


def _settle_down(experiment: Experiment) -> None:
    """Nothing runs: finish, ask for confirmation, or end what the budget cannot start."""
    _, pending, staged = _counts(experiment.pk)
    if pending == 0:
        _move(experiment, ExperimentStatus.FINISHED, "experiment.finish")
    elif staged == 0 and experiment.stage_questions and experiment.stage_confirmed_at is None:
        _move(experiment, ExperimentStatus.AWAITING_CONFIRMATION, "experiment.stage_done")
    else:
        _end_unaffordable(experiment)


def _end_unaffordable(experiment: Experiment) -> None:
    """No run is under way that could give money back: what is left ends `worker_budget`."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_PICK, {"experiment": experiment.pk, "most": 1})
        row = cursor.fetchone()
        if row is None:
            return
        run = Run.objects.select_related("account").get(pk=row[0])
        cap = Amount(run.account.cap_microusd or 0, run.account.cap_output_tokens or 0)
        if ledger.take(account_id=experiment.account_id, run_id=run.pk, amount=cap):
            transaction.set_rollback(True)  # It can start after all: the next sweep starts it.
            return
    end_unstarted(experiment, StopReason.WORKER_BUDGET)


def end_unstarted(experiment: Experiment, reason: StopReason) -> None:
    """End every pending run of an experiment without a call: unresolved, nothing spent (S14)."""
    pending = Run.objects.filter(experiment=experiment, status=RunStatus.PENDING)
    for run in pending.order_by("position").iterator():
        with transaction.atomic():
            mine = Run.objects.filter(pk=run.pk, status=RunStatus.PENDING)
            if mine.update(status=RunStatus.RUNNING):
                lease = _lease(run)
                draft = _unstarted(run, Stop(reason, {"t": 0}))
                rounds.commit(run_id=run.pk, t=0, fence=lease.fence, draft=draft)


def _move(experiment: Experiment, status: ExperimentStatus, act: str) -> None:
    ends = {"ended_at": Now()} if status == ExperimentStatus.FINISHED else {}
    with transaction.atomic():
        moved = Experiment.objects.filter(
            pk=experiment.pk, status=ExperimentStatus.RUNNING
        ).update(status=status, **ends)
        if moved:
            record(act=act, workspace=experiment.workspace, obj=experiment)

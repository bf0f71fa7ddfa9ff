"""
The bounded dispatcher (S30, S31): which pending runs may start, and how an experiment ends.

At most ``window`` runs of an experiment are under way, so the broker holds a few doorbells and
never a queue of thousands. A run that ends lets the next one start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now

from debateweb.audit import record
from runs.dispatch import ring
from runs.engine.branching import branch_commit
from runs.engine.draws import Draws
from runs.engine.errors import InconsistentInputError
from runs.engine.finish import final_outcome
from runs.engine.judging import plan_judging
from runs.engine.ledger import Amount
from runs.engine.snapshots import initial_snapshot
from runs.engine.topology import readers_of
from runs.engine.types import Outcome, Snapshot, Stop, StopReason
from runs.models import Aggregate, Experiment, ExperimentStatus, Run, RunStatus
from runs.protocols.cost import Sizes
from runs.queries import ArmContext, arm_context, engine_state, question_by_id, states_of_run
from runs.services import finish, ledger, rounds
from runs.services.caps import final_bound
from runs.services.rounds import CommitDraft, Lease, claim

#: The worker's name on acts of the dispatcher.
DISPATCHER = "dispatcher"

#: Runs started by one transaction, which holds the experiment's lock as long.
STARTED_AT_ONCE = 50
#: Runs ended by one transaction where no call is made.
ENDED_AT_ONCE = 500

_PICK = """
SELECT r.id FROM runs_run r
WHERE r.experiment_id = %(experiment)s AND r.status = 'PENDING'
  AND (r.in_stage OR %(past_stage)s)
  -- A branch starts from stored initial answers: they have to be there.
  AND coalesce((SELECT source.next_round > 0 OR source.status = 'DONE'
                FROM runs_run source WHERE source.id = r.branch_source_id), true)
ORDER BY r.position LIMIT %(most)s
FOR NO KEY UPDATE OF r
"""

# Pending runs may be many and are not counted: the index tells whether there is one.
_COUNT = """
SELECT (SELECT count(*) FROM runs_run WHERE experiment_id = %(experiment)s AND status = 'RUNNING'),
    (SELECT position FROM runs_run WHERE experiment_id = %(experiment)s AND status = 'PENDING'
     ORDER BY position LIMIT 1) IS NOT NULL
"""


@dataclass(slots=True)
class _Step:
    """
    What one transaction of the dispatcher did.

    ``again`` is true where another may find more to do; ``unaffordable`` where nothing is under
    way that could give money back and the next run does not fit.
    """

    started: list[tuple[int, int]] = field(default_factory=list)
    again: bool = False
    unaffordable: bool = False


@dataclass(frozen=True, slots=True)
class _Counts:
    running: int
    any_pending: bool


def start_runs(*, experiment_id: int) -> list[tuple[int, int]]:
    """
    Start due runs until ``window`` are under way. Returns (run_id, t) of what to ring for.

    Ends the experiment, or stops it for confirmation, where nothing is left to start or running.
    """
    started: list[tuple[int, int]] = []
    step = _Step(again=True)
    while step.again:
        step = _step(experiment_id)
        started.extend(step.started)
        if step.unaffordable:
            end_unstarted(experiment_id, StopReason.WORKER_BUDGET)
    if Experiment.objects.filter(pk=experiment_id, status=ExperimentStatus.CANCELLED).exists():
        end_unstarted(experiment_id, StopReason.CANCELLED)
    return started


def after_run(experiment_id: int) -> None:
    """Start what may start now that a run has ended, and end the experiment with its last run."""
    for run_id, t in start_runs(experiment_id=experiment_id):
        ring(run_id, t)


@transaction.atomic
def _step(experiment_id: int) -> _Step:
    """
    Start some runs, or settle down where nothing runs.

    The lock on the experiment makes the count of running runs true until they are started: two
    workers together never exceed the window, and none ends an experiment under another's hands.
    A pause or cancellation waits for it, or is seen here.
    """
    experiment = Experiment.objects.select_for_update(no_key=True).get(pk=experiment_id)
    if experiment.status != ExperimentStatus.RUNNING:
        return _Step()
    counts = _counts(experiment_id)
    room = min(experiment.window - counts.running, STARTED_AT_ONCE)
    due = _due(experiment, most=room) if counts.any_pending and room > 0 else []
    if due:
        return _start_some(experiment, due, counts.running)
    if counts.running == 0:
        return _Step(again=_settle_down(experiment, counts))
    return _Step()


def _counts(experiment_id: int) -> _Counts:
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, {"experiment": experiment_id})
        return _Counts(*cursor.fetchone())


def _due(experiment: Experiment, *, most: int) -> list[Run]:
    past_stage = _is_past_stage(experiment)
    with connection.cursor() as cursor:
        cursor.execute(_PICK, {"experiment": experiment.pk, "most": most, "past_stage": past_stage})
        ids = [row[0] for row in cursor.fetchall()]
    runs = Run.objects.filter(pk__in=ids).select_related("account")
    return list(runs.order_by("position"))


def _start_some(experiment: Experiment, due: list[Run], running: int) -> _Step:
    step = _Step(again=True)
    for run in due:
        cap = Amount(run.account.cap_microusd or 0, run.account.cap_output_tokens or 0)
        if not ledger.take(account_id=experiment.account_id, run_id=run.pk, amount=cap):
            # What running runs give back may let it start later.
            step.again = step.unaffordable = running == 0 and run is due[0]
            break
        if _begin(run, experiment):
            step.started.append((run.pk, 1 if run.branch_source_id is not None else 0))
    return step


def _begin(run: Run, experiment: Experiment) -> bool:
    """Set a run going; False where it ended in the same breath. Its experiment has paid."""
    context = arm_context(run.arm_id)
    Run.objects.filter(pk=run.pk, status=RunStatus.PENDING).update(
        status=RunStatus.RUNNING,
        started_at=Now(),
        rung_at=Now(),
        deadline_at=Now() + timedelta(seconds=experiment.deadline_seconds),
    )
    final = _kept_back(run, context)
    if not ledger.take(account_id=run.account_id, run_id=run.pk, amount=final):
        stop = Stop(StopReason.INSUFFICIENT_FINAL_BUDGET, {"t": 0})
        finish.commit_and_close(_lease(run), _unstarted(run, stop))
        return False
    if run.branch_source_id is not None:
        return _branch(run)
    return True


def _kept_back(run: Run, context: ArmContext) -> Amount:
    """Return what the run's end may cost, a judge's calls included (S30)."""
    question = question_by_id(run.question_id)
    sizes = Sizes.of(context.protocol, question, question.evidence)
    return final_bound(context.protocol, sizes, context.prices)


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
    try:
        done = branch_commit(protocol=protocol, states=[engine_state(row) for row in rows])
    except InconsistentInputError as exc:  # It would break again, and every start with it.
        stop = Stop(StopReason.ERROR, {"t": 0, "detail": str(exc)})
        finish.commit_and_close(_lease(run), _unstarted(run, stop))
        return False
    draws = Draws(run.seed, run.question_hash)
    judges = done.stop is not None and _is_judged(run, done.snapshot, done.stop)
    draft = CommitDraft(
        next_round=1,
        snapshot_hash=done.snapshot.snapshot_hash,
        active=done.active,
        closes_epoch=True,
        verdicts=done.verdicts,
        origins={row.agent_id: row.pk for row in rows},
        recipients=readers_of(protocol.topology, protocol.agent_ids, draws),
        stop=done.stop,
        outcome=None if done.stop is None or judges else _final(run, done.snapshot, done.stop),
        to_be_judged=judges,
    )
    finish.commit_and_close(_lease(run), draft)
    return done.stop is None or judges


def _is_judged(run: Run, snapshot: Snapshot, stop: Stop) -> bool:
    question = question_by_id(run.question_id)
    plan = plan_judging(
        protocol=arm_context(run.arm_id).protocol,
        question=question,
        evidence=question.evidence,
        zero=snapshot,
        last=snapshot,
        stop=stop,
        t=0,
        stage_t=1,
        run_seed=run.seed,
    )
    return plan is not None


def _settle_down(experiment: Experiment, counts: _Counts) -> bool:
    """Nothing runs: finish, or ask for confirmation; True where it goes on without asking."""
    if not counts.any_pending:
        _move(experiment, ExperimentStatus.FINISHED, "experiment.finish", ended_at=Now())
    elif not _is_past_stage(experiment) and not _is_stage_under_way(experiment):
        return _end_stage(experiment)
    return False


def _is_past_stage(experiment: Experiment) -> bool:
    return experiment.stage_questions is None or experiment.stage_confirmed_at is not None


def _is_stage_under_way(experiment: Experiment) -> bool:
    pending = Run.objects.filter(experiment=experiment, status=RunStatus.PENDING)
    return pending.filter(in_stage=True).exists()


def _end_stage(experiment: Experiment) -> bool:
    """Stop for confirmation, unless the projected total stays below what needs none."""
    projected = projected_microusd(experiment)
    unasked = experiment.stage_confirm_above_microusd
    if unasked and projected <= unasked:
        _move(
            experiment,
            ExperimentStatus.RUNNING,
            "experiment.stage_passed",
            stage_confirmed_at=Now(),
        )
        return True
    _move(experiment, ExperimentStatus.AWAITING_CONFIRMATION, "experiment.stage_done")
    return False


def projected_microusd(experiment: Experiment) -> int:
    """Return what the whole experiment costs if the rest costs what its stage did, per run."""
    account = experiment.account
    used = account.settled_microusd + account.held_microusd + account.overrun_microusd
    runs = Run.objects.filter(experiment=experiment)
    return -(-used * runs.count() // max(1, runs.filter(in_stage=True).count()))


def end_unstarted(experiment_id: int, reason: StopReason) -> None:
    """End every pending run of an experiment without a call: unresolved, nothing spent (S14)."""
    while _end_some(experiment_id, reason):
        pass


@transaction.atomic
def _end_some(experiment_id: int, reason: StopReason) -> int:
    pending = Run.objects.filter(experiment_id=experiment_id, status=RunStatus.PENDING)
    runs = list(
        pending.select_for_update(no_key=True, skip_locked=True).order_by("position")[
            :ENDED_AT_ONCE
        ]
    )
    stop = Stop(reason, {"t": 0})
    empty = initial_snapshot()
    # Where nothing was admitted, the fallback is the same for all runs of an arm.
    rows = {run.arm_id: rounds.outcome_row(_final(run, empty, stop)) for run in _one_an_arm(runs)}
    Aggregate.objects.bulk_create(Aggregate(run=run, ordinal=0, **rows[run.arm_id]) for run in runs)
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(
        status=RunStatus.DONE,
        active=[],
        stop_reason=reason.value,
        stop_observables=stop.observables,
        ended_at=Now(),
    )
    return len(runs)


def _one_an_arm(runs: Iterable[Run]) -> Iterable[Run]:
    return {run.arm_id: run for run in runs}.values()


def _move(experiment: Experiment, status: ExperimentStatus, act: str, **values: Any) -> None:
    Experiment.objects.filter(pk=experiment.pk).update(status=status, **values)
    record(act=act, workspace=experiment.workspace, obj=experiment)

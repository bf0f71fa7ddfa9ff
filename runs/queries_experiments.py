"""
What the pages of experiments read: few queries, each answered from indexes (``Meta.indexes``).

Counts are of one experiment or of one page of experiments, never of all that there are.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.core.cache import cache
from django.db import connection
from django.db.models import Count, F, IntegerField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils import timezone
from redis.exceptions import RedisError

from debateweb.models import Workspace
from runs.models import Arm, Experiment, ExperimentStatus, ProtocolVersion, Run, RunStatus

#: A pace is taken over this many runs that ended last.
PACE_RUNS = 100
#: A run that nobody holds and nobody was asked to take for so long is nobody's.
UNHEARD_SECONDS = 15
#: Counts of all calls may be so old; what is under way never is.
COUNTED_FOR_SECONDS = 10

ENDED = (ExperimentStatus.FINISHED, ExperimentStatus.CANCELLED)

_OPEN_ROUNDS = """
SELECT r.next_round, count(*),
    count(*) FILTER (WHERE r.lease_expires_at > now()),
    count(*) FILTER (
        WHERE coalesce(r.lease_expires_at, r.rung_at, r.started_at) < now() - %(unheard)s
    )
FROM runs_run r WHERE r.experiment_id = %(experiment)s AND r.status = 'RUNNING'
GROUP BY 1 ORDER BY 1
"""

# In flight is what the holder of the present lease asked and what has no outcome yet.
_IN_FLIGHT = """
SELECT count(*) FROM runs_run r JOIN runs_attempt a ON a.run_id = r.id
WHERE r.experiment_id = %(experiment)s AND r.status = 'RUNNING'
  AND a.t = r.next_round AND a.fence = r.fence AND r.lease_expires_at > now()
  AND NOT EXISTS (SELECT FROM runs_attemptoutcome o WHERE o.attempt_id = a.id)
"""

_OUTCOMES = """
SELECT o.status, o.error_class, count(*)
FROM runs_run r JOIN runs_attempt a ON a.run_id = r.id
    JOIN runs_attemptoutcome o ON o.attempt_id = a.id AND NOT o.late
WHERE r.experiment_id = %(experiment)s
GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2
"""

_ATTEMPTS = """
SELECT (SELECT count(*) FROM runs_run r JOIN runs_attempt a ON a.run_id = r.id
        WHERE r.experiment_id = %(experiment)s),
    (SELECT count(*) FROM runs_run r JOIN runs_attempt a ON a.run_id = r.id
     WHERE r.experiment_id = %(experiment)s AND a.retry_of_id IS NOT NULL)
"""

_PACE = """
SELECT count(*), min(ended_at), max(ended_at) FROM (
    SELECT ended_at FROM runs_run WHERE experiment_id = %(experiment)s AND status = 'DONE'
    ORDER BY ended_at DESC LIMIT %(most)s) AS last
"""


def experiments_in(workspace: Workspace) -> QuerySet[Experiment]:
    """
    Return the experiments of a workspace with ``total``, ``pending`` and ``under_way`` runs.

    Positions count from 0, so the last one tells the total without counting.
    """
    runs = Run.objects.filter(experiment=OuterRef("pk"))
    last = runs.order_by("-position").values("position")[:1]
    return (
        Experiment.objects.filter(workspace=workspace, archived_at=None)
        .annotate(
            total=Coalesce(Subquery(last) + Value(1), Value(0)),
            pending=_count(runs, RunStatus.PENDING),
            under_way=_count(runs, RunStatus.RUNNING),
        )
        .annotate(done=F("total") - F("pending") - F("under_way"))
        .prefetch_related("arms")
    )


def _count(runs: QuerySet[Run], status: RunStatus) -> Coalesce:
    counted = runs.filter(status=status).order_by().values("status").annotate(n=Count("pk"))
    return Coalesce(Subquery(counted.values("n"), output_field=IntegerField()), Value(0))


@dataclass(slots=True)
class ArmProgress:
    """Runs of one arm by status, and why those that are done stopped."""

    arm: Arm
    done: int = 0
    running: int = 0
    pending: int = 0
    stops: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return self.done + self.running + self.pending


@dataclass(frozen=True, slots=True)
class OpenRound:
    """Runs whose round ``t`` is open: how many a worker holds, how many nobody was heard of."""

    t: int
    runs: int
    held: int
    unheard: int


@dataclass(frozen=True, slots=True)
class OutcomeCount:
    status: str
    error_class: str
    attempts: int


@dataclass(frozen=True, slots=True)
class Calls:
    """
    Attempts of an experiment as they were ``counted_at``.

    ``without_outcome`` are neither in flight nor have ended: their worker was lost.
    """

    attempts: int
    retries: int
    in_flight: int
    outcomes: tuple[OutcomeCount, ...]
    counted_at: datetime

    @property
    def without_outcome(self) -> int:
        return self.attempts - self.in_flight - sum(o.attempts for o in self.outcomes)


@dataclass(frozen=True, slots=True)
class Pace:
    """``runs`` ended in the last ``seconds``; ``seconds_left`` is for all that are left."""

    runs: int
    seconds: float
    seconds_left: float

    @property
    def left(self) -> timedelta:
        return timedelta(seconds=round(self.seconds_left))


def arms_of(experiment: Experiment) -> list[ArmProgress]:
    """Return the arms in order with their runs by status. Two queries."""
    arms = experiment.arms.select_related("protocol", "branch_from").order_by("position")
    found = {arm.pk: ArmProgress(arm) for arm in arms}
    rows = (
        Run.objects.filter(experiment=experiment)
        .values_list("arm_id", "status", "stop_reason")
        .annotate(count=Count("pk"))
        .order_by("status", "stop_reason")
    )
    for arm_id, status, stop, count in rows:
        _add(found[arm_id], status, stop, count)
    return list(found.values())


def _add(arm: ArmProgress, status: str, stop: str, count: int) -> None:
    if status == RunStatus.DONE:
        arm.done += count
        arm.stops[stop] = count
    elif status == RunStatus.RUNNING:
        arm.running += count
    else:
        arm.pending += count


def open_rounds(experiment: Experiment) -> list[OpenRound]:
    """Return how many runs stand at which round. One query over the runs under way."""
    unheard = timedelta(seconds=UNHEARD_SECONDS)
    return [OpenRound(*row) for row in _rows(_OPEN_ROUNDS, experiment, unheard=unheard)]


def in_flight(experiment: Experiment) -> int:
    """Return how many calls are under way now. One query over the runs under way."""
    [(calls,)] = _rows(_IN_FLIGHT, experiment)
    return int(calls)


def calls_of(experiment: Experiment, *, state: str = "") -> Calls:
    """
    Return what was asked of models and how it ended. Three queries, or none.

    The one count that grows with all that was done: however many watch, it is made once in
    ``COUNTED_FOR_SECONDS``, and anew when the experiment has moved to another ``state``.
    """
    key = f"calls:{experiment.pk}:{experiment.status}:{state}"
    counted = _remembered(key)
    if counted is None:
        [(attempts, retries)] = _rows(_ATTEMPTS, experiment)
        outcomes = tuple(OutcomeCount(*row) for row in _rows(_OUTCOMES, experiment))
        counted = Calls(attempts, retries, in_flight(experiment), outcomes, timezone.now())
        with suppress(RedisError):
            cache.set(key, counted, COUNTED_FOR_SECONDS)
    return counted


def _remembered(key: str) -> Calls | None:
    with suppress(RedisError):  # Without the cache it is counted each time.
        found = cache.get(key)
        return found if isinstance(found, Calls) else None
    return None


def pace_of(experiment: Experiment, *, left: int) -> Pace | None:
    """
    Return how fast runs ended last and how long the ``left`` ones take at that pace.

    None where nothing is left, or fewer than two runs have ended. One query.
    """
    [(runs, first, last)] = _rows(_PACE, experiment, most=PACE_RUNS)
    if runs < 2 or left == 0:
        return None
    seconds = (max(last, _now()) - first).total_seconds()
    return Pace(runs, seconds, left * seconds / runs)


def runs_of(
    experiment: Experiment, *, arm: str = "", stop: str = "", status: str = ""
) -> QuerySet[Run]:
    """Return the runs of an experiment in the order of their positions; "" filters nothing."""
    runs = Run.objects.filter(experiment=experiment).select_related("arm", "question", "account")
    if arm:
        runs = runs.filter(arm__name=arm)
    if stop:
        runs = runs.filter(status=RunStatus.DONE, stop_reason=stop)
    if status:
        runs = runs.filter(status=status)
    shown = ("position", "seed", "status", "stop_reason", "next_round", "started_at", "ended_at")
    # Which question, not what it asks: that may be long.
    others = ("experiment_id", "arm__name", "question__external_id", "account__settled_microusd")
    return runs.only(*shown, *others).order_by("position")


def protocol_names(workspace: Workspace) -> list[str]:
    """Return the names of the protocols stored in a workspace, in the order of the alphabet."""
    stored = ProtocolVersion.objects.filter(workspace=workspace).order_by("name")
    return list(stored.values_list("name", flat=True).distinct())


def _now() -> datetime:
    return timezone.now()


def _rows(sql: str, experiment: Experiment, **values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, {"experiment": experiment.pk, **values})
        return list(cursor.fetchall())

"""The sweep: what a dead worker or a lost message left is rung for again (S33)."""

from __future__ import annotations

import logging

from django.db import DatabaseError

from runs.dispatch import ring
from runs.models import Experiment, ExperimentStatus, Run, RunStatus
from runs.services import rounds, starting

logger = logging.getLogger(__name__)

#: Rings of one sweep; the next one follows seconds later.
MOST_RINGS = 200


def sweep() -> int:
    """Ring for due runs and fill up the windows of experiments; returns the number of rings."""
    due = rounds.due_again(most=MOST_RINGS)
    for run_id, t in due:
        ring(run_id, t)
    count = len(due)
    for experiment_id in _unfinished():
        for run_id, t in _started(experiment_id):
            ring(run_id, t)
            count += 1
    return count


def _started(experiment_id: int) -> list[tuple[int, int]]:
    """One experiment that breaks in our own code keeps no other one waiting."""
    try:
        return starting.start_runs(experiment_id=experiment_id)
    except DatabaseError:
        raise
    except Exception:
        logger.exception("experiment %s: its runs could not be started", experiment_id)
        return []


def _unfinished() -> list[int]:
    """Return experiments that run, and cancelled ones with runs that have not ended yet."""
    running = Experiment.objects.filter(status=ExperimentStatus.RUNNING)
    left = Run.objects.filter(
        status=RunStatus.PENDING, experiment__status=ExperimentStatus.CANCELLED
    )
    ids = set(running.values_list("pk", flat=True))
    return sorted(ids | set(left.values_list("experiment_id", flat=True).distinct()))

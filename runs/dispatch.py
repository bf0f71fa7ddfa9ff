"""
The doorbell: tells workers by name that a run is due. Loses nothing when it is not heard.

Tasks are named here and nowhere imported, so that services need not know the tasks that call
them. The truth is in the tables: the sweep rings again for what a lost message left.
"""

from __future__ import annotations

from functools import partial

from celery import current_app
from django.db import transaction

EXECUTE_ROUND = "runs.execute_round"
START_RUNS = "runs.start_runs"
SWEEP = "runs.sweep"


def ring(run_id: int, t: int) -> None:
    """Ask some worker to execute round ``t`` of a run."""
    current_app.send_task(EXECUTE_ROUND, args=[run_id, t], queue="rounds", ignore_result=True)


def ring_after_commit(run_id: int, t: int) -> None:
    """Ring once the transaction is committed, so that no worker looks before the row is there."""
    transaction.on_commit(partial(ring, run_id, t))


def ask_to_start_runs(experiment_id: int) -> None:
    """Ask some worker to start due runs of an experiment, once the transaction is committed."""
    transaction.on_commit(
        partial(
            current_app.send_task,
            START_RUNS,
            args=[experiment_id],
            queue="rounds",
            ignore_result=True,
        )
    )

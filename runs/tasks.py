"""Celery tasks. They hold no rules: each hands its arguments on."""

from __future__ import annotations

import os
import socket
from functools import lru_cache

from celery import shared_task
from django.conf import settings

from runs import dispatch
from runs.execution import execute_round as execute
from runs.leases import keeper
from runs.providers.gateway import Gateway, gateway
from runs.services import starting
from runs.services.sweep import sweep as sweep_all


@lru_cache(maxsize=1)
def worker_name() -> str:
    """Return what this process is called on attempts and leases."""
    return f"{socket.gethostname()}:{os.getpid()}"


def shared_gateway() -> Gateway:
    """Return the process's gateway, whose limits all processes of this site share."""
    return gateway(settings.CACHES["default"]["LOCATION"])


@shared_task(name=dispatch.EXECUTE_ROUND)
def execute_round(run_id: int, t: int) -> None:
    """Execute one round of one run, if it is due."""
    execute(run_id, t, worker=worker_name(), gateway=shared_gateway(), keeper=keeper)


@shared_task(name=dispatch.START_RUNS)
def start_runs(experiment_id: int) -> None:
    """Start what may start of an experiment."""
    starting.after_run(experiment_id)


@shared_task(name=dispatch.SWEEP)
def sweep() -> None:
    """Ring again for what dead workers and lost messages left."""
    sweep_all()

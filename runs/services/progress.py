"""How far an experiment is, from one grouped query and its account."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.db.models import Count

from runs.models import Experiment, Run, RunStatus


def progress_of(experiment: Experiment) -> dict[str, Any]:
    """
    Return counts of runs by arm and status, stop reasons, and the balance.

    Money is in micro-USD. A run that is DONE is counted under its stop reason as well.
    """
    arms: dict[str, dict[str, Any]] = {
        arm.name: {"PENDING": 0, "RUNNING": 0, "DONE": 0, "stops": {}, "marked": arm.marked}
        for arm in experiment.arms.order_by("position")
    }
    rows = (
        Run.objects.filter(experiment=experiment)
        .values_list("arm__name", "status", "stop_reason")
        .annotate(count=Count("pk"))
    )
    totals: dict[str, int] = defaultdict(int)
    for arm, status, stop, count in rows:
        arms[arm][status] += count
        totals[status] += count
        if stop:
            stops = arms[arm]["stops"]
            stops[stop] = stops.get(stop, 0) + count
    account = experiment.account
    return {
        "name": experiment.name,
        "status": experiment.status,
        "runs": sum(totals.values()),
        "done": totals[RunStatus.DONE],
        "running": totals[RunStatus.RUNNING],
        "pending": totals[RunStatus.PENDING],
        "arms": arms,
        "cap_microusd": account.cap_microusd,
        "settled_microusd": account.settled_microusd,
        "held_microusd": account.held_microusd,
        "reserved_microusd": account.reserved_microusd,
        "overrun_microusd": account.overrun_microusd,
    }

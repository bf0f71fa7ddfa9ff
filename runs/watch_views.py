"""One experiment: how far it is, what it was promised to be, and the hands on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.timezone import now
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from debateweb.errors import StateError
from debateweb.guards import READERS, RUNNERS, WorkspaceRequest, require_role
from debateweb.paging import Page
from debateweb.services.supervisor import worker_is_alive
from debateweb.workspace_views import confirm
from runs.engine.types import StopReason
from runs.experiment_forms import document_of_spec, to_yaml
from runs.models import Account, Experiment, ExperimentStatus, Run, RunStatus
from runs.queries_experiments import (
    ENDED,
    ArmProgress,
    OpenRound,
    arms_of,
    calls_of,
    in_flight,
    open_rounds,
    pace_of,
    runs_of,
)
from runs.services import experiments

RUNS_A_PAGE = 50
#: Calls of so few runs are counted whenever one of them begins or ends; of more, now and then.
FEW_RUNS = 500
PARAMETER = "after"

ACTS: dict[str, tuple[Callable[..., None], ExperimentStatus, str]] = {
    "start": (experiments.start, ExperimentStatus.RUNNING, "It has started."),
    "pause": (
        experiments.pause,
        ExperimentStatus.PAUSED,
        "It is paused: rounds under way end, no other opens. Deadlines go on.",
    ),
    "resume": (experiments.resume, ExperimentStatus.RUNNING, "It goes on."),
    "confirm": (experiments.confirm_stage, ExperimentStatus.RUNNING, "It goes on with the rest."),
}
NO_BROKER = "Noted, but the broker does not answer: workers take it up when it is back."


@require_role(*READERS)
@require_safe
def experiment(request: WorkspaceRequest, experiment_id: int) -> HttpResponse:
    """
    Show an experiment; HTMX gets what moves, and asks again only while something can.

    The last answer brings the list of runs as well, so that the page is true as it stays. What a
    message said has passed by then, or when it stalls.
    """
    found = _found(request, experiment_id)
    context = _moving(found)
    context["may_run"] = request.role in RUNNERS
    if request.htmx:
        context["is_past_said"] = context["is_stalled"] or not context["moves"]
        if not context["moves"]:
            context |= {"is_last": True} | _listed(request, found, context["arms"])
        return render(request, "runs/experiment.html#moving", context)
    context |= _frozen(found) | _listed(request, found, context["arms"])
    return render(request, "runs/experiment.html", context)


@require_role(*RUNNERS)
@require_POST
def act(request: WorkspaceRequest, experiment_id: int, act: str) -> HttpResponse:
    """Start, pause, resume or confirm. What has happened already is not done twice."""
    found = _found(request, experiment_id)
    change, wanted, said = ACTS[act]
    try:
        change(experiment=found, actor=request.user)
    except StateError as exc:
        if found.status != wanted:  # Else a second press of the same button.
            messages.warning(request, f"{exc.message}. Nothing was changed.")
    except OperationalError:
        messages.warning(request, NO_BROKER)
    else:
        messages.success(request, said)
    return redirect("runs:experiment", request.workspace.name, found.pk)


@require_role(*RUNNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def cancel(request: WorkspaceRequest, experiment_id: int) -> HttpResponse:
    """Ask first; then end the experiment."""
    found = _found(request, experiment_id)
    if request.method != "POST":
        return confirm(
            request,
            heading=f"Cancel {found.name}?",
            says=[
                "Runs that have not started end without a call. Calls in flight are given up; what "
                "they may have cost stays held.",
                "What is done stays and can be reported. A cancelled experiment cannot go on.",
            ],
            button="Cancel the experiment",
            cancel_url=reverse("runs:experiment", args=[request.workspace.name, found.pk]),
        )
    try:
        experiments.cancel(experiment=found, actor=request.user)
    except StateError as exc:
        if found.status != ExperimentStatus.CANCELLED:
            messages.warning(request, f"{exc.message}. Nothing was changed.")
    except OperationalError:
        messages.warning(request, NO_BROKER)
    else:
        messages.success(request, "It is cancelled.")
    if found.status == ExperimentStatus.CANCELLED and not _has_worker():
        experiments.end_pending(found)  # Nobody else would.
    return redirect("runs:experiment", request.workspace.name, found.pk)


def _has_worker() -> bool:
    try:
        return worker_is_alive()
    except RedisError:  # Where the broker is away no worker hears anything either.
        return False


def _found(request: WorkspaceRequest, experiment_id: int) -> Experiment:
    found = (
        Experiment.objects.filter(workspace=request.workspace, pk=experiment_id, archived_at=None)
        .select_related("workspace", "account", "question_set", "created_by")
        .first()
    )
    if found is None:
        raise Http404
    return found


def _moving(found: Experiment) -> dict[str, Any]:
    """Return what the polled part shows."""
    arms, rounds = arms_of(found), open_rounds(found)
    done, running, pending = _totals(arms)
    held = sum(r.held for r in rounds)
    moves = _can_change(found, held, running + pending)
    is_stalled = moves and not held and not _has_worker()
    is_running = found.status == ExperimentStatus.RUNNING
    return {
        "experiment": found,
        "arms": arms,
        "rounds": rounds,
        "calls": calls_of(found, state="" if moves and done > FEW_RUNS else f"{done}-{running}"),
        "in_flight": in_flight(found),
        "pace": pace_of(found, left=running + pending) if is_running and not is_stalled else None,
        "done": done,
        "running": running,
        "pending": pending,
        "total": done + running + pending,
        "moves": moves,
        "is_stalled": is_stalled,
        "unheard": _unheard(rounds),
        "balance": _balance(found.account),
        "can": _open_acts(found),
        "is_running": is_running,
        "at": now(),
        "is_awaiting": found.status == ExperimentStatus.AWAITING_CONFIRMATION,
    }


def _totals(arms: list[ArmProgress]) -> tuple[int, int, int]:
    return sum(a.done for a in arms), sum(a.running for a in arms), sum(a.pending for a in arms)


def _unheard(rounds: list[OpenRound]) -> int:
    return sum(r.unheard for r in rounds)


def _can_change(found: Experiment, held: int, left: int) -> bool:
    """
    Whether anything can change without a person: else nobody need ask again.

    Paused, only the rounds that a worker holds come to their end.
    """
    if found.status == ExperimentStatus.CANCELLED:
        return left > 0
    return found.status == ExperimentStatus.RUNNING or held > 0


def _balance(account: Account) -> dict[str, int | None]:
    """Return micro-USD; ``left`` is what may still be reserved, None without a cap."""
    used = account.settled_microusd + account.held_microusd + account.reserved_microusd
    cap = account.cap_microusd
    return {
        "cap": cap,
        "settled": account.settled_microusd,
        "held": account.held_microusd,
        "reserved": account.reserved_microusd,
        "left": None if cap is None else cap - used,
        "overrun": account.overrun_microusd,
    }


def _open_acts(found: Experiment) -> dict[str, bool]:
    status = found.status
    return {
        "start": status == ExperimentStatus.READY,
        "pause": status == ExperimentStatus.RUNNING,
        "resume": status == ExperimentStatus.PAUSED,
        "confirm": status == ExperimentStatus.AWAITING_CONFIRMATION,
        "cancel": status not in ENDED,
    }


def _frozen(found: Experiment) -> dict[str, Any]:
    return {
        "spec_yaml": to_yaml(document_of_spec(found.spec)),
        "analysis": found.analysis["analysis"],
    }


def _listed(
    request: WorkspaceRequest, found: Experiment, arms: list[ArmProgress]
) -> dict[str, Any]:
    """Return the table of runs: a filter that names nothing there is shows nothing."""
    offered = {
        "arm": [row.arm.name for row in arms],
        "stop": sorted(reason.value for reason in StopReason),
        "status": list(RunStatus.values),
    }
    chosen = {name: request.GET.get(name, "") for name in offered}
    is_known = all(value in ("", *offered[name]) for name, value in chosen.items())
    return {
        "page": _runs_page(request, found, chosen) if is_known else Page[Run]([], None, None),
        "chosen": chosen,
        "is_filtered": any(chosen.values()),
        "statuses": offered["status"],
        "stop_reasons": offered["stop"],
    }


def _runs_page(request: WorkspaceRequest, found: Experiment, chosen: dict[str, str]) -> Page[Run]:
    """Return the page of runs behind the position that ``?after=`` names, in their order."""
    raw = request.GET.get(PARAMETER, "")
    after = int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 10 else None
    rows = runs_of(found, **chosen)
    if after is not None:
        rows = rows.filter(position__gt=after)
    seen = list(rows[: RUNS_A_PAGE + 1])
    shown = seen[:RUNS_A_PAGE]
    return Page(
        rows=shown,
        next_url=_url(request, shown[-1].position) if len(seen) > RUNS_A_PAGE else None,
        first_url=_url(request, None) if after is not None else None,
    )


def _url(request: WorkspaceRequest, after: int | None) -> str:
    query = request.GET.copy()
    query.pop(PARAMETER, None)
    if after is not None:
        query[PARAMETER] = str(after)
    return f"{request.path}?{query.urlencode()}#runs"

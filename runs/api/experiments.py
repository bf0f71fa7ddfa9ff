"""Experiments made, steered and watched, and all that is stored of their runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Status

from debateweb.access import AccessError
from debateweb.api_access import (
    REFUSALS,
    In,
    PageKey,
    PageSize,
    RunKey,
    body_text,
    page,
    person_of,
    text_body,
    workspace_to_read,
    workspace_to_run,
)
from debateweb.errors import StateError
from debateweb.models import Workspace
from runs.api.run_records import run_json, run_summary
from runs.experiment_file import parse
from runs.models import Experiment, Run, RunStatus
from runs.schemas import (
    ExperimentDetailOut,
    ExperimentsOut,
    RunDetailOut,
    RunsOut,
    VerificationOut,
)
from runs.services import experiments
from runs.services.browser_specs import create_from_browser, plan_from_browser
from runs.services.progress import progress_of
from runs.services.verify import first_disagreement

SPEC_BODY = text_body(
    "name: first\nquestions: gsm8k\narms:\n  - {name: debate, protocol: du_2023}\n"
)

router = Router(tags=["experiments"])


class RunNotEndedError(StateError):
    """The run is still under way."""

    code = "run_not_ended"


@router.get("/experiments", response={200: ExperimentsOut, **REFUSALS})
def list_experiments(
    request: HttpRequest, workspace: In, before: PageKey = None, limit: PageSize = 50
) -> dict[str, Any]:
    """List experiments, newest first."""
    place = workspace_to_read(request, workspace)
    rows = Experiment.objects.filter(workspace=place, archived_at=None).order_by("-pk")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return page(list(rows[: limit + 1]), limit)


@router.post(
    "/experiments",
    response={200: ExperimentDetailOut, 201: ExperimentDetailOut, **REFUSALS},
    openapi_extra=SPEC_BODY,
)
def create_experiment(request: HttpRequest, workspace: In) -> Status[dict[str, Any]]:
    """
    Make an experiment from its specification, YAML or JSON; nothing is started.

    The same specification again gives the same experiment (200 instead of 201). It names question
    sets, protocols and models of the workspace, never files.
    """
    place = workspace_to_run(request, workspace)
    spec = parse(body_text(request), "body")
    was_there = Experiment.objects.filter(workspace=place, name=spec.name).exists()
    made = create_from_browser(workspace=place, spec=spec, actor=person_of(request))
    return Status(200 if was_there else 201, _experiment_json(made))


@router.post(
    "/plan-experiment", response={200: dict[str, Any], **REFUSALS}, openapi_extra=SPEC_BODY
)
def plan_experiment(request: HttpRequest, workspace: In) -> dict[str, Any]:
    """Say what a specification would be, may cost and lacks; nothing is stored."""
    place = workspace_to_run(request, workspace)
    return plan_from_browser(workspace=place, spec=parse(body_text(request), "body")).as_json()


@router.get("/experiments/{name}", response={200: ExperimentDetailOut, **REFUSALS})
def get_experiment(request: HttpRequest, workspace: In, name: str) -> dict[str, Any]:
    """Show an experiment, its frozen specification and how far it is."""
    return _experiment_json(experiment_named(workspace_to_read(request, workspace), name))


def _steering(act: str, change: Callable[..., None], says: str) -> None:
    """Add the operation that changes an experiment's status."""

    @router.post(
        f"/experiments/{{name}}/{act}",
        response={200: ExperimentDetailOut, **REFUSALS},
        operation_id=f"{act}_experiment",
        url_name=f"{act}_experiment",
        summary=f"{act.capitalize()} an experiment",
        description=says,
    )
    def steer(request: HttpRequest, workspace: In, name: str) -> dict[str, Any]:
        experiment = experiment_named(workspace_to_run(request, workspace), name)
        change(experiment=experiment, actor=person_of(request))
        return _experiment_json(experiment)


_steering("start", experiments.start, "Start it; only one that is READY.")
_steering("pause", experiments.pause, "Open no further round; rounds under way are committed.")
_steering("resume", experiments.resume, "Go on after a pause.")
_steering("confirm", experiments.confirm_stage, "Go on after the stage.")
_steering("cancel", experiments.cancel, "End it; what is pending makes no call.")


@router.get("/experiments/{name}/runs", response={200: RunsOut, **REFUSALS}, tags=["runs"])
def list_runs(
    request: HttpRequest,
    workspace: In,
    name: str,
    arm: Annotated[str | None, Query(max_length=100)] = None,
    question: Annotated[str | None, Query(max_length=200)] = None,
    status: RunStatus | None = None,
    stop_reason: Annotated[str | None, Query(max_length=32)] = None,
    after: PageKey = None,
    limit: PageSize = 50,
) -> dict[str, Any]:
    """List the runs of an experiment in its order; every filter narrows."""
    experiment = experiment_named(workspace_to_read(request, workspace), name)
    wanted = {
        "arm__name": arm,
        "question__external_id": question,
        "status": status,
        "stop_reason": stop_reason,
        "position__gt": after,
    }
    filters = {key: value for key, value in wanted.items() if value is not None}
    rows = Run.objects.filter(experiment=experiment, **filters).order_by("position")
    shown = page(list(rows.select_related("arm", "question")[: limit + 1]), limit, key="position")
    return {**shown, "items": [run_summary(run) for run in shown["items"]]}


@router.get("/runs/{run_id}", response={200: RunDetailOut, **REFUSALS}, tags=["runs"])
def get_run(request: HttpRequest, workspace: In, run_id: RunKey) -> dict[str, Any]:
    """Show a run: states, verdicts, attempts with prompts and read sets, ledger, outcome."""
    return run_json(_run(workspace_to_read(request, workspace), run_id))


@router.get(
    "/runs/{run_id}/verification", response={200: VerificationOut, **REFUSALS}, tags=["runs"]
)
def verify_run(request: HttpRequest, workspace: In, run_id: RunKey) -> dict[str, Any]:
    """Recompute an ended run from its records, without any model call."""
    run = _run(workspace_to_read(request, workspace), run_id)
    if run.status != RunStatus.DONE:
        raise RunNotEndedError(f"run {run.pk} is {run.status}; only ended runs are recomputed")
    found = first_disagreement(run.pk)
    shown = None
    if found is not None:
        names = ("where", "field", "stored", "recomputed")
        shown = {name: getattr(found, name) for name in names}
    return {"run_id": run.pk, "agrees": found is None, "disagreement": shown}


def experiment_named(workspace: Workspace, name: str) -> Experiment:
    """Return the experiment of that name. Raises AccessError."""
    rows = Experiment.objects.filter(workspace=workspace, name=name, archived_at=None)
    found = rows.select_related("account", "question_set", "workspace").first()
    if found is None:
        raise AccessError(f"there is no experiment {name!r}")
    return found


def _run(workspace: Workspace, run_id: int) -> Run:
    rows = Run.objects.filter(pk=run_id, experiment__workspace=workspace)
    found = rows.select_related("experiment", "arm", "question", "account").first()
    if found is None:
        raise AccessError(f"there is no run {run_id}")
    return found


def _experiment_json(experiment: Experiment) -> dict[str, Any]:
    names = (
        "name", "status", "spec_hash", "analysis_hash", "created_at", "started_at", "ended_at",
        "spec", "analysis",
    )  # fmt: skip
    return {
        "id": experiment.pk,
        **{name: getattr(experiment, name) for name in names},
        "questions": experiment.question_set.name,
        "progress": progress_of(experiment),
    }

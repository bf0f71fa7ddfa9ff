"""Resources of the API that live in ``audits``: stages, reports, the rows behind figures."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from kombu.exceptions import OperationalError
from ninja import Query, Router

from audits.judgment_models import JudgmentSet
from audits.models import Report, ReportStatus
from audits.queue_models import Queue
from audits.reports.stored import Counted, RowsAsked, counted_rows, newest_built, rows_of
from audits.reports.stored_items import ITEM_KINDS, counted_items, items_of
from audits.reports.table import table_bytes
from audits.schemas import (
    BuildingOut,
    ItemOut,
    ItemsOut,
    ReportOut,
    RowOut,
    RowsOut,
    StageOut,
)
from audits.services import ask_for_report, state_of
from audits.stage import stage_of
from debateweb.access import AccessError
from debateweb.api_access import REFUSALS, In, PageKey, PageSize, person_of, workspace_to_read
from debateweb.errors import InputError, StateError
from debateweb.models import Workspace
from runs.models import DebateSet, Experiment

logger = logging.getLogger(__name__)

RETRY_AFTER_SECONDS = 2
MAX_ROUND = 1_000
TABLE = {202: BuildingOut, **REFUSALS}
REPORT = {200: ReportOut, **TABLE}
ROWS = {200: RowsOut, **TABLE}
ITEMS = {200: ItemsOut, **TABLE}
#: What a row tells as it is stored.
ROW_FIELDS = tuple(name for name in RowOut.model_fields if name not in {"num", "den"})
ITEM_FIELDS = tuple(name for name in ItemOut.model_fields if name not in {"num", "den"})
#: What a report is on.
Subject = Experiment | DebateSet | JudgmentSet | Queue
_CSV_TEXT = {"text/csv": {"schema": {"type": "string"}}}
CSV = {"responses": {"200": {"description": "one row a figure", "content": _CSV_TEXT}}}

router = Router(tags=["reports"])
Condition = Annotated[
    str | None, Query(description="an arm, a protocol of imported debates, a judge, or the people")
]
Side = Annotated[str | None, Query(description="a side of a comparison")]
Metric = Annotated[str, Query(min_length=1, max_length=100)]
Round = Annotated[int | None, Query(ge=0, le=MAX_ROUND)]


class ReportFailedError(StateError):
    """The report on these records could not be built."""

    code = "report_failed"


@router.get("/experiments/{name}/stage", response={200: StageOut, **REFUSALS})
def get_stage(request: HttpRequest, workspace: In, name: str) -> dict[str, Any]:
    """Say what the runs that have ended show: projected cost, failures, detectable differences."""
    return stage_of(_experiment(workspace_to_read(request, workspace), name)).as_json()


@router.get("/experiments/{name}/report", response=REPORT)
def get_experiment_report(request: HttpRequest, workspace: In, name: str) -> HttpResponse:
    """
    Return the report on the records as they stand; runs that are not done are left out.

    Where it is not built yet, a worker is asked to, and the answer is 202: ask again.
    """
    place = workspace_to_read(request, workspace)
    return _report(request, _experiment(place, name), _json)


@router.get("/experiments/{name}/report.csv", openapi_extra=CSV, response=TABLE)
def get_experiment_table(request: HttpRequest, workspace: In, name: str) -> HttpResponse:
    """Return the same report as a table: one row a figure."""
    place = workspace_to_read(request, workspace)
    return _report(request, _experiment(place, name), _csv)


@router.post("/experiments/{name}/report", response={202: BuildingOut, **REFUSALS})
def build_experiment_report(request: HttpRequest, workspace: In, name: str) -> HttpResponse:
    """Ask for the report to be built, also after its building failed."""
    return _ask(request, _experiment(workspace_to_read(request, workspace), name))


@router.get("/debates/{name}/report", response=REPORT)
def get_debates_report(request: HttpRequest, workspace: In, name: str) -> HttpResponse:
    """Return the report on a set of imported debates, or 202 while it is being built."""
    place = workspace_to_read(request, workspace)
    return _report(request, _debate_set(place, name), _json)


@router.get("/debates/{name}/report.csv", openapi_extra=CSV, response=TABLE)
def get_debates_table(request: HttpRequest, workspace: In, name: str) -> HttpResponse:
    """Return the same report as a table: one row a figure."""
    place = workspace_to_read(request, workspace)
    return _report(request, _debate_set(place, name), _csv)


@router.post("/debates/{name}/report", response={202: BuildingOut, **REFUSALS})
def build_debates_report(request: HttpRequest, workspace: In, name: str) -> HttpResponse:
    """Ask for the report to be built, also after its building failed."""
    return _ask(request, _debate_set(workspace_to_read(request, workspace), name))


@router.get("/experiments/{name}/rows", response=ROWS)
def list_experiment_rows(
    request: HttpRequest,
    workspace: In,
    name: str,
    metric: Metric,
    condition: Condition = None,
    a: Side = None,
    b: Side = None,
    round: Round = None,  # noqa: A002
    after: PageKey = None,
    limit: PageSize = 50,
) -> Any:
    """
    List what a figure counted: what the ``rows`` address of a report's figure leads to.

    The rows are those of the newest report that is built. ``by.<key>`` narrows to the figure of
    that breakdown. A difference has its sides ``a`` and ``b`` and the metric in ``by.metric``.
    """
    place = workspace_to_read(request, workspace)
    return _rows(request, _experiment(place, name), after, limit)


@router.get("/debates/{name}/rows", response=ROWS)
def list_debate_rows(
    request: HttpRequest,
    workspace: In,
    name: str,
    metric: Metric,
    condition: Condition = None,
    round: Round = None,  # noqa: A002
    after: PageKey = None,
    limit: PageSize = 50,
) -> Any:
    """List the debates behind a figure; as with experiments."""
    place = workspace_to_read(request, workspace)
    return _rows(request, _debate_set(place, name), after, limit)


@router.get("/judgments/{name}/report", response=REPORT)
def get_judgments_report(request: HttpRequest, workspace: In, name: str) -> HttpResponse:
    """Return the report on judgments, imported or of an audit, or 202 while it is being built."""
    place = workspace_to_read(request, workspace)
    return _report(request, _judgment_set(place, name), _json)


@router.get("/judgments/{name}/report.csv", openapi_extra=CSV, response=TABLE)
def get_judgments_table(request: HttpRequest, workspace: In, name: str) -> HttpResponse:
    """Return the same report as a table: one row a figure."""
    place = workspace_to_read(request, workspace)
    return _report(request, _judgment_set(place, name), _csv)


@router.post("/judgments/{name}/report", response={202: BuildingOut, **REFUSALS})
def build_judgments_report(request: HttpRequest, workspace: In, name: str) -> HttpResponse:
    """Ask for the report to be built, also after its building failed."""
    return _ask(request, _judgment_set(workspace_to_read(request, workspace), name))


@router.get("/judgments/{name}/rows", response=ITEMS)
def list_judgment_rows(
    request: HttpRequest,
    workspace: In,
    name: str,
    metric: Metric,
    condition: Condition = None,
    after: PageKey = None,
    limit: PageSize = 50,
) -> Any:
    """List the items behind a figure, with all verdicts and labels; as with experiments."""
    place = workspace_to_read(request, workspace)
    return _rows(request, _judgment_set(place, name), after, limit)


@router.get("/queues/{name}/report", response=REPORT)
def get_queue_report(request: HttpRequest, workspace: In, name: str) -> HttpResponse:
    """Return the report on a queue; while labelling goes on it has counts and no figures."""
    place = workspace_to_read(request, workspace)
    return _report(request, _queue(place, name), _json)


@router.get("/queues/{name}/report.csv", openapi_extra=CSV, response=TABLE)
def get_queue_table(request: HttpRequest, workspace: In, name: str) -> HttpResponse:
    """Return the same report as a table: one row a figure."""
    place = workspace_to_read(request, workspace)
    return _report(request, _queue(place, name), _csv)


@router.post("/queues/{name}/report", response={202: BuildingOut, **REFUSALS})
def build_queue_report(request: HttpRequest, workspace: In, name: str) -> HttpResponse:
    """Ask for the report to be built, also after its building failed."""
    return _ask(request, _queue(workspace_to_read(request, workspace), name))


@router.get("/queues/{name}/rows", response=ITEMS)
def list_queue_rows(
    request: HttpRequest,
    workspace: In,
    name: str,
    metric: Metric,
    condition: Condition = None,
    after: PageKey = None,
    limit: PageSize = 50,
) -> Any:
    """List the items behind a figure, with all labels under pseudonyms; as with experiments."""
    place = workspace_to_read(request, workspace)
    return _rows(request, _queue(place, name), after, limit)


def _rows(request: HttpRequest, subject: Subject, after: int | None, limit: int) -> Any:
    asked = RowsAsked.of(request.GET)
    if asked is None:
        raise InputError("condition: name a condition, or the sides a and b")
    report = newest_built(subject.workspace, subject.name)
    if report is None:
        return _ask(request, subject)
    for name in asked.conditions:
        if name not in report.counted:
            raise InputError(f"condition: there is none {name!r}")
    if report.kind in ITEM_KINDS:
        if isinstance(subject, Experiment):
            raise InputError(f"a judge audit: its rows are at judgments/{subject.name}/rows")
        return _items(report, asked, after, limit)
    rows = rows_of(report, asked)
    found = list(rows.filter(pk__gt=after or 0).order_by("pk")[: limit + 1])
    shown = found[:limit]
    return {
        "built_at": report.ended_at,
        "total": rows.count(),
        "items": [_row(one) for one in counted_rows(report, asked, shown)],
        "next": shown[-1].pk if len(found) > limit else None,
    }


def _items(report: Report, asked: RowsAsked, after: int | None, limit: int) -> dict[str, Any]:
    rows = items_of(report, asked)
    found = list(rows.filter(pk__gt=after or 0).order_by("pk")[: limit + 1])
    shown = found[:limit]
    return {
        "built_at": report.ended_at,
        "total": rows.count(),
        "items": [
            {name: getattr(one.row, name) for name in ITEM_FIELDS}
            | {"num": one.num, "den": one.den}
            for one in counted_items(report, asked, shown)
        ],
        "next": shown[-1].pk if len(found) > limit else None,
    }


def _row(one: Counted) -> dict[str, Any]:
    kept = {name: getattr(one.row, name) for name in ROW_FIELDS}
    return kept | {"num": one.num, "den": one.den}


def _report(
    request: HttpRequest, subject: Subject, shown: Callable[[str], HttpResponse]
) -> HttpResponse:
    """Answer with the stored report; ask for it where there is none of the records' state."""
    state = state_of(subject.workspace, subject.name)
    stored = Report.objects.filter(
        workspace=subject.workspace, name=subject.name, inputs_hash=state[1] if state else ""
    )
    newest = stored.order_by("-pk").first()
    if newest is not None and newest.status == ReportStatus.BUILT:
        return shown(newest.body)
    if newest is not None and newest.status == ReportStatus.FAILED:
        raise ReportFailedError(f"{newest.fault} POST here to have it built again.")
    return _ask(request, subject)


def _ask(request: HttpRequest, subject: Subject) -> HttpResponse:
    try:
        ask_for_report(workspace=subject.workspace, name=subject.name, actor=person_of(request))
    except OperationalError:
        logger.warning("no worker was told of a report: the broker does not answer")
    told = {"status": str(ReportStatus.BUILDING), "name": subject.name}
    return JsonResponse(told, status=202, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})


def _json(body: str) -> HttpResponse:
    return HttpResponse(body, content_type="application/json")


def _csv(body: str) -> HttpResponse:
    return HttpResponse(table_bytes(json.loads(body)), content_type="text/csv; charset=utf-8")


def _experiment(workspace: Workspace, name: str) -> Experiment:
    rows = Experiment.objects.filter(workspace=workspace, name=name, archived_at=None)
    found = rows.select_related("account", "workspace").first()
    if found is None:
        raise AccessError(f"there is no experiment {name!r}")
    return found


def _debate_set(workspace: Workspace, name: str) -> DebateSet:
    rows = DebateSet.objects.filter(workspace=workspace, name=name, archived_at=None)
    found = rows.select_related("workspace").first()
    if found is None:
        raise AccessError(f"there is no set {name!r}")
    return found


def _judgment_set(workspace: Workspace, name: str) -> JudgmentSet:
    rows = JudgmentSet.objects.filter(workspace=workspace, name=name, archived_at=None)
    found = rows.select_related("workspace").first()
    if found is None:
        raise AccessError(f"there are no judgments {name!r}")
    return found


def _queue(workspace: Workspace, name: str) -> Queue:
    rows = Queue.objects.filter(workspace=workspace, name=name, archived_at=None)
    found = rows.select_related("workspace").first()
    if found is None:
        raise AccessError(f"there is no queue {name!r}")
    return found

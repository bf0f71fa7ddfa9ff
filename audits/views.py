"""Reports: the list, one report, the rows behind its figures, and what can be downloaded."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from django.contrib import messages
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_POST, require_safe
from kombu.exceptions import OperationalError

from audits.models import Report, ReportStatus
from audits.reports.leads import KINDS
from audits.reports.render import body_of, links_of, page_bytes
from audits.reports.stored import (
    RowsAsked,
    counted_rows,
    listed,
    newest,
    newest_built,
    rows_of,
    standing_of,
)
from audits.reports.stored_items import ITEM_KINDS, counted_items, items_csv, items_of
from audits.reports.table import rows_csv, table_bytes
from audits.reports.tabulate import table_csv, tables_of
from audits.services import ask_for_report, builder_is_alive, state_of
from debateweb.guards import READERS, WorkspaceRequest, require_role
from debateweb.paging import page_of
from debateweb.trail import trail_head

NO_BROKER = "Noted, but the broker does not answer: ask again when it is back."
ROWS_AT_ONCE = 2_000
MOST_KEY_DIGITS = 18
Answer = TypeVar("Answer", bound=HttpResponseBase)
TYPES = {
    "json": "application/json",
    "html": "text/html; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
}


@require_role(*READERS)
@require_safe
def reports(request: WorkspaceRequest) -> HttpResponse:
    """List all that can be reported on, newest first, with the newest report on each."""
    page = page_of(request, listed(request.workspace))
    known = newest(request.workspace, [row.name for row in page.rows])
    rows = [(row, known.get(row.name)) for row in page.rows]
    return render(request, "audits/reports.html", {"page": page, "rows": rows})


@require_role(*READERS)
@require_safe
def report(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Show the newest report that is built; HTMX gets the panel that waits for one."""
    state = state_of(request.workspace, name)
    if state is None:
        raise Http404
    last = newest(request.workspace, [name]).get(name)
    context: dict[str, Any] = {
        "name": name,
        "last": last,
        "is_building": last is not None and last.status == ReportStatus.BUILDING,
        "is_stale": last is not None and last.inputs_hash != state[1],
    }
    if context["is_building"]:
        context["is_stalled"] = not builder_is_alive()
    if request.htmx:
        return _panel(request, name, context)
    context["standing"] = standing_of(request.workspace, name)
    built = newest_built(request.workspace, name)
    if built is not None:
        links = links_of(request.workspace.name, name, report=built.pk)
        context |= {
            "built": built,
            "kind": KINDS[built.kind],
            "body": body_of(built, links),
            "trail": trail_head(request.workspace),
        }
    return render(request, "audits/report.html", context)


def _panel(request: WorkspaceRequest, name: str, context: dict[str, Any]) -> HttpResponse:
    if context["is_building"]:
        return render(request, "audits/report.html#building", context)
    # It is built or it broke: the whole page has something else to show.
    return redirect("audits:report", request.workspace.name, name)


@require_role(*READERS)
@require_POST
def build(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Ask a worker for the report on the records as they stand; there may be one already."""
    try:
        asked = ask_for_report(workspace=request.workspace, name=name, actor=request.user)
    except OperationalError:
        messages.warning(request, NO_BROKER)
    else:
        if asked is None:
            raise Http404
        if asked.status == ReportStatus.BUILT:
            messages.info(request, "The report is of the records as they stand.")
    return redirect("audits:report", request.workspace.name, name)


@require_role(*READERS)
@require_safe
def download(request: WorkspaceRequest, name: str, form: str) -> HttpResponse:
    """Send the newest report as the file that the command writes."""
    built = _built(request, name)
    body = built.body.encode()
    if form == "csv":
        body = table_bytes(json.loads(built.body))
    if form == "html":
        site = request.build_absolute_uri("/")
        links = links_of(request.workspace.name, name, site=site, report=built.pk)
        body = page_bytes(json.loads(built.body), links, trail_head(request.workspace))
    return _file(body, f"{name}.{form}", TYPES[form])


@require_role(*READERS)
@require_safe
def table(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Send one table of one condition as CSV: ``?condition=…&table=…``."""
    report = json.loads(_built(request, name).body)
    wanted = request.GET.get("condition", ""), request.GET.get("table", "")
    for condition in report["conditions"]:
        for one in tables_of(condition) if condition["name"] == wanted[0] else ():
            if one.name == wanted[1]:
                return _file(table_csv(one), f"{name}-{one.name}.csv", TYPES["csv"])
    raise Http404


@require_role(*READERS)
@require_safe
def rows(request: WorkspaceRequest, name: str) -> HttpResponse:
    """List what a figure counted, as its address asks: agents, runs, or items."""
    built, asked = _built(request, name), _asked(request)
    context = {
        "name": name,
        "asked": asked,
        "built": built,
        "query": request.GET.urlencode(),
    }
    if built.kind in ITEM_KINDS:
        items = page_of(request, items_of(built, asked))
        context |= {"page": items, "rows": list(counted_items(built, asked, items.rows))}
        return render(request, "audits/items.html", context)
    page = page_of(request, rows_of(built, asked))
    context |= {"page": page, "rows": list(counted_rows(built, asked, page.rows))}
    return render(request, "audits/rows.html", context)


@require_role(*READERS)  # type: ignore[arg-type]  # An answer that streams is one too.
@require_safe
def rows_file(request: WorkspaceRequest, name: str) -> StreamingHttpResponse:
    """Send all rows of a figure as CSV, in the order of the runs or items."""
    built, asked = _built(request, name), _asked(request)
    if built.kind in ITEM_KINDS:
        items = items_of(built, asked).order_by("pk").iterator(ROWS_AT_ONCE)
        lines = items_csv(one for row in items for one in counted_items(built, asked, [row]))
    else:
        found = rows_of(built, asked).order_by("pk").iterator(ROWS_AT_ONCE)
        lines = rows_csv(one for row in found for one in counted_rows(built, asked, [row]))
    answer = StreamingHttpResponse(lines, content_type=TYPES["csv"])
    return _as_file(answer, f"{name}-rows.csv")


def _asked(request: WorkspaceRequest) -> RowsAsked:
    asked = RowsAsked.of(request.GET)
    if asked is None:
        raise Http404
    return asked


def _built(request: WorkspaceRequest, name: str) -> Report:
    """Return the report that the address names by its key, else the newest one."""
    raw = request.GET.get("report", "")
    is_key = raw.isascii() and raw.isdigit() and len(raw) <= MOST_KEY_DIGITS
    found = newest_built(request.workspace, name, int(raw) if is_key else None)
    if found is None:
        raise Http404
    return found


def _file(body: bytes, name: str, content_type: str) -> HttpResponse:
    return _as_file(HttpResponse(body, content_type=content_type), name)


def _as_file(answer: Answer, name: str) -> Answer:
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    patch_cache_control(answer, private=True, no_cache=True)
    return answer

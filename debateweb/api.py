"""
The API under ``/api/v1``: one description (``openapi.json``) and one shape of every refusal.

There is no page of documentation that runs scripts: the site's policy allows none of others.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    JsonResponse,
    UnreadablePostError,
)
from django.http.multipartparser import MultiPartParserError
from django.urls import URLPattern, URLResolver, re_path
from ninja import NinjaAPI, Router, Schema
from ninja.errors import HttpError, ValidationError

from audits.api import router as audits_router
from debateweb.access import AccessError, workspaces_of
from debateweb.api_access import (
    REFUSALS,
    Error,
    Fault,
    Faults,
    SessionAuth,
    TokenAuth,
    TooLargeError,
    TooManyRequestsError,
    person_of,
)
from debateweb.errors import DebatewebError, StateError
from runs.api import router as runs_router
from runs.importers.faults import ImportFaults
from runs.protocols.yaml12 import FileFaultError

logger = logging.getLogger(__name__)

#: HTTP statuses of our own errors; the first class that fits decides.
STATUSES: tuple[tuple[type[DebatewebError], int], ...] = (
    (AccessError, 404),
    (TooLargeError, 413),
    (TooManyRequestsError, 429),
    (StateError, 409),
    (DebatewebError, 422),
)
CODES = {
    400: "bad_request",
    401: "not_signed_in",
    403: "csrf_failed",
    404: "not_found",
    405: "method_not_allowed",
}
HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "60"}}
SHOWN_FAULTS = 20
#: ``FILE:LINE: field: what is wrong``, or the same without the place.
_FAULT = re.compile(r"(?:[^\n:]*:(\d+): )?(?:([\w.\[\]-]+): )?(.*)", re.DOTALL)

api = NinjaAPI(
    title="debateweb",
    version="1",
    description=(
        "Experiments with debates of language models: questions, protocols, runs, reports. "
        "Money is in micro-USD, times are ISO 8601 in UTC."
    ),
    urls_namespace="api",
    docs_url=None,
    auth=[TokenAuth(), SessionAuth()],
)
site_router = Router(tags=["workspaces"])


class WorkspaceOut(Schema):
    """A workspace that the person is a member of, and as what."""

    name: str
    role: str


class WorkspacesOut(Schema):
    items: list[WorkspaceOut]


@site_router.get("/workspaces", response={200: WorkspacesOut, **REFUSALS}, url_name="workspaces")
def list_workspaces(request: HttpRequest) -> dict[str, Any]:
    """List the workspaces of the person that the token acts for."""
    user = person_of(request)
    found = workspaces_of(user).values_list("name", "members__role")
    return {"items": [{"name": name, "role": role} for name, role in found]}


api.add_router("", site_router)
api.add_router("/workspaces/{workspace}", runs_router)
api.add_router("/workspaces/{workspace}", audits_router)


def _answer(error: Error, status: int) -> JsonResponse:
    return JsonResponse(error.model_dump(), status=status, headers=HEADERS.get(status, {}))


def fault_of(line: str) -> Fault:
    """Take ``FILE:LINE: field: what is wrong`` apart; what has no such place is a message."""
    found = _FAULT.fullmatch(line)
    number, field, message = found.groups() if found else (None, None, line)
    return Fault(line=int(number) if number else None, field=field, message=message)


def _faulty(code: str, lines: list[str], status: int, total: int | None = None) -> JsonResponse:
    faults = [fault_of(line) for line in lines[:SHOWN_FAULTS]]
    refusal = Faults(
        code=code,
        message="\n".join(lines[:SHOWN_FAULTS]),
        where=_place(faults[0]) if faults else None,
        faults=faults,
        total=len(lines) if total is None else total,
    )
    return _answer(refusal, status)


def _place(fault: Fault) -> str | None:
    parts = [f"line {fault.line}" if fault.line else None, fault.field]
    return ", ".join(part for part in parts if part) or None


@api.exception_handler(DebatewebError)
def _own_error(request: HttpRequest, exc: DebatewebError) -> HttpResponse:
    status = next(status for kind, status in STATUSES if isinstance(exc, kind))
    if status in {409, 422}:
        return _faulty(exc.code, exc.message.split("\n"), status)
    return _answer(Error(code=exc.code, message=exc.message), status)


@api.exception_handler(ImportFaults)
def _import_faults(request: HttpRequest, exc: ImportFaults) -> HttpResponse:
    faults = [Fault(line=f.line or None, field=f.field, message=f.message) for f in exc.faults]
    refusal = Faults(
        code=exc.code,
        message=str(exc),
        where=_place(faults[0]) if faults else None,
        faults=faults,
        total=exc.total,
    )
    return _answer(refusal, 422)


@api.exception_handler(FileFaultError)
def _file_faults(request: HttpRequest, exc: FileFaultError) -> HttpResponse:
    return _faulty(getattr(exc, "code", "faulty_text"), list(exc.lines), 422)


@api.exception_handler(ValidationError)
def _bad_parameter(request: HttpRequest, exc: ValidationError) -> HttpResponse:
    faults = [
        Fault(line=None, field=".".join(map(str, e["loc"][1:])), message=str(e["msg"]))
        for e in exc.errors[:SHOWN_FAULTS]
    ]
    message = "; ".join(f"{fault.field}: {fault.message}" for fault in faults)
    where = faults[0].field if faults else None
    refusal = Faults(
        code="bad_parameter", message=message, where=where, faults=faults, total=len(exc.errors)
    )
    return _answer(refusal, 422)


@api.exception_handler(HttpError)
def _http_error(request: HttpRequest, exc: HttpError) -> HttpResponse:
    code = CODES.get(exc.status_code, "refused")
    return _answer(Error(code=code, message=str(exc)), exc.status_code)


@api.exception_handler(Http404)
def _not_found(request: HttpRequest, exc: Http404) -> HttpResponse:
    return _answer(Error(code="not_found", message="there is nothing here"), 404)


@api.exception_handler(Exception)
def _broken(request: HttpRequest, exc: Exception) -> HttpResponse:
    """What nobody foresaw: the log has it, the answer says no more than that."""
    if isinstance(exc, RequestDataTooBig):
        return _answer(Error(code="too_large", message="the body is too large"), 413)
    if isinstance(exc, MultiPartParserError | SuspiciousOperation | UnreadablePostError):
        return _answer(Error(code="bad_request", message="the body cannot be read"), 400)
    logger.error("the API broke at %s", request.path, exc_info=exc)
    return _answer(Error(code="server_error", message="something broke on our side"), 500)


Answer = Callable[..., HttpResponse]


def _as_json(view: Answer) -> Answer:
    """Hold answers that no operation makes to the same shape as the others."""

    @wraps(view)
    def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            refusal = Error(code="bad_request", message="the address holds a NUL character")
            return _answer(refusal, 400)
        try:
            response = view(request, *args, **kwargs)
        except Http404 as exc:
            return _not_found(request, exc)
        if isinstance(response, HttpResponseNotAllowed):
            refusal = Error(code=CODES[405], message=f"use {response['Allow']}")
            allowed = response["Allow"]
            response = _answer(refusal, 405)
            response["Allow"] = allowed
        return response

    answered.csrf_exempt = True  # type: ignore[attr-defined]  # SessionAuth checks; tokens need none.
    return answered


def _nothing_here(request: HttpRequest, rest: str) -> HttpResponse:
    raise Http404(rest)


def _urls() -> tuple[list[URLPattern | URLResolver], str, str]:
    patterns, app_name, namespace = api.urls
    for pattern in patterns:
        if pattern.callback is not None:
            pattern.callback = _as_json(pattern.callback)
    rest = re_path(r"^(?P<rest>.*)$", _as_json(_nothing_here), name="nothing_here")
    return [*patterns, rest], app_name, namespace


urls = _urls()

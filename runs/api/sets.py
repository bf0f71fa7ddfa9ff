"""Question sets and sets of imported debates: listed, shown, uploaded whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Annotated, Any, TypeVar

from django.db.models import Count, QuerySet
from django.http import HttpRequest
from ninja import Query, Router, Status

from debateweb.access import AccessError
from debateweb.api_access import (
    FILE_BODY,
    REFUSALS,
    In,
    PageKey,
    PageSize,
    page,
    person_of,
    uploaded,
    workspace_to_read,
    workspace_to_run,
)
from debateweb.models import Workspace
from runs.importers.registry import guess_format, read_debates, read_questions
from runs.importers.sources import open_source
from runs.models import DebateSet, QuestionSet
from runs.schemas import (
    DebateSetOut,
    DebatesOut,
    ImportedOut,
    QuestionSetOut,
    QuestionsOut,
    SetsOut,
)
from runs.services.imports import Imported, import_debates, import_questions

AnySet = TypeVar("AnySet", QuestionSet, DebateSet)
Name = Annotated[str, Query(min_length=1, max_length=100, description="what the set is called")]
Format = Annotated[str | None, Query(description="one of the readers; guessed where left out")]
Answer = Status[dict[str, Any]]

router = Router()


def named(rows: QuerySet[AnySet], workspace: Workspace, name: str) -> AnySet:
    """Return the set of that name. Raises AccessError."""
    found = rows.filter(workspace=workspace, name=name, archived_at=None).first()
    if found is None:
        raise AccessError(f"there is no set {name!r}")
    return found


def _listed(
    rows: QuerySet[AnySet], workspace: Workspace, before: int | None, limit: int
) -> dict[str, Any]:
    found = rows.filter(workspace=workspace, archived_at=None).order_by("-pk")
    if before is not None:
        found = found.filter(pk__lt=before)
    return page(list(found[: limit + 1]), limit)


def _by_position(rows: QuerySet[Any], after: int | None, limit: int) -> dict[str, Any]:
    ordered = rows.order_by("position")
    if after is not None:
        ordered = ordered.filter(position__gt=after)
    return page(list(ordered[: limit + 1]), limit, key="position")


def _counts(rows: QuerySet[Any], field: str) -> dict[str, int]:
    counted = rows.values_list(field).annotate(count=Count("pk")).order_by(field)
    return {str(value): count for value, count in counted if value}


def _stored(
    request: HttpRequest,
    name: str,
    format_name: str | None,
    read: Callable[..., Iterator[Any]],
    store: Callable[..., Imported],
    workspace: Workspace,
) -> Answer:
    with uploaded(request) as (stream, file_name):
        chosen = format_name or _guessed(stream, file_name)
        done = store(
            workspace=workspace,
            name=name,
            format_name=chosen,
            records=read(stream, chosen, name=file_name),
            actor=person_of(request),
        )
    told = {
        "name": done.name,
        "size": done.size,
        "content_hash": done.content_hash,
        "added": done.added,
        "format": chosen,
    }
    return Status(201 if done.added else 200, told)


def _guessed(stream: IO[bytes], file_name: str) -> str:
    with open_source(stream, file_name) as source:
        return guess_format(file_name, source.head())


@router.get("/questions", response={200: SetsOut, **REFUSALS}, tags=["questions"])
def list_question_sets(
    request: HttpRequest, workspace: In, before: PageKey = None, limit: PageSize = 50
) -> dict[str, Any]:
    """List question sets, newest first."""
    place = workspace_to_read(request, workspace)
    return _listed(QuestionSet.objects.all(), place, before, limit)


@router.post(
    "/questions",
    response={200: ImportedOut, 201: ImportedOut, **REFUSALS},
    tags=["questions"],
    openapi_extra=FILE_BODY,
)
def upload_questions(
    request: HttpRequest,
    workspace: In,
    name: Name,
    format: Format = None,  # noqa: A002
) -> Answer:
    """
    Import a file of questions, whole or not at all.

    Faults are told by line; the same content again adds nothing (200 instead of 201).
    """
    place = workspace_to_run(request, workspace)
    return _stored(request, name, format, read_questions, import_questions, place)


@router.get("/questions/{name}", response={200: QuestionSetOut, **REFUSALS}, tags=["questions"])
def get_question_set(request: HttpRequest, workspace: In, name: str) -> dict[str, Any]:
    """Show a question set with what can be scored of it."""
    found = named(QuestionSet.objects.all(), workspace_to_read(request, workspace), name)
    rows = found.questions.all()
    return {
        **_set_json(found),
        "referenced": rows.exclude(reference=[]).count(),
        "answer_types": _counts(rows, "answer_type"),
        "strata": _counts(rows, "stratum"),
        "splits": _counts(rows, "split"),
    }


@router.get("/questions/{name}/items", response={200: QuestionsOut, **REFUSALS}, tags=["questions"])
def list_questions(
    request: HttpRequest, workspace: In, name: str, after: PageKey = None, limit: PageSize = 50
) -> dict[str, Any]:
    """List the questions of a set in its order."""
    found = named(QuestionSet.objects.all(), workspace_to_read(request, workspace), name)
    return _by_position(found.questions.all(), after, limit)


@router.get("/debates", response={200: SetsOut, **REFUSALS}, tags=["debates"])
def list_debate_sets(
    request: HttpRequest, workspace: In, before: PageKey = None, limit: PageSize = 50
) -> dict[str, Any]:
    """List sets of imported debates, newest first."""
    place = workspace_to_read(request, workspace)
    return _listed(DebateSet.objects.all(), place, before, limit)


@router.post(
    "/debates",
    response={200: ImportedOut, 201: ImportedOut, **REFUSALS},
    tags=["debates"],
    openapi_extra=FILE_BODY,
)
def upload_debates(
    request: HttpRequest,
    workspace: In,
    name: Name,
    format: Format = None,  # noqa: A002
) -> Answer:
    """Import debates that ran elsewhere, whole or not at all; as with questions."""
    place = workspace_to_run(request, workspace)
    return _stored(request, name, format, read_debates, import_debates, place)


@router.get("/debates/{name}", response={200: DebateSetOut, **REFUSALS}, tags=["debates"])
def get_debate_set(request: HttpRequest, workspace: In, name: str) -> dict[str, Any]:
    """Show a set of imported debates."""
    found = named(DebateSet.objects.all(), workspace_to_read(request, workspace), name)
    protocols = _counts(found.debates.all(), "protocol")
    return {**_set_json(found), "rules": found.rules, "protocols": protocols}


@router.get("/debates/{name}/items", response={200: DebatesOut, **REFUSALS}, tags=["debates"])
def list_debates(
    request: HttpRequest, workspace: In, name: str, after: PageKey = None, limit: PageSize = 50
) -> dict[str, Any]:
    """List the debates of a set as they were recorded."""
    found = named(DebateSet.objects.all(), workspace_to_read(request, workspace), name)
    return _by_position(found.debates.all(), after, limit)


def _set_json(found: QuestionSet | DebateSet) -> dict[str, Any]:
    names = ("name", "format", "size", "content_hash", "created_at")
    return {name: getattr(found, name) for name in names}

"""Question sets and sets of imported debates: listed and shown."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Count, QuerySet
from django.http import HttpRequest
from ninja import Router, Schema

from debateweb.access import AccessError
from debateweb.api_access import REFUSALS, In, PageKey, PageSize, page, workspace_to_read
from debateweb.models import Workspace
from runs.models import DebateSet, QuestionSet
from runs.schemas import DebateSetOut, DebatesOut, QuestionSetOut, QuestionsOut, SetsOut

AnySet = TypeVar("AnySet", QuestionSet, DebateSet)

router = Router()


def named(rows: QuerySet[AnySet], workspace: Workspace, name: str) -> AnySet:
    """Return the set of that name. Raises AccessError."""
    found = rows.filter(workspace=workspace, name=name, archived_at=None).first()
    if found is None:
        raise AccessError(f"there is no set {name!r}")
    return found


def _offer_lists(kind: str, sets: QuerySet[AnySet], rows: type[Schema]) -> None:
    """Add the two lists that every kind of set has; ``kind`` names its address and its rows."""
    one = kind.removesuffix("s")

    def list_sets(
        request: HttpRequest, workspace: In, before: PageKey = None, limit: PageSize = 50
    ) -> dict[str, Any]:
        place = workspace_to_read(request, workspace)
        found = sets.filter(workspace=place, archived_at=None).order_by("-pk")
        if before is not None:
            found = found.filter(pk__lt=before)
        return page(list(found[: limit + 1]), limit)

    def list_rows(
        request: HttpRequest, workspace: In, name: str, after: PageKey = None, limit: PageSize = 50
    ) -> dict[str, Any]:
        found = named(sets.all(), workspace_to_read(request, workspace), name)
        ordered = getattr(found, kind).order_by("position")
        if after is not None:
            ordered = ordered.filter(position__gt=after)
        return page(list(ordered[: limit + 1]), limit, key="position")

    # The description names an operation after its function.
    list_sets.__name__, list_sets.__doc__ = (
        f"list_{one}_sets",
        f"List sets of {kind}, newest first.",
    )
    list_rows.__name__, list_rows.__doc__ = (
        f"list_{kind}",
        f"List the {kind} of a set in its order.",
    )
    for path, act, shape in (
        (f"/{kind}", list_sets, SetsOut),
        (f"/{kind}/{{name}}/items", list_rows, rows),
    ):
        router.get(path, response={200: shape, **REFUSALS}, tags=[kind])(act)


_offer_lists("questions", QuestionSet.objects.all(), QuestionsOut)
_offer_lists("debates", DebateSet.objects.all(), DebatesOut)


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


@router.get("/debates/{name}", response={200: DebateSetOut, **REFUSALS}, tags=["debates"])
def get_debate_set(request: HttpRequest, workspace: In, name: str) -> dict[str, Any]:
    """Show a set of imported debates."""
    found = named(DebateSet.objects.all(), workspace_to_read(request, workspace), name)
    protocols = _counts(found.debates.all(), "protocol")
    return {**_set_json(found), "rules": found.rules, "protocols": protocols}


def _counts(rows: QuerySet[Any], field: str) -> dict[str, int]:
    counted = rows.values_list(field).annotate(count=Count("pk")).order_by(field)
    return {str(value): count for value, count in counted if value}


def _set_json(found: QuestionSet | DebateSet) -> dict[str, Any]:
    names = ("name", "format", "size", "content_hash", "created_at")
    return {name: getattr(found, name) for name in names}

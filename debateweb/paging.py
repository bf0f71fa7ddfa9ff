"""Pages of long lists by key: as fast on the last page as on the first, and nothing shifts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest

Row = TypeVar("Row", bound=Model)
PARAMETER = "before"
SIZE = 50


@dataclass(frozen=True)
class Page(Generic[Row]):
    """Rows of one page; the addresses keep the filters of the request."""

    rows: list[Row]
    next_url: str | None
    first_url: str | None


def page_of(
    request: HttpRequest, rows: QuerySet[Row], *, size: int = SIZE, path: str = ""
) -> Page[Row]:
    """
    Return the page of ``rows`` that ``?before=<key>`` names, newest (highest key) first.

    One query of ``size`` + 1 rows. A key that is no number is the first page. ``path`` is where
    the list is read, if not at the request's own address.
    """
    raw = request.GET.get(PARAMETER, "")
    key = int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 19 else None
    ordered = rows.order_by("-pk")
    found = list((ordered if key is None else ordered.filter(pk__lt=key))[: size + 1])
    shown = found[:size]
    return Page(
        rows=shown,
        next_url=_url(request, path, str(shown[-1].pk)) if len(found) > size else None,
        first_url=_url(request, path, None) if key is not None else None,
    )


def _url(request: HttpRequest, path: str, key: str | None) -> str:
    query = request.GET.copy()
    query.pop(PARAMETER, None)
    if key is not None:
        query[PARAMETER] = key
    where = path or request.path
    return f"{where}?{query.urlencode()}" if query else where

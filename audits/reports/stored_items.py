"""Reads of stored items: what judges and people said of what a figure counted."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet

from audits.models import Report, ReportItem
from audits.reports.stored import RowsAsked
from audits.reports.table import harmless

#: Kinds of reports whose rows are items.
ITEM_KINDS = frozenset({"judge_audit", "queue"})
COLUMNS = ("condition", "item_id", "question_id", "stratum", "gold", "decided", "judgments",
           "labels", "num", "den")  # fmt: skip


@dataclass(frozen=True, slots=True)
class CountedItem:
    """An item with what it adds to the figure; None where the figure adds nothing up."""

    row: ReportItem
    num: float | None
    den: float | None

    @property
    def orders(self) -> list[dict[str, Any]]:
        """Return the verdicts by order as shown, repeats of one order together."""
        found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        for said in self.row.judgments:
            found.setdefault(tuple(said["order"]), []).append(said)
        return [{"order": order, "said": said} for order, said in found.items()]


def items_of(report: Report, asked: RowsAsked) -> QuerySet[ReportItem]:
    """
    Return the items of a figure's denominator. Ordered by the caller.

    Where the figure adds nothing up over items (a coefficient, say), every item of its condition.
    """
    counted = Q(pk__in=[])
    for condition in asked.conditions:
        own = Q(condition=condition)
        place = asked.place_in(report.counted.get(condition, ()))
        counted |= own if place is None else own & Q(**{f"counts__{place}__1__gt": 0})
    return ReportItem.objects.filter(counted, report=report)


def counted_items(
    report: Report, asked: RowsAsked, rows: Sequence[ReportItem]
) -> Iterator[CountedItem]:
    """Yield items of ``items_of`` with what each adds to numerator and denominator."""
    places = {name: asked.place_in(report.counted.get(name, ())) for name in asked.conditions}
    for row in rows:
        place = places[row.condition]
        num, den = (row.counts[place] if place is not None else None) or (None, None)
        yield CountedItem(row, num, den)


def items_csv(items: Iterable[CountedItem]) -> Iterator[bytes]:
    """Yield items as lines of CSV in UTF-8, what was said of them as JSON."""
    yield _line(COLUMNS)
    for one in items:
        row = one.row
        said = (json.dumps(part, ensure_ascii=False) for part in (row.judgments, row.labels))
        yield _line((row.condition, row.item_id, row.question_id, row.stratum, row.gold,
                     row.decided, *said, one.num, one.den))  # fmt: skip


def _line(cells: Iterable[object]) -> bytes:
    stream = io.StringIO(newline="")
    csv.writer(stream).writerow([harmless(cell) for cell in cells])
    return stream.getvalue().encode()

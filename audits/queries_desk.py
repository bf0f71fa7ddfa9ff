"""
What the lead's desk reads of items: where people differ, what was said, decided and sealed.

For owners and researchers only: names, everybody's labels and what is sealed are read here. The
number of queries is fixed whatever the size of a page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.db import connection
from django.db.models import QuerySet

from audits.queue_models import Adjudication, Item, ItemNote, Queue
from debateweb.models import Workspace

PAGE = 25


class Show(StrEnum):
    """Which items the desk lists."""

    DIFFER = "differ"  # Two people who stand said different things.
    AGAINST = "against"  # A standing label is not what the gold or the judge says.
    DECIDED = "decided"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class DeskRow:
    """An item of the list: how many labels stand, how many different ones, what was decided."""

    item: Item
    labels: int
    kinds: int
    against: bool
    decisions: int


_ITEMS = """
SELECT i.id, l.n, l.kinds, coalesce(l.against, false), d.n
FROM audits_item i
JOIN audits_itemsecret s ON s.item_id = i.id
CROSS JOIN LATERAL (
    SELECT count(*) AS n, count(DISTINCT c.value->'label') AS kinds,
        bool_or((s.is_gold AND c.value->'label' IS DISTINCT FROM s.body->'gold') OR EXISTS (
            SELECT 1 FROM jsonb_array_elements(CASE WHEN jsonb_typeof(s.body->'verdicts') = 'array'
                THEN s.body->'verdicts' ELSE '[]' END) v
            WHERE jsonb_typeof(v) = 'string' AND v <> c.value->'label')) AS against
    FROM (
        SELECT DISTINCT ON (o.annotator_id) o.value FROM audits_label o
        WHERE o.item_id = i.id
            AND NOT EXISTS (SELECT 1 FROM audits_labelvoid w WHERE w.label_id = o.id)
        ORDER BY o.annotator_id, o.version DESC) c
    WHERE c.value IS NOT NULL AND jsonb_typeof(c.value) <> 'null') l
CROSS JOIN LATERAL (SELECT count(*) AS n FROM audits_adjudication a WHERE a.item_id = i.id) d
WHERE i.queue_id = %s AND i.again_of_id IS NULL AND i.position > %s AND {filter}
ORDER BY i.position LIMIT %s
"""
_FILTERS: Final = {
    Show.DIFFER: "l.kinds > 1",
    Show.AGAINST: "l.against",
    Show.DECIDED: "d.n > 0",
    Show.ALL: "true",
}


def queue_of(workspace: Workspace, name: str) -> Queue | None:
    return (
        Queue.objects.filter(workspace=workspace, name=name, archived_at=None)
        .select_related("workspace")
        .first()
    )


def desk_rows(queue: Queue, show: Show, after: int = -1, size: int = PAGE) -> list[DeskRow]:
    """Return the items after a position, in the queue's order; one more than ``size`` if any."""
    with connection.cursor() as cursor:
        cursor.execute(_ITEMS.format(filter=_FILTERS[show]), [queue.pk, after, size + 1])
        found = cursor.fetchall()
    items = Item.objects.in_bulk([row[0] for row in found])
    return [DeskRow(items[pk], n, kinds, against, made) for pk, n, kinds, against, made in found]


def item_of(queue: Queue, key: str) -> Item | None:
    items = Item.objects.filter(queue=queue, key=key, again_of=None)
    return items.select_related("secret").first()


def servings_again(item: Item) -> QuerySet[Item]:
    return Item.objects.filter(again_of=item)


def decisions_on(item: Item) -> list[Adjudication]:
    return list(
        Adjudication.objects.filter(item=item).select_related("created_by").order_by("ordinal")
    )


def notes_on(item: Item) -> list[ItemNote]:
    notes = ItemNote.objects.filter(item=item).select_related("annotator", "author")
    return list(notes.order_by("pk"))


def words_of(secret: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what was sealed as names with values, for people to read."""
    return [(name.replace("_", " "), _plain(value)) for name, value in sorted(secret.items())]


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

"""
All that pages for annotators read. Blindness is what is not read (decision 0070).

No table of secrets, judgments or runs is named here, nobody else's labels are read, and what an
item is called in files (``item_id``, ``stratum``, ``weight``) is left out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from django.db import connection
from django.db.models import Q, QuerySet

from audits.queue_models import (
    Annotator,
    Guideline,
    Item,
    ItemNote,
    Label,
    Queue,
    QueueStatus,
    Serving,
    SlotState,
)
from debateweb.models import User, Workspace

#: Items of a queue whose labels are counted anew for each page.
COUNTED_EACH_TIME = 5_000
COUNT_KEPT_SECONDS = 10
_COUNTS = """
SELECT s.queue_id, count(*), count(*) FILTER (WHERE s.state = 'DONE'),
    count(*) FILTER (WHERE s.state = 'DONE' AND s.holder_id = ANY(%(mine)s))
FROM audits_slot s WHERE s.queue_id = ANY(%(queues)s) GROUP BY s.queue_id
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """Labels of a queue: needed, given by all, and given by one person."""

    needed: int = 0
    done: int = 0
    mine: int = 0


@dataclass(frozen=True, slots=True)
class MyQueue:
    """A queue that a person labels in, or may join (``annotator`` is None)."""

    queue: Queue
    annotator: Annotator | None
    progress: Progress

    @property
    def progress_id(self) -> str:
        return f"progress-{self.queue.pk}"


def open_queues(workspace: Workspace) -> QuerySet[Queue]:
    return Queue.objects.filter(workspace=workspace, archived_at=None)


def my_queues(user: User, workspace: Workspace) -> list[MyQueue]:
    """Return the queues of this person, newest first, and then those that they may join."""
    mine = {
        row.queue_id: row
        for row in Annotator.objects.filter(
            user=user, queue__workspace=workspace, removed_at=None, queue__archived_at=None
        )
    }
    may_join = Q(status=QueueStatus.OPEN) & ~Q(annotators__user=user)
    queues = open_queues(workspace).filter(Q(pk__in=mine) | may_join)
    shown = sorted(queues.order_by("-pk")[:200], key=lambda queue: queue.pk not in mine)
    counts = progress_of([queue.pk for queue in shown], [row.pk for row in mine.values()])
    return [MyQueue(queue, mine.get(queue.pk), counts.get(queue.pk, Progress())) for queue in shown]


def progress_of(queues: Sequence[int], annotators: Sequence[int]) -> dict[int, Progress]:
    """Count labels by queue; ``annotators`` are the person's own rows."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, {"queues": list(queues), "mine": list(annotators)})
        return {queue: Progress(needed, done, mine) for queue, needed, done, mine in cursor}


def progress_for(annotator: Annotator) -> Progress:
    """
    Return what the page of an item shows: the person's own count is exact.

    Counting a large queue takes longer than finding the next item, so that its counts may be some
    seconds old.
    """
    is_large = annotator.queue.size > COUNTED_EACH_TIME
    age = int(time.monotonic() / COUNT_KEPT_SECONDS)
    counted = _counted(annotator.queue_id, age) if is_large else _count(annotator.queue_id)
    mine = annotator.slots.filter(state=SlotState.DONE).count()
    return replace(counted, mine=mine)


@lru_cache(maxsize=256)
def _counted(queue_id: int, _age: int) -> Progress:
    return _count(queue_id)


def _count(queue_id: int) -> Progress:
    return progress_of([queue_id], []).get(queue_id, Progress())


def queue_named(workspace: Workspace, name: str) -> Queue | None:
    return open_queues(workspace).filter(name=name).first()


def annotator_in(user: User, workspace: Workspace, name: str) -> Annotator | None:
    """Return the person's row in the queue of this name, with the queue."""
    return (
        Annotator.objects.filter(
            user=user, queue__workspace=workspace, queue__name=name, queue__archived_at=None
        )
        .select_related("queue", "user")
        .first()
    )


def served(annotator: Annotator, key: str, fence: int) -> Serving | None:
    """Return the newest serving of an item to this person under a lease of this number."""
    return (
        Serving.objects.filter(annotator=annotator, slot__item__key=key, fence=fence)
        .select_related("slot", "guideline", "slot__item")
        .order_by("-pk")
        .first()
    )


def servings_of(annotator: Annotator, items: Sequence[int]) -> dict[int, Serving]:
    """Return the newest serving of each item to this person."""
    rows = Serving.objects.filter(annotator=annotator, slot__item__in=items).order_by("pk")
    return {row.slot.item_id: row for row in rows.select_related("slot", "guideline", "slot__item")}


def thread(annotator: Annotator, item: Item) -> QuerySet[ItemNote]:
    """Return what this person wrote to the lead about an item, and the answers. No names."""
    notes = ItemNote.objects.filter(annotator=annotator, item=item)
    return notes.only("kind", "text", "created_at").order_by("pk")


def guidelines(queue: Queue) -> QuerySet[Guideline]:
    return Guideline.objects.filter(queue=queue).order_by("-version")


def first_labels(annotator: Annotator) -> QuerySet[Label]:
    """Return the first version of each label of this person: a page of these is a page of items."""
    return Label.objects.filter(annotator=annotator, version=1).select_related("item")


def versions_of(annotator: Annotator, items: Sequence[int]) -> dict[int, list[Label]]:
    """Return all versions of this person's labels by item, oldest first."""
    found: dict[int, list[Label]] = {}
    for label in (
        Label.objects.filter(annotator=annotator, item__in=items)
        .select_related("void", "serving")
        .order_by("item", "version")
    ):
        found.setdefault(label.item_id, []).append(label)
    return found


def labelled(annotator: Annotator, key: str) -> Item | None:
    """Return an item of that key which this person has labelled."""
    return Item.objects.filter(key=key, labels__annotator=annotator, labels__version=1).first()

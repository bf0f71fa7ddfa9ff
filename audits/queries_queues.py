"""What leads read of queues: the list and one queue's progress, in fixed numbers of queries."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from audits.queue_models import Annotator, Queue, Slot, SlotState
from debateweb.models import Member, Role, User, Workspace


@dataclass(frozen=True, slots=True)
class Progress:
    """Labels asked for, by where they are now."""

    total: int
    done: int
    held: int

    @property
    def free(self) -> int:
        return self.total - self.done - self.held


def queues_in(workspace: Workspace) -> QuerySet[Queue]:
    return Queue.objects.filter(workspace=workspace, archived_at=None)


def progress_of(queues: list[Queue]) -> dict[int, Progress]:
    """Return the progress of each queue, by its key. One query."""
    counts = Slot.objects.filter(queue__in=queues).values("queue").order_by("queue")
    done, held = Q(state=SlotState.DONE), Q(state=SlotState.HELD)
    rows = counts.annotate(
        total=Count("pk"), done=Count("pk", filter=done), held=Count("pk", filter=held)
    )
    found = {row["queue"]: Progress(row["total"], row["done"], row["held"]) for row in rows}
    return {queue.pk: found.get(queue.pk, Progress(0, 0, 0)) for queue in queues}


def annotators_of(queue: Queue) -> QuerySet[Annotator]:
    """Return who labels in a queue, with ``done`` and ``held`` slots."""
    done, held = Q(slots__state=SlotState.DONE), Q(slots__state=SlotState.HELD)
    return (
        Annotator.objects.filter(queue=queue)
        .annotate(done=Count("slots", filter=done), held=Count("slots", filter=held))
        .order_by("pk")
    )


def may_be_added(queue: Queue) -> QuerySet[User]:
    """Return members who may label and do not label in this queue yet."""
    roles = [Role.OWNER, Role.RESEARCHER, Role.ANNOTATOR]
    members = Member.objects.filter(workspace=queue.workspace_id, role__in=roles)
    there = Annotator.objects.filter(queue=queue, user__isnull=False).values("user")
    users = User.objects.filter(pk__in=members.values("user"))
    return users.exclude(pk__in=there).order_by("username")

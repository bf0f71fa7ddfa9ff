"""When what was hidden may be seen: at the close of a person's batch, or of the queue."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, QuerySet
from django.db.models.functions import Now

from audits.labelling.design import read_design
from audits.queue_models import Annotator, Item, Label, Queue, QueueStatus, Reveal, Slot, SlotState
from audits.queues.claiming import open_batch
from audits.queues.errors import NotCorrectableError
from debateweb.audit import record
from debateweb.models import User


def revealed_items(annotator: Annotator) -> QuerySet[Item]:
    """
    Return the items whose secrets this person may see.

    With ``reveal: item`` each once it is labelled; with ``batch`` what they had labelled when they
    last closed a batch; all of the queue's once the lead has revealed the queue.
    """
    items = Item.objects.filter(queue=annotator.queue_id)
    if Reveal.objects.filter(queue=annotator.queue_id, annotator=None).exists():
        return items
    policy = read_design(annotator.queue.design).reveal
    mine = Slot.objects.filter(item=OuterRef("pk"), holder=annotator, state=SlotState.DONE)
    labelled = Label.objects.filter(item=OuterRef("pk"), annotator=annotator, version=1)
    if policy == "item":
        return items.filter(Exists(mine), Exists(labelled))
    through = annotator.reveals.aggregate(through=Max("through_label"))["through"]
    if policy == "queue" or through is None:
        return items.none()
    return items.filter(Exists(mine), Exists(labelled.filter(pk__lte=through)))


@transaction.atomic
def close_batch(*, annotator: Annotator) -> Reveal:
    """
    Close the person's batch: what they labelled so far is sealed, and its secrets may be seen.

    Raises NotCorrectableError where nothing was labelled since the last close, an item is still
    open in front of them, or the queue reveals otherwise.
    """
    Annotator.objects.select_for_update(no_key=True).get(pk=annotator.pk)
    person = annotator.user
    if person is None:
        raise NotCorrectableError("a name in a file closes no batch")
    if read_design(annotator.queue.design).reveal != "batch":
        raise NotCorrectableError("this queue has no batches: it is revealed as a whole")
    if Slot.objects.filter(holder=annotator, state=SlotState.HELD).exists():
        raise NotCorrectableError("submit or release the item that is open in front of you first")
    last = open_batch(annotator).aggregate(last=Max("pk"))["last"]
    if last is None:
        raise NotCorrectableError("there is nothing to close: no label since the last batch")
    reveal = Reveal.objects.create(
        queue=annotator.queue, annotator=annotator, through_label=last, created_by=person
    )
    record(
        act="batch.close",
        workspace=annotator.queue.workspace,
        obj=reveal,
        actor=person,
        detail={"through_label": last},
    )
    return reveal


@transaction.atomic
def close_queue(*, queue: Queue, actor: User) -> None:
    """
    Close a queue for good, once, and reveal it to its annotators.

    What is held stays with its holders and takes no label any more.
    """
    still_open = Queue.objects.filter(pk=queue.pk).exclude(status=QueueStatus.CLOSED)
    if not still_open.update(status=QueueStatus.CLOSED, closed_at=Now()):
        return  # Somebody else closed it at this moment.
    Reveal.objects.create(
        queue=queue,
        annotator=None,
        through_label=Label.objects.aggregate(last=Max("pk"))["last"] or 0,
        created_by=actor,
    )
    record(act="queue.close", workspace=queue.workspace, obj=queue, actor=actor)

"""
The key between people and pseudonyms of a queue: taken away as a file, and destroyed.

After it nothing that debateweb shows or exports of the queue's labels leads to a person. What
the trail and threads hold by then is told in docs/operations.md.
"""

from __future__ import annotations

import csv
import io

from django.db import transaction
from django.db.models import F

from audits.queue_models import Annotator, Queue, QueueStatus
from audits.queues.errors import LabelError, NotCorrectableError
from debateweb.audit import record
from debateweb.models import User
from runs.importers.cells import neutral

COLUMNS = ("queue", "pseudonym", "name")


@transaction.atomic
def export_key(*, queue: Queue, actor: User) -> bytes:
    """Return the key as CSV in UTF-8; no cell runs in a spreadsheet. The trail notes it."""
    people = Annotator.objects.filter(queue=queue, user__isnull=False).order_by("pseudonym")
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(COLUMNS)
    for person in people:
        rows.writerow([neutral(queue.name), person.pseudonym, neutral(person.name)])
    detail = {"people": len(people)}
    record(act="key.export", workspace=queue.workspace, obj=queue, actor=actor, detail=detail)
    return text.getvalue().encode()


@transaction.atomic
def sever(*, queue: Queue, typed: str, actor: User) -> int:
    """
    Destroy the key of a closed queue; return how many people were severed.

    ``typed`` has to be the queue's name. Raises LabelError, NotCorrectableError for a queue that
    is still open: its people could not go on.
    """
    if typed.strip() != queue.name:
        raise LabelError("typed: type the queue's name to destroy its key")
    queue = Queue.objects.select_for_update(of=("self",)).get(pk=queue.pk)
    if queue.status != QueueStatus.CLOSED:
        raise NotCorrectableError("close the queue first: who is severed cannot label in it")
    people = Annotator.objects.filter(queue=queue, user__isnull=False)
    severed = people.update(user=None, name=F("pseudonym"))
    if not severed:
        raise NotCorrectableError("nobody in this queue has a key: it is severed already")
    detail = {"people": severed}
    record(act="key.sever", workspace=queue.workspace, obj=queue, actor=actor, detail=detail)
    return severed

"""What an annotator writes to the lead about an item: a flag, a question, a late remark."""

from __future__ import annotations

from typing import Literal

from django.db import transaction

from audits.queue_models import Annotator, Item, ItemNote
from audits.queues.errors import LabelError
from debateweb.audit import record

MAX_NOTE_CHARS = 20_000
LATE = "Sent after the item had gone to somebody else."


@transaction.atomic
def add_note(
    *, annotator: Annotator, item: Item, kind: Literal["flag", "question"], text: str
) -> ItemNote:
    """Append a note to this person's thread on the item. Raises LabelError for an empty one."""
    if not text.strip():
        raise LabelError("note: write to the lead what is wrong, or what you want to know")
    if len(text) > MAX_NOTE_CHARS:
        raise LabelError(f"note: at most {MAX_NOTE_CHARS} characters")
    if annotator.user is None:
        raise LabelError("note: a name in a file writes none")
    note = ItemNote.objects.create(
        item=item, annotator=annotator, author=annotator.user, kind=kind, text=text
    )
    record(act=f"item.{kind}", workspace=annotator.queue.workspace, obj=note, actor=annotator.user)
    return note

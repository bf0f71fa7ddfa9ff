"""What is being typed: kept as it comes, for as long as nobody has submitted it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from django.db import connection, transaction

from audits.labelling.design import read_design
from audits.queue_models import Annotator, Item, LabelDraft, Slot
from audits.queues.claiming import locked_person

# A save that arrives after the submit would come back as a draft on undo; beliefs that were given
# after earlier turns are never what is being typed.
_SAVE_DRAFT = """
INSERT INTO audits_labeldraft (slot_id, annotator_id, sequence, body, saved_at)
SELECT %(slot)s, %(person)s, %(sequence)s, %(body)s::jsonb, now()
WHERE EXISTS (
    SELECT 1 FROM audits_serving v WHERE v.slot_id = %(slot)s AND v.annotator_id = %(person)s)
AND NOT EXISTS (
    SELECT 1 FROM audits_slot s
    WHERE s.id = %(slot)s AND s.holder_id = %(person)s AND s.state = 'DONE')
ON CONFLICT (slot_id, annotator_id) DO UPDATE
SET sequence = excluded.sequence, saved_at = now(), body = CASE
    WHEN audits_labeldraft.body ? 'beliefs' AND NOT excluded.body ? 'beliefs'
    THEN excluded.body || jsonb_build_object('beliefs', audits_labeldraft.body -> 'beliefs')
    ELSE excluded.body END
WHERE audits_labeldraft.sequence < excluded.sequence
"""
_RENEW = """
UPDATE audits_slot SET leased_until = now() + make_interval(secs => %(seconds)s)
WHERE id = %(slot)s AND holder_id = %(person)s AND state = 'HELD'
"""


@transaction.atomic
def save_draft(
    *, annotator: Annotator, slot_id: int, sequence: int, body: Mapping[str, Any]
) -> bool:
    """
    Keep what is being typed, and the lease alive. Returns whether the lease still stands.

    The higher ``sequence`` wins whichever request arrives last. A person who lost the lease keeps
    their draft all the same; one who was never served the slot can store nothing on it.
    """
    values: dict[str, Any] = {
        "slot": slot_id,
        "person": annotator.pk,
        "sequence": sequence,
        "body": json.dumps(dict(body)),
        "seconds": read_design(annotator.queue.design).lease_seconds,
    }
    locked_person(annotator)  # Before slot and draft, as a submit does: else they meet head-on.
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, values)
        is_held = bool(cursor.rowcount)
        cursor.execute(_SAVE_DRAFT, values)
        return is_held


def draft_of(*, annotator: Annotator, item: Item) -> LabelDraft | None:
    """Return the newest draft of this person on any slot of the item."""
    return (
        LabelDraft.objects.filter(annotator=annotator, slot__item=item)
        .order_by("-sequence", "-pk")
        .first()
    )


def given_beliefs(*, annotator: Annotator, item: Item) -> list[dict[str, Any]]:
    """Return the beliefs after the turns read so far; they outlive a lease (formats.md)."""
    drafts = LabelDraft.objects.filter(annotator=annotator, slot__item=item)
    return max((draft.body.get("beliefs", []) for draft in drafts), key=len, default=[])


@transaction.atomic
def give_belief(
    *, annotator: Annotator, slot_id: int, belief: Mapping[str, Any], written: Mapping[str, str]
) -> bool:
    """
    Keep the belief after one more turn, for good; ``belief`` names its turn, from 1.

    ``written`` are texts of the draft that go on: what is written is of the whole debate. Sent
    twice it counts once. Returns whether the lease still stands.
    """
    locked_person(annotator)
    slot = Slot.objects.select_related("item").get(pk=slot_id)
    given = given_beliefs(annotator=annotator, item=slot.item)
    if belief["turn"] == len(given) + 1:
        given = [*given, dict(belief)]
    newest = draft_of(annotator=annotator, item=slot.item)
    sequence = max(milliseconds_now(), newest.sequence + 1 if newest is not None else 0)
    body = {"beliefs": given, **written}
    return save_draft(annotator=annotator, slot_id=slot_id, sequence=sequence, body=body)


def milliseconds_now() -> int:
    """Return the clock as pages count drafts by it."""
    return time.time_ns() // 1_000_000


def discard_draft(*, annotator: Annotator, item: Item) -> None:
    """Drop what the person had typed on an item, at their word."""
    LabelDraft.objects.filter(annotator=annotator, slot__item=item).delete()

"""
Who works on what: next, heartbeat, skip, release (decision 0070).

A slot is the unit. "Next" is one locking SELECT that skips what others are just taking, and one
UPDATE; the schema's constraints make the overlap exact whatever happens here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from audits.labelling.design import QueueDesign, read_design
from audits.labelling.orders import order_for, turned
from audits.queue_models import (
    Annotator,
    Guideline,
    Item,
    Label,
    Queue,
    QueueStatus,
    Serving,
    Skip,
    Slot,
    SlotState,
)
from audits.queues.admission import admit_if_calibrated
from audits.queues.errors import LeaseLostError

MOST_SKIPS = 2


class Nothing(StrEnum):
    """Why there is no next item. Only ``ALL_DONE`` means that the queue needs no more labels."""

    ALL_DONE = "all_done"
    HELD_BY_OTHERS = "held_by_others"
    SET_ASIDE = "set_aside"  # What is left was skipped twice by this person.
    DONE_BY_YOU = "done_by_you"  # What is left needs other people's labels.
    BATCH_FULL = "batch_full"
    CAPACITY_REACHED = "capacity_reached"
    NOT_ADMITTED = "not_admitted"
    PAUSED = "paused"
    CLOSED = "closed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A slot that its holder may label until the lease ends, and what is put before them."""

    slot: Slot
    item: Item
    serving: Serving


_TAKEABLE = """
    s.queue_id = %(queue)s AND s.state = 'FREE' AND s.phase = %(phase)s
    AND NOT EXISTS (
        SELECT 1 FROM audits_slot o WHERE o.item_id = s.item_id AND o.holder_id = %(person)s)
    AND NOT EXISTS (
        SELECT 1 FROM audits_skip k
        WHERE k.item_id = s.item_id AND k.annotator_id = %(person)s AND k.ordinal >= %(skips)s)
    AND (i.again_of_id IS NULL OR EXISTS (
        SELECT 1 FROM audits_slot f
        WHERE f.item_id = i.again_of_id AND f.holder_id = %(person)s AND f.state = 'DONE'))
"""
# What was typed on before comes first, then what was never put off, then what was put off once:
# a draft on something that was put off does not bring it back at once.
_WITH_DRAFT = f"""
SELECT s.id FROM audits_labeldraft d
JOIN audits_slot h ON h.id = d.slot_id
JOIN audits_slot s ON s.item_id = h.item_id
JOIN audits_item i ON i.id = s.item_id
WHERE d.annotator_id = %(person)s AND {_TAKEABLE}
ORDER BY s.position, s.ordinal LIMIT 1 FOR UPDATE OF s SKIP LOCKED
"""  # noqa: S608  # Made of constants.
_FRESH = f"""
SELECT s.id FROM audits_slot s JOIN audits_item i ON i.id = s.item_id
WHERE {_TAKEABLE}
ORDER BY s.position, s.ordinal LIMIT 1 FOR UPDATE OF s SKIP LOCKED
"""  # noqa: S608  # Made of constants.
_PUT_OFF = f"""
SELECT s.id FROM audits_skip p
JOIN audits_slot s ON s.item_id = p.item_id
JOIN audits_item i ON i.id = s.item_id
WHERE p.annotator_id = %(person)s AND p.ordinal = 1 AND {_TAKEABLE}
ORDER BY p.id, s.ordinal LIMIT 1 FOR UPDATE OF s SKIP LOCKED
"""  # noqa: S608  # Made of constants.
_FREE_EXPIRED = """
UPDATE audits_slot SET state = 'FREE', holder_id = NULL, leased_until = NULL
WHERE id IN (
    SELECT id FROM audits_slot
    WHERE queue_id = %(queue)s AND state = 'HELD' AND leased_until < now()
        AND holder_id <> %(person)s
    FOR UPDATE SKIP LOCKED)
"""
_LEASE = """
UPDATE audits_slot
SET state = 'HELD', holder_id = %(person)s, fence = fence + 1,
    leased_until = now() + make_interval(secs => %(seconds)s)
WHERE id = %(slot)s AND state = 'FREE'
"""


@transaction.atomic
def next_item(annotator: Annotator) -> Claimed | Nothing:
    """
    Return the item that this person labels next, leased to them; or why there is none.

    What they hold already comes first, with the same serving: after a crash, in a second tab, or
    when "next" was pressed twice at once.
    """
    # One person's requests one after the other: two tabs get one item.
    person = locked_person(annotator)
    queue = person.queue
    design = read_design(queue.design)
    refused = _refused(person, queue)
    if refused is not None:
        return refused
    held = _held(person, design)
    if held is not None:
        return held
    full = _full(person, design)
    if full is not None:
        return full
    with connection.cursor() as cursor:
        cursor.execute(_FREE_EXPIRED, {"queue": queue.pk, "person": person.pk})
    slot_id = _taken(person, design)
    if slot_id is None and person.admitted_at is None and admit_if_calibrated(person):
        person.refresh_from_db()
        slot_id = _taken(person, design)
    return _why_nothing(person) if slot_id is None else _served(person, design, slot_id)


def locked_person(annotator: Annotator) -> Annotator:
    """
    Lock the person's row, before any slot and any draft: all that one person does comes in turn.

    The row of the queue is not locked. Without the key, so that rows which name the person can be
    inserted meanwhile by who holds their slot.
    """
    locked = Annotator.objects.select_for_update(of=("self",), no_key=True)
    return locked.select_related("queue").get(pk=annotator.pk)


def _refused(person: Annotator, queue: Queue) -> Nothing | None:
    if person.removed_at is not None or person.user_id is None:
        return Nothing.REMOVED
    if queue.status == QueueStatus.CLOSED:
        return Nothing.CLOSED
    return Nothing.PAUSED if queue.status == QueueStatus.PAUSED else None


def _held(person: Annotator, design: QueueDesign) -> Claimed | None:
    """Return what the person holds, the lease renewed even where it had run out unnoticed."""
    slot = (
        Slot.objects.select_for_update(of=("self",))
        .filter(holder=person, state=SlotState.HELD)
        .order_by("position")
        .first()
    )
    if slot is None:
        return None
    _renew(slot.pk, design)
    slot.refresh_from_db()
    serving = Serving.objects.get(slot=slot, fence=slot.fence)
    return Claimed(slot=slot, item=Item.objects.get(pk=slot.item_id), serving=serving)


def _renew(slot_id: int, design: QueueDesign) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE audits_slot SET leased_until = now() + make_interval(secs => %s)"
            " WHERE id = %s AND state = 'HELD'",
            [design.lease_seconds, slot_id],
        )


def _full(person: Annotator, design: QueueDesign) -> Nothing | None:
    done = Slot.objects.filter(holder=person, state=SlotState.DONE)
    if person.capacity is not None and done.filter(phase="main").count() >= person.capacity:
        return Nothing.CAPACITY_REACHED
    if design.reveal == "batch" and open_batch(person).count() >= design.batch_items:
        return Nothing.BATCH_FULL
    return None


def open_batch(person: Annotator) -> QuerySet[Label]:
    """Return the first labels of what this person labelled since their last batch was closed."""
    sealed = person.reveals.aggregate(through=Max("through_label"))["through"] or 0
    mine = Slot.objects.filter(item=OuterRef("item"), holder=person, state=SlotState.DONE)
    first = Label.objects.filter(annotator=person, version=1, pk__gt=sealed, item__phase="main")
    return first.filter(Exists(mine))


def _taken(person: Annotator, design: QueueDesign) -> int | None:
    phase = "main" if person.admitted_at is not None else "calibration"
    values: dict[str, Any] = {
        "queue": person.queue_id,
        "person": person.pk,
        "phase": phase,
        "seconds": design.lease_seconds,
    }
    with connection.cursor() as cursor:
        for query, skips in ((_WITH_DRAFT, 1), (_FRESH, 1), (_PUT_OFF, MOST_SKIPS)):
            cursor.execute(query, values | {"skips": skips})
            row = cursor.fetchone()
            if row is not None:
                cursor.execute(_LEASE, values | {"slot": row[0]})
                return int(row[0])
    return None


def _served(person: Annotator, design: QueueDesign, slot_id: int) -> Claimed:
    slot = Slot.objects.select_related("item").get(pk=slot_id)
    serving = Serving.objects.create(
        slot=slot,
        annotator=person,
        fence=slot.fence,
        shown_order=list(_order(person, slot.item)),
        guideline=Guideline.objects.filter(queue=person.queue_id).latest("version"),
        shown_reference=design.show_reference,
        masked=design.mask_giveaways,
    )
    return Claimed(slot=slot, item=slot.item, serving=serving)


def _order(person: Annotator, item: Item) -> tuple[str, ...]:
    """Return the candidates' order: as this person saw them before, turned, or drawn anew."""
    candidates = tuple(c["candidate_id"] for c in item.shown.get("candidates", ()))
    if len(candidates) < 2:
        return candidates
    of_item = Serving.objects.filter(annotator=person).order_by("-pk")
    before = of_item.filter(slot__item=item).first()
    if before is not None:  # The lease ran out: nothing about the item may have moved.
        return tuple(before.shown_order)
    if item.again_of_id is not None:
        first = of_item.filter(slot__item=item.again_of_id).first()
        if first is not None:
            order = tuple(first.shown_order)
            return turned(order) if item.served_as == "swapped" else order
    firsts = of_item.filter(~Q(shown_order=[]), slot__item__again_of=None)
    served = firsts.order_by().values("slot__item").distinct().count()
    return order_for(
        candidates=candidates,
        seed=person.queue.seed,
        person=person.pseudonym,
        served=served,
    )


def _why_nothing(person: Annotator) -> Nothing:
    open_slots = Slot.objects.filter(queue=person.queue_id).exclude(state=SlotState.DONE)
    if person.admitted_at is None:
        return Nothing.NOT_ADMITTED
    main = open_slots.filter(phase="main", item__again_of=None)
    if not main.exists():
        return Nothing.ALL_DONE
    others = main.exclude(item__slots__holder=person)
    aside = Q(item__skips__annotator=person, item__skips__ordinal=MOST_SKIPS)
    if others.exclude(pk__in=others.filter(aside).values("pk")).exists():
        return Nothing.HELD_BY_OTHERS
    return Nothing.SET_ASIDE if others.exists() else Nothing.DONE_BY_YOU


@transaction.atomic
def heartbeat(*, annotator: Annotator, slot_id: int, fence: int) -> None:
    """Extend a lease. Raises LeaseLostError where the slot is somebody else's by now."""
    slot = _mine(annotator, slot_id, fence)
    _renew(slot.pk, read_design(annotator.queue.design))


def _mine(annotator: Annotator, slot_id: int, fence: int) -> Slot:
    """Return and lock the slot under this lease; one that ran out unnoticed is still theirs."""
    locked_person(annotator)
    slot = (
        Slot.objects.select_for_update(of=("self",))
        .filter(pk=slot_id, holder=annotator, fence=fence, state=SlotState.HELD)
        .first()
    )
    if slot is None:
        raise LeaseLostError(
            "this item is no longer yours: its time ran out and it was given to somebody else, or "
            "it was submitted in another window"
        )
    return slot


@transaction.atomic
def release(*, annotator: Annotator, slot_id: int, fence: int) -> None:
    """Give an item back without a word; it can come again. Raises LeaseLostError."""
    _free(_mine(annotator, slot_id, fence))


def _free(slot: Slot) -> None:
    Slot.objects.filter(pk=slot.pk).update(state=SlotState.FREE, holder=None, leased_until=None)


@transaction.atomic
def skip(*, annotator: Annotator, slot_id: int, fence: int) -> bool:
    """
    Put an item off: the first time to the person's end, the second time for good.

    Returns whether it comes again. Raises LeaseLostError.
    """
    slot = _mine(annotator, slot_id, fence)
    before = Skip.objects.filter(item=slot.item_id, annotator=annotator).count()
    Skip.objects.create(
        item_id=slot.item_id, annotator=annotator, ordinal=min(before + 1, MOST_SKIPS)
    )
    _free(slot)
    return before + 1 < MOST_SKIPS


def take_again(*, annotator: Annotator, item: Item) -> Claimed | None:
    """
    Lease a free slot of an item whose lease this person lost; None where there is none.

    With it they can still submit what they had typed.
    """
    with transaction.atomic():
        person = locked_person(annotator)
        design = read_design(person.queue.design)
        if _refused(person, person.queue) is not None:
            return None
        with connection.cursor() as cursor:
            cursor.execute(_FREE_EXPIRED, {"queue": person.queue_id, "person": person.pk})
        if Slot.objects.filter(item=item, holder=annotator).exists():
            return None
        free = (
            Slot.objects.select_for_update(skip_locked=True)
            .filter(item=item, state=SlotState.FREE)
            .order_by("ordinal")
            .first()
        )
        if free is None:
            return None
        with connection.cursor() as cursor:
            cursor.execute(
                _LEASE,
                {"person": annotator.pk, "seconds": design.lease_seconds, "slot": free.pk},
            )
        return _served(person, design, free.pk)

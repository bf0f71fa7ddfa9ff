"""Making a queue: its sample, its items with what is shown and what is not, its slots."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from audits.labelling.design import QueueDesign, plain_digest, read_design
from audits.labelling.sampling import Drawn, SamplingError, SourceItem, plan
from audits.queue_models import (
    Annotator,
    Guideline,
    Item,
    ItemSecret,
    Queue,
    QueueKind,
    QueueStatus,
    Slot,
)
from audits.queues.errors import QueueDesignError
from debateweb.audit import record
from debateweb.models import User, Workspace
from runs.engine.hashing import digest
from runs.models import Kind
from runs.services.naming import take_name

BATCH = 2_000


@dataclass(frozen=True, slots=True)
class NewItem:
    """
    An item of the source. ``shown`` may be known before labelling, ``secret`` may not.

    ``gold`` is the known label of a gold item.
    """

    item_id: str
    unit_id: str
    question_id: str
    shown: Mapping[str, Any]
    secret: Mapping[str, Any] = field(default_factory=dict)
    stratum: str = ""
    flagged: bool = False
    gold: object | None = None


@dataclass(frozen=True, slots=True)
class NewQueue:
    """What a queue is made from. ``source`` names what was sampled, with its state's hash."""

    name: str
    kind: QueueKind
    design: QueueDesign
    items: Sequence[NewItem]
    source: Mapping[str, Any]
    seed: int
    guideline: str
    examples: Sequence[Mapping[str, str]] = ()


@transaction.atomic
def create_queue(*, workspace: Workspace, new: NewQueue, actor: User | None) -> Queue:
    """
    Draw the sample and store the queue with its items, slots and first guideline.

    Raises QueueDesignError where the source cannot give what the design asks for or nothing is
    drawn, NameTakenError where the name stands for something else.
    """
    drawn = planned(new)
    take_name(workspace=workspace, name=new.name, kind=Kind.QUEUE)
    design = new.design.model_dump(mode="json")
    queue = Queue.objects.create(
        workspace=workspace,
        name=new.name,
        kind=new.kind,
        design=design,
        design_hash=plain_digest(design),
        source=dict(new.source),
        seed=new.seed,
        size=len(drawn),
        created_by=actor,
    )
    Guideline.objects.create(
        queue=queue,
        version=1,
        body=new.guideline,
        examples=[dict(example) for example in new.examples],
        created_by=actor,
    )
    _store_slots(queue, new.design, _store_items(queue, new, drawn))
    record(act="queue.create", workspace=workspace, obj=queue, actor=actor)
    return queue


def planned(new: NewQueue) -> tuple[Drawn, ...]:
    """Return what would be drawn: the preview of a queue. Raises QueueDesignError."""
    source = [
        SourceItem(
            item_id=item.item_id,
            unit_id=item.unit_id,
            stratum=item.stratum,
            flagged=item.flagged,
            is_gold=item.gold is not None,
        )
        for item in new.items
    ]
    try:
        drawn = plan(source, new.design, new.seed)
    except SamplingError as exc:
        raise QueueDesignError(str(exc)) from exc
    if not drawn:
        raise QueueDesignError("nothing would be in this queue: the source has no such items")
    return drawn


def _store_items(queue: Queue, new: NewQueue, drawn: Sequence[Drawn]) -> list[Item]:
    by_id = {item.item_id: item for item in new.items}
    items = [
        _item(queue, new.design, by_id[one.item_id], one, position)
        for position, one in enumerate(drawn)
    ]
    firsts = [item for item in items if item.served_as == "first"]
    Item.objects.bulk_create(firsts, batch_size=BATCH)
    first_of = {item.item_id: item for item in firsts}
    again = [item for item in items if item.served_as != "first"]
    for item in again:
        item.again_of = first_of[item.item_id]
    Item.objects.bulk_create(again, batch_size=BATCH)
    ItemSecret.objects.bulk_create(
        [
            ItemSecret(
                item=item,
                body=dict(by_id[item.item_id].secret) | _gold(by_id[item.item_id]),
                is_gold=by_id[item.item_id].gold is not None,
            )
            for item in items
        ],
        batch_size=BATCH,
    )
    return items


def _gold(item: NewItem) -> dict[str, object]:
    return {} if item.gold is None else {"gold": item.gold}


def _item(queue: Queue, design: QueueDesign, new: NewItem, drawn: Drawn, position: int) -> Item:
    return Item(
        queue=queue,
        position=position,
        key=secrets.token_hex(12),
        item_id=new.item_id,
        shown=dict(new.shown),
        content_hash=plain_digest(dict(new.shown)),
        question_id=new.question_id,
        stratum=new.stratum,
        weight=drawn.weight,
        unit=design.unit,
        phase=drawn.phase,
        served_as=drawn.served_as,
    )


def _store_slots(queue: Queue, design: QueueDesign, items: Sequence[Item]) -> None:
    """Calibration is for everybody: its slots are made as people join (``add_annotator``)."""
    with_overlap = ceil(design.overlap_share * len(items))
    ranked = sorted(items, key=lambda item: digest([queue.seed, "overlap", item.item_id]))
    overlapped = {item.pk for item in ranked[:with_overlap]}
    Slot.objects.bulk_create(
        [
            slot_of(item, ordinal)
            for item in items
            if item.phase == "main"
            for ordinal in range(1, (design.overlap if item.pk in overlapped else 1) + 1)
        ],
        batch_size=BATCH,
    )


def slot_of(item: Item, ordinal: int) -> Slot:
    return Slot(
        item=item,
        queue_id=item.queue_id,
        position=item.position,
        phase=item.phase,
        ordinal=ordinal,
    )


@transaction.atomic
def add_annotator(
    *, queue: Queue, user: User, actor: User | None, capacity: int | None = None
) -> Annotator:
    """
    Let a member label in this queue; a person who is there already stays as they are.

    With a calibration round they get a slot of their own on each of its items and are admitted
    after it; without one they are admitted at once.
    """
    design = read_design(queue.design)
    Queue.objects.select_for_update().get(pk=queue.pk)  # Two joining at once take two ordinals.
    there = Annotator.objects.filter(queue=queue, user=user).first()
    if there is not None:
        return there
    annotator = Annotator.objects.create(
        queue=queue,
        user=user,
        name=user.get_username(),
        pseudonym=f"p{secrets.token_hex(6)}",
        capacity=capacity,
    )
    if design.calibration is None:
        Annotator.objects.filter(pk=annotator.pk).update(admitted_at=Now())
    else:
        ordinal = Annotator.objects.filter(queue=queue, user__isnull=False).count()
        items = Item.objects.filter(queue=queue, phase="calibration")
        Slot.objects.bulk_create([slot_of(item, ordinal) for item in items])
    annotator.refresh_from_db()
    record(act="annotator.add", workspace=queue.workspace, obj=annotator, actor=actor)
    return annotator


@transaction.atomic
def set_paused(*, queue: Queue, paused: bool, actor: User) -> None:
    """Pause a queue or open it again; one that was closed stays closed."""
    status = QueueStatus.PAUSED if paused else QueueStatus.OPEN
    others = Queue.objects.filter(pk=queue.pk).exclude(status__in=[QueueStatus.CLOSED, status])
    if others.update(status=status):
        act = "queue.pause" if paused else "queue.open"
        record(act=act, workspace=queue.workspace, obj=queue, actor=actor)

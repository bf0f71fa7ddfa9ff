"""
Labels taken out of the figures, and asked for again. A label stays; its void says why.

All versions of a label are voided, else an older one would count again. The slot is free
afterwards: somebody labels the item anew; the same person may, as their next version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count, Exists, Max, OuterRef, QuerySet
from django.db.models.functions import Now

from audits.queue_models import Annotator, Item, Label, LabelVoid, Queue, Reveal, Slot, SlotState
from audits.queues.errors import LabelError, NotCorrectableError
from debateweb.audit import record
from debateweb.models import User

MOST_REASON_CHARS = 5_000
CHUNK = 2_000


@dataclass(frozen=True, slots=True)
class Voided:
    """What was taken out: labels (of people on items), and slots that are free again."""

    labels: int
    slots: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What a person labelled between two closes: first labels with ids in (after, through]."""

    number: int
    after: int
    through: int | None  # None: the batch that is open.
    labels: int

    @property
    def is_open(self) -> bool:
        return self.through is None


def batches_of(annotator: Annotator) -> list[Batch]:
    """Return a person's batches, oldest first, with how many of their labels still count."""
    closes = Reveal.objects.filter(annotator=annotator).order_by("through_label")
    ends: list[int | None] = [*closes.values_list("through_label", flat=True), None]
    counting = _counting(Label.objects.filter(annotator=annotator)).values("item")
    firsts = Label.objects.filter(annotator=annotator, version=1, item__in=counting)
    ids = list(firsts.values_list("pk", flat=True))
    found, after = [], 0
    for number, end in enumerate(ends, 1):
        count = sum(after < pk and (end is None or pk <= end) for pk in ids)
        found.append(Batch(number, after, end, count))
        after = end if end is not None else after
    return found


def _counting(labels: QuerySet[Label]) -> QuerySet[Label]:
    """Return those that are the newest version of their person's label, and stand."""
    newer = Label.objects.filter(
        item=OuterRef("item"), annotator=OuterRef("annotator"), version__gt=OuterRef("version")
    )
    return labels.filter(~Exists(newer), void=None, value__isnull=False)


@transaction.atomic
def void_batch(*, annotator: Annotator, batch: Batch, reason: str, actor: User) -> Voided:
    """Void what a person labelled in one batch, by the batch of each label's first version."""
    firsts = Label.objects.filter(annotator=annotator, version=1, pk__gt=batch.after)
    if batch.through is not None:
        firsts = firsts.filter(pk__lte=batch.through)
    _lock(Annotator.objects.filter(pk=annotator.pk))
    labels = _counting(Label.objects.filter(annotator=annotator, item__in=firsts.values("item")))
    scope = {"annotator": annotator.pseudonym, "batch": batch.number}
    return _void(annotator.queue, labels, reason, actor, scope)


@transaction.atomic
def void_person(*, annotator: Annotator, reason: str, actor: User, remove: bool = False) -> Voided:
    """Void all of a person's labels; with ``remove`` they label here no more."""
    _lock(Annotator.objects.filter(pk=annotator.pk))
    labels = _counting(Label.objects.filter(annotator=annotator))
    scope = {"annotator": annotator.pseudonym, "removed": remove}
    done = _void(annotator.queue, labels, reason, actor, scope)
    if remove:
        Annotator.objects.filter(pk=annotator.pk, removed_at=None).update(removed_at=Now())
        Slot.objects.filter(holder=annotator, state=SlotState.HELD).update(
            state=SlotState.FREE, holder=None, leased_until=None
        )
    return done


@transaction.atomic
def requeue_guideline(*, queue: Queue, version: int, reason: str, actor: User) -> Voided:
    """
    Ask again for all labels whose newest version was made under a version of the guideline.

    Raises NotCorrectableError while it is still the newest guideline: the labels would be made
    under it again.
    """
    newest = queue.guidelines.aggregate(last=Max("version"))["last"]
    if version >= newest:
        raise NotCorrectableError(
            f"guideline v{version} is the newest: write the next version first"
        )
    _lock(Annotator.objects.filter(queue=queue))
    labels = _counting(Label.objects.filter(item__queue=queue, guideline_version=version))
    return _void(queue, labels, reason, actor, {"guideline_version": version})


def _lock(people: QuerySet[Annotator]) -> None:
    """Hold off what these people do meanwhile: each of their acts locks their row first."""
    list(
        people.select_for_update(of=("self",), no_key=True)
        .order_by("pk")
        .values_list("pk", flat=True)
    )


def _void(
    queue: Queue, labels: QuerySet[Label], reason: str, actor: User, scope: dict[str, object]
) -> Voided:
    if not reason.strip():
        raise LabelError("reason: say why these labels are taken out")
    if len(reason) > MOST_REASON_CHARS:
        raise LabelError(f"reason: at most {MOST_REASON_CHARS:,} characters")
    pairs = list(labels.values_list("item_id", "annotator_id"))
    if not pairs:
        raise NotCorrectableError("there is no label that counts there: nothing to take out")
    slots = 0
    for start in range(0, len(pairs), CHUNK):
        slots += _void_chunk(pairs[start : start + CHUNK], reason.strip(), actor)
    record(
        act="label.void",
        workspace=queue.workspace,
        obj=queue,
        actor=actor,
        detail=scope | {"labels": len(pairs), "slots": slots, "reason": reason.strip()},
    )
    return Voided(labels=len(pairs), slots=slots)


def _void_chunk(pairs: Sequence[tuple[int, int]], reason: str, actor: User) -> int:
    items = {item for item, _ in pairs}
    # A decision on one of these items waits, and then finds its table changed.
    list(Item.objects.select_for_update(no_key=True).filter(pk__in=items).order_by("pk"))
    wanted = set(pairs)
    versions = Label.objects.filter(item__in=items, void=None).values_list(
        "pk", "item_id", "annotator_id"
    )
    LabelVoid.objects.bulk_create(
        [
            LabelVoid(label_id=pk, reason=reason, created_by=actor)
            for pk, item, person in versions
            if (item, person) in wanted
        ]
    )
    done = Slot.objects.filter(item__in=items, state=SlotState.DONE)
    held_by = done.values_list("pk", "item_id", "holder_id")
    free = [pk for pk, item, holder in held_by if (item, holder) in wanted]
    return Slot.objects.filter(pk__in=free).update(
        state=SlotState.FREE, holder=None, leased_until=None
    )


def guideline_counts(queue: Queue) -> dict[int, int]:
    """Return how many labels that count were made under each version of the guideline."""
    counting = _counting(Label.objects.filter(item__queue=queue, guideline_version__isnull=False))
    rows = counting.order_by().values_list("guideline_version").annotate(n=Count("pk"))
    return {int(version): n for version, n in rows if version is not None}

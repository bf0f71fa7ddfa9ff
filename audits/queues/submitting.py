"""Labels: submitted, undone, corrected. What a person said is appended, never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import connection, transaction
from django.db.models import Max

from audits.labelling.design import QueueDesign, read_design
from audits.labelling.values import LabelFaultError, checked_value
from audits.queue_models import (
    Annotator,
    Item,
    Label,
    LabelDraft,
    LabelVoid,
    Queue,
    QueueStatus,
    Serving,
    Slot,
    SlotState,
)
from audits.queues.batches import revealed_items
from audits.queues.claiming import locked_person
from audits.queues.drafts import milliseconds_now, save_draft
from audits.queues.errors import (
    AlreadySubmittedError,
    LabelError,
    LeaseLostError,
    NotCorrectableError,
    QueueNotOpenError,
)
from audits.queues.masking import giveaway_counts
from audits.queues.telling import tell_submit
from debateweb.audit import record

MAX_COMMENT_CHARS = 20_000
UNDONE = "undone by the person"
LABELLED_AGAIN = "labelled again"


@dataclass(frozen=True, slots=True)
class Said:
    """
    What a person hands in. ``request_key`` is drawn by the page: sent twice, stored once.

    ``beliefs`` are those after each turn of a debate, the last one included.
    """

    request_key: str
    value: Mapping[str, Any]
    comment: str = ""
    confidence: float | None = None
    active_milliseconds: int | None = None
    beliefs: Sequence[Mapping[str, Any]] = ()


def submit(*, annotator: Annotator, slot_id: int, fence: int, said: Said) -> Label:
    """
    Store a label under the lease ``fence`` and close the slot.

    Sent again with the same request key it returns the label that is there. Raises LabelError,
    QueueNotOpenError, AlreadySubmittedError, or LeaseLostError; with the last, what was said is
    kept as the person's draft.
    """
    sent_before = _sent_before(annotator, said)
    if sent_before is not None:
        return sent_before
    try:
        with transaction.atomic():
            return _submit(annotator, slot_id, fence, said)
    except LeaseLostError:
        _keep(annotator, slot_id, said)
        raise


def _sent_before(annotator: Annotator, said: Said) -> Label | None:
    return Label.objects.filter(annotator=annotator, request_key=said.request_key).first()


def _submit(annotator: Annotator, slot_id: int, fence: int, said: Said) -> Label:
    # The person's row is the lock of everything that they do: a second click waits here.
    locked_person(annotator)
    sent_before = _sent_before(annotator, said)
    if sent_before is not None:
        return sent_before
    queue = _open_queue(annotator)
    slot = Slot.objects.select_for_update(of=("self",)).filter(pk=slot_id, queue=queue).first()
    if slot is None or slot.holder_id != annotator.pk or slot.fence != fence:
        raise LeaseLostError("this item was given to somebody else; what you typed is kept")
    if slot.state != SlotState.HELD:
        raise AlreadySubmittedError("you have submitted this item already; correct it instead")
    item = Item.objects.get(pk=slot.item_id)
    serving = Serving.objects.get(slot=slot, fence=fence)
    label = _appended(annotator, item, serving, said, _checked(queue, item, said), LABELLED_AGAIN)
    Slot.objects.filter(pk=slot.pk).update(state=SlotState.DONE, leased_until=None)
    LabelDraft.objects.filter(annotator=annotator, slot__item=item).delete()
    tell_submit(queue, item, annotator, label)
    return label


def _open_queue(annotator: Annotator) -> Queue:
    person = Annotator.objects.select_related("queue").get(pk=annotator.pk)
    if person.removed_at is not None:
        raise QueueNotOpenError("you no longer label in this queue; what you typed is kept")
    if person.queue.status != QueueStatus.OPEN:
        status = person.queue.status.lower()
        raise QueueNotOpenError(f"the queue is {status}; what you typed is kept")
    return person.queue


def _checked(queue: Queue, item: Item, said: Said) -> dict[str, Any]:
    design = read_design(queue.design)
    _check_margins(design, said)
    try:
        return checked_value(
            design.label,
            said.value,
            candidates=[c["candidate_id"] for c in item.shown.get("candidates", ())],
            claims=[c["claim_id"] for c in item.shown.get("claims", ())],
            comment=said.comment,
        )
    except LabelFaultError as exc:
        raise LabelError(str(exc)) from exc


def _check_margins(design: QueueDesign, said: Said) -> None:
    if len(said.comment) > MAX_COMMENT_CHARS:
        raise LabelError(f"comment: at most {MAX_COMMENT_CHARS} characters")
    if design.label.comment == "none" and said.comment:
        raise LabelError("comment: this queue asks for none")
    if said.confidence is not None:
        if not design.label.confidence:
            raise LabelError("confidence: this queue asks for none")
        if not 0 <= said.confidence <= 1:
            raise LabelError("confidence: has to be from 0 to 1")
    if said.active_milliseconds is not None and said.active_milliseconds < 0:
        raise LabelError("active_milliseconds: cannot be negative")
    if not 8 <= len(said.request_key) <= 64:
        raise LabelError("request_key: has 8 to 64 characters")


def _appended(
    annotator: Annotator,
    item: Item,
    serving: Serving | None,
    said: Said,
    value: dict[str, Any] | None,
    reason: str,
) -> Label:
    version = last_version(annotator, item) + 1
    return Label.objects.create(
        item=item,
        annotator=annotator,
        serving=serving,
        version=version,
        value=value,
        confidence=said.confidence,
        comment=said.comment,
        active_milliseconds=said.active_milliseconds,
        reveal_state="after_reveal" if _has_been_seen(annotator, item) else "sealed",
        reason=reason if version > 1 else "",
        guideline_version=serving.guideline.version if serving is not None else None,
        shown_order=serving.shown_order if serving is not None else [],
        shown_reference=serving.shown_reference if serving is not None else None,
        provenance={"by": "person"},
        metadata=_metadata(item, said),
        request_key=said.request_key,
    )


def _beliefs_with(last: Label, corrected: Any) -> list[dict[str, Any]]:
    """Return the beliefs of a debate with its last one corrected; those before it stand."""
    given = last.metadata.get("beliefs", [])
    return [*given[:-1], given[-1] | {"belief": corrected}] if given else []


def _metadata(item: Item, said: Said) -> dict[str, Any]:
    """Figures are given with and without items that tell who wrote them, or when."""
    metadata: dict[str, Any] = {}
    counts = giveaway_counts(item)
    if counts:
        metadata["giveaways"] = counts
    if said.beliefs:
        metadata["beliefs"] = [dict(belief) for belief in said.beliefs]
    return metadata


def last_version(annotator: Annotator, item: Item) -> int:
    found = Label.objects.filter(annotator=annotator, item=item).aggregate(last=Max("version"))
    return int(found["last"] or 0)


def is_revealed(annotator: Annotator, item: Item) -> bool:
    """
    Whether this person may see the item's secrets: the queue was revealed, or the batch that
    holds their first label of it was closed.
    """
    return revealed_items(annotator).filter(pk=item.pk).exists()


def _has_been_seen(annotator: Annotator, item: Item) -> bool:
    """
    A second serving whose first was revealed is known by then, though it is sealed itself; so is
    an item that is asked for again after its label was revealed and voided.
    """
    first = item.again_of
    return (
        is_revealed(annotator, item)
        or (first is not None and is_revealed(annotator, first))
        or _was_revealed(annotator, item)
    )


def _was_revealed(annotator: Annotator, item: Item) -> bool:
    voided = Label.objects.filter(annotator=annotator, item=item, void__isnull=False)
    policy = read_design(annotator.queue.design).reveal
    if policy == "item":
        return voided.exists()
    through = annotator.reveals.aggregate(through=Max("through_label"))["through"]
    return through is not None and voided.filter(version=1, pk__lte=through).exists()


def _keep(annotator: Annotator, slot_id: int, said: Said) -> None:
    body = {
        "value": dict(said.value),
        "comment": said.comment,
        "confidence": said.confidence,
        "active_milliseconds": said.active_milliseconds,
    }
    newest = LabelDraft.objects.filter(annotator=annotator, slot=slot_id).first()
    sequence = newest.sequence + 1 if newest is not None else 1
    save_draft(annotator=annotator, slot_id=slot_id, sequence=sequence, body=body)


@transaction.atomic
def undo_last(*, annotator: Annotator, request_key: str) -> Slot:
    """
    Take the person's last submit back: a version that says nothing, and the item held again.

    Raises NotCorrectableError where there is none, or where it was revealed or voided since.
    """
    locked_person(annotator)
    queue = _open_queue(annotator)
    last = Label.objects.filter(annotator=annotator).order_by("-pk").first()
    if last is None or last.value is None:
        raise NotCorrectableError("there is no label to undo")
    if is_revealed(annotator, last.item) or LabelVoid.objects.filter(label=last).exists():
        raise NotCorrectableError("this label was revealed or voided: it can no longer be undone")
    slot = Slot.objects.select_for_update().get(item=last.item_id, holder=annotator)
    said = Said(request_key=request_key, value={})
    _appended(annotator, last.item, last.serving, said, None, UNDONE)
    return _held_again(annotator, slot, last, queue)


def _held_again(annotator: Annotator, slot: Slot, last: Label, queue: Queue) -> Slot:
    """Lease the slot to its holder anew, displayed as before, with the label as a draft."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE audits_slot SET state = 'HELD', fence = fence + 1,"
            " leased_until = now() + make_interval(secs => %s) WHERE id = %s",
            [read_design(queue.design).lease_seconds, slot.pk],
        )
    slot.refresh_from_db()
    if last.serving is not None:
        Serving.objects.create(
            slot=slot,
            annotator=annotator,
            fence=slot.fence,
            shown_order=last.serving.shown_order,
            guideline=last.serving.guideline,
            shown_reference=last.serving.shown_reference,
            masked=last.serving.masked,
        )
    body: dict[str, Any] = {
        "value": last.value,
        "comment": last.comment,
        "confidence": last.confidence,
        "active_milliseconds": last.active_milliseconds,
    }
    if "beliefs" in last.metadata:  # The last one is what is undone.
        body["beliefs"] = last.metadata["beliefs"][:-1]
    sequence = milliseconds_now()
    save_draft(annotator=annotator, slot_id=slot.pk, sequence=sequence, body=body)
    return slot


@transaction.atomic
def correct(*, annotator: Annotator, item: Item, said: Said, reason: str) -> Label:
    """
    Append a correction of this person's own label. Before a reveal it replaces the label; after
    one it is kept apart (``reveal_state``). Raises NotCorrectableError, LabelError.
    """
    sent_before = _sent_before(annotator, said)
    if sent_before is not None:
        return sent_before
    if not reason.strip():
        raise LabelError("reason: say why the label changes")
    locked_person(annotator)
    queue = Queue.objects.get(pk=annotator.queue_id)
    if queue.status == QueueStatus.CLOSED:
        raise QueueNotOpenError("the queue is closed")
    last = Label.objects.filter(annotator=annotator, item=item).order_by("-version").first()
    if last is None:
        raise NotCorrectableError("you have not labelled this item")
    value = _checked(queue, item, said)
    said = replace(said, beliefs=_beliefs_with(last, value["label"]))
    label = _appended(annotator, item, last.serving, said, value, reason.strip())
    record(
        act="label.correct",
        workspace=queue.workspace,
        obj=label,
        actor=annotator.user,
        detail={"old": last.value, "new": value, "reason": label.reason},
    )
    return label

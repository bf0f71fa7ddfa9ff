"""People's labels as the records of formats.md, wherever they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from audits.judgment_models import JudgedItem, JudgmentSet
from audits.queue_models import Annotator, ImportedLabel, Item, Label, LabelVoid, Queue
from debateweb.errors import InputError
from debateweb.models import Workspace
from runs.importers.judged_records import CandidateRecord, ItemRecord, LabelRecord
from runs.models import DebateSet

Target = Queue | JudgmentSet | DebateSet


def target_of(workspace: Workspace, name: str) -> Target:
    """Return what of this name can have labels. Raises InputError."""
    named: dict[str, Any] = {"workspace": workspace, "name": name, "archived_at": None}
    found = (
        Queue.objects.filter(**named).first()
        or JudgmentSet.objects.filter(**named).first()
        or DebateSet.objects.filter(**named).first()
    )
    if found is None:
        raise InputError(f"there are no judgments, debates and no queue {name!r}")
    return found


def label_records_of(workspace: Workspace, name: str) -> Iterator[LabelRecord]:
    """
    Yield every label that counts: the newest version of each person's, voided ones left out.

    In the order of items and of people. People of a queue stand under their pseudonyms.
    Raises InputError where nothing has the name.
    """
    target = target_of(workspace, name)
    if isinstance(target, Queue):
        return _queue_labels(target)
    of = {"judgment_set": target} if isinstance(target, JudgmentSet) else {"debate_set": target}
    stored = ImportedLabel.objects.filter(**of).order_by("item_id", "annotator", "pk")
    return (record_of(label.body) for label in stored.iterator(chunk_size=2_000))


def record_of(body: dict[str, Any]) -> LabelRecord:
    """Return the record that ``label_json`` wrote."""
    fields = dict(body)
    fields["shown_order"] = tuple(fields.get("shown_order", ()))
    return LabelRecord(**fields)


def _queue_labels(queue: Queue) -> Iterator[LabelRecord]:
    labels = current_labels(queue)
    pseudonyms = dict(Annotator.objects.filter(queue=queue).values_list("pk", "pseudonym"))
    for label in labels:
        yield _label_record(label, queue, pseudonyms[label.annotator_id])


def current_labels(queue: Queue) -> list[Label]:
    """Return each person's newest label of each item, cleared and voided ones left out."""
    voided = set(
        LabelVoid.objects.filter(label__item__queue=queue).values_list("label_id", flat=True)
    )
    newest: dict[tuple[int, int], Label] = {}
    stored = Label.objects.filter(item__queue=queue).select_related("item")
    for label in stored.order_by("item__position", "annotator", "version"):
        if label.pk not in voided:
            newest[label.item_id, label.annotator_id] = label
    return [label for label in newest.values() if label.value is not None]


def _label_record(label: Label, queue: Queue, pseudonym: str) -> LabelRecord:
    value = label.value or {}
    milliseconds = label.active_milliseconds
    metadata: dict[str, Any] = {"version": label.version}
    if value.get("reasons"):
        metadata["reasons"] = value["reasons"]
    if label.item.served_as != "first":
        metadata["served_as"] = label.item.served_as
    if label.reason:
        metadata["reason"] = label.reason
    said: Any = value.get("label")
    if queue.design["label"]["ask"]["kind"] == "belief" and isinstance(said, dict):
        said = {option: share / 100 for option, share in said.items()}
    return LabelRecord(
        item_id=label.item.item_id,
        annotator=pseudonym,
        kind=queue.design["label"]["ask"]["kind"],
        label=said,
        unit=label.item.unit,  # type: ignore[arg-type]  # The design's own words.
        weight=label.item.weight,
        shown_order=tuple(label.shown_order),
        shown_reference=label.shown_reference,
        guideline_version=label.guideline_version,
        active_seconds=milliseconds / 1000 if milliseconds is not None else None,
        reveal_state=label.reveal_state,  # type: ignore[arg-type]  # Held by a constraint.
        confidence=label.confidence,
        comment=label.comment or None,
        at=label.created_at.isoformat(),
        metadata=metadata,
    )


def task_records_of(workspace: Workspace, name: str) -> Iterator[ItemRecord]:
    """Yield what the labels are of, as far as a tool may show it. Raises InputError."""
    target = target_of(workspace, name)
    if isinstance(target, Queue):
        items = Item.objects.filter(queue=target, served_as="first").order_by("position")
        return (_shown_record(item) for item in items)
    if isinstance(target, JudgmentSet):
        judged = JudgedItem.objects.filter(judgment_set=target).order_by("position")
        return (_judged_record(item) for item in judged)
    return iter(())


def _shown_record(item: Item) -> ItemRecord:
    candidates = item.shown.get("candidates") or [
        {"candidate_id": "answer", "text": item.shown.get("answer", "")}
    ]
    return ItemRecord(
        item_id=item.item_id,
        question_id=item.question_id,
        question=item.shown.get("question", ""),
        candidates=tuple(CandidateRecord(c["candidate_id"], c["text"]) for c in candidates),
    )


def _judged_record(item: JudgedItem) -> ItemRecord:
    return ItemRecord(
        item_id=item.item_id,
        question_id=item.question_id,
        question=item.question,
        candidates=tuple(CandidateRecord(c["candidate_id"], c["text"]) for c in item.candidates),
    )

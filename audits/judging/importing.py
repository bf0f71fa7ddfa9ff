"""Judgments and labels out of files: whole or not at all, and the same file twice adds nothing."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from itertools import islice

from django.db import transaction

from audits.judgment_models import Judge, JudgedItem, Judgment, JudgmentSet
from audits.queue_models import Annotator, ImportedLabel, Item, Label, Queue
from audits.rows.labels import target_of
from debateweb.audit import record as record_act
from debateweb.errors import InputError
from debateweb.models import User, Workspace
from runs.engine.hashing import digest
from runs.importers.judged_records import (
    ItemRecord,
    JudgeRecord,
    JudgmentRecord,
    LabelRecord,
    candidate_json,
    item_hash,
    judgment_hash,
    label_hash,
    label_json,
)
from runs.models import DebateSet, Kind
from runs.services.imports import Imported
from runs.services.naming import NameTakenError, take_name

BATCH = 1_000
MAX_NAMED = 3


@transaction.atomic
def import_judgments(
    *,
    workspace: Workspace,
    name: str,
    format_name: str,
    records: Iterable[JudgmentRecord],
    labels: Iterable[LabelRecord] = (),
    actor: User | None = None,
) -> Imported:
    """
    Store judgments as a set, with the labels that stand in the same files.

    Raises ImportFaults as ``records`` do, NameTakenError where the name stands for other content.
    """
    spooled = list(records)
    found = _whole(judgment_hash(record) for record in spooled)
    stored = JudgmentSet.objects.filter(workspace=workspace, name=name).first()
    if stored is not None and stored.content_hash == found:
        return Imported(name, len(spooled), found, added=False)
    try:
        take_name(workspace=workspace, name=name, kind=Kind.JUDGMENTS)
    except NameTakenError:  # By somebody who imports at this moment; perhaps the same.
        stored = JudgmentSet.objects.filter(workspace=workspace, name=name).first()
        if stored is None or stored.content_hash != found:
            raise
        return Imported(name, len(spooled), found, added=False)
    items = {record.item.item_id: record.item for record in spooled}
    made = JudgmentSet.objects.create(
        workspace=workspace,
        name=name,
        format=format_name,
        content_hash=found,
        size=len(items),
        created_by=actor,
    )
    _store(made, list(items.values()), spooled)
    _store_labels(made, list(labels))
    record_act(
        act="judgments.import",
        workspace=workspace,
        obj=made,
        actor=actor,
        detail={"size": len(spooled), "format": format_name, "content_hash": found},
    )
    return Imported(name, len(spooled), found, added=True)


def _whole(hashes: Iterable[str]) -> str:
    whole = hashlib.sha256()
    for one in hashes:
        whole.update(bytes.fromhex(one))
    return whole.hexdigest()


def _store(
    made: JudgmentSet, items: Sequence[ItemRecord], records: Sequence[JudgmentRecord]
) -> None:
    item_rows = JudgedItem.objects.bulk_create(
        [_item_row(made, position, item) for position, item in enumerate(items)],
        batch_size=BATCH,
    )
    judges = {record.judge.judge_hash: record.judge for record in records}
    judge_rows = Judge.objects.bulk_create([_judge_row(made, judge) for judge in judges.values()])
    by_item = {row.item_id: row for row in item_rows}
    by_judge = {row.judge_hash: row for row in judge_rows}
    rows = (
        _judgment_row(record, by_item[record.item.item_id], by_judge[record.judge.judge_hash])
        for record in records
    )
    while batch := list(islice(rows, BATCH)):
        Judgment.objects.bulk_create(batch)


def _item_row(made: JudgmentSet, position: int, item: ItemRecord) -> JudgedItem:
    return JudgedItem(
        judgment_set=made,
        position=position,
        item_id=item.item_id,
        question_id=item.question_id,
        question=item.question,
        candidates=[candidate_json(candidate) for candidate in item.candidates],
        gold=item.gold or "",
        group=item.group or "",
        metadata=item.metadata,
        content_hash=item_hash(item),
    )


def _judge_row(made: JudgmentSet, judge: JudgeRecord) -> Judge:
    return Judge(
        judgment_set=made,
        name=judge.name,
        model=judge.model or "",
        model_version=judge.model_version or "",
        prompt_hash=judge.prompt_hash or "",
        rubric_version=judge.rubric_version or "",
        decoding=judge.decoding,
        metadata=judge.metadata,
        judge_hash=judge.judge_hash,
    )


def _judgment_row(record: JudgmentRecord, item: JudgedItem, judge: Judge) -> Judgment:
    order = list(record.order)
    return Judgment(
        item=item,
        judge=judge,
        order_shown=order,
        order_key=digest(order),
        repeat=record.repeat,
        status=record.status,
        verdict=record.verdict or "",
        scores=record.scores,
        rationale=record.rationale or "",
        metadata=record.metadata,
    )


@transaction.atomic
def import_labels(
    *,
    workspace: Workspace,
    into: str,
    format_name: str,
    records: Iterable[LabelRecord],
    actor: User | None = None,
) -> Imported:
    """
    Add people's labels to a judgment set, to imported debates or to a queue of ours.

    Labels that are there already are not added again. Raises ImportFaults as ``records`` do, and
    InputError where nothing has the name or an item is none of it.
    """
    spooled = list(records)
    found = _whole(label_hash(record) for record in spooled)
    target = target_of(workspace, into)
    if isinstance(target, Queue):
        added = _into_queue(target, spooled)
    else:
        _refuse_unknown([record.item_id for record in spooled], _item_ids(target), into)
        added = _store_labels(target, spooled)
    record_act(
        act="labels.import",
        workspace=workspace,
        obj=target,
        actor=actor,
        detail={"added": added, "format": format_name, "content_hash": found},
    )
    return Imported(into, len(spooled), found, added=added > 0)


def _item_ids(target: JudgmentSet | DebateSet) -> set[str]:
    if isinstance(target, JudgmentSet):
        return set(target.items.values_list("item_id", flat=True))
    return set(target.debates.values_list("debate_id", flat=True))


def _refuse_unknown(wanted: Iterable[str], known: set[str], into: str) -> None:
    strangers = sorted(set(wanted) - known)
    if strangers:
        more = f" and {len(strangers) - MAX_NAMED} more" if len(strangers) > MAX_NAMED else ""
        names = ", ".join(map(repr, strangers[:MAX_NAMED]))
        raise InputError(f"item_id: {names}{more}: no such item in {into!r}")


def _store_labels(target: JudgmentSet | DebateSet, records: Sequence[LabelRecord]) -> int:
    judgments = target if isinstance(target, JudgmentSet) else None
    debates = target if isinstance(target, DebateSet) else None
    there = ImportedLabel.objects.filter(judgment_set=judgments, debate_set=debates)
    before = there.count()
    ImportedLabel.objects.bulk_create(
        [
            ImportedLabel(
                judgment_set=judgments,
                debate_set=debates,
                item_id=record.item_id,
                annotator=record.annotator,
                kind=record.kind,
                body=label_json(record),
                content_hash=label_hash(record),
            )
            for record in records
        ],
        batch_size=BATCH,
        ignore_conflicts=True,
    )
    return there.count() - before


def _into_queue(queue: Queue, records: Sequence[LabelRecord]) -> int:
    """Append labels of people who worked elsewhere; each name is an annotator without account."""
    items = {item.item_id: item for item in Item.objects.filter(queue=queue, served_as="first")}
    _refuse_unknown([record.item_id for record in records], set(items), queue.name)
    people = {name: _annotator(queue, name) for name in {record.annotator for record in records}}
    added = 0
    for record in records:
        key = label_hash(record)
        person, item = people[record.annotator], items[record.item_id]
        if Label.objects.filter(annotator=person, request_key=key).exists():
            continue
        last = Label.objects.filter(annotator=person, item=item).order_by("-version").first()
        version = last.version + 1 if last is not None else 1
        _append(record, person, item, version, key)
        added += 1
    return added


def _annotator(queue: Queue, name: str) -> Annotator:
    there = Annotator.objects.filter(queue=queue, name=name).first()
    if there is not None:
        return there
    return Annotator.objects.create(queue=queue, name=name, pseudonym=f"p{secrets.token_hex(6)}")


def _append(record: LabelRecord, person: Annotator, item: Item, version: int, key: str) -> None:
    seconds = record.active_seconds
    version_text = str(record.guideline_version or "")
    Label.objects.create(
        item=item,
        annotator=person,
        version=version,
        value={"label": record.label, "reasons": record.metadata.get("reasons", [])},
        confidence=record.confidence,
        comment=record.comment or "",
        active_milliseconds=round(seconds * 1000) if seconds is not None else None,
        reveal_state=record.reveal_state or "sealed",
        reason="imported again" if version > 1 else "",
        guideline_version=int(version_text) if version_text.isdecimal() else None,
        shown_order=list(record.shown_order),
        shown_reference=record.shown_reference,
        provenance={"by": "file"},
        metadata=label_json(record),
        request_key=key,
    )

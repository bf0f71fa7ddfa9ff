"""
Imports: a file becomes a named set, whole or not at all.

Importing the same content under the same name again adds nothing; other content under a taken
name is refused, since a set never changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from django.db import transaction

from debateweb.audit import record as record_act
from debateweb.models import User, Workspace
from runs.engine.hashing import evidence_hash, question_hash
from runs.importers.records import DebateRecord, QuestionRecord, record_hash
from runs.importers.registry import score_rules
from runs.importers.writers import debate_json
from runs.models import Debate, DebateSet, Kind, Question, QuestionSet
from runs.services.naming import NameTakenError, kind_of, take_name

T = TypeVar("T")

#: Rows written by one statement.
BATCH = 500


@dataclass(frozen=True, slots=True)
class Imported:
    """``added`` is false where the very same content was there already."""

    name: str
    size: int
    content_hash: str
    added: bool


@transaction.atomic
def import_questions(
    *,
    workspace: Workspace,
    name: str,
    format_name: str,
    records: Iterable[QuestionRecord],
    actor: User | None = None,
) -> Imported:
    """
    Store questions as a set. ``records`` may raise ImportFaults at any point: nothing stays.

    Raises NameTakenError where the name stands for other content.
    """
    stored = QuestionSet.objects.filter(workspace=workspace, name=name).first()
    if stored is not None or kind_of(workspace=workspace, name=name) is not None:
        return _same_questions(stored, name, records)
    try:
        take_name(workspace=workspace, name=name, kind=Kind.QUESTIONS)
    except NameTakenError:  # By somebody who imports at this moment; perhaps the same.
        stored = QuestionSet.objects.filter(workspace=workspace, name=name).first()
        return _same_questions(stored, name, records)
    question_set, total = _write_questions(workspace, name, format_name, records, actor)
    record_act(
        act="questions.import",
        workspace=workspace,
        obj=question_set,
        actor=actor,
        detail={"size": total, "format": format_name, "content_hash": question_set.content_hash},
    )
    return Imported(name, total, question_set.content_hash, added=True)


def _write_questions(
    workspace: Workspace,
    name: str,
    format_name: str,
    records: Iterable[QuestionRecord],
    actor: User | None,
) -> tuple[QuestionSet, int]:
    # The set's row names its hash and size, which are known after the last record, and never
    # changes: so the questions are counted and hashed in a first pass over a list of batches.
    spooled = list(records)
    question_set = QuestionSet.objects.create(
        workspace=workspace,
        name=name,
        format=format_name,
        content_hash=_hash(record_hash(r) for r in spooled),
        size=len(spooled),
        created_by=actor,
    )
    rows = (_question_row(question_set, i, r) for i, r in enumerate(spooled))
    for batch in batched(rows, BATCH):
        Question.objects.bulk_create(batch)
    return question_set, len(spooled)


def _question_row(question_set: QuestionSet, position: int, record: QuestionRecord) -> Question:
    question = record.as_question()
    return Question(
        question_set=question_set,
        position=position,
        external_id=record.id,
        text=record.question,
        answer_type=record.answer_type,
        choices=list(record.choices),
        reference=list(record.reference),
        stratum=record.stratum or "",
        family=record.family or "",
        split=record.split or "",
        evidence=[{"id": e.id, "text": e.text, "source": e.source} for e in record.evidence],
        metadata=record.metadata,
        question_hash=question_hash(question),
        evidence_hash=evidence_hash(record.evidence),
    )


def _same_questions(
    stored: QuestionSet | None, name: str, records: Iterable[QuestionRecord]
) -> Imported:
    found = _hash(record_hash(r) for r in records)
    if stored is None or stored.content_hash != found:
        raise NameTakenError(f"the name {name!r} is taken by other content; choose another name")
    return Imported(name, stored.size, found, added=False)


@transaction.atomic
def import_debates(
    *,
    workspace: Workspace,
    name: str,
    format_name: str,
    records: Iterable[DebateRecord],
    actor: User | None = None,
) -> Imported:
    """
    Store debates as a set, with their questions as a set of its own under the same name.

    Raises NameTakenError where the name stands for other content.
    """
    stored = DebateSet.objects.filter(workspace=workspace, name=name).first()
    spooled = list(records)
    found = _hash(record_hash(r) for r in spooled)
    if stored is not None and stored.content_hash == found:
        return Imported(name, stored.size, found, added=False)
    try:
        take_name(workspace=workspace, name=name, kind=Kind.DEBATES)
    except NameTakenError:  # By somebody who imports at this moment; perhaps the same.
        stored = DebateSet.objects.filter(workspace=workspace, name=name).first()
        if stored is None or stored.content_hash != found:
            raise
        return Imported(name, stored.size, found, added=False)
    questions = {r.question.id: r.question for r in spooled}
    question_set, _ = _write_questions(workspace, name, format_name, questions.values(), actor)
    debate_set = DebateSet.objects.create(
        workspace=workspace,
        name=name,
        format=format_name,
        rules=score_rules(format_name),
        question_set=question_set,
        content_hash=found,
        size=len(spooled),
        created_by=actor,
    )
    ids = dict(question_set.questions.values_list("external_id", "pk"))
    rows = (_debate_row(debate_set, i, r, ids) for i, r in enumerate(spooled))
    for batch in batched(rows, BATCH):
        Debate.objects.bulk_create(batch)
    record_act(
        act="debates.import",
        workspace=workspace,
        obj=debate_set,
        actor=actor,
        detail={"size": len(spooled), "format": format_name, "content_hash": found},
    )
    return Imported(name, len(spooled), found, added=True)


def _debate_row(
    debate_set: DebateSet, position: int, record: DebateRecord, question_ids: dict[str, int]
) -> Debate:
    return Debate(
        debate_set=debate_set,
        question_id=question_ids[record.question.id],
        position=position,
        debate_id=record.debate_id,
        protocol=record.protocol,
        seed=record.seed,
        body=debate_json(record),
    )


def _hash(record_hashes: Iterable[str]) -> str:
    """Identify a set: the hashes of its records in their order."""
    whole = hashlib.sha256()
    for one in record_hashes:
        whole.update(bytes.fromhex(one))
    return whole.hexdigest()


def batched(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of at most ``size`` rows. (itertools.batched needs Python 3.12.)"""
    source = iter(rows)
    while batch := list(islice(source, size)):
        yield batch

"""Files of questions and debates: looked at before, then imported whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import IO, Annotated, Any

from django.http import HttpRequest
from ninja import Query, Schema, Status
from pydantic import Field

from debateweb.api_access import (
    FILE_BODY,
    REFUSALS,
    Fault,
    In,
    person_of,
    uploaded,
    workspace_to_run,
)
from debateweb.errors import InputError
from runs.api import sets
from runs.engine.types import AnswerType
from runs.importers.faults import ImportFaults
from runs.importers.mapping import MAPPED_FIELDS, FieldMapping, guess_answer_type
from runs.importers.records import DebateRecord, QuestionRecord
from runs.importers.registry import (
    DEBATE_READERS,
    MAPPED_READERS,
    QUESTION_READERS,
    read_debates,
    read_questions,
)
from runs.importers.writers import debate_json, question_json
from runs.schemas import ImportedOut, Json
from runs.services.imports import Imported, import_debates, import_questions
from runs.services.uploads import PREVIEW_ROWS, Preview, look_at

Name = Annotated[str, Query(min_length=1, max_length=100, description="what the set is called")]
Format = Annotated[str | None, Query(description="one of the readers; guessed where left out")]
Answer = Status[dict[str, Any]]
Column = Annotated[str | None, Field(max_length=200)]

router = sets.router  # An address has one router: what is listed there is uploaded there.


class ColumnsIn(Schema):
    """Which column of the file holds which field, for ``jsonl`` and ``csv``."""

    question: Column = Field(None, alias="map.question", description="the column of the question")
    reference: Column = Field(None, alias="map.reference")
    id: Column = Field(None, alias="map.id", description="left out: rows are numbered from 1")
    answer_type: Column = Field(None, alias="map.answer_type")
    choices: Column = Field(None, alias="map.choices")
    stratum: Column = Field(None, alias="map.stratum")
    family: Column = Field(None, alias="map.family")
    split: Column = Field(None, alias="map.split")
    every_answer_type: AnswerType | None = Field(
        None, alias="answer_type", description="of every row that does not say its own"
    )

    def mapping(self) -> FieldMapping | None:
        """Return the mapping, None where nothing is said: then names are taken as they are."""
        said = {name: getattr(self, name) for name in MAPPED_FIELDS}
        columns = {name: column for name, column in said.items() if column}
        if not columns and self.every_answer_type is None:
            return None
        if not columns:  # Only the type is said: names are ours.
            columns = {name: name for name in MAPPED_FIELDS}
        return FieldMapping(columns, self.every_answer_type)


class GuessOut(Schema):
    """What the names of the columns look like, to be sent as ``map.FIELD`` and ``answer_type``."""

    columns: dict[str, str]
    answer_type: str | None


class PreviewOut(Schema):
    """
    What the import with the same parameters would do; nothing is stored.

    ``total`` and ``referenced`` (rows with a reference) count the records and are null where
    there are faults: then nothing would be imported. ``first`` shows the first records in our own
    format. ``columns`` and ``guess`` are empty for formats with fixed names.
    """

    format: str
    guessed_format: str
    columns: list[str]
    guess: GuessOut
    total: int | None
    referenced: int | None
    first: list[Json]
    faults: list[Fault]
    fault_total: int


def _look(
    stream: IO[bytes], file_name: str, format_name: str | None, mapping: FieldMapping | None
) -> Preview:
    look = look_at(stream, file_name, format_name or "")
    if mapping is None:
        return look
    if look.format_name not in MAPPED_READERS:
        known = " and ".join(MAPPED_READERS)
        raise InputError(f"map: {look.format_name!r} has names of its own; {known} can be mapped")
    missing = [c for f, c in mapping.columns.items() if c != f and c not in look.columns]
    if missing and look.format_name == "csv":  # Rows of JSON may have keys that the first lack.
        columns = ", ".join(repr(column[:60]) for column in look.columns[:20])
        raise InputError(f"map: there is no column {missing[0]!r}; there are {columns}")
    return look


def _previewed(
    look: Preview,
    records: Iterator[QuestionRecord] | Iterator[DebateRecord],
    to_json: Callable[[Any], dict[str, Any]],
) -> dict[str, Any]:
    told = {
        "format": look.format_name,
        "guessed_format": look.guessed_format,
        "columns": look.columns,
        "guess": {
            "columns": look.guessed_columns,
            "answer_type": guess_answer_type(look.guessed_columns, look.raw)
            if look.columns
            else None,
        },
    }
    try:
        first: list[QuestionRecord | DebateRecord] = list(islice(records, PREVIEW_ROWS))
    except ImportFaults as exc:
        faults = [
            {"line": f.line or None, "field": f.field or None, "message": f.message}
            for f in exc.faults
        ]
        nothing: dict[str, Any] = {"total": None, "referenced": None, "first": []}
        return {**told, **nothing, "faults": faults, "fault_total": exc.total}
    total, referenced = len(first), sum(_has_reference(record) for record in first)
    for record in records:  # Row by row: a file may be larger than memory.
        total, referenced = total + 1, referenced + _has_reference(record)
    counts = {"total": total, "referenced": referenced, "faults": [], "fault_total": 0}
    return {**told, **counts, "first": [to_json(record) for record in first]}


def _has_reference(record: QuestionRecord | DebateRecord) -> bool:
    question = record.question if isinstance(record, DebateRecord) else record
    return bool(question.reference)


def _stored(done: Imported, format_name: str) -> Answer:
    names = ("name", "size", "content_hash", "added")
    told = {name: getattr(done, name) for name in names}
    return Status(201 if done.added else 200, {**told, "format": format_name})


@router.post(
    "/preview-questions",
    response={200: PreviewOut, **REFUSALS},
    tags=["questions"],
    openapi_extra=FILE_BODY,
)
def preview_questions(
    request: HttpRequest,
    workspace: In,
    columns: Query[ColumnsIn],
    format: Format = None,  # noqa: A002
) -> dict[str, Any]:
    """Say what a file of questions would become, with its columns and its faults by row."""
    workspace_to_run(request, workspace)
    mapping = columns.mapping()
    with uploaded(request) as (stream, file_name):
        look = _look(stream, file_name, format, mapping)
        _refuse_unknown(look, QUESTION_READERS)
        records = read_questions(stream, look.format_name, name=file_name, mapping=mapping)
        return _previewed(look, records, question_json)


@router.post(
    "/preview-debates",
    response={200: PreviewOut, **REFUSALS},
    tags=["debates"],
    openapi_extra=FILE_BODY,
)
def preview_debates(
    request: HttpRequest,
    workspace: In,
    format: Format = None,  # noqa: A002
) -> dict[str, Any]:
    """Say what a file of debates would become, with its faults by row."""
    workspace_to_run(request, workspace)
    with uploaded(request) as (stream, file_name):
        seen = look_at(stream, file_name, format or "")
        look = Preview(seen.format_name, seen.guessed_format, (), {}, ())
        _refuse_unknown(look, DEBATE_READERS)
        records = read_debates(stream, look.format_name, name=file_name)
        return _previewed(look, records, debate_json)


def _refuse_unknown(look: Preview, readers: dict[str, Any]) -> None:
    if look.format_name not in readers:
        name = look.format_name[:60]
        raise InputError(f"format: there is no reader {name!r}; there are {', '.join(readers)}")


@router.post(
    "/questions",
    response={200: ImportedOut, 201: ImportedOut, **REFUSALS},
    tags=["questions"],
    openapi_extra=FILE_BODY,
)
def upload_questions(
    request: HttpRequest,
    workspace: In,
    name: Name,
    columns: Query[ColumnsIn],
    format: Format = None,  # noqa: A002
) -> Answer:
    """
    Import a file of questions, whole or not at all.

    Faults are told by line; the same content again adds nothing (200 instead of 201).
    """
    place = workspace_to_run(request, workspace)
    mapping = columns.mapping()
    with uploaded(request) as (stream, file_name):
        chosen = _look(stream, file_name, format, mapping).format_name
        done = import_questions(
            workspace=place,
            name=name,
            format_name=chosen,
            records=read_questions(stream, chosen, name=file_name, mapping=mapping),
            actor=person_of(request),
        )
    return _stored(done, chosen)


@router.post(
    "/debates",
    response={200: ImportedOut, 201: ImportedOut, **REFUSALS},
    tags=["debates"],
    openapi_extra=FILE_BODY,
)
def upload_debates(
    request: HttpRequest,
    workspace: In,
    name: Name,
    format: Format = None,  # noqa: A002
) -> Answer:
    """Import debates that ran elsewhere, whole or not at all; as with questions."""
    place = workspace_to_run(request, workspace)
    with uploaded(request) as (stream, file_name):
        chosen = look_at(stream, file_name, format or "").format_name
        done = import_debates(
            workspace=place,
            name=name,
            format_name=chosen,
            records=read_debates(stream, chosen, name=file_name),
            actor=person_of(request),
        )
    return _stored(done, chosen)

"""
Questions of our own format, as JSON Lines, a JSON array or CSV (docs/formats.md).

In CSV ``choices`` and several references are a JSON list or are separated by ``|``; a file
without an ``id`` column gets the numbers of its rows as ids, and one that names neither
``answer_type`` nor ``reference`` holds open questions. Columns with other names are read by a
``FieldMapping``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runs.engine.types import AnswerType, Evidence
from runs.importers import json_text
from runs.importers.faults import FaultLog, shown
from runs.importers.fields import Fields
from runs.importers.mapping import FieldMapping, mapped
from runs.importers.records import ANSWER_TYPES, SPLITS, QuestionRecord
from runs.importers.references import choices_problem, reference_problem, yesno
from runs.importers.rows import Row, csv_rows, json_rows
from runs.importers.sources import Source

_LIST_COLUMNS = ("choices", "reference", "evidence", "metadata")
_KEPT_EMPTY = ("id", "answer_type", "reference")


def read_jsonl(
    source: Source, log: FaultLog, mapping: FieldMapping | None = None
) -> Iterator[tuple[int, QuestionRecord]]:
    """Yield the good questions of a JSON Lines file or JSON array with their lines."""
    for number, row in enumerate(json_rows(source, log), 1):
        data = row.data if mapping is None else mapped(row.data, number, mapping)
        fields = Fields(data, row.line, log)
        record = question_from(fields)
        if fields.clean:
            yield row.line, record


def read_csv(
    source: Source, log: FaultLog, mapping: FieldMapping | None = None
) -> Iterator[tuple[int, QuestionRecord]]:
    """Yield the good questions of a CSV file with their lines."""
    for number, found in enumerate(csv_rows(source, log), 1):
        row = found if mapping is None else Row(found.line, mapped(found.data, number, mapping))
        data = _cells(row, number, log)
        if data is None:
            continue
        fields = Fields(data, row.line, log)
        record = question_from(fields)
        if fields.clean:
            yield row.line, record


def question_from(
    fields: Fields, *, id_key: str = "id", keep_metadata: bool = True
) -> QuestionRecord:
    """Read a question out of the keys of a row; faults are in the log."""
    record_id = fields.identifier(id_key)
    text = fields.text("question")
    fields.require("answer_type")
    answer_type: AnswerType = fields.one_of("answer_type", ANSWER_TYPES) or "open"
    if fields.has("answer_type") and fields.clean_of("answer_type"):
        fields.fault("answer_type", "is null")
    choices = _choices(fields, answer_type)
    return QuestionRecord(
        id=record_id,
        question=text,
        reference=_reference(fields, answer_type, choices),
        answer_type=answer_type,
        choices=choices,
        stratum=fields.optional_text("stratum"),
        family=fields.optional_text("family"),
        split=fields.one_of("split", SPLITS),
        evidence=_evidence(fields),
        metadata=fields.row_metadata() if keep_metadata else {},
    )


def _choices(fields: Fields, answer_type: AnswerType) -> tuple[str, ...]:
    choices = fields.texts("choices")
    if not fields.clean:
        return choices
    if answer_type == "choice":
        problem = choices_problem(choices)
        if problem:
            fields.fault("choices", problem)
    elif choices:
        fields.fault("choices", f"belong to answer_type choice, not {answer_type}")
    return choices


def _reference(
    fields: Fields, answer_type: AnswerType, choices: tuple[str, ...]
) -> tuple[str, ...]:
    if answer_type != "open" and not fields.require("reference"):
        return ()
    given = fields.texts("reference", single=True)
    if not fields.clean:
        return given
    for reference in given:
        problem = reference_problem(reference, answer_type, choices)
        if problem:
            fields.fault("reference", f"{shown(reference)} {problem}")
    return tuple(map(yesno, given)) if answer_type == "yesno" else given


def _evidence(fields: Fields) -> tuple[Evidence, ...]:
    found: list[Evidence] = []
    for item in fields.objects("evidence"):
        evidence = Evidence(
            id=item.identifier("id"),
            text=item.text("text"),
            source=item.optional_text("source") or "",
        )
        item.leave()
        if any(evidence.id == other.id for other in found):
            item.fault("id", f"{shown(evidence.id)} stands twice")
        found.append(evidence)
    return tuple(found)


def _cells(row: Row, number: int, log: FaultLog) -> dict[str, Any] | None:
    """Return a CSV row with its lists parsed and with what the columns leave unsaid."""
    columns = row.data.keys()
    data: dict[str, Any] = {
        name: cell for name, cell in row.data.items() if cell or name in _KEPT_EMPTY
    }
    for name in _LIST_COLUMNS:
        if data.get(name):
            try:
                data[name] = _cell(name, data[name])
            except json_text.JsonFault as exc:
                log.add(row.line, name, str(exc))
                return None
    if "id" not in columns:
        data["id"] = str(number)
    if "answer_type" not in columns and "reference" not in columns:
        data["answer_type"] = "open"
    return data


def _cell(name: str, cell: str) -> Any:
    opening = "{" if name == "metadata" else "["
    if cell.lstrip().startswith(opening):
        return json_text.parse(cell)
    if name == "metadata":
        return cell
    parts = [part.strip() for part in cell.split("|")]
    return parts if name == "choices" or len(parts) > 1 else cell

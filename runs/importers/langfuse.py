"""
Langfuse: scores as its API lists them (versions 2 and 3), in and out; traces are what is scored.

A label is a score of source ANNOTATION named by its kind, in the form in which the API takes and
lists it: NUMERIC for numbers, CATEGORICAL for words, shares as JSON words. The whole label stands
in the score's metadata.

Of scores made there, those of people are labels: who is ``authorUserId``. Scores without an
author, and those of source EVAL, are no people's and are left out. What is scored is the trace,
or the observation of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import IO, Any

from runs.importers.faults import FaultLog, shown
from runs.importers.fields import Fields
from runs.importers.judged_records import ItemRecord, LabelRecord, label_hash, label_json
from runs.importers.rows import Row, json_rows, parsed_members
from runs.importers.sources import Source
from runs.importers.tool_labels import (
    KEY,
    blind_item,
    foreign,
    heard,
    item_of,
    kind_of,
    restored,
    shown_item,
    spoken,
    write_array,
)

TOOL = "langfuse"
#: How a page of the API begins.
PAGE = re.compile(r'\{\s*"(?:data|meta)"\s*:')
_DATA_TYPES = ("NUMERIC", "CATEGORICAL", "BOOLEAN", "TEXT", "CORRECTION")


def read_labels(source: Source, log: FaultLog) -> Iterator[tuple[int, LabelRecord]]:
    """Yield the labels of an array, JSON Lines or a page of the API, with their lines."""
    for row in _rows(source, log):
        fields = Fields(row.data, row.line, log)
        record = _label(fields)
        if record is not None and fields.clean:
            yield row.line, record


def read_tasks(source: Source, log: FaultLog) -> Iterator[tuple[int, ItemRecord]]:
    """Yield traces as items: ``input`` shows the question, ``output`` is the candidate else."""
    for row in _rows(source, log):
        fields = Fields(row.data, row.line, log)
        given, metadata = fields.get("input"), fields.data.get("metadata")
        named = metadata.get(KEY) if isinstance(metadata, dict) else None
        seen = given if isinstance(given, dict) else {"question": given}
        if "output" in fields.data and named is None:
            seen = {**seen, "output": fields.data["output"]}
        item = item_of(fields, fields.identifier("id"), seen, named)
        if fields.clean:
            yield row.line, item


def _rows(source: Source, log: FaultLog) -> Iterator[Row]:
    if not PAGE.match(source.head(1024).decode("utf-8", "replace").lstrip()):
        yield from json_rows(source, log)
        return
    for row in parsed_members(source, log):
        listed = row.data.get("data") if isinstance(row.data, dict) else None
        for one in listed if isinstance(listed, list) else ():
            yield Row(row.line, one)


def _label(fields: Fields) -> LabelRecord | None:
    metadata = fields.data.get("metadata")
    whole = metadata.get(KEY) if isinstance(metadata, dict) else None
    if fields.data.get("source") == "EVAL" or _is_nobodys(fields, whole):
        return None
    said = _said(fields)
    comment = fields.optional_text("comment")
    if isinstance(whole, dict):
        row = {**whole, **({} if comment is None else {"comment": comment})}
        return restored(row, heard(str(whole.get("kind")), said), fields)
    name = fields.identifier("name")
    kind = kind_of(name, said)
    return foreign(
        fields,
        "",
        item_id=_scored(fields),
        annotator=fields.identifier("authorUserId"),
        kind=kind,
        label=heard(kind, said),
        comment=comment,
        at=fields.optional_text("timestamp"),
        metadata={TOOL: fields.data},
    )


def _is_nobodys(fields: Fields, whole: Any) -> bool:
    return fields.data.get("authorUserId") is None and not isinstance(whole, dict)


def _said(fields: Fields) -> Any:
    """Return the value: version 2 of the API has words in ``stringValue``, version 3 in place."""
    kind = fields.one_of("dataType", _DATA_TYPES)
    words, value = fields.optional_text("stringValue"), fields.get("value")
    if words is not None:
        return words
    if isinstance(value, bool):
        return str(value)  # As ``stringValue`` says it.
    if isinstance(value, str) and kind != "NUMERIC":
        return value
    if not isinstance(value, int | float):
        fields.fault("value", f"must be a number, not {shown(value)}")
    return value


def _scored(fields: Fields) -> str:
    subject = fields.object("subject")
    if subject is not None:
        return subject.identifier("id")
    for key in ("observationId", "traceId", "sessionId"):
        if fields.data.get(key) is not None:
            return fields.identifier(key)
    fields.fault("traceId", "is missing")
    return ""


def write_scores(
    records: Iterable[LabelRecord], items: Iterable[ItemRecord], stream: IO[str]
) -> int:
    """
    Write a JSON array of scores; return how many.

    What is scored goes out by ``write_traces``.
    """
    return write_array((_score(record) for record in records), stream)


def write_traces(items: Iterable[ItemRecord], stream: IO[str]) -> int:
    """Write a JSON array of traces to be scored; return how many."""
    return write_array((_trace(item) for item in items), stream)


def _trace(item: ItemRecord) -> dict[str, Any]:
    return {
        "id": item.item_id,
        "name": "annotation task",
        "input": shown_item(item),
        "metadata": {KEY: blind_item(item)},
    }


def _score(record: LabelRecord) -> dict[str, Any]:
    if TOOL in record.metadata:
        return _given_back(record)
    whole = {name: value for name, value in label_json(record).items() if name != "comment"}
    moments = {} if record.at is None else dict.fromkeys(_MOMENTS, record.at)
    return {
        "id": label_hash(record)[:32],
        "traceId": record.item_id,
        "subject": {"kind": "trace", "id": record.item_id},
        "name": record.kind,
        **_value(record),
        "source": "ANNOTATION",
        "authorUserId": record.annotator,
        "comment": record.comment,
        "environment": "default",
        **moments,
        "metadata": {KEY: whole},
    }


_MOMENTS = ("timestamp", "createdAt", "updatedAt")


def _value(record: LabelRecord) -> dict[str, Any]:
    said = spoken(record.label)
    return {"dataType": "CATEGORICAL" if isinstance(said, str) else "NUMERIC", "value": said}


def _given_back(record: LabelRecord) -> dict[str, Any]:
    """Return a score made there as it came, with a label that was changed here."""
    score: dict[str, Any] = dict(record.metadata[TOOL])
    key = "value" if score.get("stringValue") is None else "stringValue"
    value = score.get(key)
    said = str(value) if isinstance(value, bool) else value
    if heard(record.kind, said) != record.label:
        score[key] = spoken(record.label)
    return score

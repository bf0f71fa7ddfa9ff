"""
Labels of people in our own format: JSON Lines, or CSV with one column a key (docs/formats.md).

In CSV an empty cell is an absent key; ``label`` of a belief, ``shown_order`` and ``metadata`` are
JSON, and so are texts in quotes: a label or comment is quoted where it would not come back as it
is. A cell that a spreadsheet would take for a formula is written with an apostrophe before it,
which reading takes away again.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import IO, Any

from runs.importers import json_text
from runs.importers.cells import neutral, plain
from runs.importers.faults import FaultLog, shown
from runs.importers.fields import Fields
from runs.importers.judged_records import (
    LABEL_KINDS,
    LABEL_UNITS,
    NO_CANDIDATE,
    REVEAL_STATES,
    ItemRecord,
    LabelRecord,
    LabelValue,
    label_json,
)
from runs.importers.rows import csv_rows, json_rows
from runs.importers.sources import Source

MAX_ANNOTATOR_CHARS = 150
COLUMNS = (
    "item_id",
    "annotator",
    "kind",
    "label",
    "unit",
    "weight",
    "shown_order",
    "shown_reference",
    "guideline_version",
    "active_seconds",
    "reveal_state",
    "confidence",
    "comment",
    "at",
    "metadata",
)
_NUMBERS = ("label", "weight", "active_seconds", "confidence", "guideline_version")
_JSON_COLUMNS = ("shown_order", "metadata")
_QUOTED = ("label", "comment", "guideline_version")
_JSON_STARTS = ('"', "{")
_TOLERANCE = 1e-6  # Shares are often written with rounding noise.


def read_jsonl(source: Source, log: FaultLog) -> Iterator[tuple[int, LabelRecord]]:
    """Yield the good labels of a JSON Lines file or JSON array with their lines."""
    for row in json_rows(source, log):
        fields = Fields(row.data, row.line, log)
        record = label_from(fields)
        if fields.clean:
            yield row.line, record


def read_csv(source: Source, log: FaultLog) -> Iterator[tuple[int, LabelRecord]]:
    """Yield the good labels of a CSV file with their lines."""
    for row in csv_rows(source, log):
        before = log.total
        cells = {
            name: _value(name, plain(cell), row.line, log)
            for name, cell in row.data.items()
            if cell is not None
        }
        record = label_from(Fields(cells, row.line, log))
        if log.total == before:
            yield row.line, record


def label_from(fields: Fields) -> LabelRecord:
    """Read a label out of the keys of a row; faults are in the log."""
    kind = fields.one_of("kind", LABEL_KINDS)
    if kind is None and fields.get("kind") is None:
        fields.fault("kind", "is missing")
    shown_order = _shown_order(fields)
    return LabelRecord(
        item_id=fields.identifier("item_id"),
        annotator=_annotator(fields),
        kind=kind or "correctness",
        label=_label(fields, kind or "", shown_order),
        unit=fields.one_of("unit", LABEL_UNITS),
        weight=_weight(fields),
        shown_order=shown_order,
        shown_reference=_truth(fields, "shown_reference"),
        guideline_version=_version(fields),
        active_seconds=fields.real("active_seconds"),
        reveal_state=fields.one_of("reveal_state", REVEAL_STATES),
        confidence=fields.real("confidence"),
        comment=fields.optional_text("comment"),
        at=_moment(fields),
        metadata=fields.row_metadata(),
    )


def _annotator(fields: Fields) -> str:
    name = fields.identifier("annotator")
    if len(name) > MAX_ANNOTATOR_CHARS:
        fields.fault("annotator", f"is longer than {MAX_ANNOTATOR_CHARS} characters")
    return name


def _label(fields: Fields, kind: str, shown_order: tuple[str, ...]) -> LabelValue:
    value = fields.get("label")
    if value is None:
        fields.fault("label", "is null" if fields.has("label") else "is missing")
    elif isinstance(value, bool) or not isinstance(value, str | int | float | dict):
        fields.fault("label", f"must be text, a number or shares by option, not {shown(value)}")
    elif isinstance(value, dict) or kind == "belief":
        return _belief(fields, kind)
    elif isinstance(value, str):
        return _words(fields, kind, value, shown_order)
    elif kind == "pairwise":
        fields.fault("label", f"must name a candidate, tie or abstain, not {shown(value)}")
    else:
        return float(value)
    return ""


def _words(fields: Fields, kind: str, value: str, shown_order: tuple[str, ...]) -> str:
    if not value.strip():
        fields.fault("label", "is empty")
    elif kind == "pairwise" and shown_order and value not in (*shown_order, *NO_CANDIDATE):
        fields.fault("label", f"{shown(value)} is none of shown_order, tie or abstain")
    return value


def _belief(fields: Fields, kind: str) -> dict[str, float]:
    options = fields.object("label")
    if options is None:
        return {}
    if kind != "belief":
        options.fault("", "shares by option are the label of a belief only")
        return {}
    found = {name: share for name in options.data if (share := options.real(name)) is not None}
    total = sum(found.values())
    if len(found) < len(options.data) or not found:
        if options.clean:
            options.fault("", "has an option without a share" if options.data else "names none")
    elif math.isclose(total, 1, abs_tol=_TOLERANCE):
        return found
    elif math.isclose(total, 100, abs_tol=100 * _TOLERANCE):
        return {name: share / 100 for name, share in found.items()}
    else:
        options.fault("", f"adds up to {total:g}; it must be 1, or 100 in percent")
    return {}


def _weight(fields: Fields) -> float | None:
    weight = fields.real("weight")
    if weight is not None and weight == 0:
        fields.fault("weight", "must be above 0: it is 1 / inclusion probability")
    return weight


def _shown_order(fields: Fields) -> tuple[str, ...]:
    order = fields.texts("shown_order")
    for place, name in enumerate(order):
        if name in order[:place]:
            fields.fault(f"shown_order[{place}]", f"{shown(name)} stands twice")
    return order


def _truth(fields: Fields, key: str) -> bool | None:
    value = fields.get(key)
    if value is None or isinstance(value, bool):
        return value
    fields.fault(key, f"must be true or false, not {shown(value)}")
    return None


def _version(fields: Fields) -> str | int | None:
    value = fields.get("guideline_version")
    if isinstance(value, str):
        return fields.identifier("guideline_version")
    return fields.whole("guideline_version")


def _moment(fields: Fields) -> str | None:
    value = fields.optional_text("at")
    if value is None:
        return None
    try:
        datetime.fromisoformat(value)
    except ValueError:
        fields.fault("at", f"is no time of ISO 8601: {shown(value)}")
    return value


def write_jsonl(
    records: Iterable[LabelRecord], items: Iterable[ItemRecord], stream: IO[str]
) -> int:
    """Write one label a line; return how many. Items have no place in it."""
    count = 0
    for record in records:
        stream.write(json.dumps(label_json(record), ensure_ascii=False) + "\n")
        count += 1
    return count


def write_csv(records: Iterable[LabelRecord], items: Iterable[ItemRecord], stream: IO[str]) -> int:
    """Write labels as CSV with every column of ``COLUMNS``; return how many."""
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    count = 0
    for record in records:
        row = label_json(record)
        writer.writerow({name: _cell(name, row.get(name)) for name in COLUMNS})
        count += 1
    return count


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or (name in _QUOTED and _needs_quotes(value)):
        return json.dumps(value, ensure_ascii=False)
    return neutral(value)


def _needs_quotes(text: str) -> bool:
    """Whether the bare text would be read as something else: nothing, a number, JSON, a line."""
    return not text or text.startswith(_JSON_STARTS) or "\r" in text or _number(text) is not None


def _number(text: str) -> int | float | None:
    try:
        value = json_text.parse(text)
    except json_text.JsonFault:
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _value(name: str, cell: str, line: int, log: FaultLog) -> Any:
    """Return a cell as JSON would hold it."""
    if name == "shown_reference":
        return {"true": True, "false": False}.get(cell.lower(), cell)
    if name in _QUOTED and cell.startswith('"'):
        return _unquoted(cell)
    if name in _JSON_COLUMNS or (name == "label" and cell.startswith("{")):
        try:
            return json_text.parse(cell)
        except json_text.JsonFault as exc:
            log.add(line, name, str(exc))
            return None
    number = _number(cell) if name in _NUMBERS else None
    return cell if number is None else number


def _unquoted(cell: str) -> str:
    """Return the text in quotes; a cell of others that only begins with one is that text."""
    try:
        value = json_text.parse(cell)
    except json_text.JsonFault:
        return cell
    return value if isinstance(value, str) else cell

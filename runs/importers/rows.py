"""Rows of a file, whatever its layout: a line number and an object."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runs.importers import json_text
from runs.importers.faults import FaultLog, shown
from runs.importers.json_stream import Member, members
from runs.importers.sources import MAX_LINE_BYTES, Line, Source, text_lines

_DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, slots=True)
class Row:
    """One parsed value and the line on which it begins."""

    line: int
    data: Any


def json_rows(source: Source, log: FaultLog) -> Iterator[Row]:
    """Yield the objects of JSON Lines or of one JSON array; what does not parse is a fault."""
    if source.head().lstrip().startswith(b"["):
        yield from parsed_members(source, log)
        return
    for line in text_lines(source, log):
        if line.text.strip():
            yield from _parsed(line.text, line.number, log)


def parsed_members(source: Source, log: FaultLog) -> Iterator[Row]:
    """Yield the members of arrays; a member of an object comes as an object with one key."""
    for member in members(source, log):
        yield from _parsed(_member_text(member), member.line, log)


def _member_text(member: Member) -> str:
    return member.text if member.of == "[" else "{" + member.text + "}"


def _parsed(text: str, line: int, log: FaultLog) -> Iterator[Row]:
    try:
        yield Row(line, json_text.parse(text))
    except json_text.JsonFault as exc:
        log.add(line, exc.field, str(exc))


def csv_rows(source: Source, log: FaultLog) -> Iterator[Row]:
    """
    Yield the rows of a CSV file as objects of texts; an empty cell is None.

    The header is required. The delimiter is the one of comma, semicolon and tab that stands most
    often in it.
    """
    lines = _CsvLines(text_lines(source, log))
    first = next(iter(lines), None)
    if first is None:
        if not log.total:
            log.add(1, "header", "the file is empty; the first line must name the columns")
        return
    delimiter = max(_DELIMITERS, key=first.count)
    header = next(csv.reader([first], delimiter=delimiter))
    if not _header_is_good(header, log):
        return
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    yield from _objects(reader, header, lines, log)


class _CsvLines:
    """Lines for ``csv.reader``, remembering where the row being read began."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self._first: int | None = None
        self._last = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._last = line.number
        if self._first is None:
            self._first = line.number
        return line.text + "\n"

    def begin_row(self) -> None:
        self._first = None

    @property
    def row_line(self) -> int:
        """The line on which the row being read began."""
        return self._first or self._last


def _header_is_good(header: list[str], log: FaultLog) -> bool:
    before = log.total
    seen: set[str] = set()
    for place, name in enumerate(header, 1):
        if not name.strip():
            log.add(1, "header", f"column {place} has no name")
        elif name in seen:
            log.add(1, "header", f"the column {shown(name)} stands twice")
        seen.add(name)
    return log.total == before


def _objects(
    reader: Iterator[list[str]], header: list[str], lines: _CsvLines, log: FaultLog
) -> Iterator[Row]:
    while True:
        lines.begin_row()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as exc:
            log.add(lines.row_line, "csv", str(exc))
            return
        line = lines.row_line
        if not cells:
            continue
        if len(cells) != len(header):
            log.add(line, "csv", f"has {len(cells)} cells where the header names {len(header)}")
            continue
        yield Row(line, {name: cell or None for name, cell in zip(header, cells, strict=True)})

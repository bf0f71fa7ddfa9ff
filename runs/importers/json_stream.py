"""
The members of a JSON file that is too large, or too oddly laid out, to parse at once.

Works for one array of values, one object, and objects written one after the other with or
without line breaks. It only finds where each member begins and ends; ``json_text`` judges them.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from runs.importers.faults import FaultLog
from runs.importers.sources import MAX_LINE_BYTES, Source, why_not_utf8

_CHUNK_BYTES = 256 * 1024
_OUTSIDE = re.compile(r'["\[\]{},\n]')
_INSIDE_STRING = re.compile(r'["\\\n]')


@dataclass(frozen=True, slots=True)
class Member:
    """
    One member of a top-level array or object, as text.

    ``text`` is the value in an array and ``"key": value`` in an object.
    """

    line: int
    of: Literal["[", "{"]
    text: str


class _Broken(Exception):
    """The file's outline cannot be followed any further."""


def members(source: Source, log: FaultLog) -> Iterator[Member]:
    """Yield the members in order; a broken outline is one fault and ends the reading."""
    splitter = _Splitter(log)
    try:
        for chunk in _chunks(source):
            yield from splitter.feed(chunk)
        splitter.finish()
    except _Broken as exc:
        log.add(splitter.line, "json", str(exc))
    except UnicodeDecodeError as exc:
        line = splitter.line + exc.object[: exc.start].count(b"\n")
        log.add(line, "encoding", why_not_utf8(exc.object, exc.start))


def _chunks(source: Source) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    source.stream.seek(0)
    while raw := source.stream.read(_CHUNK_BYTES):
        yield decoder.decode(raw)
    yield decoder.decode(b"", final=True)


class _Splitter:
    """A scanner that remembers depth, strings and lines across chunks."""

    def __init__(self, log: FaultLog) -> None:
        self.line = 1
        self._log = log
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._opener = ""
        self._pieces: list[str] = []
        self._chars = 0
        self._member_line = 1
        self._after_comma = False

    def feed(self, chunk: str) -> Iterator[Member]:
        """Take the next text; yield the members that it completes."""
        start = at = 0
        while at < len(chunk):
            if self._escaped:
                self._escaped = False
                self.line += chunk[at] == "\n"
                at += 1
                continue
            match = (_INSIDE_STRING if self._in_string else _OUTSIDE).search(chunk, at)
            if match is None:
                break
            at = match.end()
            boundary = self._step(match.group())
            if boundary:
                self._keep(chunk[start : match.start()])
                yield from self._close(match.group())
                start = at
        self._keep(chunk[start:])

    def _step(self, token: str) -> bool:
        """Follow one token; True where it begins or ends a member."""
        if token == "\n":
            self.line += 1
        elif self._in_string:
            self._in_string = token == "\\"
            self._escaped = token == "\\"
        elif token == '"':
            self._in_string = True
        elif token in "[{":
            self._depth += 1
            return self._depth == 1
        elif token in "]}":
            self._depth -= 1
            return self._depth <= 0
        else:
            return self._depth <= 1
        return False

    def _keep(self, text: str) -> None:
        if self._depth == 0 and not self._pieces and not text.strip():
            return
        self._chars += len(text)
        if self._chars <= MAX_LINE_BYTES:
            self._pieces.append(text)

    def _close(self, token: str) -> Iterator[Member]:
        text = "".join(self._pieces)
        line = self._member_line + _leading_lines(text)
        too_long = self._chars > MAX_LINE_BYTES
        self._pieces, self._chars, self._member_line = [], 0, self.line
        if token in "[{":
            self._open(token, text)
            return
        if self._depth < 0 or not self._opener or token not in (",", self._closer):
            raise _Broken(f'a "{token}" stands where none can')
        if too_long:
            self._log.add(line, "json", f"a member longer than {MAX_LINE_BYTES // 1024**2} MB")
        elif token == "," or text.strip() or self._after_comma:
            yield Member(line, "[" if self._opener == "[" else "{", text)
        self._after_comma = token == ","
        if token != ",":
            self._opener = ""

    def _open(self, token: str, before: str) -> None:
        if before.strip():
            raise _Broken("text stands outside of any array or object")
        self._opener = token
        self._after_comma = False

    @property
    def _closer(self) -> str:
        return "]" if self._opener == "[" else "}"

    def finish(self) -> None:
        """Raise unless everything that was opened is closed."""
        if self._depth or self._in_string:
            raise _Broken("the file ends inside an array or object")
        if "".join(self._pieces).strip():
            raise _Broken("text stands outside of any array or object")


def _leading_lines(text: str) -> int:
    return text[: len(text) - len(text.lstrip())].count("\n")

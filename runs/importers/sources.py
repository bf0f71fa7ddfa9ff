"""
Where bytes come from: a path, ``-`` for standard input, or a stream that is already open.

A file is read twice (validate everything, then yield), so what cannot be rewound is first copied
to a temporary file, in memory up to 8 MB. Decoding is strict: a text that PostgreSQL could not
hold, or that was saved in another encoding, is refused with its line.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

from runs.importers.faults import Fault, FaultLog, ImportFaults

MAX_LINE_BYTES = 16 * 1024 * 1024
_SPOOL_BYTES = 8 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text without its line break; ``number`` counts from 1."""

    number: int
    text: str


class Source:
    """A rewindable binary stream and the name by which faults speak of it."""

    def __init__(self, stream: IO[bytes], name: str, *, owned: bool) -> None:
        self.name = name
        self.stream = stream
        self._owned = owned

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._owned:
            self.stream.close()

    def head(self, size: int = 65_536) -> bytes:
        """Return the first bytes, without a byte order mark, and rewind."""
        self.stream.seek(0)
        head = self.stream.read(size)
        self.stream.seek(0)
        return head.removeprefix(_BOM)


def open_source(target: str | Path | IO[bytes] | IO[str], name: str | None = None) -> Source:
    """
    Open a path, ``-`` (standard input) or a stream for two passes.

    Raises ImportFaults where a path cannot be opened.
    """
    if isinstance(target, str | Path):
        if str(target) == "-":
            return _rewindable(sys.stdin.buffer, name or "<stdin>")
        return _open_path(Path(target), name or str(target))
    return _rewindable(target, name or str(getattr(target, "name", "<stream>")))


def _open_path(path: Path, name: str) -> Source:
    try:
        stream = path.open("rb")
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
        raise ImportFaults((Fault(name, 0, "file", f"cannot be read: {reason}"),)) from exc
    if not stream.seekable():  # A named pipe or /dev/stdin.
        with stream:
            return Source(_spooled(stream), name, owned=True)
    return Source(stream, name, owned=True)


def _rewindable(stream: IO[bytes] | IO[str], name: str) -> Source:
    if isinstance(stream, io.TextIOBase):
        buffer = getattr(stream, "buffer", None)
        if buffer is None:
            # Surrogates pass through here so that decoding refuses them with their line.
            raw = stream.read().encode("utf-8", "surrogatepass")
            return Source(io.BytesIO(raw), name, owned=True)
        stream = cast("IO[bytes]", buffer)
    binary = cast("IO[bytes]", stream)
    if binary.seekable():
        return Source(binary, name, owned=False)
    return Source(_spooled(binary), name, owned=True)


def _spooled(stream: IO[bytes]) -> IO[bytes]:
    spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115 - Source closes it.
    shutil.copyfileobj(stream, spool, _CHUNK_BYTES)
    spool.seek(0)
    return cast("IO[bytes]", spool)


def raw_lines(source: Source, log: FaultLog) -> Iterator[tuple[int, bytes]]:
    """Yield numbered lines as bytes with their line breaks; too long a line is a fault."""
    source.stream.seek(0)
    number = 0
    while raw := source.stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if number == 1:
            if raw.startswith(_UTF16_MARKS):
                log.add(1, "encoding", "the file is UTF-16; save it as UTF-8")
                return
            raw = raw.removeprefix(_BOM)
        if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
            log.add(number, "line", f"longer than {MAX_LINE_BYTES // 1024**2} MB")
            _skip_line(source.stream)
            continue
        yield number, raw


def _skip_line(stream: IO[bytes]) -> None:
    while rest := stream.readline(_CHUNK_BYTES):
        if rest.endswith(b"\n"):
            return


def text_lines(source: Source, log: FaultLog) -> Iterator[Line]:
    """Yield the lines that decode; every other one is a fault."""
    for number, raw in raw_lines(source, log):
        text = decode(raw, number, log)
        if text is not None:
            yield Line(number, text.rstrip("\r\n"))


def decode(raw: bytes, line: int, log: FaultLog) -> str | None:
    """Return strict UTF-8 text without NUL, or None after noting why not."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        log.add(line, "encoding", f"at byte {exc.start + 1} {why_not_utf8(raw, exc.start)}")
        return None
    if "\0" in text:
        log.add(line, "encoding", f"holds a NUL character at column {text.index(chr(0)) + 1}")
        return None
    return text


def why_not_utf8(raw: bytes, start: int) -> str:
    """Say what the bytes at ``start``, which do not decode, look like."""
    if _ENCODED_SURROGATE.match(raw, start):
        return "stands a lone surrogate"
    what = f"0x{raw[start]:02x} is not UTF-8"
    try:
        raw.decode("cp1252")
    except UnicodeDecodeError:
        return what
    return f"{what}; the file looks like Windows-1252: save it as UTF-8"

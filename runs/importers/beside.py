"""
Published data sets of several files: the one that was named, and those that belong to it.

A set may be named by its folder, by a ZIP archive of it, or by one of its files. Files that
belong to a file are looked for in its own folder and the one above, only where a path was given:
a stream, as an upload is, has nothing beside it, but it may be an archive.
"""

from __future__ import annotations

import lzma
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import IO, Self

from runs.importers.faults import Fault, FaultLog, ImportFaults, one_line, shown
from runs.importers.rows import Row, json_rows
from runs.importers.sources import Source, open_source

MAX_MEMBERS = 1000
MAX_UNPACKED_BYTES = 512 * 1024 * 1024
_ZIP_START = b"PK\x03\x04"
#: All that unpacking a damaged or encrypted archive raises.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    NotImplementedError,
    RuntimeError,
    OSError,
    EOFError,
    ValueError,
    struct.error,
)


class Files:
    """
    An opened set. ``main`` is None where a folder or an archive was named.

    ``folders`` are where others are looked for; ``unpacked`` is where an archive was laid out.
    """

    def __init__(
        self,
        name: str,
        main: Source | None,
        folders: tuple[Path, ...] = (),
        unpacked: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:
        self.name = name
        self.main = main
        self._folders = folders
        self._unpacked = unpacked

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.main is not None:
            self.main.__exit__(kind, error, trace)
        if self._unpacked is not None:
            self._unpacked.cleanup()

    def find(self, pattern: str) -> list[Path]:
        """Return the files that match in the first folder that holds any, by name."""
        for folder in self._folders:
            found = sorted(path for path in folder.glob(pattern) if path.is_file())
            if found:
                return found
        return []

    def open(self, path: Path) -> Source:
        """Open a file that was found, under the name by which the person knows it."""
        if self._unpacked is None:
            return open_source(path)
        inner = path.relative_to(self._unpacked.name).as_posix()
        return open_source(path, f"{self.name}/{inner}")

    @contextmanager
    def opened(self, log: FaultLog, *patterns: str) -> Iterator[list[Source]]:
        """Open the named file, or, of a folder, all that match the first pattern that any does."""
        if self.main is not None:
            yield [self.main]
            return
        found = next((paths for pattern in patterns if (paths := self.find(pattern))), [])
        if not found:
            log.add(0, "file", f"the folder holds no {' or '.join(patterns)}")
        with ExitStack() as stack:
            yield [stack.enter_context(self.open(path)) for path in found]

    def rows(self, pattern: str, log: FaultLog) -> Iterator[Row]:
        """Yield the JSON rows of every file that matches; faults name the file."""
        for path in self.find(pattern):
            with self.open(path) as source, speaking_of(log, source):
                yield from json_rows(source, log)


@contextmanager
def speaking_of(log: FaultLog, source: Source) -> Iterator[None]:
    """Have faults name another file for a while."""
    before, log.where = log.where, source.name
    try:
        yield
    finally:
        log.where = before


def open_files(target: str | Path | IO[bytes] | IO[str], name: str | None = None) -> Files:
    """
    Open a folder, a path, ``-`` or a stream.

    Raises ImportFaults where a path cannot be opened or an archive not be unpacked.
    """
    is_path = isinstance(target, str | Path) and str(target) != "-"
    path = Path(target) if isinstance(target, str | Path) else None
    if is_path and path is not None and path.is_dir():
        return Files(name or str(path), None, (path,))
    source = open_source(target, name)
    if source.head(len(_ZIP_START)) == _ZIP_START:
        return _archive(source)
    if not is_path or path is None:
        return Files(source.name, source)
    here = path.absolute().parent
    return Files(source.name, source, (here, here.parent))


def _archive(source: Source) -> Files:
    unpacked = tempfile.TemporaryDirectory(prefix="import-")
    try:
        with source, zipfile.ZipFile(source.stream) as archive:
            _unpack(archive, Path(unpacked.name))
    except BaseException as exc:
        unpacked.cleanup()
        if not isinstance(exc, (_Refused, *_DAMAGE)):
            raise
        raise ImportFaults((Fault(source.name, 0, "archive", _reason(exc)),)) from exc
    root = Path(unpacked.name)
    inner = sorted(path for path in root.iterdir() if path.is_dir())
    return Files(source.name, None, (root, *inner), unpacked)


def _reason(exc: Exception) -> str:
    if isinstance(exc, _Refused):
        return str(exc)
    # What the system says of a file names where it was laid out.
    known = isinstance(exc, OSError) and exc.strerror
    return f"cannot be unpacked: {known or one_line(str(exc))}"


class _Refused(Exception):
    """An archive that is no set of files."""


def _unpack(archive: zipfile.ZipFile, root: Path) -> None:
    members = [member for member in archive.infolist() if not member.filename.endswith("/")]
    if len(members) > MAX_MEMBERS:
        raise _Refused(f"holds {len(members)} files; the most is {MAX_MEMBERS}")
    left = MAX_UNPACKED_BYTES
    for member in members:
        path = root.joinpath(*_safe_parts(member))
        path.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(member) as packed, path.open("wb") as laid_out:
            left -= _copied(packed, laid_out, left)


def _safe_parts(member: zipfile.ZipInfo) -> tuple[str, ...]:
    parts = PurePosixPath(member.filename).parts
    is_link = stat.S_ISLNK(member.external_attr >> 16)
    if is_link or not parts or ".." in parts or parts[0].startswith("/") or "\\" in member.filename:
        raise _Refused(f"holds {shown(member.filename)}, which is no file of a folder")
    return parts


def _copied(packed: IO[bytes], laid_out: IO[bytes], most: int) -> int:
    """Copy and return how much; sizes in an archive's index are only claims."""
    size = 0
    while chunk := packed.read(1024 * 1024):
        size += len(chunk)
        if size > most:
            raise _Refused(f"is larger than {MAX_UNPACKED_BYTES // 1024**2} MB when unpacked")
        laid_out.write(chunk)
    return size

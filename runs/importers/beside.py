"""
Published data sets of several files: the one that was named, and those that belong to it.

A set may be named by its folder or by one of its files. Files that belong to it are looked for
in the file's own folder and the one above, only where a path was given: a stream, as an upload
is, has nothing beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from runs.importers.faults import FaultLog
from runs.importers.rows import Row, json_rows
from runs.importers.sources import Source, open_source


@dataclass(frozen=True, slots=True)
class Files:
    """``main`` is None where a folder was named; ``folders`` are where others are looked for."""

    name: str
    main: Source | None
    folders: tuple[Path, ...]

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

    def find(self, pattern: str) -> list[Path]:
        """Return the files that match in the first folder that holds any, by name."""
        for folder in self.folders:
            found = sorted(path for path in folder.glob(pattern) if path.is_file())
            if found:
                return found
        return []

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
            yield [stack.enter_context(open_source(path)) for path in found]

    def rows(self, pattern: str, log: FaultLog) -> Iterator[Row]:
        """Yield the JSON rows of every file that matches; faults name the file."""
        for path in self.find(pattern):
            with open_source(path) as source, speaking_of(log, source):
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

    Raises ImportFaults where a path cannot be opened.
    """
    if not isinstance(target, str | Path) or str(target) == "-":
        source = open_source(target, name)
        return Files(source.name, source, ())
    path = Path(target)
    if path.is_dir():
        return Files(name or str(target), None, (path,))
    source = open_source(path, name)
    here = path.absolute().parent
    return Files(source.name, source, (here, here.parent))

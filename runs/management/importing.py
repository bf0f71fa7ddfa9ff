"""What `questions import` and `debates import` have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from django.core.management.base import CommandParser

from debateweb.access import command_workspace
from debateweb.errors import InputError
from debateweb.management.actions import Actions
from debateweb.management.base import Command
from runs.importers.faults import ImportFaults
from runs.importers.registry import guess_format
from runs.importers.sources import open_source
from runs.services.imports import Imported

T = TypeVar("T")


class ImportCommand(Command):
    """Import a file under a name, whole or not at all. Subclasses say what it holds."""

    what = ""
    sample = ""
    formats: Iterable[str] = ()

    def add_arguments(self, parser: CommandParser) -> None:
        actions = Actions(parser, self.what)
        one = actions.add("import", f"import {self.what} from a file", self.sample)
        one.add_argument("file", metavar="F", help="the file, or - for standard input")
        one.add_argument("--name", metavar="N", required=True, help="what the set is called")
        known = ", ".join(self.formats)
        one.add_argument("--format", metavar="F", help=f"{known} (default: guessed)")

    def read(self, path: str, format_name: str) -> Iterator[Any]:
        raise NotImplementedError

    def store(self, **arguments: Any) -> Imported:
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        path, name = options["file"], options["name"]
        workspace = command_workspace(self.workspace_name)
        try:
            format_name = options["format"] or _guessed(path)
            done = self.store(
                workspace=workspace,
                name=name,
                format_name=format_name,
                records=counted(self.read(path, format_name), self._tell),
            )
        except ImportFaults as exc:
            raise InputError(str(exc)) from exc
        verb = "imported" if done.added else "was there already, nothing added:"
        self.emit(
            {
                "name": done.name,
                "size": done.size,
                "content_hash": done.content_hash,
                "added": done.size if done.added else 0,
                "format": format_name,
            },
            f"{done.name}: {verb} {done.size:,} {self.what} ({format_name})",
        )

    def _tell(self, count: int) -> None:
        if count % 1000 == 0:
            self.progress(count, count + 1, f"{self.what} read")


def counted(records: Iterator[T], tell: Callable[[int], None]) -> Iterator[T]:
    """Yield ``records`` and tell how many there were so far."""
    for count, record in enumerate(records, start=1):
        tell(count)
        yield record


def _guessed(path: str) -> str:
    if path == "-":
        return "jsonl"  # A pipe cannot be looked into and then read from its beginning.
    with open_source(path) as source:
        return guess_format(Path(path).name, source.head())

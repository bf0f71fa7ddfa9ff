"""`judgments import`: what judges said elsewhere becomes a named set."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from audits.judging.importing import import_judgments
from debateweb.access import command_workspace
from debateweb.errors import InputError
from debateweb.management.actions import Actions
from debateweb.management.base import Command as DebatewebCommand
from runs.importers.beside import open_files
from runs.importers.faults import ImportFaults
from runs.importers.judged_registry import (
    JUDGMENT_READERS,
    PEOPLE_IN_JUDGMENT_FORMATS,
    guess_judgments,
    read_judgments,
    read_labels,
)


class Command(DebatewebCommand):
    help = "Import judgments: verdicts of judges on pairs or lists, with the order shown."
    example = "python manage.py judgments import llmbar/ --name llmbar --format llmbar"

    def add_arguments(self, parser: CommandParser) -> None:
        one = Actions(parser, "judgments").add(
            "import", "import judgments", "llmbar/ --name llmbar --format llmbar"
        )
        one.add_argument("file", metavar="F", help="a file, a folder, or - for standard input")
        one.add_argument("--name", metavar="N", required=True, help="what the set is called")
        known = ", ".join(JUDGMENT_READERS)
        one.add_argument("--format", metavar="F", help=f"{known} (default: guessed)")

    def handle(self, *args: Any, **options: Any) -> None:
        path = options["file"]
        workspace = command_workspace(self.workspace_name)
        try:
            format_name = options["format"] or _guessed(path)
            has_people = format_name in PEOPLE_IN_JUDGMENT_FORMATS
            done = import_judgments(
                workspace=workspace,
                name=options["name"],
                format_name=format_name,
                records=read_judgments(path, format_name),
                labels=read_labels(path, format_name) if has_people else (),
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
            f"{done.name}: {verb} {done.size:,} judgments ({format_name})",
        )


def _guessed(path: str) -> str:
    if path == "-":
        return "jsonl"  # A pipe cannot be looked into and then read from its beginning.
    with open_files(path, None) as files:
        return guess_judgments(files)

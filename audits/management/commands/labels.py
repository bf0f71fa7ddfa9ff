"""`labels import` and `labels export`: what people said, in and out, by format."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from audits.judging.importing import import_labels
from audits.rows.labels import label_records_of, task_records_of
from debateweb.access import command_workspace
from debateweb.errors import InputError
from debateweb.management.actions import Actions
from debateweb.management.base import Command as DebatewebCommand
from debateweb.management.files import write_whole
from runs.importers.beside import open_files
from runs.importers.faults import ImportFaults
from runs.importers.judged_registry import (
    LABEL_READERS,
    LABEL_WRITERS,
    guess_labels,
    read_labels,
    write_labels,
)

STANDARD_OUTPUT = "-"


class Command(DebatewebCommand):
    help = "Import people's labels into what they are of, or export them."
    example = "python manage.py labels import labels.jsonl --into llmbar"

    def add_arguments(self, parser: CommandParser) -> None:
        actions = Actions(parser, "labels")
        one = actions.add("import", "import labels", "labels.jsonl --into llmbar")
        one.add_argument("file", metavar="F", help="a file, a folder, or - for standard input")
        one.add_argument(
            "--into", metavar="N", required=True, help="judgments, debates or a queue, by name"
        )
        one.add_argument(
            "--format", metavar="F", help=f"{', '.join(LABEL_READERS)} (default: guessed)"
        )
        out = actions.add("export", "export labels", "llmbar -o labels.json --format label_studio")
        out.add_argument("name", metavar="N", help="judgments, debates or a queue, by name")
        out.add_argument(
            "-o", dest="output", metavar="F", default=STANDARD_OUTPUT, help="default: -"
        )
        out.add_argument("--format", choices=tuple(LABEL_WRITERS), default="jsonl")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "import":
            self._import(options["file"], options["into"], options["format"])
        else:
            self._export(options["name"], options["output"], options["format"])

    def _import(self, path: str, into: str, format_name: str | None) -> None:
        workspace = command_workspace(self.workspace_name)
        try:
            chosen = format_name or _guessed(path)
            done = import_labels(
                workspace=workspace,
                into=into,
                format_name=chosen,
                records=read_labels(path, chosen),
            )
        except ImportFaults as exc:
            raise InputError(str(exc)) from exc
        verb = "added" if done.added else "were there already, nothing added:"
        self.emit(
            {"name": into, "size": done.size, "added": done.added, "format": chosen},
            f"{into}: {verb} {done.size:,} labels ({chosen})",
        )

    def _export(self, name: str, output: str, format_name: str) -> None:
        workspace = command_workspace(self.workspace_name)
        labels = label_records_of(workspace, name)
        items = task_records_of(workspace, name)
        text = io.StringIO(newline="")
        count = write_labels(labels, text, format_name, items=items)
        if output == STANDARD_OUTPUT:
            self.stdout.write(text.getvalue(), ending="")
        else:
            write_whole(Path(output), text.getvalue().encode())
            self.emit({"name": name, "labels": count}, f"{name}: {count:,} labels to {output}")


def _guessed(path: str) -> str:
    if path == "-":
        return "jsonl"  # A pipe cannot be looked into and then read from its beginning.
    with open_files(path, None) as files:
        return guess_labels(files)

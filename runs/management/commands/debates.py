"""`debates import`: debates that ran elsewhere become a named set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runs.importers.records import DebateRecord
from runs.importers.registry import DEBATE_READERS, read_debates
from runs.management.importing import ImportCommand
from runs.services.imports import Imported, import_debates


class Command(ImportCommand):
    help = "Import debates that ran elsewhere."
    example = "python manage.py debates import log.json --name du-gsm --format du"
    what = "debates"
    sample = "log.json --name du-gsm --format du"
    formats = DEBATE_READERS

    def read(self, path: str, format_name: str) -> Iterator[DebateRecord]:
        return read_debates(path, format_name)

    def store(self, **arguments: Any) -> Imported:
        return import_debates(**arguments)

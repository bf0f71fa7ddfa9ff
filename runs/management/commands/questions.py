"""`questions import`: a file of questions becomes a named set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runs.importers.records import QuestionRecord
from runs.importers.registry import QUESTION_READERS, read_questions
from runs.management.importing import ImportCommand
from runs.services.imports import Imported, import_questions


class Command(ImportCommand):
    help = "Import questions."
    example = "python manage.py questions import test.jsonl --name gsm8k --format gsm8k"
    what = "questions"
    sample = "test.jsonl --name gsm8k --format gsm8k"
    formats = QUESTION_READERS

    def read(self, path: str, format_name: str) -> Iterator[QuestionRecord]:
        return read_questions(path, format_name)

    def store(self, **arguments: Any) -> Imported:
        return import_questions(**arguments)

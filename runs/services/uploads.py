"""
Files that were uploaded and wait to be looked at: kept by the hash of their content.

They lie in the workspace's own folder, so that a hash opens nothing elsewhere, and go after a
week: an import stores rows, never the file.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from debateweb.errors import InputError
from debateweb.models import Workspace
from runs.importers.faults import FaultLog
from runs.importers.mapping import FieldMapping, guess_columns
from runs.importers.records import DebateRecord, QuestionRecord
from runs.importers.registry import (
    MAPPED_READERS,
    Target,
    guess_format,
    read_debates,
    read_questions,
)
from runs.importers.rows import csv_rows, json_rows
from runs.importers.sources import open_source

MAX_BYTES = 64 * 1024 * 1024
KEPT_SECONDS = 7 * 86_400
#: Rows that a preview shows, and rows whose keys are looked at for columns.
PREVIEW_ROWS = 8
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Preview:
    """
    What an upload would become. ``records`` are the first, ``total`` counts all.

    ``raw`` are the first rows as the file has them (for formats with columns), for the mapping.
    """

    format_name: str
    guessed_format: str
    columns: tuple[str, ...]
    guessed_columns: dict[str, str]
    raw: tuple[dict[str, Any], ...]


def store_upload(workspace: Workspace, chunks: Iterable[bytes]) -> str:
    """
    Keep a file and return its hex SHA-256. Raises InputError for an empty or too large one.

    Written beside its place and moved there, so that a hash never names half a file.
    """
    folder = _folder(workspace)
    folder.mkdir(parents=True, exist_ok=True)
    _drop_old(folder)
    whole, size = hashlib.sha256(), 0
    handle, name = tempfile.mkstemp(dir=folder, prefix="part-")
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            for chunk in chunks:
                size += len(chunk)
                if size > MAX_BYTES:
                    raise InputError(f"the file is larger than {MAX_BYTES // 1024**2} MB")
                whole.update(chunk)
                out.write(chunk)
        if size == 0:
            raise InputError("the file is empty; choose another or paste its rows")
        part.replace(folder / whole.hexdigest())
    finally:
        part.unlink(missing_ok=True)
    return whole.hexdigest()


def upload_path(workspace: Workspace, content_hash: str) -> Path | None:
    """Return where an upload lies, or None where there is none (any more)."""
    if not _HASH.fullmatch(content_hash):
        return None
    path = _folder(workspace) / content_hash
    return path if path.is_file() else None


def look_at(target: Target, file_name: str, format_name: str = "") -> Preview:
    """Return the guessed format, the columns and the first rows of an upload of questions."""
    with open_source(target, file_name) as source:
        guessed = guess_format(source.name, source.head())
        chosen = format_name or guessed
        if chosen not in MAPPED_READERS:
            return Preview(chosen, guessed, (), {}, ())
        log = FaultLog(source.name)
        found = csv_rows(source, log) if chosen == "csv" else json_rows(source, log)
        rows = [row.data for row in _first(found)]
    objects = tuple(row for row in rows if isinstance(row, dict))
    columns = tuple(dict.fromkeys(key for row in objects for key in row))
    return Preview(chosen, guessed, columns, guess_columns(columns), objects)


def questions_of(
    path: Path, file_name: str, format_name: str, mapping: FieldMapping | None
) -> Iterator[QuestionRecord]:
    """Yield an upload's questions. Raises ImportFaults before the first where one is wrong."""
    return read_questions(path, format_name, name=file_name, mapping=mapping)


def debates_of(path: Path, file_name: str, format_name: str) -> Iterator[DebateRecord]:
    """Yield an upload's debates. Raises ImportFaults before the first where one is wrong."""
    return read_debates(path, format_name, name=file_name)


def _first(rows: Iterable[Any]) -> Iterator[Any]:
    for _, row in zip(range(PREVIEW_ROWS), rows, strict=False):
        yield row


def _folder(workspace: Workspace) -> Path:
    return Path(settings.DATA_DIR.files) / "uploads" / str(workspace.pk)


def _drop_old(folder: Path) -> None:
    oldest = time.time() - KEPT_SECONDS
    for path in folder.iterdir():
        if path.stat().st_mtime < oldest:
            path.unlink(missing_ok=True)

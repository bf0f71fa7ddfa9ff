"""Small files of judgments and labels in memory, and what the importers say about them."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from runs.importers.faults import ImportFaults
from runs.importers.judged_records import ItemRecord, JudgmentRecord, LabelRecord
from runs.importers.judged_registry import (
    read_judgments,
    read_labels,
    read_tasks,
    write_labels,
)
from tests.runs.importers.helpers import as_bytes


def judgments(content: str | bytes, format_name: str | None = "jsonl") -> list[JudgmentRecord]:
    return list(read_judgments(io.BytesIO(as_bytes(content)), format_name, name="j.jsonl"))


def labels(content: str | bytes, format_name: str | None = "jsonl") -> list[LabelRecord]:
    return list(read_labels(io.BytesIO(as_bytes(content)), format_name, name="l.jsonl"))


def tasks(content: str | bytes, format_name: str) -> list[ItemRecord]:
    return list(read_tasks(io.BytesIO(as_bytes(content)), format_name, name="t.json"))


def judgment_faults(content: str | bytes, format_name: str = "jsonl") -> list[str]:
    with pytest.raises(ImportFaults) as caught:
        judgments(content, format_name)
    return str(caught.value).split("\n")


def label_faults(content: str | bytes, format_name: str = "jsonl") -> list[str]:
    with pytest.raises(ImportFaults) as caught:
        labels(content, format_name)
    return str(caught.value).split("\n")


def set_faults(target: Path, format_name: str) -> list[str]:
    """Return the faults of a set on disk, its folder's name left out."""
    with pytest.raises(ImportFaults) as caught:
        list(read_judgments(target, format_name))
    folder = target if target.is_dir() else target.parent
    return str(caught.value).replace(f"{folder}/", "").replace(str(folder), "SET").split("\n")


def written(
    records: Iterable[LabelRecord], format_name: str, items: Iterable[ItemRecord] = ()
) -> str:
    stream = io.StringIO()
    write_labels(records, stream, format_name, items=items)
    return stream.getvalue()


CANDIDATES = [
    {"candidate_id": "a", "text": "Four.", "model": "m"},
    {"candidate_id": "b", "text": "Five.", "model": "n"},
]


def a_judgment(**changes: Any) -> dict[str, Any]:
    """Return a good judgment; a change to ``...`` leaves the key out."""
    return _changed(
        {
            "item_id": "i1",
            "question": "2 + 2?",
            "candidates": CANDIDATES,
            "judge": "j",
            "order": ["a", "b"],
            "repeat": 0,
            "verdict": "a",
            "status": "SUCCEEDED",
        },
        changes,
    )


def a_label(**changes: Any) -> dict[str, Any]:
    return _changed(
        {"item_id": "i1", "annotator": "ann", "kind": "correctness", "label": "correct"}, changes
    )


def _changed(item: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**item, **changes}.items() if value is not ...}


def put(folder: Path, name: str, content: Any) -> Path:
    """Write JSON, or text as it is, to a file of a set."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path

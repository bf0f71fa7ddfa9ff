"""
Files whose columns have other names than ours: which column holds what, guessed and applied.

A mapping only renames and fills in what a file leaves unsaid; what it makes of a row is judged
by the same rules as a row of our own format.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runs.engine.types import AnswerType
from runs.importers.references import reference_problem

#: Fields that a column can hold, in the order in which they are guessed.
MAPPED_FIELDS = (
    "question",
    "reference",
    "id",
    "answer_type",
    "choices",
    "stratum",
    "family",
    "split",
)
#: Names under which others keep the same thing, likeliest first.
_SYNONYMS: dict[str, tuple[str, ...]] = {
    "question": ("question", "prompt", "problem", "input", "query", "text", "body"),
    "reference": ("reference", "answer", "target", "gold", "label", "solution", "correct_answer"),
    "id": ("id", "qid", "question_id", "uid", "idx", "index", "key"),
    "answer_type": ("answer_type", "answertype"),
    "choices": ("choices", "options", "candidates"),
    "stratum": ("stratum", "category", "subject", "topic", "difficulty", "level", "type"),
    "family": ("family", "group", "source", "dataset"),
    "split": ("split", "partition", "subset"),
}


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """
    ``columns``: our field → the file's column. ``answer_type`` holds for rows that say none.

    Without a column for ``id`` the rows are numbered from 1.
    """

    columns: Mapping[str, str] = field(default_factory=dict, hash=False)
    answer_type: AnswerType | None = None

    @property
    def changes_nothing(self) -> bool:
        return self.answer_type is None and all(ours == own for ours, own in self.columns.items())


def guess_columns(names: Iterable[str]) -> dict[str, str]:
    """Return field → column for every field that some column's name stands for."""
    left = {name.strip().lower().replace(" ", "_"): name for name in reversed(list(names))}
    found: dict[str, str] = {}
    for field_name in MAPPED_FIELDS:
        for synonym in _SYNONYMS[field_name]:
            if synonym in left:
                found[field_name] = left.pop(synonym)
                break
    return found


def guess_answer_type(
    columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]
) -> AnswerType | None:
    """Return what the answers of some rows look like; None where a column says it."""
    if "answer_type" in columns:
        return None
    if "choices" in columns:
        return "choice"
    column = columns.get("reference")
    given = [row.get(column) for row in rows] if column is not None else []
    if not given:
        return "open"
    kinds: tuple[AnswerType, ...] = ("yesno", "number")
    for kind in kinds:
        if all(_is_met(_as_text("reference", value), kind) for value in given):
            return kind
    return "text"


def _is_met(value: Any, kind: AnswerType) -> bool:
    return isinstance(value, str) and reference_problem(value, kind) is None


def mapped(data: Any, number: int, mapping: FieldMapping) -> Any:
    """Return a row with our names; ``number`` counts rows from 1. What is no object stays."""
    if not isinstance(data, dict):
        return data
    taken = set(mapping.columns.values())
    row = {key: value for key, value in data.items() if key not in taken}
    for ours in MAPPED_FIELDS:
        column = mapping.columns.get(ours)
        if column is not None and column in data:
            row[ours] = _as_text(ours, data[column])
        elif column is None and ours in row:
            row[f"own_{ours}"] = row.pop(ours)  # Not what the person says it is: metadata.
    if "id" not in mapping.columns:
        row["id"] = str(number)
    if mapping.answer_type is not None and not row.get("answer_type"):
        row["answer_type"] = mapping.answer_type
    if "reference" not in mapping.columns:
        row["reference"] = None
    return row


def _as_text(ours: str, value: Any) -> Any:
    """Write numbers and booleans of JSON as text, as a cell of CSV would hold them."""
    if isinstance(value, bool):
        return ("yes" if value else "no") if ours == "reference" else str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list) and ours in ("reference", "choices"):
        return [_as_text(ours, item) for item in value]
    return value

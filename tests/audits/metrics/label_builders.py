"""Short spellings of labels."""

from collections.abc import Mapping, Sequence
from typing import Any

from audits.metrics.labels import LabelRow


def label(item: str, annotator: str, value: str | float, **facts: Any) -> LabelRow:
    question = facts.pop("question", item)
    return LabelRow(item, annotator, facts.pop("kind", "correctness"), value, question, **facts)


def from_columns(columns: Mapping[str, str], **facts: Any) -> list[LabelRow]:
    """One character an item for each annotator; ``*`` is no label."""
    return [
        label(f"i{i:03}", annotator, value, **facts)
        for annotator, values in columns.items()
        for i, value in enumerate(values)
        if value != "*"
    ]


def from_table(table: Sequence[Sequence[int]]) -> list[LabelRow]:
    """Two raters from their table of counts; the categories are 0, 1, …"""
    cells = [
        (str(a), str(b))
        for a, row in enumerate(table)
        for b, count in enumerate(row)
        for _ in range(count)
    ]
    return from_columns({"r": "".join(a for a, _ in cells), "s": "".join(b for _, b in cells)})

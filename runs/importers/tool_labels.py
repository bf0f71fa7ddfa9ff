"""
What files of annotation tools have in common.

A label goes out twice: once in the tool's own words, so that it can be read and changed there,
and once whole, under ``KEY`` where the tool keeps what it does not know. Coming back, the label
in the tool's own words wins where it differs, for somebody changed it; all else is taken from
the whole.

A label that a tool made itself keeps the tool's other keys in its metadata under the tool's name,
from which it goes out again as it came.

Items go out blind: without gold, group and models.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from runs.importers import json_text
from runs.importers.fields import Fields
from runs.importers.judged_records import (
    LABEL_KINDS,
    CandidateRecord,
    ItemRecord,
    LabelRecord,
    LabelValue,
)
from runs.importers.labels import label_from

KEY = "debateweb"
#: Ends the name of the control that offers what a comparison of two sides cannot say.
CHOICE_SUFFIX = "_choice"


def by_item(records: Iterable[LabelRecord]) -> dict[str, list[LabelRecord]]:
    """Return the labels of each item in their order."""
    found: dict[str, list[LabelRecord]] = {}
    for record in records:
        found.setdefault(record.item_id, []).append(record)
    return found


def with_labels(
    records: Iterable[LabelRecord], items: Iterable[ItemRecord]
) -> Iterator[tuple[ItemRecord, list[LabelRecord]]]:
    """Yield every item with its labels, then what was labelled but is none of the items."""
    labels = by_item(records)
    for item in items:
        yield item, labels.pop(item.item_id, [])
    for item_id, rest in labels.items():
        yield ItemRecord(item_id, item_id, ""), rest


def restored(whole: Mapping[str, Any], said: Any, fields: Fields) -> LabelRecord | None:
    """
    Return a label of ours that was in a tool, with ``said`` as its label where that differs.

    ``said`` None means that the tool's own words say nothing of the label. Faults are in the log;
    None after one.
    """
    row = dict(whole)
    if said is not None and not _same(row.get("label"), said):
        row["label"] = said
    inner = fields.inner(row, KEY)
    record = label_from(inner)
    return record if inner.clean else None


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def foreign(fields: Fields, path: str, **parts: Any) -> LabelRecord | None:
    """Return a label that a tool made, judged as a row of our own; None after a fault."""
    given = {name: value for name, value in parts.items() if value is not None}
    inner = fields.inner(given, path)
    record = label_from(inner)
    return record if inner.clean else None


def kind_of(name: str, value: Any, candidate_ids: Iterable[str] = ()) -> str:
    """Return the kind of a foreign label: what its control is called, else what it says."""
    if name.removesuffix(CHOICE_SUFFIX) in LABEL_KINDS:
        return name.removesuffix(CHOICE_SUFFIX)
    if isinstance(value, int | float):
        return "scale"
    return "pairwise" if value in tuple(candidate_ids) else "correctness"


def spoken(label: LabelValue) -> str | float:
    """Return a label as a tool without shares can hold it: shares as JSON text."""
    return json.dumps(label, ensure_ascii=False) if isinstance(label, dict) else label


def heard(kind: str, value: Any) -> Any:
    """Return a label as ``spoken`` put it: shares again for a belief."""
    if kind == "belief" and isinstance(value, str):
        try:
            return json_text.parse(value)
        except json_text.JsonFault:
            return value  # Judged, and refused, as a belief.
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return value


def shown_item(item: ItemRecord) -> dict[str, Any]:
    """Return what an annotator may see of an item, in fields that every tool can show."""
    texts = {f"candidate_{n}": one.text for n, one in enumerate(item.candidates, 1)}
    return {"question": item.question, **texts}


def blind_item(item: ItemRecord) -> dict[str, Any]:
    """Return what names an item and its candidates."""
    return {
        "item_id": item.item_id,
        "question_id": item.question_id,
        "candidate_ids": [one.candidate_id for one in item.candidates],
    }


def candidates_of(shown: Mapping[str, Any], named: Any) -> tuple[CandidateRecord, ...]:
    """Return the candidates that a tool shows, under the ids that they had if they were ours."""
    texts = [
        (name, text)
        for name, text in shown.items()
        if name.startswith(_CANDIDATE_STARTS) and isinstance(text, str)
    ]
    ids = named.get("candidate_ids") if isinstance(named, dict) else None
    own = ids if _are_names(ids, len(texts)) else None
    names: list[str] = own or [name for name, _ in texts]
    return tuple(CandidateRecord(name, text) for name, (_, text) in zip(names, texts, strict=True))


def item_of(fields: Fields, item_id: str, shown: Mapping[str, Any], named: Any) -> ItemRecord:
    """Return an item out of what a tool shows of it and, where it was ours, what names it."""
    question = next((shown[key] for key in _QUESTION_KEYS if _is_text(shown.get(key))), None)
    if question is None and named is None:
        fields.fault("", f"shows no question under any of {', '.join(_QUESTION_KEYS)}")
    cluster = named.get("question_id") if isinstance(named, dict) else None
    return ItemRecord(
        item_id=item_id,
        question_id=str(cluster) if _is_text(cluster) else item_id,
        question=question or "",
        candidates=candidates_of(shown, named),
    )


_QUESTION_KEYS = ("question", "prompt", "instruction", "input", "text")
_CANDIDATE_STARTS = ("candidate_", "response", "answer", "output", "completion")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_names(value: Any, count: int) -> bool:
    return (
        isinstance(value, list)
        and all(_is_text(name) for name in value)
        and len(set(value)) == len(value) == count
    )


def write_array(objects: Iterable[dict[str, Any]], stream: IO[str]) -> int:
    """Write objects as one JSON array, one a line; return how many."""
    count = 0
    stream.write("[")
    for item in objects:
        stream.write(("," if count else "") + "\n" + json.dumps(item, ensure_ascii=False))
        count += 1
    stream.write("\n]\n")
    return count

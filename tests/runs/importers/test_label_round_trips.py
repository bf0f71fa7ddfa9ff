"""Labels out into every format, in, out and in again: nothing is lost, nothing is made up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.importers.judged_records import (
    LABEL_KINDS,
    LABEL_UNITS,
    REVEAL_STATES,
    CandidateRecord,
    ItemRecord,
    LabelRecord,
    label_hash,
)
from runs.importers.judged_registry import LABEL_WRITERS
from tests.runs.importers.judged import labels, written
from tests.runs.importers.test_round_trip import FULL_TEXTS, METADATA, NAMES, TEXTS

IDS = st.sampled_from(["a", "b", "left", "=c"])
MOMENTS = st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat())
SECONDS = st.none() | st.floats(0, 1e6)


@st.composite
def label_records(draw: st.DrawFn, item_ids: st.SearchStrategy[str] = NAMES) -> LabelRecord:
    kind = draw(st.sampled_from(LABEL_KINDS))
    order = tuple(draw(st.lists(IDS, max_size=3, unique=True)))
    label: Any = draw(FULL_TEXTS)
    if kind == "pairwise":
        label = draw(st.sampled_from([*order, "tie", "abstain"]))
    elif kind == "belief":
        share = draw(st.floats(0, 1))
        label = {"yes": share, "no": 1 - share}
    elif kind == "scale" or draw(st.booleans()):
        label = draw(st.floats(-1e9, 1e9))
    return LabelRecord(
        item_id=draw(item_ids),
        annotator=draw(NAMES | st.sampled_from(["=cmd", "@x", "42", "Zoë 🦉"])),
        kind=kind,
        label=label,
        unit=draw(st.none() | st.sampled_from(LABEL_UNITS)),
        weight=draw(st.none() | st.floats(1e-6, 1e6)),
        shown_order=order,
        shown_reference=draw(st.none() | st.booleans()),
        guideline_version=draw(st.none() | st.integers(0, 99) | NAMES),
        active_seconds=draw(SECONDS),
        reveal_state=draw(st.none() | st.sampled_from(REVEAL_STATES)),
        confidence=draw(SECONDS),
        comment=draw(st.none() | TEXTS),
        at=draw(st.none() | MOMENTS),
        metadata=draw(METADATA),
    )


def unlike(record: LabelRecord) -> bytes:
    return record.key


FEW = st.lists(label_records(), min_size=1, max_size=5, unique_by=unlike)


def hashes(records: list[LabelRecord]) -> list[str]:
    return sorted(label_hash(record) for record in records)


@pytest.mark.parametrize("format_name", LABEL_WRITERS)
@given(records=FEW)
def test_labels_come_back_as_they_were_written(
    format_name: str, records: list[LabelRecord]
) -> None:
    text = written(records, format_name)
    found = labels(text, format_name)
    assert hashes(found) == hashes(records)
    assert written(found, format_name) == written(labels(text, format_name), format_name)


@pytest.mark.parametrize("format_name", LABEL_WRITERS)
def test_no_label_of_a_file_without_labels_is_made_up(format_name: str) -> None:
    item = ItemRecord("i", "i", "Why?", (CandidateRecord("a", "So."),))
    assert '"annotator"' not in written([], format_name, [item])


def items(count: int) -> list[ItemRecord]:
    return [
        ItemRecord(
            f"i{n}",
            f"q{n % 50}",
            f"Which is better, number {n}?",
            (CandidateRecord("a", f"First {n}."), CandidateRecord("b", f"Second {n}.")),
        )
        for n in range(count)
    ]


def labels_of(item_ids: list[str], people: tuple[str, ...]) -> Iterator[LabelRecord]:
    for n, item_id in enumerate(item_ids):
        for place, person in enumerate(people):
            yield LabelRecord(
                item_id,
                person,
                "pairwise",
                ("a", "b", "tie")[(n + place) % 3],
                unit="item",
                weight=1 + n / 7,
                shown_order=("a", "b") if (n + place) % 2 else ("b", "a"),
                shown_reference=False,
                guideline_version=2,
                active_seconds=n + place / 10,
                reveal_state="sealed" if n % 2 else "after_reveal",
                confidence=0.5,
                comment=f"=HYPERLINK({n})\nsecond line",
                at=f"2026-03-01T10:{n % 60:02d}:00+00:00",
                metadata={"version": 1, "history": [{"label": "b", "reason": "slip"}]},
            )


@pytest.mark.parametrize("format_name", LABEL_WRITERS)
def test_200_items_of_3_people_go_out_in_and_out_without_loss(format_name: str) -> None:
    asked = items(200)
    given_labels = list(labels_of([item.item_id for item in asked], ("ann", "bob", "eve")))
    first = written(given_labels, format_name, asked)
    found = labels(first, format_name)
    assert len(found) == 600
    assert hashes(found) == hashes(given_labels)
    assert written(found, format_name, asked) == first


def a_task(n: int, draw: st.DrawFn) -> dict[str, Any]:
    """Return a task as somebody's own Label Studio project would export it."""
    controls = draw(st.lists(st.sampled_from(["c", "r", "n", "p"]), min_size=1, unique=True))
    values = {
        "c": ("choices", {"choices": draw(st.lists(FULL_TEXTS, min_size=1, max_size=2))}),
        "r": ("rating", {"rating": draw(st.integers(1, 5))}),
        "n": ("number", {"number": draw(st.floats(-9, 9))}),
        "p": ("pairwise", {"selected": draw(st.sampled_from(["left", "right"]))}),
    }
    result = [
        {"id": f"r{own}", "from_name": own, "to_name": "t", "type": values[own][0],
         "value": values[own][1]}
        for own in controls
    ]  # fmt: skip
    if draw(st.booleans()):
        value = {"text": draw(st.lists(FULL_TEXTS, min_size=1, max_size=2))}
        result.append({"from_name": "why", "to_name": "t", "type": "textarea", "value": value})
    annotations = [
        {"id": 10 * n + m, "completed_by": m, "result": result, "was_cancelled": False,
         "lead_time": draw(st.floats(0, 99)), "created_at": "2026-03-01T10:00:00.5Z"}
        for m in range(draw(st.integers(1, 3)))
    ]  # fmt: skip
    return {
        "id": n,
        "data": {"text": draw(FULL_TEXTS), **draw(METADATA)},
        "annotations": annotations,
        "meta": draw(METADATA),
        "predictions": [],
    }


@st.composite
def exports(draw: st.DrawFn) -> list[dict[str, Any]]:
    return [a_task(n, draw) for n in range(draw(st.integers(1, 3)))]


@given(exports())
def test_what_others_exported_from_label_studio_goes_back_as_it_came(
    export: list[dict[str, Any]],
) -> None:
    found = labels(json.dumps(export), "label_studio")
    assert len(found) >= sum(len(task["annotations"]) for task in export)
    again = written(found, "label_studio")
    assert json.loads(again) == export
    assert hashes(labels(again, "label_studio")) == hashes(found)

"""Labels of our own format, as JSON Lines and as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from runs.importers.cells import neutral, plain
from runs.importers.judged_records import LabelRecord, label_hash
from tests.runs.importers.helpers import lines
from tests.runs.importers.judged import a_label, label_faults, labels, written

FULL: dict[str, Any] = a_label(
    kind="pairwise",
    label="b",
    unit="item",
    weight=2.5,
    shown_order=["b", "a"],
    shown_reference=False,
    guideline_version="v2",
    active_seconds=8.25,
    reveal_state="sealed",
    confidence=0.75,
    comment="Clearer.",
    at="2026-03-01T09:30:00+01:00",
    tool="own",
)


def test_a_label_is_read_with_everything_it_says() -> None:
    (record,) = labels(lines(FULL))
    assert record == LabelRecord(
        "i1",
        "ann",
        "pairwise",
        "b",
        unit="item",
        weight=2.5,
        shown_order=("b", "a"),
        shown_reference=False,
        guideline_version="v2",
        active_seconds=8.25,
        reveal_state="sealed",
        confidence=0.75,
        comment="Clearer.",
        at="2026-03-01T09:30:00+01:00",
        metadata={"tool": "own"},
    )


def test_a_belief_in_percent_becomes_shares() -> None:
    (record,) = labels(lines(a_label(kind="belief", label={"yes": 70, "no": 30})))
    assert record.label == {"yes": 0.7, "no": 0.3}


def test_rounding_noise_of_a_belief_is_kept_as_it_is() -> None:
    noisy = {"yes": 0.6000000000000001, "no": 0.4}
    (record,) = labels(lines(a_label(kind="belief", label=noisy)))
    assert record.label == noisy


def test_names_that_read_like_formulas_are_data() -> None:
    (record,) = labels(lines(a_label(annotator="=1+1", comment="@all")))
    assert (record.annotator, record.comment) == ("=1+1", "@all")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"item_id": ...}, "item_id: is missing"),
        ({"annotator": ""}, "annotator: is empty"),
        ({"annotator": "a\u202eb"}, 'annotator: holds a control character: "a\\u202eb"'),
        ({"annotator": "x" * 151}, "annotator: is longer than 150 characters"),
        ({"kind": ...}, "kind: is missing"),
        ({"kind": "rank"}, "kind: must be one of correctness, pairwise, scale, claim, check"),
        ({"label": ...}, "label: is missing"),
        ({"label": None}, "label: is null"),
        ({"label": True}, "label: must be text, a number or shares by option, not true"),
        ({"label": " "}, "label: is empty"),
        ({"label": {"a": 1}}, "label: shares by option are the label of a belief only"),
        ({"kind": "belief", "label": "a"}, 'label: must be an object, not "a"'),
        ({"kind": "belief", "label": {"a": 0.5, "b": 0.4}}, "label: adds up to 0.9; it must be 1"),
        ({"kind": "belief", "label": {"a": 1.5, "b": -0.5}}, "label.b: must be not negative"),
        ({"kind": "belief", "label": {"a": 1, "b": None}}, "label: has an option without a share"),
        ({"kind": "belief", "label": {}}, "label: names none"),
        ({"kind": "pairwise", "label": 1}, "label: must name a candidate, tie or abstain, not 1"),
        (
            {"kind": "pairwise", "label": "z", "shown_order": ["a", "b"]},
            'label: "z" is none of shown_order, tie or abstain',
        ),
        ({"unit": "run"}, "unit: must be one of item, transition, question"),
        ({"weight": 0}, "weight: must be above 0: it is 1 / inclusion probability"),
        ({"weight": -1}, "weight: must be not negative, not -1"),
        ({"shown_order": ["a", "a"]}, 'shown_order[1]: "a" stands twice'),
        ({"shown_reference": "no"}, 'shown_reference: must be true or false, not "no"'),
        ({"guideline_version": 1.5}, "guideline_version: must be a whole number, not 1.5"),
        ({"active_seconds": -3}, "active_seconds: must be not negative, not -3"),
        ({"reveal_state": "open"}, "reveal_state: must be one of sealed, after_reveal"),
        ({"at": "yesterday"}, 'at: is no time of ISO 8601: "yesterday"'),
    ],
)
def test_a_faulty_label_is_refused_with_its_line(changes: dict[str, Any], fault: str) -> None:
    text = lines(a_label(item_id="i0"), a_label(**changes))
    assert any(found.startswith(f"l.jsonl:2: {fault}") for found in label_faults(text))


def test_two_labels_of_one_person_for_one_thing_are_refused() -> None:
    faults = label_faults(lines(a_label(), a_label(label="incorrect", comment="Changed.")))
    message = 'correctness of "i1" by "ann" stands on line 1 already'
    assert faults == [f"l.jsonl:2: item_id: {message}"]


@pytest.mark.parametrize(
    "changes",
    [
        {"annotator": "bob"},
        {"kind": "check"},
        {"shown_order": ["b", "a"]},
        {"at": "2026-03-01T10:00:00Z"},
        {"metadata": {"turn": 2}},
    ],
)
def test_another_serving_is_another_label(changes: dict[str, Any]) -> None:
    assert len(labels(lines(a_label(), a_label(**changes)))) == 2


def test_labels_come_back_from_csv() -> None:
    (record,) = labels(lines({**FULL, "comment": 'Two\nlines, "quoted"\r\nand a third'}))
    (found,) = labels(written([record], "csv"), "csv")
    assert found == record
    assert label_hash(found) == label_hash(record)


@pytest.mark.parametrize(
    "label", ["4", "-1", "1e3", '"so"', "{not json", "=SUM(A1)", "'=1", "'", "+1", "NaN", "true"]
)
def test_a_label_that_is_text_stays_text_in_csv(label: str) -> None:
    (record,) = labels(lines(a_label(label=label, comment=label, guideline_version=label)))
    assert labels(written([record], "csv"), "csv") == [record]


def test_a_number_stays_a_number_in_csv() -> None:
    (record,) = labels(lines(a_label(kind="scale", label=4, guideline_version=3)))
    (found,) = labels(written([record], "csv"), "csv")
    assert (found.label, found.guideline_version) == (4.0, 3)
    assert isinstance(found.label, float)


@pytest.mark.parametrize("comment", ['"So" it goes', "{draft}", '{"a": 1}'])
def test_a_comment_in_a_csv_of_others_is_text_whatever_it_begins_with(comment: str) -> None:
    stream = io.StringIO()
    csv.writer(stream).writerows(
        [["item_id", "annotator", "kind", "label", "comment"], ["i", "ann", "check", "x", comment]]
    )
    (record,) = labels(stream.getvalue(), "csv")
    assert record.comment == comment


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_no_cell_of_a_csv_runs_as_a_formula(start: str) -> None:
    evil = start + "cmd|' /C calc'!A0"
    name = evil if evil.isprintable() else "ann"
    (record,) = labels(lines(a_label(comment=evil, annotator=name)))
    (row,) = csv.DictReader(io.StringIO(written([record], "csv"), newline=""))
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for cell in row.values())


@pytest.mark.parametrize("text", ["", "a", "'", "'a", "''", "=1", "'=1", "''=1", "-", "＝1"])
def test_a_neutral_cell_gives_its_text_back(text: str) -> None:
    assert plain(neutral(text)) == text


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        ('i1,ann,belief,"{""a"": 2}"', "label: adds up to 2"),
        ('i1,ann,belief,"{""a"": "', "label: not valid JSON"),
        ("i1,ann,correctness", "csv: has 3 cells where the header names 4"),
        ("i1,,correctness,x", "annotator: is missing"),
    ],
)
def test_a_faulty_row_of_csv_is_refused_with_its_line(cells: str, fault: str) -> None:
    text = f"item_id,annotator,kind,label\ni0,ann,check,x\n{cells}\n"
    assert label_faults(text, "csv")[0].startswith(f"l.jsonl:3: {fault}")

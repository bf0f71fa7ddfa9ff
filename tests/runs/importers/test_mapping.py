"""Columns of others: guessed by name, renamed, and judged by our own rules afterwards."""

from __future__ import annotations

import io
import json

import pytest

from runs.importers.faults import ImportFaults
from runs.importers.mapping import FieldMapping, guess_answer_type, guess_columns, mapped
from runs.importers.registry import read_questions


def test_columns_are_guessed_by_what_others_call_them() -> None:
    assert guess_columns(["Problem", "gold", "Category", "other"]) == {
        "question": "Problem",
        "reference": "gold",
        "stratum": "Category",
    }


def test_our_own_names_come_before_those_of_others() -> None:
    assert guess_columns(["text", "question", "answer", "reference"]) == {
        "question": "question",
        "reference": "reference",
    }


@pytest.mark.parametrize(
    ("values", "kind"),
    [(["1", 2], "number"), (["yes", False], "yesno"), (["Paris", "2"], "text"), ([None], "text")],
)
def test_the_answer_type_is_guessed_from_the_references(values: list[object], kind: str) -> None:
    rows = [{"gold": value} for value in values]
    assert guess_answer_type({"reference": "gold"}, rows) == kind


def test_without_references_questions_are_open_and_choices_make_a_choice() -> None:
    assert guess_answer_type({}, [{"q": "?"}]) == "open"
    assert guess_answer_type({"choices": "options"}, [{"options": ["a"]}]) == "choice"
    assert guess_answer_type({"answer_type": "kind"}, []) is None


def test_a_column_that_is_not_ours_by_the_mapping_is_kept_as_metadata() -> None:
    row = {"prompt": "1+1?", "answer": 2, "id": "old", "note": "n"}
    mapping = FieldMapping({"question": "prompt", "reference": "answer"}, "number")
    lines = io.BytesIO(json.dumps(row).encode())
    [record] = read_questions(lines, "jsonl", name="x.jsonl", mapping=mapping)
    assert (record.id, record.question, record.reference) == ("1", "1+1?", ("2",))
    assert record.metadata == {"note": "n", "own_id": "old"}


def test_a_mapped_row_is_judged_as_one_of_ours() -> None:
    mapping = FieldMapping({"question": "prompt", "reference": "answer"}, "number")
    with pytest.raises(ImportFaults, match=r"x\.csv:3: reference: .* is not a number"):
        list(
            read_questions(
                io.BytesIO(b"prompt,answer\n1+1?,2\n1+2?,three\n"),
                "csv",
                name="x.csv",
                mapping=mapping,
            )
        )


def test_what_is_no_object_is_left_to_be_refused() -> None:
    assert mapped([1], 1, FieldMapping()) == [1]

"""Questions of our own format: what is read, and every fault with its line and field."""

from __future__ import annotations

from typing import Any

import pytest

from runs.engine.types import Evidence
from tests.runs.importers.helpers import a_question, lines, question_faults, questions

CHOICES: dict[str, Any] = {"answer_type": "choice", "choices": ["red", "blue"]}


def test_a_question_is_read_with_everything_it_says() -> None:
    (record,) = questions(
        lines(
            a_question(
                **CHOICES | {"reference": ["B"]},
                stratum="colours",
                family="f",
                split="test",
                evidence=[{"id": "e", "text": "The sky.", "source": "a window"}],
                metadata={"level": 2},
                difficulty="easy",
            )
        )
    )
    assert record.choices == ("red", "blue")
    assert record.reference == ("B",)
    assert (record.stratum, record.family, record.split) == ("colours", "f", "test")
    assert record.evidence == (Evidence("e", "The sky.", "a window"),)
    assert record.metadata == {"level": 2, "difficulty": "easy"}


def test_a_single_reference_and_a_list_of_one_are_the_same() -> None:
    (one,) = questions(lines(a_question(reference="4")))
    (listed,) = questions(lines(a_question(reference=["4"])))
    assert one == listed


def test_null_means_that_no_right_answer_is_known() -> None:
    (record,) = questions(lines(a_question(reference=None)))
    assert record.reference == ()


def test_truth_values_become_yes_and_no() -> None:
    (record,) = questions(lines(a_question(answer_type="yesno", reference="True")))
    assert record.reference == ("yes",)


def test_an_array_is_read_like_lines_and_blank_lines_are_skipped() -> None:
    array = '[{"id":"a","question":"?","answer_type":"open"},\n {"id":"b","question":"?",'
    array += '"answer_type":"open"}]'
    by_line = '{"id":"a","question":"?","answer_type":"open"}\n\n'
    by_line += '{"id":"b","question":"?","answer_type":"open"}'
    assert questions(array) == questions(by_line)


def test_unknown_keys_of_evidence_are_kept_in_the_metadata() -> None:
    evidence = [{"id": "e", "text": "t", "page": 7}]
    (record,) = questions(lines(a_question(evidence=evidence)))
    assert record.metadata == {"evidence[0]": {"page": 7}}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"id": ...}, "id: is missing"),
        ({"id": None}, "id: is null"),
        ({"id": 7}, 'id: must be text, not 7; write "7"'),
        ({"id": " "}, "id: is empty"),
        ({"id": "x" * 201}, "id: is longer than 200 characters"),
        ({"id": "a\nb"}, 'id: holds a control character: "a\\nb"'),
        ({"question": ""}, "question: is empty"),
        ({"question": ["2+2"]}, "question: must be text, not a list"),
        ({"answer_type": ...}, "answer_type: is missing"),
        ({"answer_type": None}, "answer_type: is null"),
        (
            {"answer_type": "numeric"},
            'answer_type: must be one of number, choice, yesno, text, open, not "numeric"',
        ),
        ({"reference": ...}, "reference: is missing"),
        (
            {"reference": 4},
            'reference: must be text, a list of texts or null, not 4; write "4"',
        ),
        ({"reference": ["4", 5]}, "reference[1]: must be text, not 5"),
        ({"reference": "four"}, 'reference: "four" is not a number: no number'),
        ({"reference": ""}, 'reference: "" is empty; write null where no answer is known'),
        (
            {"answer_type": "yesno", "reference": "maybe"},
            'reference: "maybe" is neither yes nor no',
        ),
        ({"answer_type": "choice"}, "choices: must list at least two choices"),
        (
            {"answer_type": "choice", "choices": ["red", "red "], "reference": "A"},
            "choices: lists the same choice twice",
        ),
        (
            {"answer_type": "choice", "choices": ["red", ""], "reference": "A"},
            "choices: lists an empty choice",
        ),
        (
            {"answer_type": "choice", "choices": [str(n) for n in range(27)], "reference": "A"},
            "choices: lists 27 choices; there are 26 letters",
        ),
        (
            CHOICES | {"reference": "C"},
            'reference: "C" names no single choice: the letter C is beyond the options',
        ),
        (
            {"answer_type": "choice", "choices": ["B", "A"], "reference": "A"},
            'reference: "A" names no single choice: a letter that is also another option\'s text',
        ),
        (
            {"answer_type": "text", "reference": "I don't know"},
            'reference: "I don\'t know" is no text that can be counted: it reads as an abstention',
        ),
        ({"choices": ["3", "4"]}, "choices: belong to answer_type choice, not number"),
        ({"split": "train"}, 'split: must be one of validation, test, not "train"'),
        ({"stratum": 3}, 'stratum: must be text, not 3; write "3"'),
        ({"evidence": {}}, "evidence: must be a list, not an object"),
        ({"evidence": ["e"]}, 'evidence[0]: must be an object, not "e"'),
        (
            {"evidence": [{"id": "e", "text": "t"}, {"id": "e", "text": "u"}]},
            'evidence[1].id: "e" stands twice',
        ),
        ({"metadata": []}, "metadata: must be an object, not a list"),
        ({"metadata": {"k": 1}, "k": 2}, "k: stands beside and inside metadata"),
    ],
)
def test_a_faulty_question_is_refused_by_line_and_field(
    changes: dict[str, Any], fault: str
) -> None:
    good = a_question(id="good")
    found = question_faults(lines(good, a_question(**changes)))
    assert f"q.jsonl:2: {fault}" in found


@pytest.mark.parametrize(
    "reference",
    ["18", "-3.5", "1,234.50", "$5", "50%", "3/4", "1e-3", "12 km", "−7", ".5", "€ 20", "20 °C"],
)
def test_references_in_any_notation_of_numbers_are_accepted(reference: str) -> None:
    (record,) = questions(lines(a_question(reference=reference)))
    assert record.reference == (reference,)


def test_csv_reads_lists_written_either_way() -> None:
    text = (
        "id,question,reference,answer_type,choices,level\n"
        'a,"Which, then?",B,choice,red|blue,2\n'
        'b,"Two\nlines?","[""red"", ""A""]",choice,"[""red"", ""a|b""]",\n'
    )
    first, second = questions(text, "csv")
    assert (first.choices, first.metadata) == (("red", "blue"), {"level": "2"})
    assert second.question == "Two\nlines?"
    assert (second.reference, second.choices) == (("red", "A"), ("red", "a|b"))
    assert second.metadata == {}


def test_csv_with_semicolons_and_a_byte_order_mark_is_read() -> None:
    text = "\ufeffid;question;reference;answer_type\r\na;2 + 2, then?;4;number\r\n"
    (record,) = questions(text, "csv")
    assert (record.id, record.question) == ("a", "2 + 2, then?")


def test_csv_without_ids_and_types_holds_numbered_open_questions() -> None:
    first, second = questions("question,source\nWhy?,x\nHow?,y\n", "csv")
    assert (first.id, first.answer_type, first.reference) == ("1", "open", ())
    assert (second.id, second.metadata) == ("2", {"source": "y"})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "q.jsonl:1: header: the file is empty; the first line must name the columns"),
        ("id,,question\n", "q.jsonl:1: header: column 2 has no name"),
        ("id,id\n", 'q.jsonl:1: header: the column "id" stands twice'),
        ("question\na,b\n", "q.jsonl:2: csv: has 2 cells where the header names 1"),
        ('question\n"two\nlines"\na,b\n', "q.jsonl:4: csv: has 2 cells where the header names 1"),
        ("id,question\n,Why?\n", "q.jsonl:2: id: is null"),
        ("question,reference\nWhy?,x\n", "q.jsonl:2: answer_type: is missing"),
        ('question\n"a"b\n', "q.jsonl:2: csv: ',' expected after '\"'"),
        ('question\n"never closed\n', "q.jsonl:2: csv: unexpected end of data"),
        ("question,choices\nW,[1\n", "q.jsonl:2: choices: not valid JSON at column 3: "),
        ("question\n", "q.jsonl: file: holds no record"),
    ],
)
def test_a_faulty_csv_file_is_refused_by_line(text: str, fault: str) -> None:
    assert question_faults(text, "csv")[0].startswith(fault)


def test_an_id_that_stands_twice_is_refused() -> None:
    text = lines(a_question(), a_question(id="other"), a_question(), a_question(id="last"))
    assert question_faults(text) == ['q.jsonl:3: id: "q1" stands on line 1 already']

"""Published question sets, in small files of the same form."""

from __future__ import annotations

import json

import pytest

from runs.importers.question_sets import gsm8k_gold
from tests.runs.importers.helpers import lines, question_faults, questions

TRUTHFULQA_HEADER = "Type,Category,Question,Best Answer,Correct Answers,Incorrect Answers,Source\n"
TRUTHFULQA = TRUTHFULQA_HEADER + (
    "Adversarial,Weather,Is snow warm?,Snow is cold,Snow is cold; It is not,"
    "Snow is warm; Yes; snow is WARM,https://example.org\n"
)


def test_gsm8k_takes_the_number_after_the_marks_without_commas() -> None:
    (record,) = questions(lines({"question": "How many?", "answer": "12*100\n#### 1,200"}), "gsm8k")
    assert (record.id, record.reference, record.answer_type) == ("gsm8k-0001", ("1200",), "number")
    assert record.metadata == {"solution": "12*100\n#### 1,200"}


@pytest.mark.parametrize(
    ("solution", "gold"),
    [
        ("#### -3.5", "-3.5"),
        ("#### 1\n#### 2", "2"),
        ("####7", "7"),
        ("no marks 7", None),
        ("#### ", None),
        ("#### many", None),
        ("####\n5", None),
    ],
)
def test_the_gold_of_a_solution_is_a_number_on_the_line_of_the_marks(
    solution: str, gold: str | None
) -> None:
    assert gsm8k_gold(solution) == gold


def test_a_solution_without_gold_is_refused() -> None:
    text = lines({"question": "?", "answer": "#### 1"}, {"question": "?", "answer": "4"})
    assert question_faults(text, "gsm8k") == ["q.jsonl:2: answer: has no number after ####"]


def test_truthfulqa_offers_the_best_answer_among_the_incorrect_ones() -> None:
    (record,) = questions(TRUTHFULQA, "truthfulqa")
    assert record.answer_type == "choice"
    assert record.reference == ("Snow is cold",)
    assert sorted(record.choices) == ["Snow is cold", "Snow is warm", "Yes"]
    assert record.stratum == "Weather"
    assert record.metadata["correct_answers"] == ["Snow is cold", "It is not"]
    assert record.metadata["Type"] == "Adversarial"


def test_truthfulqa_as_open_questions_keeps_every_correct_answer() -> None:
    (record,) = questions(TRUTHFULQA, "truthfulqa_open")
    assert (record.answer_type, record.choices) == ("open", ())
    assert record.reference == ("Snow is cold", "It is not")


def test_the_place_of_the_right_choice_is_no_hint() -> None:
    rows = [f"A,C,Question {n}?,right,right,wrong;false;no,s\n" for n in range(200)]
    found = questions(TRUTHFULQA_HEADER + "".join(rows), "truthfulqa")
    places = [record.choices.index("right") for record in found]
    assert all(30 < places.count(place) < 70 for place in range(4))


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("A,C,Q?,,right,wrong,s\n", "q.jsonl:2: Best Answer: is null"),
        ("A,C,,right,right,wrong,s\n", "q.jsonl:2: Question: is null"),
        (
            "A,C,Q?,right,right,right,s\n",
            "q.jsonl:2: Incorrect Answers: with the best answer, must list at least two choices",
        ),
    ],
)
def test_a_faulty_truthfulqa_row_is_refused(row: str, fault: str) -> None:
    assert fault in question_faults(TRUTHFULQA_HEADER + row, "truthfulqa")


def test_strategyqa_answers_yes_or_no_and_has_its_facts_as_evidence() -> None:
    rows = [
        {"qid": "x", "question": "Is it?", "answer": True, "facts": ["One.", "Two."], "term": "T"},
        {"qid": "y", "question": "Was it?", "answer": False, "facts": []},
    ]
    first, second = questions(json.dumps(rows, indent=1), "strategyqa")
    assert (first.id, first.reference, second.reference) == ("x", ("yes",), ("no",))
    assert [(e.id, e.text) for e in first.evidence] == [("fact-1", "One."), ("fact-2", "Two.")]
    assert first.metadata == {"term": "T"}


def test_a_strategyqa_answer_that_is_no_truth_value_is_refused() -> None:
    text = '[\n{"qid": "x",\n"question": "Is it?", "answer": "yes"}\n]'
    assert question_faults(text, "strategyqa") == ["q.jsonl:2: answer: must be true or false"]

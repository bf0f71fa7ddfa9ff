"""Formats by name and by guess, and what reading a file twice protects from."""

from __future__ import annotations

import io

import pytest

from runs.importers.faults import ImportFaults
from runs.importers.registry import (
    DEBATE_READERS,
    guess_format,
    read_questions,
    score_rules,
)
from tests.runs.importers.helpers import a_debate, a_question, debates, lines, questions


@pytest.mark.parametrize(
    ("path", "head", "guess"),
    [
        ("a.jsonl", lines(a_question()), "jsonl"),
        ("a.json", "[\n" + lines(a_question()) + "]", "jsonl"),
        ("a.csv", "id,question\n", "csv"),
        ("a", "id,question\n", "csv"),
        ("a.jsonl", "broken", "jsonl"),
        ("a.txt", '{"question": "?", "answer": "x\\n#### 4"}', "gsm8k"),
        (
            "a.csv",
            "Type,Category,Question,Best Answer,Correct Answers,Incorrect Answers",
            "truthfulqa",
        ),
        ("a.json", '[{"qid": "x", "question": "?", "facts": []}]', "strategyqa"),
        ("a.json", '{"How?": [[[{"role": "user"', "du"),
        ("a.jsonl", '{"question": "?", "ground_truth": "", "m": {"solution"', "gsm8k_solutions"),
        ("a.jsonl", lines(a_debate()), "jsonl"),
        ("a.jsonl", '{"id": "s", "correct_index": 0, "final_belief": [1, 0]}', "nyu"),
        ("a.csv", "subset,evaluator,item,gold,winner_order_ab,winner_order_ba", "llmbar_swap"),
    ],
)
def test_a_format_is_guessed_from_what_the_file_begins_with(
    path: str, head: str, guess: str
) -> None:
    assert guess_format(path, head.encode()) == guess


def test_a_guessed_format_reads_the_file() -> None:
    assert questions(lines(a_question()), None) == questions(lines(a_question()), "jsonl")
    assert debates(lines(a_debate()), None) == debates(lines(a_debate()), "jsonl")


def test_every_debate_format_names_the_rules_of_its_answers() -> None:
    assert {name: score_rules(name) for name in DEBATE_READERS} == {
        "jsonl": "as_given",
        "du": "du_replay",
        "gsm8k_solutions": "gsm8k_solutions",
        "gsm8k_steps": "gsm8k_solutions",
        "nyu": "as_given",
        "llmbar_swap": "as_given",
    }


def test_nothing_is_yielded_before_the_last_line_is_good() -> None:
    stream = io.BytesIO((lines(a_question()) + "{").encode())
    found = read_questions(stream, "jsonl")
    with pytest.raises(ImportFaults):
        next(found)


def test_a_file_that_changes_between_the_passes_is_refused() -> None:
    stream = io.BytesIO(lines(a_question(id="a"), a_question(id="b")).encode())
    found = read_questions(stream, "jsonl")
    assert next(found).id == "a"
    end = len(lines(a_question(id="a")))
    stream.getbuffer()[end:] = b"x" * (len(stream.getvalue()) - end)
    with pytest.raises(ImportFaults):
        list(found)

"""The normaliser g (S26): values, abstentions, refusals and INVALID."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.hashing import canonical_bytes
from runs.engine.normalise import is_correct, normalise, reference_values
from runs.engine.types import Answer, AnswerKind, AnswerType, Question
from runs.protocols.spec import Normaliser

G = Normaliser()
TYPES: tuple[AnswerType, ...] = ("number", "choice", "yesno", "text", "open")


def asked(answer_type: AnswerType, *reference: str, choices: tuple[str, ...] = ()) -> Question:
    return Question("q", "What is it?", answer_type, choices=choices, reference=reference)


def value(raw: str, question: Question, settings: Normaliser = G) -> str:
    answer = normalise(raw, question, settings)
    assert answer.kind is AnswerKind.VALUE, answer
    return answer.value


def right(raw: str, question: Question, settings: Normaliser = G) -> bool | None:
    return is_correct(normalise(raw, question, settings), question, settings)


@pytest.mark.parametrize(
    "text",
    ["I abstain", "ABSTAIN", "Unknown.", "I don't know", "I don’t know.", "not sure", "No answer",
     "N/A", "It cannot be determined."],
)  # fmt: skip
@pytest.mark.parametrize("answer_type", TYPES)
def test_an_abstention_is_a_value_of_its_own(text: str, answer_type: AnswerType) -> None:
    answer = normalise(text, asked(answer_type), G)
    assert (answer.kind, answer.value, answer.is_vote) == (AnswerKind.ABSTAIN, "", False)


@pytest.mark.parametrize(
    "text",
    ["I cannot answer this question.", "I'm sorry, but I can't help with that.",
     "As an AI language model, I cannot provide an answer.", "I must decline.", "I won't answer"],
)  # fmt: skip
@pytest.mark.parametrize("answer_type", TYPES)
def test_a_refusal_is_a_value_of_its_own(text: str, answer_type: AnswerType) -> None:
    assert normalise(text, asked(answer_type), G).kind is AnswerKind.REFUSAL


@pytest.mark.parametrize("text", ["I can answer: 42", "I cannot see why it is not 42", "sorry"])
def test_doubt_is_no_refusal(text: str) -> None:
    assert normalise(text, asked("text"), G).kind is AnswerKind.VALUE


def test_an_option_that_reads_unknown_is_an_option() -> None:
    question = asked("choice", choices=("Rome", "Unknown", "It cannot be determined"))
    assert value("unknown", question) == "B"
    assert value("It cannot be determined.", question) == "C"


PLACEHOLDERS = ["<answer>", "<your answer>", "(X)", "X", "[answer]", "{answer}", "answer", "...",
                "…", "<yes or no>", "{{answer}}", "your answer", "___"]  # fmt: skip


@pytest.mark.parametrize("text", PLACEHOLDERS)
@pytest.mark.parametrize("answer_type", TYPES)
def test_the_prompts_placeholder_never_parses(text: str, answer_type: AnswerType) -> None:
    answer = normalise(text, asked(answer_type), G)
    assert (answer.kind, answer.reason) == (AnswerKind.INVALID, "the prompt's placeholder")


def test_x_is_an_answer_where_an_option_has_that_letter() -> None:
    many = tuple(f"option number {n}" for n in range(26))
    assert value("(X)", asked("choice", choices=many)) == "X"


def test_an_empty_answer_is_invalid() -> None:
    assert normalise(" \n\t", asked("open"), G).reason == "empty"


def test_a_text_whose_shown_order_is_not_its_real_one_is_no_vote() -> None:
    answer = normalise("\u202e24", asked("number"), G)
    assert (answer.kind, answer.reason) == (AnswerKind.INVALID, "bidirectional control characters")


@pytest.mark.parametrize(
    ("raw", "settings", "expected"),
    [
        ("The  Eiffel\nTower!", G, "the eiffel tower"),
        ("The Eiffel Tower", Normaliser(strip_articles=True), "eiffel tower"),
        ("Eiffel!", Normaliser(strip_punctuation=False), "eiffel!"),
        ("Eiffel", Normaliser(casefold=False), "Eiffel"),
        ("ｆｕｌｌ width", G, "full width"),
        ("U.S.", G, "us"),
        ("don't", G, "dont"),
        ("3.5", G, "3.5"),
        ("-5", G, "-5"),
        ("C++", G, "c++"),
        ("C#", G, "c#"),
        ("?!", G, "?!"),
    ],
)
def test_texts_fold_by_the_protocols_settings(
    raw: str, settings: Normaliser, expected: str
) -> None:
    assert value(raw, asked("text"), settings) == expected


def test_an_open_answer_is_its_exact_text() -> None:
    assert value("  Because, THEN. ", asked("open")) == "Because, THEN."
    assert right("anything", asked("open", "anything")) is None


def test_a_percent_is_its_number_unless_the_reference_carries_percent() -> None:
    assert value("50%", asked("number", "50")) == "50"
    assert right("50%", asked("number", "50")) is True
    assert value("50%", asked("number", "50%")) == "0.5"
    assert right("50%", asked("number", "50%")) is True
    assert right("0.5", asked("number", "50%")) is True
    assert right("50", asked("number", "50%")) is False


def test_the_tolerance_is_against_the_reference_and_never_merges_votes() -> None:
    settings = Normaliser(number_tolerance="0.01")
    question = asked("number", "3.14")
    assert right("3.15", question, settings) is True
    assert right("3.1501", question, settings) is False
    assert value("3.15", question, settings) != value("3.14", question, settings)


def test_the_tolerance_is_in_percentage_points_where_the_reference_carries_percent() -> None:
    settings = Normaliser(number_tolerance="1")
    assert right("51%", asked("number", "50%"), settings) is True
    assert right("52%", asked("number", "50%"), settings) is False


def test_correctness_is_unknown_without_a_readable_reference() -> None:
    assert right("42", asked("number")) is None
    assert right("42", asked("number", "see appendix")) is None


@pytest.mark.parametrize("raw", ["I abstain", "I cannot answer", "garbage", ""])
def test_an_answer_that_is_no_vote_is_not_right(raw: str) -> None:
    assert right(raw, asked("number", "42")) is False


def test_any_of_several_references_is_right() -> None:
    question = asked("text", "NYC", "New York City", "nyc")
    assert reference_values(question, G) == ("nyc", "new york city")
    assert right("new york city!", question) is True


def test_a_choices_reference_may_be_letter_or_text() -> None:
    choices = ("Paris", "London")
    assert reference_values(asked("choice", "London", choices=choices), G) == ("B",)
    assert right("(B)", asked("choice", "b", choices=choices)) is True


@given(st.text(max_size=80), st.sampled_from(TYPES))
def test_g_never_raises_and_only_values_are_votes(raw: str, answer_type: AnswerType) -> None:
    answer = normalise(raw, asked(answer_type), G)
    assert answer.is_vote == (answer.value != "") == (answer.kind is AnswerKind.VALUE)
    assert (answer.kind is AnswerKind.INVALID) == (answer.reason != "")
    canonical_bytes([answer.raw, answer.value, answer.reason])


@given(st.text(min_size=1, max_size=40), st.sampled_from(["number", "choice", "yesno", "open"]))
def test_g_of_a_value_is_that_value(raw: str, answer_type: AnswerType) -> None:
    first = normalise(raw, asked(answer_type), G)
    if first.is_vote:
        again = normalise(first.value, asked(answer_type), G)
        assert replace(again, raw="") == Answer(raw="", kind=AnswerKind.VALUE, value=first.value)

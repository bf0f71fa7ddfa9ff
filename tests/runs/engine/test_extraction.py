"""Where in a reply the answer stands, rule by rule (S26)."""

from __future__ import annotations

import pytest

from runs.engine.extraction import NO_ANSWER, extract
from runs.engine.types import Answer, AnswerKind, AnswerType, Question
from runs.protocols.spec import Extraction, Normaliser

G = Normaliser()
CITIES = ("Paris", "London", "Rome", "New York")


def found(text: str, answer_type: AnswerType, *rules: str, choices: tuple[str, ...] = ()) -> Answer:
    question = Question("q", "What is it?", answer_type, choices=choices)
    extraction = Extraction.model_validate({answer_type: rules}) if rules else Extraction()
    return extract(text, question, extraction, G)


@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
        ("final_line", "I add.\nFinal answer: 42", "42"),
        ("final_line", "**FINAL ANSWER:** $18 per day\nThanks!", "18"),
        ("final_line", "> Final Answer is: 1,234.", "1234"),
        ("final_line", "### Final Answer\n\n**42**", "42"),
        ("final_line", "Final answer:\n42", "42"),
        ("final_line", "Final answer: 4\nFinal answer: 5", "5"),
        ("final_line", "Final answer: 5\nFinal answer: <number>", "5"),
        ("final_line", "Final answer: 18 dollars because 9 * 2 = 18", "18"),
        ("boxed", "\\boxed{1} then \\boxed{\\frac{1}{2}}", "0.5"),
        ("boxed", "$\\boxed{\\text{about } 52\\%}$", "52"),
        ("boxed", "\\boxed{\\boxed{5}}", "5"),
        ("boxed", "it is \\boxed{5}, in the form \\boxed{answer}", "5"),
        ("boxed", "\\boxed{5} and \\boxed{6", "5"),
        ("hash_marks", "#### Step 2\nso\n#### 1,000", "1000"),
        ("a_marker", "A: 3\nmore\nA: 4", "4"),
        ("answer_is", "The answer is 18 dollars because 9*2=18. Done.", "18"),
        ("answer_is", "answer: 3. No, the ANSWER IS  4. The answer is not easy.", "4"),
        ("last_number", "It costs $3 and 1,250.50 in all.", "1250.5"),
        ("last_number", "16-3", "3"),
        ("last_number", "The change is -3.", "-3"),
        ("last_number", "so 3/4 of it", "0.75"),
        ("whole", " 42 \n", "42"),
    ],
)
def test_a_number_is_found_by_its_rule(rule: str, text: str, value: str) -> None:
    answer = found(text, "number", rule)
    assert (answer.kind, answer.value, answer.rule) == (AnswerKind.VALUE, value, rule)


@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
        ("final_line", "Final answer: (B)", "B"),
        ("final_line", "Final answer: London", "B"),
        ("boxed", "\\boxed{\\text{C}}", "C"),
        ("parenthesised_letter", "(A) no; (B) yes. In the form (X).", "B"),
        ("answer_is", "So the answer is B) Media tour.", "B"),
        ("answer_is", "the Answer: **C**.", "C"),
        ("answer_is", "The answer is (D", "D"),
        ("answer_is", "The answer is A because it is big", "A"),
        ("answer_is", "The answer is London.", "B"),
        ("option_text", "I would go to New York.", "D"),
        ("whole", "b)", "B"),
    ],
)
def test_a_choice_is_found_by_its_rule(rule: str, text: str, value: str) -> None:
    answer = found(text, "choice", rule, choices=CITIES)
    assert (answer.kind, answer.value, answer.rule) == (AnswerKind.VALUE, value, rule)


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("answer_is", "The answer is A dog."),
        ("answer_is", "The answer is a dog."),
        ("answer_is", "The answer is (X) 16 hours."),
        ("answer_is", "The answer is not a letter"),
        ("answer_is", "The answer is based on reasoning"),
        ("parenthesised_letter", "In the form (X), a (E) or (a) is none"),
        ("option_text", "Paris or London"),
        ("option_text", "Londonderry"),
        ("final_line", "Final answer: <letter>"),
    ],
)
def test_articles_placeholders_and_letters_beyond_the_options_are_no_choice(
    rule: str, text: str
) -> None:
    answer = found(text, "choice", rule, choices=CITIES)
    assert (answer.kind, answer.reason) == (AnswerKind.INVALID, NO_ANSWER)


def test_the_longest_option_that_fits_is_the_one_mentioned() -> None:
    options = ("York", "New York", "New York City")
    assert found("it is New York City!", "choice", "option_text", choices=options).value == "C"


@pytest.mark.parametrize(
    "text", ["(A). So the answer is A or B.", "(A) first.\nFinal answer: A, B"]
)
def test_a_marked_answer_that_is_ambiguous_is_not_replaced_by_a_convenient_one(text: str) -> None:
    answer = found(text, "choice", choices=CITIES)
    assert (answer.kind, answer.reason) == (AnswerKind.INVALID, "several options")


def test_rules_are_tried_in_the_protocols_order() -> None:
    text = "Final answer: 1\n\\boxed{2}"
    assert found(text, "number", "final_line", "boxed").value == "1"
    assert found(text, "number", "boxed", "final_line").value == "2"


def test_a_box_without_a_number_passes_to_the_next_rule() -> None:
    answer = found("there are 4 of \\boxed{\\text{them}}", "number", "boxed", "last_number")
    assert (answer.value, answer.rule) == ("4", "last_number")


@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
        ("final_line", "Final answer: Yes, it is.", "yes"),
        ("first_word", "**No**, it was never so.", "no"),
        ("answer_is", "The answer is clear: the answer is false.", "no"),
        ("boxed", "\\boxed{\\text{Yes}}", "yes"),
        ("whole", "True", "yes"),
    ],
)
def test_yes_and_no_are_found_by_their_rule(rule: str, text: str, value: str) -> None:
    assert found(text, "yesno", rule).value == value


@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
        ("final_line", "Final answer: The Eiffel Tower", "the eiffel tower"),
        ("answer_is", "The answer is George Washington. He was first.", "george washington"),
        ("boxed", "\\boxed{Paris}", "paris"),
        ("whole", "Paris.", "paris"),
    ],
)
def test_a_text_is_found_by_its_rule(rule: str, text: str, value: str) -> None:
    assert found(text, "text", rule).value == value


def test_an_open_reply_without_a_final_line_is_its_whole_text() -> None:
    assert found(" Because. \n", "open").value == "Because."
    assert found("Long talk.\nFinal answer: In short.", "open").value == "In short."


def test_nothing_marked_is_no_answer() -> None:
    assert found("I think of 42 things.", "number").reason == NO_ANSWER


def test_an_abstention_on_the_final_line_is_one() -> None:
    assert found("Final answer: unknown", "number").kind is AnswerKind.ABSTAIN

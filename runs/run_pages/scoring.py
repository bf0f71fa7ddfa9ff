"""
Why an answer counts as right or wrong, in words: what was read, what it became, what it met.

The words follow ``is_correct`` (S26); the same settings and the same reference decide both.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from runs.engine.normalise import is_correct, reference_values
from runs.engine.parsing import parse_reply
from runs.engine.types import Answer, AnswerKind, PromptMessage, Question
from runs.protocols.spec import Normaliser, Protocol
from runs.run_pages.texts import Cut, cut

#: Characters of one answer or reference; the cell's reply stands in full below.
SHOWN_CHARS = 600
MOST_REFERENCES = 20

#: What each extraction rule of docs/normaliser.md takes, said to a reader.
RULE_WORDS = {
    "final_line": "the line “Final answer: …”",
    "boxed": "the last \\boxed{…}",
    "hash_marks": "what follows ####",
    "a_marker": "the line “A: …”",
    "answer_is": "what follows “answer is” or “answer:”",
    "parenthesised_letter": "the last letter in parentheses",
    "last_number": "the last number of the reply",
    "first_word": "the first word",
    "option_text": "the option whose text the reply mentions",
    "whole": "the whole reply",
}
KIND_WORDS = {
    AnswerKind.VALUE: "a value, which is a valid vote",
    AnswerKind.ABSTAIN: "an abstention, which is no vote",
    AnswerKind.REFUSAL: "a refusal, which is no vote",
    AnswerKind.INVALID: "invalid, which is no vote",
}


@dataclass(frozen=True, slots=True)
class Scoring:
    """
    One answer beside the reference. ``correct`` is ``is_correct``'s; ``because`` is its reason.

    ``references`` are as the file wrote them, ``counted`` what they are compared as.
    """

    extracted: Cut
    rule: str
    kind: str
    value: Cut
    references: list[Cut]
    counted: list[Cut]
    correct: bool | None
    because: str


def scored(answer: Answer, question: Question, settings: Normaliser) -> Scoring:
    """Return what was read from a reply, what it is compared with, and what follows."""
    counted = reference_values(question, settings)
    correct = is_correct(answer, question, settings)
    return Scoring(
        extracted=cut(answer.raw, SHOWN_CHARS),
        rule=RULE_WORDS.get(answer.rule, answer.rule),
        kind=KIND_WORDS[answer.kind] + (f": {answer.reason}" if answer.reason else ""),
        value=cut(answer.value, SHOWN_CHARS),
        references=[cut(text, SHOWN_CHARS) for text in question.reference[:MOST_REFERENCES]],
        counted=[cut(value, SHOWN_CHARS) for value in counted[:MOST_REFERENCES]],
        correct=correct,
        because=_because(answer, question, settings, counted, correct=correct),
    )


def read_again(
    reply: bytes,
    *,
    finish_reason: str,
    prompt: tuple[PromptMessage, ...],
    question: Question,
    protocol: Protocol,
) -> Answer:
    """Return the answer that admission read from a reply: only admitted ones are stored."""
    read = parse_reply(
        reply,
        question=question,
        protocol=protocol,
        prompt=prompt,
        finish_reason=finish_reason,
    )
    return read.answer


def _because(
    answer: Answer,
    question: Question,
    settings: Normaliser,
    counted: tuple[str, ...],
    *,
    correct: bool | None,
) -> str:
    if question.answer_type == "open":
        return "Unscored: an open answer is compared with nothing; people judge it."
    if correct is None:
        return "Unscored: the question has no reference that can be read."
    if not answer.is_vote:
        noun = {AnswerKind.ABSTAIN: "an abstention", AnswerKind.REFUSAL: "a refusal"}
        said = noun.get(answer.kind, "an answer that cannot be read")
        return f"Wrong: there is a reference, and {said} holds no value that could equal it."
    if question.answer_type == "number":
        return _number(answer, settings, counted, correct=correct)
    if correct:
        return "Right: as counted it is equal to a reference."
    return "Wrong: as counted it is equal to no reference."


def _number(
    answer: Answer, settings: Normaliser, counted: tuple[str, ...], *, correct: bool
) -> str:
    value = Fraction(answer.value)
    nearest = min(counted, key=lambda reference: abs(value - Fraction(reference)))
    if value == Fraction(nearest):
        return "Right: as counted it is equal to a reference."
    off = abs(value - Fraction(nearest))
    allowed = f"the protocol allows {settings.number_tolerance}"
    verdict = "Right" if correct else "Wrong"
    return (
        f"{verdict}: it differs from the nearest reference, {nearest}, by {_plain(off)}; {allowed}."
    )


def _plain(number: Fraction) -> str:
    """Return an exact number that people can read; a ratio where no short decimal is exact."""
    short = f"{float(number):.10g}" if number < 10**15 else str(number)
    return short if Fraction(short) == number else str(number)

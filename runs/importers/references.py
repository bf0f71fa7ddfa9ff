"""
Whether a reference can ever be met: it must be readable by the normaliser that reads answers.

A reference that g cannot read (S26) would make every answer wrong without a word. It is judged
by g's default settings; a protocol may read more narrowly.
"""

from __future__ import annotations

import string

from runs.engine.normalise import normalise
from runs.engine.types import Answer, AnswerKind, AnswerType, Question
from runs.protocols.spec import Normaliser

_SETTINGS = Normaliser()
_EXPECTED: dict[AnswerType, str] = {
    "number": "is not a number",
    "choice": "names no single choice",
    "yesno": "is neither yes nor no",
    "text": "is no text that can be counted",
}
_NO_VOTE = {AnswerKind.ABSTAIN: "an abstention", AnswerKind.REFUSAL: "a refusal"}


def reference_problem(
    reference: str, answer_type: AnswerType, choices: tuple[str, ...] = ()
) -> str | None:
    """Return what is wrong with a reference, None where an answer can meet it."""
    if not reference.strip():
        return "is empty; write null where no answer is known"
    if answer_type == "open":  # Judged by people, who read anything.
        return None
    answer = _read(reference, answer_type, choices)
    if answer.is_vote:
        return None
    expected = _EXPECTED[answer_type]
    reason = answer.reason or f"it reads as {_NO_VOTE[answer.kind]}"
    return expected if reason in expected else f"{expected}: {reason}"


def yesno(reference: str) -> str:
    """Return ``yes`` or ``no`` for a reference without a problem."""
    return _read(reference, "yesno", ()).value


def _read(reference: str, answer_type: AnswerType, choices: tuple[str, ...]) -> Answer:
    return normalise(reference, Question("", "", answer_type, choices), _SETTINGS)


def letter_index(text: str, count: int) -> int | None:
    """Return the place of the choice that a bare capital letter names."""
    place = string.ascii_uppercase.find(text.strip()) if len(text.strip()) == 1 else -1
    return place if 0 <= place < count else None


def choices_problem(choices: tuple[str, ...]) -> str | None:
    """Return what is wrong with a list of choices: at least two, at most 26, all different."""
    if len(choices) < 2:
        return "must list at least two choices"
    if len(choices) > len(string.ascii_uppercase):
        return f"lists {len(choices)} choices; there are 26 letters"
    bare = {choice.strip() for choice in choices}
    if "" in bare:
        return "lists an empty choice"
    return "lists the same choice twice" if len(bare) < len(choices) else None

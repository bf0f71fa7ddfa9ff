"""Plausible wrong answers: what a simulated agent says when it errs."""

from __future__ import annotations

import re
from decimal import Decimal

from runs.providers.base import Origin

#: As many wrong values as numbers and texts have; few, so that agents also err alike.
WRONG_VALUES = 4

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?|-?\.\d+")
_MAX_DIGITS = 30


def right_answer(origin: Origin) -> str | None:
    """Return the reference as an agent would say it, or None where the question has none."""
    if not origin.reference:
        return None
    reference = origin.reference[0].strip()
    if origin.answer_type == "choice":
        return _letter(origin, reference) or reference
    if origin.answer_type == "yesno":
        return "yes" if _means_yes(reference) else "no"
    return reference


def wrong_answers(origin: Origin) -> tuple[str, ...]:
    """Return at least one wrong value, none equal to a reference under the normaliser."""
    if origin.answer_type == "choice":
        return _other_letters(origin)
    if origin.answer_type == "yesno" and origin.reference:
        return ("no",) if _means_yes(origin.reference[0]) else ("yes",)
    if origin.answer_type == "yesno":
        return ("yes", "no")
    if origin.answer_type == "number":
        return _other_numbers(origin.reference or ("0",))
    return tuple(f"wrong-{k}" for k in range(1, WRONG_VALUES + 1))


def _letter(origin: Origin, reference: str) -> str | None:
    """Return the letter of the choice that a reference names, by its text or by its letter."""
    texts = [choice.strip().casefold() for choice in origin.choices[: len(_LETTERS)]]
    if reference.strip().casefold() in texts:
        return _LETTERS[texts.index(reference.strip().casefold())]
    letter = reference.strip("(). :").upper()
    return letter if len(letter) == 1 and letter in _LETTERS[: len(texts)] else None


def _other_letters(origin: Origin) -> tuple[str, ...]:
    right = {_letter(origin, reference) for reference in origin.reference}
    letters = _LETTERS[: len(origin.choices)] or _LETTERS[:WRONG_VALUES]
    return tuple(letter for letter in letters if letter not in right) or ("none of these",)


def _means_yes(reference: str) -> bool:
    return reference.strip().casefold() in {"yes", "y", "true", "1"}


def _other_numbers(references: tuple[str, ...]) -> tuple[str, ...]:
    """Return near values in the first reference's own notation (currency, percent, unit)."""
    right = {value for value in map(_number, references) if value is not None}
    first, value = references[0].strip(), _number(references[0])
    found = _NUMBER.search(first)
    if found is None or value is None:
        return tuple(str(k) for k in range(1, WRONG_VALUES + 1))
    near = (value + k for k in (1, -1, value, 10, -10, *range(2, 10 + len(right))))
    distinct = [other for other in dict.fromkeys(near) if other not in right][:WRONG_VALUES]
    before, after = first[: found.start()], first[found.end() :]
    return tuple(f"{before}{other:f}{after}" for other in distinct)


def _number(text: str) -> Decimal | None:
    found = _NUMBER.search(text)
    if found is None or len(found.group()) > _MAX_DIGITS:
        return None
    return Decimal(found.group().replace(",", ""))

"""Whether a reference can ever be met by an answer of its type."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

_NUMBER = re.compile(
    r"""
    [-+−]? \s* [$€£¥]? \s* [-+−]? \s*
    (?: \d{1,3} (?: ,\d{3} )+ (?: \.\d+ )? | \d+ (?: \.\d* )? | \.\d+ )
    (?: [eE] [-+]? \d{1,4} )?
    (?: \s* / \s* \d+ )?
    \s* (?: % | [^\W\d_] [\w\s.²³°/%-]* | °\w? )?
    """,
    re.VERBOSE,
)
_YESNO = {"yes": "yes", "no": "no", "true": "yes", "false": "no"}


def number_problem(reference: str) -> str | None:
    """Return what is wrong with the reference of a ``number`` question."""
    if _NUMBER.fullmatch(reference.strip()):
        return None
    return "is not a number"


def yesno(reference: str) -> str | None:
    """Return ``yes`` or ``no`` for a truth value, None for anything else."""
    return _YESNO.get(reference.strip().casefold())


def choice_problem(reference: str, choices: tuple[str, ...]) -> str | None:
    """
    Return what is wrong with the reference of a ``choice`` question.

    It must be the letter or the text of a choice, and not the letter of one and the text of
    another.
    """
    by_letter = letter_index(reference, len(choices))
    by_text = next((i for i, c in enumerate(choices) if _same(c, reference)), None)
    if by_letter is None and by_text is None:
        return "is neither the letter nor the text of a choice"
    if by_letter is not None and by_text is not None and by_letter != by_text:
        return "is the letter of one choice and the text of another"
    return None


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
    if any(not choice.strip() for choice in choices):
        return "lists an empty choice"
    return "lists the same choice twice" if _repeats(choices) else None


def _repeats(choices: Iterable[str]) -> bool:
    folded = [choice.strip().casefold() for choice in choices]
    return len(set(folded)) < len(folded)


def _same(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()

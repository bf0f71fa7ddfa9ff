"""Answers to yes/no questions."""

from __future__ import annotations

import re

from runs.engine.folding import fold, plain

MAX_CHARS = 2_000

_YES = "yes|y|true|correct|right|yeah|yep|affirmative"
_NO = "no|n|false|incorrect|wrong|nope|negative|not true|not correct|not right|untrue"
_WORDS = {
    **dict.fromkeys(_YES.split("|"), "yes"),
    **dict.fromkeys(_NO.split("|"), "no"),
}
_SUBJECT = re.compile(
    r"(?:(?:it|this|that|the (?:statement|claim|answer|proposition|sentence))(?: is|s)|its) "
)
_OPENING = re.compile(
    r"\s*([A-Za-z]+)\s*(?:[,.;:!(\u2014-]|(?=because\b|since\b|as\b))\s*(.+)",
    re.DOTALL | re.IGNORECASE,
)
_STANCE = re.compile(r"\b(?:yes|no|true|false)\b")


class NoStanceError(ValueError):
    """The text says neither yes nor no, or both. The message says why."""


def read_yesno(text: str) -> str:
    """Return ``yes`` or ``no``; raises NoStanceError for anything else."""
    if len(text) > MAX_CHARS:
        raise NoStanceError(f"longer than {MAX_CHARS} characters")
    bare = plain(text)
    folded = fold(bare)
    whole = _WORDS.get(folded) or _WORDS.get(_SUBJECT.sub("", folded, count=1))
    if whole:
        return whole
    opening = _OPENING.fullmatch(bare)
    stance = _WORDS.get(opening[1].casefold()) if opening else None
    if opening is None or stance is None or len(opening[1]) == 1:
        raise NoStanceError("neither yes nor no")
    said = {_WORDS[word] for word in _STANCE.findall(opening[2].casefold())}
    if said - {stance}:
        raise NoStanceError("both yes and no")
    return stance

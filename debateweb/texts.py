"""Text for people: what changed between two texts, and text that cannot act on its page."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Change = Literal["same", "added", "removed"]
#: Above this many words two texts are compared by lines, which costs the square of far fewer.
MOST_WORDS = 3_000
MOST_LINES = 3_000
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_KEPT_CONTROLS = {"\n", "\t"}


@dataclass(frozen=True)
class DiffPart:
    """A stretch of text with what happened to it."""

    change: Change
    text: str


def diff_words(old: str, new: str) -> list[DiffPart]:
    """
    Return ``new`` as stretches that were kept, added or removed since ``old``.

    Joined, the kept and removed stretches are ``old``, the kept and added ones ``new``. Long texts
    are compared by lines, very long ones as a whole.
    """
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(before), len(after)) > MOST_WORDS:
        before, after = _LINES.findall(old), _LINES.findall(new)
    if max(len(before), len(after)) > MOST_LINES:
        before, after = [old], [new]
    parts: list[DiffPart] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            parts.append(DiffPart("same", "".join(after[j1:j2])))
            continue
        if i2 > i1:
            parts.append(DiffPart("removed", "".join(before[i1:i2])))
        if j2 > j1:
            parts.append(DiffPart("added", "".join(after[j1:j2])))
    return parts


def printable(text: str) -> str:
    """
    Return ``text`` with control, format and direction characters written as ``⟨U+202E⟩``.

    Line feeds and tabs stay. HTML is not escaped here: templates do that.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written_out(character) for character in text)


def _written_out(character: str) -> str:
    if character in _KEPT_CONTROLS:
        return character
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return f"⟨U+{ord(character):04X}⟩"
    return character

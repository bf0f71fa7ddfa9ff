"""Texts of any length on a page of bounded length: cut, with what was cut said."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from debateweb.texts import DiffPart

_WORDS = re.compile(r"\S+\s*|\s+")
#: Words on either side of a change that an excerpt keeps.
CONTEXT_WORDS = 4
#: Where Python keeps a byte that is no UTF-8 while it decodes (PEP 383).
_STRAY_BYTES = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class Cut:
    """The beginning of a text that has ``size`` characters, or bytes where it was bytes."""

    text: str
    size: int
    is_cut: bool = False
    unit: str = "characters"


def cut(text: str, limit: int | None) -> Cut:
    """Return the first ``limit`` characters of a text; None takes all."""
    is_cut = limit is not None and len(text) > limit
    return Cut(text[:limit], len(text), is_cut)


def cut_bytes(start: bytes, size: int) -> Cut:
    """
    Return the beginning of a reply of ``size`` bytes as text.

    Bytes that are no UTF-8 are written as ``⟨0xFF⟩``; a character that the cut went through is
    left away.
    """
    is_cut = len(start) < size
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    text = decoder.decode(start, final=not is_cut)
    return Cut(_STRAY_BYTES.sub(_written_out, text), size, is_cut, "bytes")


def _written_out(match: re.Match[str]) -> str:
    return f"⟨0x{ord(match[0]) - 0xDC00:02X}⟩"


def changed_words(old: str, new: str) -> list[DiffPart]:
    """
    Return what changed, word by word with the space behind each; joined it is both texts.

    Quicker and coarser than ``diff_words``: a page shows many of these at once.
    """
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    parts: list[DiffPart] = []
    # Frequent words anchor nothing (autojunk): otherwise long texts cost their square.
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after).get_opcodes():
        if tag == "equal":
            parts.append(DiffPart("same", "".join(after[j1:j2])))
            continue
        if i2 > i1:
            parts.append(DiffPart("removed", "".join(before[i1:i2])))
        if j2 > j1:
            parts.append(DiffPart("added", "".join(after[j1:j2])))
    return parts


def excerpt_of(parts: list[DiffPart], most_chars: int) -> list[DiffPart]:
    """
    Return what changed with a few words around it, about ``most_chars`` characters of it.

    Where words are left away stands an ellipsis; nothing where nothing changed.
    """
    if all(part.change == "same" for part in parts):
        return []
    kept: list[DiffPart] = []
    room = most_chars
    for i, part in enumerate(parts):
        text = part.text
        if part.change == "same":
            text = _around(text, is_first=i == 0, is_last=i == len(parts) - 1)
        if len(text) > room:
            return [*kept, DiffPart(part.change, text[:room]), DiffPart("same", " …")]
        kept.append(DiffPart(part.change, text))
        room -= len(text)
    return kept


def _around(text: str, *, is_first: bool, is_last: bool) -> str:
    """Return the words of an unchanged stretch that stand beside a change."""
    words = _WORDS.findall(text)
    before = [] if is_first else words[:CONTEXT_WORDS]
    after = [] if is_last else words[-CONTEXT_WORDS:]
    if len(before) + len(after) >= len(words):
        return text
    return "".join((*before, "… ", *after))

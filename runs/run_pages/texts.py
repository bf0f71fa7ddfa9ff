"""Texts of any length on a page of bounded length: cut, with what was cut said."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from debateweb.texts import DiffPart

_WORDS = re.compile(r"\S+\s*|\s+")
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

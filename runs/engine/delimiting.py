"""
Marks around text that the host did not write (S20): peers' replies, own replies, evidence.

A pair of marks carries a key that occurs nowhere in the text between any of them, so no text
can close its own marks or open another's (docs/decisions/0041).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runs.engine.hashing import digest

_KEY_CHARS = 12


@dataclass(frozen=True, slots=True)
class Fence:
    """The marks of one turn of one prompt."""

    key: str

    def block(self, kind: str, text: str) -> str:
        """Return text between marks on lines of their own."""
        return f"<{kind} {self.key}>\n{text}\n</{kind} {self.key}>"

    def inline(self, kind: str, text: str) -> str:
        """Return text between marks within a line."""
        return f"<{kind} {self.key}>{text}</{kind} {self.key}>"


def fence(texts: Iterable[str], *, seed: Sequence[str | int]) -> Fence:
    """
    Return marks that no text of ``texts`` contains.

    The key is a hash of ``seed`` and a counter; the first that occurs in no text is taken, so
    the same texts under the same seed always get the same marks (S6).
    """
    enclosed = tuple(texts)
    attempt = 0
    while True:
        key = digest(["fence", *seed, attempt])[:_KEY_CHARS]
        if not any(key in text for text in enclosed):
            return Fence(key)
        attempt += 1

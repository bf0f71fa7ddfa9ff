"""
Words that give away what should stay hidden: who wrote an answer, or when in a debate.

Found, counted, and masked where the design says so. A list of expressions cannot be complete;
figures are therefore shown with and without the items in which something was found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["identity", "time"]

_FAMILIES = (
    r"(?:chat\s?gpt|gpt[-\s]?\d[\w.\-]*|gpt|claude|gemini|bard|llama[-\s]?\d*|mi[sx]tral|qwen[-\s]?\d*"
    r"|deepseek|grok|phi[-\s]?\d|palm|vicuna|alpaca|command[-\s]r|falcon|yi[-\s]\d+b)"
)
_MAKERS = (
    r"(?:openai|anthropic|google(?:\s+deepmind)?|meta(?:\s+ai)?|mistral ai|alibaba|deepseek|xai)"
)
_IDENTITY = (
    rf"\bi(?:\s+am|['’]m)\s+(?:an?\s+)?(?:ai\s+)?(?:assistant\s+)?{_FAMILIES}\b",
    rf"\bas\s+(?:an?\s+)?(?:ai|artificial intelligence|(?:large\s+)?language\s+model|{_FAMILIES})\b"
    r"(?:\s+(?:language\s+)?(?:model|assistant))?",
    rf"\b(?:trained|made|created|developed|built)\s+by\s+{_MAKERS}\b",
    rf"\bmy\s+(?:name|model)\s+is\s+{_FAMILIES}\b",
)
_OTHERS = (
    r"(?:the\s+)?(?:other|another|previous|first|second|third|fellow)?\s*"
    r"(?:agents?|debaters?|models?|assistants?|participants?|others?|peers?|solutions?|responses?)"
)
_TIME = (
    rf"\b(?:after|upon|having)\s+(?:carefully\s+)?(?:reading|considering|reviewing|seeing|read|"
    rf"considered|reviewed|seen)\s+{_OTHERS}(?:\s+\d+|\s+[a-z]\b)?",
    r"\bagents?\s+(?:\d+|[A-H])\b",
    r"\b(?:in|from|of)\s+(?:the\s+)?(?:previous|last|first|earlier|second|final)\s+round\b",
    r"\bround\s+\d+\b",
    r"\bmy\s+(?:previous|earlier|initial|first|original)\s+(?:answer|solution|response|reasoning)\b",
    r"\bi\s+(?:now\s+)?(?:revise|update|change|stand\s+by|maintain|retain)\s+my\b",
    r"\b(?:as|like)\s+(?:the\s+)?other\s+(?:agents?|debaters?|models?|solutions?)\b",
)


def _compiled(expressions: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in expressions), re.IGNORECASE)


_RULES: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("identity", _compiled(_IDENTITY)),
    ("time", _compiled(_TIME)),
)


@dataclass(frozen=True, slots=True)
class Giveaway:
    """Where something was found: ``text[start:end]``, in characters."""

    kind: Kind
    start: int
    end: int


def giveaways(text: str, names: Iterable[str] = ()) -> tuple[Giveaway, ...]:
    """
    Return what in ``text`` gives identity or time away, in order and without overlaps.

    ``names`` are words of this queue that do so as well: its models' and agents' names.
    """
    rules = list(_RULES)
    wanted = [re.escape(name) for name in names if len(name) > 1]
    if wanted:
        longest_first = sorted(wanted, key=len, reverse=True)
        rules.append(
            ("identity", re.compile(rf"(?<!\w)(?:{'|'.join(longest_first)})(?!\w)", re.IGNORECASE))
        )
    found = sorted(
        (match.start(), -match.end(), kind) for kind, rule in rules for match in rule.finditer(text)
    )
    kept: list[Giveaway] = []
    for start, minus_end, kind in found:
        if not kept or start >= kept[-1].end:
            kept.append(Giveaway(kind, start, -minus_end))
    return tuple(kept)


def masked(text: str, names: Iterable[str] = ()) -> str:
    """Return ``text`` with each giveaway replaced by a mark that says what stood there."""
    parts: list[str] = []
    end = 0
    for found in giveaways(text, names):
        parts += [text[end : found.start], f"[{found.kind} hidden]"]
        end = found.end
    return "".join([*parts, text[end:]])

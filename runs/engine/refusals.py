"""
Refusals and abstentions: answers of their own, which are no votes (S26, S27).

The patterns are narrow on purpose. A text that merely sounds doubtful is not an abstention, and
an option that reads ``Unknown`` is an option: options are tried first.
"""

from __future__ import annotations

import re

from runs.engine.folding import fold, unmarked
from runs.engine.types import AnswerKind

_MAX_CHARS = 600

_ABSTAIN = re.compile(
    r"(?:i )?(?:choose to |will |would |must |have to )?abstain(?:ed|s|ing)?(?: from (?:answering|"
    r"voting))?|abstention|(?:the )?(?:answer is )?unknown|"
    r"(?:i )?(?:do not|dont|don't) know(?: the answer)?|idk|"
    r"(?:i am |im |i'm )?(?:not sure|unsure|uncertain|undecided)|(?:there is )?no answer|"
    r"(?:i have )?no idea|n ?a|not (?:enough|sufficient) information|insufficient information|"
    r"(?:it )?(?:cannot|can not|cant|can't) be (?:determined|answered)|undetermined|"
    r"(?:i )?(?:cannot|can not|cant|can't) (?:determine|decide|tell|say)(?: the answer)?"
)
_REFUSAL = re.compile(
    r"(?:(?:i'?m |i am )?(?:very |so |really )?sorry (?:but )?|i apologi[sz]e (?:but )?|"
    r"apologies (?:but )?|unfortunately |as an ai(?: language model| assistant| model)? )*"
    r"i(?:'?m| am)? ?(?:(?:cannot|can not|can'?t|won'?t|will not|could not|couldn'?t|"
    r"not able to|unable to|not allowed to|not permitted to|not comfortable) ?"
    r"(?:answer|help|assist|provide|comply|fulfil|fulfill|respond|engage|participate|do that|"
    r"discuss|complete|answering|providing|helping)\b|(?:must|have to|need to) decline\b|"
    r"refuse\b|decline\b)|i refuse\b|(?:i )?decline to answer\b|refus(?:al|ed)$"
)


def abstention_or_refusal(text: str) -> AnswerKind | None:
    """Return ABSTAIN or REFUSAL where the whole text is one, else None."""
    if len(text) > _MAX_CHARS:
        return None
    folded = fold(unmarked(text))
    if _ABSTAIN.fullmatch(folded):
        return AnswerKind.ABSTAIN
    if _REFUSAL.match(folded):
        return AnswerKind.REFUSAL
    return None

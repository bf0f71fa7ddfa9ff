"""Which maker's models are of one family: a judge should not judge its own (S28)."""

from __future__ import annotations

import re
from collections.abc import Iterable

_FAMILIES = (
    ("openai", r"gpt|chatgpt|davinci|\bo[134]\b|openai"),
    ("anthropic", r"claude|anthropic"),
    ("google", r"gemini|gemma|palm|bard|google"),
    ("meta", r"llama|meta[/-]"),
    ("mistral", r"mi[sx]tral|ministral|codestral"),
    ("alibaba", r"qwen|qwq"),
    ("deepseek", r"deepseek"),
    ("microsoft", r"\bphi-?\d|microsoft"),
    ("xai", r"grok|\bxai\b"),
    ("cohere", r"command-|cohere"),
)


def family_of(model: str) -> str:
    """
    Return the family of a model by its name; of a name that nobody knows, the name itself.

    A fine-tune counts as what it was tuned from where its name says so.
    """
    for family, words in _FAMILIES:
        if re.search(words, model, re.IGNORECASE):
            return family
    return model.casefold()


def own_family(judge: str, models: Iterable[str]) -> list[str]:
    """Return those of ``models`` that are of the judge's family, sorted, each once."""
    mine = family_of(judge)
    return sorted({model for model in models if model and family_of(model) == mine})

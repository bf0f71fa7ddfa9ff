"""Kinds of comparison as starting points of the set-up page: documents to be changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Right with probability 0.6, with errors in common, ready to follow: costs nothing, needs no key.
MODEL = "simulated:accuracy=0.6,correlation=0.3,conformity=0.4,churn=0.1,seed=7"
CAPS = {"microusd_per_run": 50_000, "output_tokens_per_run": 20_000, "microusd_total": 5_000_000}

#: Ties abstain in every arm, so that the same initial answers make the same z⁰ (S27).
_DEBATE: dict[str, Any] = {
    "name": "debate",
    "protocol": "du_2023_corrected",
    "models": {"default": MODEL},
}
_VOTE: dict[str, Any] = {
    "name": "vote",
    "protocol": "self_consistency",
    "match": {"arm": "debate", "by": "output_tokens"},
}
_ALONE: dict[str, Any] = {
    "name": "revise-alone",
    "protocol": "independent_revision",
    "branch_from": {"arm": "debate"},
}
_SINGLE: dict[str, Any] = {"name": "single", "protocol": "single", "models": {"default": MODEL}}
_REFINE: dict[str, Any] = {
    "name": "self-refine",
    "protocol": "self_refine",
    "models": {"default": MODEL},
}


def _start(
    name: str, arms: list[dict[str, Any]], contrasts: list[list[str]], **budget: int
) -> dict[str, Any]:
    return {
        "name": name,
        "seeds": [1],
        "arms": arms,
        "budget": budget,
        "analysis": {
            "primary": ["accuracy_T"],
            "contrasts": contrasts,
            "family": "holm",
            "alpha": 0.05,
        },
        "concurrency": 16,
    }


#: By the word in the address: what it asks, and the document.
STARTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "peers": (
        "Does reading peers help, beyond revising alone?",
        _start(
            "peers",
            [_DEBATE, _ALONE, _VOTE],
            [["debate", "revise-alone"], ["debate", "vote"]],
            microusd_total=CAPS["microusd_total"],
        ),
    ),
    "budget": (
        "What does the same budget buy otherwise?",
        _start(
            "same-budget",
            [_DEBATE, _VOTE, _REFINE, _SINGLE],
            [["debate", "vote"], ["debate", "self-refine"]],
            **CAPS,
        ),
    ),
    "single": (
        "How right is one answer?",
        _start("single", [_SINGLE], [], microusd_total=CAPS["microusd_total"]),
    ),
}


def trying(protocol: str) -> dict[str, Any]:
    """Return a document that asks what a protocol gives beside as many independent answers."""
    tried = {"name": protocol, "protocol": protocol, "models": {"default": MODEL}}
    vote = {**_VOTE, "match": {"arm": protocol, "by": "output_tokens"}}
    contrasts = [[protocol, vote["name"]]]
    return _start(
        f"try-{protocol}", [tried, vote], contrasts, microusd_total=CAPS["microusd_total"]
    )

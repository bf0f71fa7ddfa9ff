"""Attempts and outcomes as the ledger takes them, without a round around them."""

from __future__ import annotations

from itertools import count
from typing import Any

from runs.engine.ledger import Amount, Price, Settlement, settlement
from runs.providers.base import Usage
from runs.services.ledger import AttemptDraft, OutcomeDraft

_ordinals = count()
#: One micro-USD an output token; input costs nothing.
PRICE = Price(0, 0, 1_000_000)


def attempt_draft(tokens: int = 10, **parts: Any) -> AttemptDraft:
    """Return an attempt that may use so many output tokens at ``PRICE``."""
    fields: dict[str, Any] = {
        "agent_id": "a",
        "kind": "initial",
        "ordinal": next(_ordinals),
        "request_digest": "0" * 64,
        "model_slot": "default",
        "model": "scripted",
        "prompt": "[]",
        "read_set": "{}",
        "decoding": "{}",
        "parent_version": 0,
        "reserve": Amount(tokens, tokens),
        **parts,
    }
    return AttemptDraft(**fields)


def outcome_draft(
    attempt_id: int, *, reserved: int = 10, used: int | None = None, billed: str = "yes"
) -> OutcomeDraft:
    """Return an ending that used so many tokens; None is a use that nobody knows."""
    usage = Usage(input_tokens=0, output_tokens=used) if used is not None else None
    parts = settlement(reserved=Amount(reserved, reserved), usage=usage, billed=billed, price=PRICE)
    return _ending(attempt_id, parts, used)


def _ending(attempt_id: int, parts: Settlement, used: int | None) -> OutcomeDraft:
    return OutcomeDraft(
        attempt_id=attempt_id,
        status="SUCCEEDED" if used is not None else "TIMEOUT",
        raw=b"",
        finish_reason="stop",
        error_class="",
        error_detail="",
        input_tokens=0,
        cached_tokens=None,
        output_tokens=used,
        reasoning_tokens=None,
        cost_microusd=used,
        latency_milliseconds=1,
        queued_milliseconds=0,
        model_version="m",
        settlement=parts,
    )

"""
Prices and context windows from the table in LiteLLM's package.

It is read as a file: importing the package takes seconds, and resolving a name must not.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any

from runs.engine.ledger import Price

TABLE_NAME = "model_prices_and_context_window_backup.json"

#: Dollars per token to micro-USD per million tokens.
_MICROUSD_PER_MTOK = Decimal(10) ** 12

#: Modes that answer a chat. "responses" models are reached by LiteLLM alone.
_CHAT_MODES = frozenset({"chat", "responses"})


@dataclass(frozen=True, slots=True)
class Listed:
    """What the table says of one model. ``price`` is None where it is not said or zero."""

    provider: str
    mode: str
    price: Price | None
    context_tokens: int | None
    json_schema: bool


@cache
def _table() -> dict[str, dict[str, Any]]:
    spec = importlib.util.find_spec("litellm")  # Finds the package without running it.
    if spec is None or spec.origin is None:
        return {}
    try:
        text = (Path(spec.origin).parent / TABLE_NAME).read_text(encoding="utf-8")
        table = json.loads(text, parse_float=Decimal)
    except (OSError, ValueError):
        return {}
    return {
        name: entry
        for name, entry in table.items()
        if isinstance(entry, dict) and entry.get("mode") in _CHAT_MODES
    }


def names() -> list[str]:
    return list(_table())


@cache
def providers() -> frozenset[str]:
    """Return the names of all providers that the table has a chat model of."""
    return frozenset(str(entry.get("litellm_provider")) for entry in _table().values())


def find(candidates: Iterable[str]) -> Listed | None:
    """Return the entry of the first name that the table has."""
    table = _table()
    for name in candidates:
        if name in table:
            return _listed(table[name])
    return None


def _listed(entry: dict[str, Any]) -> Listed:
    context = entry.get("max_input_tokens") or entry.get("max_tokens")
    return Listed(
        provider=str(entry.get("litellm_provider", "")),
        mode=str(entry.get("mode")),
        price=_price(entry),
        context_tokens=context if isinstance(context, int) else None,
        json_schema=entry.get("supports_response_schema") is True,
    )


def _price(entry: dict[str, Any]) -> Price | None:
    paid_in = _microusd_per_mtok(entry.get("input_cost_per_token"))
    paid_out = _microusd_per_mtok(entry.get("output_cost_per_token"))
    if paid_in is None or paid_out is None or paid_in + paid_out == 0:
        return None  # A zero in the table may mean "unknown"; free is said in our own table.
    cached = _microusd_per_mtok(entry.get("cache_read_input_token_cost"))
    return Price(paid_in, paid_in if cached is None else cached, paid_out)


def _microusd_per_mtok(dollars_per_token: object) -> int | None:
    if dollars_per_token is None or isinstance(dollars_per_token, bool):
        return None
    try:
        exact = Decimal(str(dollars_per_token)) * _MICROUSD_PER_MTOK
        return int(exact.to_integral_value(ROUND_CEILING)) if exact >= 0 else None
    except (InvalidOperation, ValueError, OverflowError):
        return None

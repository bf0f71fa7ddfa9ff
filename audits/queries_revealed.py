"""
What was hidden of items, for people who may see it by now.

The caller hands in items of ``audits.queues.batches.revealed_items`` and no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db.models import QuerySet

from audits.label_cards import letter_of
from audits.queue_models import Item, ItemSecret

Outcome = Literal["consistent", "flipped", "one side failed", "one order only"]
SUCCEEDED = "SUCCEEDED"


@dataclass(frozen=True, slots=True)
class ShownVerdict:
    """One verdict of a judge: the order that it saw and what it said, by the person's letters."""

    order: str
    said: str
    has_failed: bool
    rationale: str


@dataclass(frozen=True, slots=True)
class TwinCard:
    """A judge's verdicts on an item under each order. A failure is never folded into a tie."""

    judge: str
    verdicts: tuple[ShownVerdict, ...]
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Revealed:
    """What was hidden of an item: named facts, the known label, and the judges' verdicts."""

    facts: tuple[tuple[str, str], ...]
    gold: Any = None
    is_gold: bool = False
    twins: tuple[TwinCard, ...] = field(default_factory=tuple)


def secrets_of(items: QuerySet[Item], keys: Sequence[int]) -> dict[int, ItemSecret]:
    """Return the secrets of those of ``keys`` that are among ``items``."""
    among = items.filter(pk__in=keys).values("pk")
    return {secret.item_id: secret for secret in ItemSecret.objects.filter(item__in=among)}


def revealed(secret: ItemSecret, order: Sequence[str]) -> Revealed:
    """Return what was hidden, candidates under the letters in which the person saw them."""
    body = dict(secret.body)
    verdicts = body.pop("verdicts", ())
    gold = body.pop("gold", None)
    body.pop("names", None)  # Those of models and agents, which stand on their own.
    letters = {one: letter_of(n) for n, one in enumerate(order)}
    return Revealed(
        facts=tuple((_words(key), _said(body[key], letters)) for key in sorted(body)),
        gold=letters.get(gold, gold) if isinstance(gold, str) else gold,
        is_gold=secret.is_gold,
        twins=_twins(verdicts, letters),
    )


def _words(key: str) -> str:
    return key.replace("_", " ").capitalize()


def _said(value: Any, letters: Mapping[str, str]) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{letters.get(key, key)}: {_said(value[key], letters)}" for key in value)
    if isinstance(value, list):
        return ", ".join(_said(inner, letters) for inner in value)
    return "–" if value in (None, "") else letters.get(str(value), str(value))


def _twins(verdicts: Iterable[Any], letters: Mapping[str, str]) -> tuple[TwinCard, ...]:
    by_judge: dict[str, list[Mapping[str, Any]]] = {}
    for verdict in verdicts:
        one = verdict if isinstance(verdict, Mapping) else {"verdict": verdict}
        by_judge.setdefault(str(one.get("judge") or "judge"), []).append(one)
    return tuple(
        TwinCard(judge, tuple(_shown(one, letters) for one in ones), _outcome(ones))
        for judge, ones in sorted(by_judge.items())
    )


def _order_of(one: Mapping[str, Any]) -> list[str]:
    return list(one.get("order_shown") or one.get("order") or ())


def _failed(one: Mapping[str, Any]) -> bool:
    return one.get("status", SUCCEEDED) != SUCCEEDED or not one.get("verdict")


def _shown(one: Mapping[str, Any], letters: Mapping[str, str]) -> ShownVerdict:
    has_failed = _failed(one)
    if has_failed:
        said = f"no verdict: {one.get('cause') or one.get('status') or 'unknown cause'}"
    else:
        said = letters.get(str(one["verdict"]), str(one["verdict"]))
    return ShownVerdict(
        order=" then ".join(letters.get(name, "?") for name in _order_of(one)),
        said=said,
        has_failed=has_failed,
        rationale=str(one.get("rationale") or ""),
    )


def _outcome(ones: Sequence[Mapping[str, Any]]) -> Outcome:
    if any(_failed(one) for one in ones):
        return "one side failed"
    if len({one["verdict"] for one in ones}) > 1:
        return "flipped"
    orders = [tuple(_order_of(one)) for one in ones]
    return (
        "consistent"
        if len(ones) > 1 and (len(set(orders)) > 1 or not orders[0])
        else "one order only"
    )

"""
Words in an item that tell who wrote it, or when: masked where the design says so, and counted.

The names of a queue's models and agents are secret themselves. They are read here, on the server,
and only masked texts and counts leave.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from django.db import connection

from audits.labelling.giveaways import giveaways, masked
from audits.queue_models import Item

#: Whose names stand under these keys of a secret. An arm's name may be a plain word: not its.
NAME_KEYS: Final = ("model", "models", "agent", "agents", "agent_id", "names")
#: Lists of an item whose entries have a text of somebody's; the question is nobody's.
TEXTS: Final = ("candidates", "claims", "turns")
_NAMES = """
SELECT DISTINCT (s.body -> k.key)::text FROM audits_itemsecret s
JOIN audits_item i ON i.id = s.item_id
CROSS JOIN unnest(%s::text[]) AS k(key)
WHERE i.queue_id = %s AND s.body ? k.key
"""


@lru_cache(maxsize=64)
def names_in(queue_id: int) -> tuple[str, ...]:
    """Return the names of a queue's models and agents. Items are frozen: read once a process."""
    with connection.cursor() as cursor:
        cursor.execute(_NAMES, [list(NAME_KEYS), queue_id])
        found = [name for (value,) in cursor for name in _strings(json.loads(value))]
    short = [name.rsplit("/", 1)[-1] for name in found]
    return tuple(sorted({name for name in [*found, *short] if len(name) > 1}))


def _strings(value: Any) -> Iterator[str]:
    """Yield texts in lists and in the values of objects: a key is a candidate, not a name."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def masked_item(item: Item) -> dict[str, Any]:
    """Return what the item shows, with giveaways in texts of somebody's replaced by marks."""
    names = names_in(item.queue_id)
    return _changed(item.shown, lambda text: masked(text, names))


def _changed(shown: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    changed = dict(shown)
    if isinstance(shown.get("answer"), str):
        changed["answer"] = change(shown["answer"])
    for key in TEXTS:
        if key in shown:
            changed[key] = [dict(one) | {"text": change(str(one["text"]))} for one in shown[key]]
    return changed


def giveaway_counts(item: Item) -> dict[str, int]:
    """Return how often texts of the item give away identity and time; nothing found is empty."""
    names = names_in(item.queue_id)
    counts: Counter[str] = Counter()

    def count(text: str) -> str:
        counts.update(found.kind for found in giveaways(text, names))
        return text

    _changed(item.shown, count)
    return dict(counts)

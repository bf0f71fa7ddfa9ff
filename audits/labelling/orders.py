"""
In which order a person sees the candidates of an item: drawn, balanced, and stored as displayed.

Orders come in blocks that hold each order once (Latin rows beyond 4 candidates), shuffled by the
queue's seed and the person (S36). After each whole block every order was shown equally often, so
that a person's liking for the left cannot look like a liking for a candidate.
"""

from __future__ import annotations

from itertools import permutations

from runs.engine.hashing import digest

#: All orders up to here; beyond, the rotations of a drawn order.
ALL_ORDERS_TO = 4


def order_for(
    *, candidates: tuple[str, ...], seed: int, person: str, served: int
) -> tuple[str, ...]:
    """
    Return the order of ``candidates`` for the ``served``-th (from 0) item of ``person``.

    ``candidates`` are taken in sorted order, so that the file's order has no say. The result
    depends on the arguments alone.
    """
    names = tuple(sorted(candidates))
    rows = _rows(len(names))
    block, place = divmod(served, len(rows))
    ranked = sorted(
        range(len(rows)), key=lambda row: digest([seed, "order", person, len(names), block, row])
    )
    return tuple(names[index] for index in rows[ranked[place]])


def _rows(k: int) -> list[tuple[int, ...]]:
    if k <= ALL_ORDERS_TO:
        return list(permutations(range(k)))
    return [tuple((start + step) % k for step in range(k)) for start in range(k)]


def turned(order: tuple[str, ...]) -> tuple[str, ...]:
    """Return the order of a swapped second serving: the first serving's, turned round."""
    return tuple(reversed(order))

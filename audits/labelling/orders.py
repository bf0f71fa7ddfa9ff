"""
In which order a person sees the candidates of an item: drawn, balanced, and stored as displayed.

Orders come in blocks that hold each order of a judge's design once (all of them up to four
candidates, a Williams design beyond), shuffled by the queue's seed and the person (S36). After
each whole block every order was shown equally often, so that a person's liking for the left
cannot look like a liking for a candidate.
"""

from __future__ import annotations

from runs.engine.hashing import digest
from runs.engine.presentation import presentation_orders


def order_for(
    *, candidates: tuple[str, ...], seed: int, person: str, served: int
) -> tuple[str, ...]:
    """
    Return the order of ``candidates`` for the ``served``-th (from 0) item of ``person``.

    ``candidates`` are taken in sorted order, so that the file's order has no say. The result
    depends on the arguments alone.
    """
    names = tuple(sorted(candidates))
    rows = presentation_orders(len(names))
    block, place = divmod(served, len(rows))
    ranked = sorted(
        range(len(rows)), key=lambda row: digest([seed, "order", person, len(names), block, row])
    )
    return tuple(names[index] for index in rows[ranked[place]])


def turned(order: tuple[str, ...]) -> tuple[str, ...]:
    """Return the order of a swapped second serving: the first serving's, turned round."""
    return tuple(reversed(order))

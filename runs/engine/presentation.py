"""In which orders a judge sees the candidates of an item (S28)."""

from collections.abc import Sequence
from itertools import permutations

from runs.engine.draws import Draws

#: Up to here every order is shown; 5 candidates have 120.
ALL_ORDERS_TO = 4
PURPOSE = "presentation_orders"

Orders = tuple[tuple[int, ...], ...]


def presentation_orders(k: int, draws: Draws | None = None) -> Orders:
    """Return the orders of ``k`` candidates, each a tuple of candidate indices as shown.

    One candidate has one order, two have both, up to four all; beyond that come the rows of a
    Williams design: K orders for even K, 2K for odd, in which every candidate stands in every
    place equally often and follows every other equally often. With ``draws`` (S36, keyed by the
    item) the candidates are relabelled and the orders shuffled, so that no candidate keeps a
    lot of its own; without, the design stands as it is.
    Raises ValueError below one candidate.
    """
    if k < 1:
        raise ValueError(f"{k} candidates have no order")
    orders = tuple(permutations(range(k))) if k <= ALL_ORDERS_TO else williams(k)
    return orders if draws is None else drawn(orders, k, draws)


def drawn(orders: Sequence[tuple[int, ...]], k: int, draws: Draws) -> Orders:
    """Return a design with its candidates relabelled and its orders shuffled, as drawn (S36)."""
    names = draws.shuffled(range(k), purpose=PURPOSE, agent="candidates")
    relabelled = [tuple(names[index] for index in order) for order in orders]
    return draws.shuffled(relabelled, purpose=PURPOSE, agent="orders")


def williams(k: int) -> Orders:
    """Return a Williams design: balanced for place and for immediate predecessor.

    Source: Williams 1949. The first row is 0, 1, k-1, 2, k-2, …; the others add 1 (mod k); odd k
    needs every row turned round as well.
    """
    first = [0] + [step // 2 + 1 if step % 2 == 0 else k - (step + 1) // 2 for step in range(k - 1)]
    rows = [tuple((value + shift) % k for value in first) for shift in range(k)]
    if k % 2:
        rows += [tuple(reversed(row)) for row in rows]
    return tuple(rows)

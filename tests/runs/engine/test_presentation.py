from collections import Counter
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as hs

from runs.engine.draws import Draws
from runs.engine.presentation import presentation_orders


@pytest.mark.parametrize(
    ("k", "count"), [(1, 1), (2, 2), (3, 6), (4, 24), (5, 10), (6, 6), (7, 14)]
)
def test_all_orders_to_four_candidates_and_a_williams_design_beyond(k: int, count: int) -> None:
    orders = presentation_orders(k)
    assert len(orders) == len(set(orders)) == count
    if k <= 4:
        assert set(orders) == set(permutations(range(k)))


@given(hs.integers(1, 12), hs.none() | hs.integers(0, 9))
def test_every_candidate_stands_everywhere_and_follows_every_other_equally_often(
    k: int, seed: int | None
) -> None:
    orders = presentation_orders(k, None if seed is None else Draws(seed, "item"))
    places = Counter((place, name) for order in orders for place, name in enumerate(order))
    follows = Counter(pair for order in orders for pair in pairwise(order))
    assert len(places) == k * k
    assert len(set(places.values())) == 1
    assert len(follows) == k * (k - 1)
    assert len(set(follows.values())) <= 1


def test_the_draw_depends_on_its_key_alone() -> None:
    one, same, other = (presentation_orders(5, Draws(s, "item")) for s in (1, 1, 2))
    assert one == same != other


def test_no_candidates_have_no_order() -> None:
    with pytest.raises(ValueError, match="0 candidates"):
        presentation_orders(0)

"""Display orders: balanced within a person, and the same whenever they are asked for."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from audits.labelling.orders import order_for, turned
from runs.engine.presentation import presentation_orders


@given(st.integers(2, 6), st.integers(0, 999), st.text(max_size=5), st.integers(1, 4))
def test_after_whole_blocks_each_order_was_shown_equally_often(
    k: int, seed: int, person: str, blocks: int
) -> None:
    names = tuple("abcdef"[:k])
    block = len(presentation_orders(k))
    shown = [
        order_for(candidates=names, seed=seed, person=person, served=i)
        for i in range(block * blocks)
    ]
    assert set(Counter(shown).values()) == {blocks}
    for place in range(k):
        assert len(set(Counter(order[place] for order in shown).values())) == 1


def test_the_order_of_the_file_has_no_say_and_people_differ() -> None:
    def orders(names: tuple[str, ...], person: str) -> list[tuple[str, ...]]:
        return [order_for(candidates=names, seed=1, person=person, served=i) for i in range(40)]

    assert orders(("x", "y"), "ann") == orders(("y", "x"), "ann")
    assert orders(("x", "y"), "ann") != orders(("x", "y"), "bob")


def test_a_swapped_serving_is_the_first_turned_round() -> None:
    assert turned(("a", "b")) == ("b", "a")

"""Drawings: everything lies inside, arrows join circles at their edges, large ones are refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs import drawing

NAMES = st.lists(st.text("abcxyz", min_size=1, max_size=6), min_size=1, max_size=16, unique=True)


@given(NAMES)
def test_every_circle_lies_inside_and_none_covers_another(names: list[str]) -> None:
    made = drawing.topology({name: [n for n in names if n != name] for name in names})
    assert made is not None
    for node in made.nodes:
        assert made.radius <= node.x <= made.width - made.radius
        assert made.radius <= node.y <= made.height - made.radius
    for place, one in enumerate(made.nodes):
        for other in made.nodes[place + 1 :]:
            assert math.hypot(one.x - other.x, one.y - other.y) > 1.6 * made.radius


def test_two_who_read_each_other_share_one_line_with_two_heads() -> None:
    made = drawing.topology({"a": ["b"], "b": ["a"], "c": ["a"]})
    assert made is not None
    assert sorted(line.is_both_ways for line in made.lines) == [False, True]


def test_a_timeline_has_a_circle_for_each_agent_and_round_and_an_arrow_for_each_reading() -> None:
    made = drawing.timeline(["a", "b"], [0, 1, 2], [(1, "a", "b"), (2, "a", "a")])
    assert made is not None
    assert len(made.nodes) == 6
    assert [mark.text for mark in made.marks] == ["t = 0", "t = 1", "t = 2"]
    assert [line.is_own for line in made.lines] == [False, True]


def test_where_rounds_are_left_out_a_timeline_says_so_and_draws_no_arrow_across() -> None:
    made = drawing.timeline(["a", "b"], [0, 1, 8, 9], [(t, "a", "b") for t in range(1, 10)])
    assert made is not None
    assert sorted(mark.text for mark in made.marks) == ["t = 0", "t = 1", "t = 8", "t = 9", "…"]
    assert len(made.lines) == 2
    assert len({line.x1 for line in made.lines}) == 2


@pytest.mark.parametrize("count", [0, drawing.MOST_NODES + 1])
def test_what_cannot_be_drawn_well_is_not_drawn(count: int) -> None:
    names = [f"n{i}" for i in range(count)]
    assert drawing.topology({name: [] for name in names}) is None
    assert drawing.timeline(names, [0, 1], []) is None


def test_a_long_name_is_shortened_in_its_circle_and_whole_beside_it() -> None:
    node = drawing.Node(0, 0, "moderator")
    assert (node.label, node.name) == ("mod…", "moderator")

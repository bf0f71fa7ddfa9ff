"""Who may read whom (S18)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.draws import Draws
from runs.engine.errors import InconsistentInputError
from runs.engine.topology import neighbours
from runs.protocols.spec import Edge, Topology

ABCD = ("a", "b", "c", "d")
DRAWS = Draws(1, "q")


def reads(agent_ids: tuple[str, ...] = ABCD, **fields: object) -> dict[str, tuple[str, ...]]:
    return neighbours(Topology(**fields), agent_ids, DRAWS)  # type: ignore[arg-type]


def test_everyone_reads_all_others_in_a_full_graph() -> None:
    assert reads(kind="full")["b"] == ("a", "c", "d")


def test_nobody_reads_anybody_in_none() -> None:
    assert set(reads(kind="none").values()) == {()}


def test_a_ring_is_read_in_both_directions_or_from_the_predecessor_only() -> None:
    assert reads(kind="ring")["a"] == ("b", "d")
    assert reads(kind="ring", bidirectional=False)["a"] == ("d",)
    assert reads(("a", "b"), kind="ring")["a"] == ("b",)
    assert reads(("a",), kind="ring")["a"] == ()


def test_the_centre_of_a_star_reads_all_and_is_read_by_all() -> None:
    star = reads(kind="star", hub="c")
    assert star["c"] == ("a", "b", "d")
    assert star["a"] == star["b"] == star["d"] == ("c",)
    assert reads(kind="star")["a"] == ("b", "c", "d")


def test_groups_read_within_and_those_in_no_group_read_nobody() -> None:
    groups = reads(kind="groups", groups=(("a", "c"), ("b",)))
    assert groups == {"a": ("c",), "b": (), "c": ("a",), "d": ()}


def test_custom_edges_point_from_source_to_reader() -> None:
    edges = (Edge(source="d", reader="a"), Edge(source="b", reader="a"))
    assert reads(kind="custom", edges=edges) == {"a": ("b", "d"), "b": (), "c": (), "d": ()}


def test_an_edge_to_an_unknown_agent_is_refused_by_name() -> None:
    with pytest.raises(InconsistentInputError, match="zoe"):
        reads(kind="custom", edges=(Edge(source="zoe", reader="a"),))


def test_twice_the_same_agent_is_refused() -> None:
    with pytest.raises(InconsistentInputError, match="distinct"):
        reads(("a", "a"))


@pytest.mark.parametrize("k", [4, 7])
def test_a_degree_that_the_agents_cannot_have_is_refused(k: int) -> None:
    with pytest.raises(InconsistentInputError, match=f"k = {k}"):
        reads(kind="k_regular", k=k)


def reachable(graph: dict[str, tuple[str, ...]], start: str) -> set[str]:
    seen, todo = {start}, [start]
    while todo:
        todo.extend(new := [j for j in graph[todo.pop()] if j not in seen])
        seen.update(new)
    return seen


@given(n=st.integers(2, 14), seed=st.integers(0, 2**32), data=st.data())
def test_k_regular_gives_everyone_k_sources_and_k_readers_and_connects_all(
    n: int, seed: int, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, n - 1))
    ids = tuple(f"agent{i}" for i in range(n))
    graph = neighbours(Topology(kind="k_regular", k=k), ids, Draws(seed, "q"))
    assert all(len(sources) == k for sources in graph.values())
    read_by = [sum(j in sources for sources in graph.values()) for j in ids]
    assert read_by == [k] * n
    assert all(j not in graph[j] for j in ids)
    assert all(reachable(graph, j) == set(ids) for j in ids)


def test_k_regular_is_drawn_from_the_seed_and_the_question() -> None:
    ids = tuple(f"agent{i}" for i in range(12))
    topology = Topology(kind="k_regular", k=3)

    def draw(seed: int, question: str) -> dict[str, tuple[str, ...]]:
        return neighbours(topology, ids, Draws(seed, question))

    assert draw(1, "q") == draw(1, "q")
    assert len({str(draw(seed, question)) for seed in range(5) for question in "pq"}) == 10

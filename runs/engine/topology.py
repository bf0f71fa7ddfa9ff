"""
Who may read whom (S18). An edge j → i means that i reads j.

A topology only permits: selection (S19) decides what of a permitted source is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from runs.engine.draws import Draws
from runs.engine.errors import InconsistentInputError
from runs.protocols.spec import Topology

#: Reader → the sources it may read.
Graph = dict[str, set[str]]


def neighbours(
    topology: Topology, agent_ids: Sequence[str], draws: Draws
) -> dict[str, tuple[str, ...]]:
    """
    Return for every agent the sources that it may read, in the order of ``agent_ids``.

    ``draws`` is used by ``k_regular`` alone; the graph depends on nothing else, so that it is
    the same in every round of a run. No agent is its own source.
    Raises InconsistentInputError for a k that these agents cannot have, for an unknown id and
    for agents that are not distinct.
    """
    if len(set(agent_ids)) != len(agent_ids):
        raise InconsistentInputError("agent ids are not distinct")
    graph = _GRAPHS[topology.kind](topology, agent_ids, draws)
    _refuse_strangers(graph, agent_ids)
    return {
        reader: tuple(j for j in agent_ids if j in graph.get(reader, set()) and j != reader)
        for reader in agent_ids
    }


def readers_of(
    topology: Topology, agent_ids: Sequence[str], draws: Draws
) -> dict[str, tuple[str, ...]]:
    """Return for each agent those who may read it: the graph of ``neighbours``, turned round."""
    graph = neighbours(topology, agent_ids, draws)
    return {
        source: tuple(reader for reader in agent_ids if source in graph[reader])
        for source in agent_ids
    }


def _full(topology: Topology, agent_ids: Sequence[str], draws: Draws) -> Graph:
    return _cliques([agent_ids])


def _none(topology: Topology, agent_ids: Sequence[str], draws: Draws) -> Graph:
    return {}


def _ring(topology: Topology, agent_ids: Sequence[str], draws: Draws) -> Graph:
    steps = (1, -1) if topology.bidirectional else (1,)
    return _circulant(agent_ids, steps)


def _star(topology: Topology, agent_ids: Sequence[str], draws: Draws) -> Graph:
    hub = topology.hub or agent_ids[0]
    graph: Graph = {agent_id: {hub} for agent_id in agent_ids}
    graph[hub] = set(agent_ids)
    return graph


def _groups(topology: Topology, agent_ids: Sequence[str], draws: Draws) -> Graph:
    return _cliques(topology.groups)


def _custom(topology: Topology, agent_ids: Sequence[str], draws: Draws) -> Graph:
    graph: Graph = {}
    for edge in topology.edges:
        graph.setdefault(edge.reader, set()).add(edge.source)
    return graph


def _k_regular(topology: Topology, agent_ids: Sequence[str], draws: Draws) -> Graph:
    """
    Draw a directed graph in which everyone reads k others and is read by k others.

    A circulant graph on a seeded order of the agents, with the step 1 and k − 1 further steps
    drawn from the rest. Step 1 is a cycle through all agents, so the graph is strongly
    connected for every k and n (docs/decisions/0043).
    """
    n, k = len(agent_ids), topology.k or 0
    if not 1 <= k < n:
        raise InconsistentInputError(f"k_regular needs 1 <= k < {n} agents, not k = {k}")
    circle = draws.shuffled(agent_ids, purpose="k_regular.order")
    further = draws.shuffled(range(2, n), purpose="k_regular.steps")[: k - 1]
    return _circulant(circle, (1, *further))


def _circulant(circle: Sequence[str], steps: Iterable[int]) -> Graph:
    """Return the graph in which each place of a circle reads the places some steps before it."""
    n = len(circle)
    return {
        reader: {circle[(place - step) % n] for step in steps}
        for place, reader in enumerate(circle)
    }


def _cliques(groups: Iterable[Sequence[str]]) -> Graph:
    graph: Graph = {}
    for group in groups:
        for reader in group:
            graph.setdefault(reader, set()).update(group)
    return graph


def _refuse_strangers(graph: Graph, agent_ids: Sequence[str]) -> None:
    named = set(graph).union(*graph.values()) if graph else set()
    strangers = sorted(named - set(agent_ids))
    if strangers:
        raise InconsistentInputError(f"the topology names unknown agents: {', '.join(strangers)}")


_GRAPHS: dict[str, Callable[[Topology, Sequence[str], Draws], Graph]] = {
    "full": _full,
    "none": _none,
    "ring": _ring,
    "star": _star,
    "k_regular": _k_regular,
    "groups": _groups,
    "custom": _custom,
}

"""What a protocol looks like and can cost, before it is run: for the pages that show protocols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runs import drawing
from runs.engine.draws import Draws
from runs.engine.errors import InconsistentInputError, UnsupportedProtocolError
from runs.engine.ledger import Price
from runs.engine.topology import neighbours
from runs.protocols.cost import Bound, Expected, Sizes, bound, expected
from runs.protocols.digest import protocol_hash
from runs.protocols.spec import Protocol
from runs.protocols.support import unsupported

#: Rows of the table of who reads what; beyond, the rounds repeat the last one shown.
MOST_ROUNDS_LISTED = 6
#: A drawn topology differs by run; the pages show the one of this seed.
SHOWN_SEED = 1


@dataclass(frozen=True)
class Question:
    """The question that costs are shown for: its length, and what an answer to it takes."""

    characters: int = 400
    answer_tokens: int = 300


@dataclass(frozen=True)
class Cost:
    """The most that a run can use and what it is expected to use; money is in micro-USD."""

    bound: Bound
    expected: Expected
    bound_microusd: int | None
    expected_microusd: int | None


@dataclass(frozen=True)
class Reading:
    """What one agent is shown in one round, in words."""

    agent_id: str
    peers: str
    own: str


@dataclass(frozen=True)
class Sketch:
    """A valid protocol as a page shows it."""

    protocol: Protocol
    protocol_hash: str
    graph: dict[str, tuple[str, ...]]
    topology: drawing.Drawing | None
    timeline: drawing.Drawing | None
    rounds: tuple[tuple[int, tuple[Reading, ...]], ...]
    rounds_left: int
    unsupported: tuple[str, ...]
    cost: Cost | None
    is_drawn: bool


def sketch(protocol: Protocol, question: Question, price: Price | None) -> Sketch:
    """Return the sketch of ``protocol``; the price, if any, holds for every model slot."""
    graph = _graph(protocol)
    listed = min(protocol.revision_rounds, MOST_ROUNDS_LISTED)
    return Sketch(
        protocol=protocol,
        protocol_hash=protocol_hash(protocol),
        graph=graph,
        topology=drawing.topology(graph),
        timeline=_timeline(protocol, graph),
        rounds=tuple((t, _readings(protocol, graph, t)) for t in range(listed + 1)),
        rounds_left=protocol.revision_rounds - listed,
        unsupported=tuple(unsupported(protocol)),
        cost=_cost(protocol, question, price),
        is_drawn=protocol.topology.kind == "k_regular",
    )


def _graph(protocol: Protocol) -> dict[str, tuple[str, ...]]:
    try:
        return neighbours(protocol.topology, protocol.agent_ids, Draws(SHOWN_SEED, "0" * 64))
    except InconsistentInputError:  # The validator lets pass what only a run can show.
        return dict.fromkeys(protocol.agent_ids, ())


def _timeline(protocol: Protocol, graph: dict[str, tuple[str, ...]]) -> drawing.Drawing | None:
    rounds = min(protocol.revision_rounds + 1, drawing.MOST_COLUMNS)
    edges: list[tuple[int, str, str]] = []
    for t in range(1, rounds):
        for reader, sources in graph.items():
            own = [reader] if _shows_own(protocol) else []
            edges += [(t, reader, source) for source in (*sources, *own)]
    return drawing.timeline(protocol.agent_ids, rounds, edges)


def _shows_own(protocol: Protocol) -> bool:
    return protocol.selection.own_history != "none" or protocol.selection.include_self


def _readings(protocol: Protocol, graph: dict[str, tuple[str, ...]], t: int) -> tuple[Reading, ...]:
    return tuple(
        Reading(agent, _peers(protocol, graph[agent], t), _own(protocol, t))
        for agent in protocol.agent_ids
    )


def _peers(protocol: Protocol, sources: Sequence[str], t: int) -> str:
    if t == 0:
        return "nobody: it answers alone"
    if not sources:
        return "nobody"
    return f"{', '.join(sources)} of {_span(t, is_all=protocol.selection.rounds == 'all')}"


def _own(protocol: Protocol, t: int) -> str:
    if t == 0 or not _shows_own(protocol):
        return "nothing"
    return f"its answer of {_span(t, is_all=protocol.selection.own_history == 'all')}"


def _span(t: int, *, is_all: bool) -> str:
    return f"t = 0 to {t - 1}" if is_all and t > 1 else f"t = {t - 1}"


def _cost(protocol: Protocol, question: Question, price: Price | None) -> Cost | None:
    """Return None where the engine does not run the protocol, so that nothing can be promised."""
    # UTF-8 takes at most 4 bytes a character: a bound has to hold for every alphabet.
    sizes = Sizes(
        question_bytes=question.characters * 4, answer_format_bytes=_format_bytes(protocol)
    )
    try:
        most = bound(protocol, sizes)
    except UnsupportedProtocolError:
        return None
    # The rule of thumb of four characters a token is for display; the bound does not use it.
    likely = expected(
        protocol, q_tokens=max(1, question.characters // 4), a_tokens=question.answer_tokens
    )
    if price is None:
        return Cost(most, likely, None, None)
    prices = dict.fromkeys((*protocol.model_slots, *(c.slot for c in most.per_call)), price)
    return Cost(most, likely, most.microusd(prices), likely.microusd(prices))


def _format_bytes(protocol: Protocol) -> int:
    kinds = ("number", "choice", "yesno", "text", "open")
    return max(len(protocol.answer_format(kind).encode()) for kind in kinds)

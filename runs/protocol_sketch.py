"""What a protocol looks like and can cost, before it is run: for the pages that show protocols."""

from __future__ import annotations

import itertools
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

#: Where there are too many rounds to show, these at the beginning and at the end are.
FIRST_ROUNDS, LAST_ROUNDS = 3, 2
#: Rows of the table of who reads what in which round.
MOST_READINGS = 150
#: Names of peers that a row of the table spells out; the list has all.
MOST_NAMED = 8
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
    """
    A valid protocol as a page shows it.

    ``rounds_undrawn`` and ``rounds_unlisted`` are the first and the last round that the timeline
    and the table leave out. They are like those beside them, and there may be many.
    """

    protocol: Protocol
    protocol_hash: str
    graph: dict[str, tuple[str, ...]]
    topology: drawing.Drawing | None
    timeline: drawing.Drawing | None
    rounds: tuple[tuple[int, tuple[Reading, ...]], ...]
    rounds_undrawn: tuple[int, int] | None
    rounds_unlisted: tuple[int, int] | None
    unsupported: tuple[str, ...]
    cost: Cost | None
    is_drawn: bool


def sketch(protocol: Protocol, question: Question, price: Price | None) -> Sketch:
    """Return the sketch of ``protocol``; the price, if any, holds for every model slot."""
    graph = _graph(protocol)
    arrows = len(_arrows(protocol, graph, 1))
    drawn = _shown(protocol, min(drawing.MOST_COLUMNS, 1 + drawing.MOST_ARROWS // max(1, arrows)))
    listed = _shown(protocol, MOST_READINGS // len(graph))
    return Sketch(
        protocol=protocol,
        protocol_hash=protocol_hash(protocol),
        graph=graph,
        topology=drawing.topology(graph),
        timeline=_timeline(protocol, graph, drawn),
        rounds=tuple((t, _readings(protocol, graph, t)) for t in listed),
        rounds_undrawn=_left_out(drawn),
        rounds_unlisted=_left_out(listed),
        unsupported=tuple(unsupported(protocol)),
        cost=_cost(protocol, question, price),
        is_drawn=protocol.topology.kind == "k_regular",
    )


def _shown(protocol: Protocol, most: int) -> list[int]:
    """Return all rounds, or the first and the last ones where there are more than ``most``."""
    rounds = list(range(protocol.revision_rounds + 1))
    if len(rounds) <= max(most, FIRST_ROUNDS + LAST_ROUNDS):
        return rounds
    return rounds[:FIRST_ROUNDS] + rounds[-LAST_ROUNDS:]


def _left_out(rounds: Sequence[int]) -> tuple[int, int] | None:
    for before, after in itertools.pairwise(rounds):
        if after - before > 1:
            return before + 1, after - 1
    return None


def _graph(protocol: Protocol) -> dict[str, tuple[str, ...]]:
    try:
        return neighbours(protocol.topology, protocol.agent_ids, Draws(SHOWN_SEED, "0" * 64))
    except InconsistentInputError:  # The validator lets pass what only a run can show.
        return dict.fromkeys(protocol.agent_ids, ())


def _timeline(
    protocol: Protocol, graph: dict[str, tuple[str, ...]], rounds: Sequence[int]
) -> drawing.Drawing | None:
    if len(graph) > drawing.MOST_NODES:
        return None
    edges = [edge for t in rounds if t > 0 for edge in _arrows(protocol, graph, t)]
    return drawing.timeline(protocol.agent_ids, rounds, edges)


def _arrows(
    protocol: Protocol, graph: dict[str, tuple[str, ...]], t: int
) -> list[tuple[int, str, str]]:
    """Return (t, reader, source) for each answer of the round before that somebody is shown."""
    own = _shows_own(protocol)
    return [
        (t, reader, source)
        for reader, sources in graph.items()
        for source in (*sources, *([reader] if own else []))
    ]


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
    named = ", ".join(sources)
    if len(sources) > MOST_NAMED:
        everyone = len(sources) == len(protocol.agents) - 1
        named = f"all {len(sources)} others" if everyone else f"its {len(sources)} peers"
    return f"{named} of {_span(t, is_all=protocol.selection.rounds == 'all')}"


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

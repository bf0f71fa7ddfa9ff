"""The rows of a run that we executed, from its records. Pure: no database, no clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from audits.metrics.records import PLURALITY, OutcomeRow, StateRow
from audits.rows.scoring import Scorer
from runs.engine.aggregation import UnsupportedAggregationError, aggregate
from runs.engine.draws import Draws
from runs.engine.types import Outcome, Snapshot, State
from runs.protocols.decisions import Aggregation
from runs.protocols.spec import Protocol


class Verdict(NamedTuple):
    """What became of an agent in a round."""

    status: str
    admitted: bool


def snapshots(protocol: Protocol, states: Sequence[State], rounds: int) -> tuple[Snapshot, ...]:
    """
    Return the states held after each round, carried forward; one empty one of no rounds.

    ``states`` are in the order of their versions. The snapshots are for counting votes: without
    history and hash.
    """
    held: dict[str, State] = {}
    found = []
    for t in range(max(rounds, 1)):
        held |= {state.agent_id: state for state in states if state.round == t}
        ordered = tuple(held[i] for i in protocol.agent_ids if i in held)
        found.append(Snapshot(t=t + 1, states=ordered, history=(), snapshot_hash=""))
    return tuple(found)


def state_rows(
    scorer: Scorer,
    protocol: Protocol,
    after: Sequence[Snapshot],
    verdicts: Mapping[tuple[int, str], Verdict],
) -> tuple[StateRow, ...]:
    """Return one row for every configured agent and time, whether or not it ever answered."""
    rows = []
    for t, snapshot in enumerate(after):
        held = {state.agent_id: state.answer for state in snapshot.states}
        for agent_id in protocol.agent_ids:
            answer = held.get(agent_id)
            silent = "INACTIVE" if answer is None else "NOT_SCHEDULED"
            status, admitted = verdicts.get((t, agent_id), Verdict(silent, admitted=False))
            rows.append(scorer.state(agent_id, t, answer, status=status, admitted=admitted))
    return tuple(rows)


def outcome_rows(
    scorer: Scorer,
    protocol: Protocol,
    after: Sequence[Snapshot],
    *,
    final: Outcome | None,
    draws: Draws,
) -> tuple[OutcomeRow, ...]:
    """
    Return the protocol's own outcome and plurality at every time.

    The votes are counted again by the engine's own functions; at the end ``final`` stands, which
    is what the run answered. A protocol that names no aggregator has plurality alone, and one
    whose aggregator takes calls has its own outcome at the end alone.
    """
    kind = protocol.aggregation.kind
    rows = [] if kind == "none" else list(_own_rows(scorer, protocol, after, final, draws))
    if kind != PLURALITY:
        vote = protocol.model_copy(update={"aggregation": Aggregation(kind=PLURALITY)})
        counted = (_counted(vote, after, t, draws) for t in range(len(after)))
        rows += [_row(scorer, found) for found in counted if found is not None]
    return tuple(rows)


def _own_rows(
    scorer: Scorer,
    protocol: Protocol,
    after: Sequence[Snapshot],
    final: Outcome | None,
    draws: Draws,
) -> Iterator[OutcomeRow]:
    last = len(after) - 1
    for t in range(last if final is not None else last + 1):
        found = _counted(protocol, after, t, draws)
        if found is not None:
            yield _row(scorer, found)
    if final is not None:
        yield scorer.outcome(
            last, protocol.aggregation.kind, final.answer,
            tied=final.tied, unresolved=final.unresolved,
        )  # fmt: skip


def _counted(protocol: Protocol, after: Sequence[Snapshot], t: int, draws: Draws) -> Outcome | None:
    """Return the outcome at ``t``; None where votes alone do not decide."""
    try:
        return aggregate(protocol=protocol, snapshot=after[t], t=t, zero=after[0], draws=draws)
    except UnsupportedAggregationError:
        return None


def _row(scorer: Scorer, found: Outcome) -> OutcomeRow:
    return scorer.outcome(
        found.t, found.aggregator, found.answer, tied=found.tied, unresolved=found.unresolved
    )

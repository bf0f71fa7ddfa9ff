"""
Read buffers (S9): how a snapshot follows from the states that the host admitted.

Every snapshot is a function of the history, so an earlier one can be had back at any time (S6).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runs.engine.hashing import snapshot_hash
from runs.engine.types import Snapshot, State


def initial_snapshot() -> Snapshot:
    """Return the read buffer of t = 0: nobody has said anything (S8)."""
    return _snapshot(0, (), ())


def following_snapshot(
    *, snapshot: Snapshot, admitted: Iterable[State], agent_ids: Sequence[str]
) -> Snapshot:
    """
    Return the read buffer of the next round.

    An agent without a newly admitted state keeps its last valid one (S11). States are ordered
    by the configured agents, whatever the order in which ``admitted`` came (S9).
    """
    history = _ordered((*snapshot.history, *admitted), agent_ids)
    return _snapshot(snapshot.t + 1, _last_of_each(history), history)


def snapshot_at(snapshot: Snapshot, t: int) -> Snapshot:
    """Return the read buffer that round ``t`` had, from the history of a later one."""
    history = tuple(state for state in snapshot.history if state.round < t)
    return _snapshot(t, _last_of_each(history), history)


def restored_snapshot(*, t: int, history: Iterable[State], agent_ids: Sequence[str]) -> Snapshot:
    """Return the read buffer of round ``t`` from stored states, given in any order (S34)."""
    ordered = _ordered((state for state in history if state.round < t), agent_ids)
    return _snapshot(t, _last_of_each(ordered), ordered)


def _snapshot(t: int, states: tuple[State, ...], history: tuple[State, ...]) -> Snapshot:
    return Snapshot(t=t, states=states, history=history, snapshot_hash=snapshot_hash(t, states))


def _ordered(states: Iterable[State], agent_ids: Sequence[str]) -> tuple[State, ...]:
    place = {agent_id: i for i, agent_id in enumerate(agent_ids)}
    return tuple(sorted(states, key=lambda s: (place[s.agent_id], s.state_version)))


def _last_of_each(history: tuple[State, ...]) -> tuple[State, ...]:
    last = {state.agent_id: state for state in history}  # Insertion order is agent order.
    return tuple(last.values())

"""
Runs that start from stored initial answers of another run (``branch_from``).

The states are taken over byte for byte, so that arms differ in what follows and in nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runs.engine.errors import InconsistentInputError
from runs.engine.hashing import content_hash
from runs.engine.snapshots import following_snapshot, initial_snapshot
from runs.engine.stopping import stop_after
from runs.engine.types import RoundCommit, State, Status, Verdict
from runs.protocols.spec import Protocol

BRANCHED = "branched"


def branch_commit(*, protocol: Protocol, states: Iterable[State]) -> RoundCommit:
    """
    Return the commit of t = 0 of a run that branches from ``states``.

    An agent without a state is inactive, as if its own initial call had failed (S12).
    Raises InconsistentInputError for a state that is no initial one, whose content does not have
    its hash, or whose agent is unknown or has another.
    """
    given = _by_agent(protocol, states)
    verdicts = tuple(_verdict(agent_id, given.get(agent_id)) for agent_id in protocol.agent_ids)
    before = initial_snapshot()
    after = following_snapshot(
        snapshot=before, admitted=given.values(), agent_ids=protocol.agent_ids
    )
    active = tuple(state.agent_id for state in after.states)
    stop = stop_after(
        protocol=protocol, t=0, before=before, after=after, verdicts=verdicts, active=active
    )
    return RoundCommit(snapshot=after, verdicts=verdicts, active=active, stop=stop)


def _by_agent(protocol: Protocol, states: Iterable[State]) -> Mapping[str, State]:
    given: dict[str, State] = {}
    for state in states:
        if state.agent_id not in protocol.agent_ids:
            raise InconsistentInputError(f"branched state of unknown agent {state.agent_id!r}")
        if state.agent_id in given:
            raise InconsistentInputError(f"two branched states of agent {state.agent_id!r}")
        if (state.state_version, state.parent_version, state.round) != (1, 0, 0):
            raise InconsistentInputError(f"state of {state.agent_id!r} is no initial answer")
        if state.content_hash != _recomputed(state):
            raise InconsistentInputError(f"state of {state.agent_id!r} is not what was hashed")
        given[state.agent_id] = state
    return given


def _recomputed(state: State) -> str:
    return content_hash(
        text=state.text,
        answer=state.answer,
        raw_hash=state.raw_hash,
        claims=state.claims,
        evidence_refs=state.evidence_refs,
        unresolved=state.unresolved,
    )


def _verdict(agent_id: str, state: State | None) -> Verdict:
    if state is None:
        return Verdict(agent_id=agent_id, t=0, status=Status.INACTIVE, reason=BRANCHED)
    return Verdict(agent_id=agent_id, t=0, status=Status.SUCCEEDED, reason=BRANCHED, state=state)

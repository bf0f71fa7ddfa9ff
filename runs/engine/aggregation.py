"""
Aggregation (S14, S26, S27): from the candidates of a snapshot to one answer.

Only values of agents that vote are votes. The order in which states stand, arrived or were stored
decides nothing: what is tied goes through the protocol's tie policies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from runs.engine.draws import Draws
from runs.engine.errors import EngineError
from runs.engine.types import Answer, AnswerKind, Outcome, Snapshot, State
from runs.protocols.spec import Protocol

#: Purpose of the lot's draw (S36).
TIE = "tie"


class UnsupportedAggregationError(EngineError):
    """The protocol asks for an aggregator or a tie policy that needs more than the votes."""

    code = "unsupported_aggregation"


@dataclass(frozen=True, slots=True)
class _Case:
    """What a rule or a tie policy may look at."""

    protocol: Protocol
    voters: tuple[State, ...]  # In the order of the configured agents.
    zero: Snapshot | None
    draws: Draws
    t: int


Counts = tuple[tuple[str, int], ...]


def aggregate(
    *, protocol: Protocol, snapshot: Snapshot, t: int, zero: Snapshot | None, draws: Draws
) -> Outcome:
    """
    Return the outcome at ``t`` of the candidates in ``snapshot``.

    ``zero`` is the snapshot after t = 0, which the policy ``round_zero_plurality`` looks at.
    Without a winner the answer is ABSTAIN with the reason. Raises UnsupportedAggregationError
    for kinds and policies that take a model call or figures that votes do not hold.
    """
    kind = protocol.aggregation.kind
    if kind == "none":
        return unresolved(
            protocol=protocol, snapshot=snapshot, t=t, issues=("the protocol names no aggregator",)
        )
    rule = _RULES.get(kind)
    if rule is None:
        raise UnsupportedAggregationError(f"aggregation.kind: {kind} is not a count of votes")
    voters = _voters(protocol, snapshot)
    return rule(_Case(protocol, voters, zero, draws, t), counted(voters))


def _voters(protocol: Protocol, snapshot: Snapshot) -> tuple[State, ...]:
    """Return the states of the agents that vote, in the order of the configured agents."""
    states = (snapshot.state_of(agent.id) for agent in protocol.agents if agent.votes)
    return tuple(state for state in states if state is not None)


def counted(states: Sequence[State]) -> Counts:
    """Return the valid votes by value, the most first, equal ones by value."""
    counts = Counter(s.answer.value for s in states if s.answer.is_vote)
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _single(case: _Case, counts: Counts) -> Outcome:
    """The only voting agent's last answer, whatever kind it is."""
    if sum(agent.votes for agent in case.protocol.agents) > 1:
        raise UnsupportedAggregationError("aggregation.kind: single with several voting agents")
    if not case.voters:
        return _outcome(case, counts, _abstention("no valid votes"))
    return _outcome(case, counts, case.voters[0].answer)


def _plurality(case: _Case, counts: Counts) -> Outcome:
    """The most frequent value; equal ones go through the tie policies in order."""
    first = _first_place(counts)
    if not first:
        return _outcome(case, counts, _abstention("no valid votes"))
    if len(first) == 1:
        return _outcome(case, counts, _winner(case, first[0]))
    return _resolved(case, counts, first)


def _strict_majority(case: _Case, counts: Counts) -> Outcome:
    """
    The value of more than half of the valid votes.

    Without one, equal first places go through the tie policies like any tie; a single first
    place that is no majority is an abstention.
    """
    first = _first_place(counts)
    if not first:
        return _outcome(case, counts, _abstention("no valid votes"))
    if counts[0][1] * 2 > sum(n for _, n in counts):
        return _outcome(case, counts, _winner(case, counts[0][0]))
    if len(first) > 1:
        return _resolved(case, counts, first)
    return _outcome(case, counts, _abstention("no strict majority"))


_RULES: dict[str, Callable[[_Case, Counts], Outcome]] = {
    "single": _single,
    "plurality": _plurality,
    "strict_majority": _strict_majority,
}


def _first_place(counts: Counts) -> tuple[str, ...]:
    return tuple(value for value, n in counts if n == counts[0][1])


def _resolved(case: _Case, counts: Counts, tied: tuple[str, ...]) -> Outcome:
    """Put a tie through the policies; one that cannot tell passes it on to the next."""
    for policy in case.protocol.aggregation.tie:
        if policy == "abstain":
            return _outcome(case, counts, _abstention("tied"), tied=True, by=policy)
        if policy not in _POLICIES:
            raise UnsupportedAggregationError(f"aggregation.tie: {policy} takes a model call")
        value = _POLICIES[policy](case, tied)
        if value is not None:
            return _outcome(case, counts, _winner(case, value), tied=True, by=policy)
    return _outcome(case, counts, _abstention("tied"), tied=True)


def _round_zero_plurality(case: _Case, tied: tuple[str, ...]) -> str | None:
    """The tied value with the most votes after t = 0; None where that is tied as well."""
    if case.zero is None:
        return None
    counts = dict(counted(_voters(case.protocol, case.zero)))
    return _unique_best({value: Fraction(counts.get(value, 0)) for value in tied})


def _track_record(case: _Case, tied: tuple[str, ...]) -> str | None:
    """The tied value whose holders' records, as the protocol gives them, sum to the most."""
    records = case.protocol.aggregation.track_record
    sums = dict.fromkeys(tied, Fraction(0))
    for state in case.voters:
        if state.answer.is_vote and state.answer.value in sums:
            # Through text: 0.1 is a tenth here and not the float next to it.
            sums[state.answer.value] += Fraction(str(records.get(state.agent_id, 0)))
    return _unique_best(sums)


def _unique_best(scores: dict[str, Fraction]) -> str | None:
    best = max(scores.values())
    winners = [value for value, score in scores.items() if score == best]
    return winners[0] if len(winners) == 1 else None


def _seeded_lot(case: _Case, tied: tuple[str, ...]) -> str:
    return tied[case.draws.below(len(tied), t=case.t, purpose=TIE)]


def _agent_order(case: _Case, tied: tuple[str, ...]) -> str:
    """The value of the first configured agent that holds a tied one: as published code did."""
    held = (s.answer.value for s in case.voters if s.answer.is_vote)
    return next(value for value in held if value in tied)


_POLICIES: dict[str, Callable[[_Case, tuple[str, ...]], str | None]] = {
    "round_zero_plurality": _round_zero_plurality,
    "track_record": _track_record,
    "seeded_lot": _seeded_lot,
    "agent_order": _agent_order,
}


def _winner(case: _Case, value: str) -> Answer:
    return Answer(
        raw=value, kind=AnswerKind.VALUE, value=value, rule=case.protocol.aggregation.kind
    )


def _abstention(reason: str) -> Answer:
    return Answer(raw="", kind=AnswerKind.ABSTAIN, reason=reason)


def _outcome(
    case: _Case,
    counts: Counts,
    answer: Answer,
    *,
    tied: bool = False,
    by: str = "",
) -> Outcome:
    return Outcome(
        t=case.t,
        aggregator=case.protocol.aggregation.kind,
        answer=answer,
        counts=counts,
        tied=tied,
        tie_resolved_by=by,
    )


def unresolved(
    *, protocol: Protocol, snapshot: Snapshot | None, t: int, issues: Sequence[str]
) -> Outcome:
    """
    Return the local fallback of S14: no answer, the candidates and the open issues.

    ``snapshot`` is None where nothing was admitted. Candidates are (agent, value), or the kind
    of an answer that is no vote, in the order of the configured agents.
    """
    states = snapshot.states if snapshot is not None else ()
    voters = _voters(protocol, snapshot) if snapshot is not None else ()
    by_agent = {state.agent_id: state for state in states}
    ordered = [by_agent[i] for i in protocol.agent_ids if i in by_agent]
    own = [f"{s.agent_id}: {issue}" for s in ordered for issue in s.unresolved]
    return Outcome(
        t=t,
        aggregator=protocol.aggregation.kind,
        answer=_abstention("unresolved"),
        counts=counted(voters),
        unresolved=True,
        candidates=tuple((s.agent_id, s.answer.value or s.answer.kind.value) for s in ordered),
        open_issues=(*issues, *own),
    )

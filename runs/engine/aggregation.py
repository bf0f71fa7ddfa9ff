"""
Aggregation (S14, S26, S27): from the candidates of a snapshot to one answer.

Only values of agents that vote are votes. The order in which states stand, arrived or were stored
decides nothing: what is tied goes through the protocol's tie policies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from runs.engine.draws import Draws
from runs.engine.errors import EngineError
from runs.engine.judge_combining import Decision, JudgeVerdicts, combined
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
    judged: JudgeVerdicts | None


Counts = tuple[tuple[str, int], ...]


def aggregate(
    *,
    protocol: Protocol,
    snapshot: Snapshot,
    t: int,
    zero: Snapshot | None,
    draws: Draws,
    judged: JudgeVerdicts | None = None,
) -> Outcome:
    """
    Return the outcome at ``t`` of the candidates in ``snapshot``.

    ``zero`` is the snapshot after t = 0, which the policy ``round_zero_plurality`` looks at;
    ``judged`` what a judge said of these candidates (S28), empty where there was nothing to ask.
    Without a winner the answer is ABSTAIN with the reason. Raises UnsupportedAggregationError
    for kinds and policies that take figures that votes do not hold, and, without ``judged``, for
    every protocol in which a judge may decide: it was not run on this snapshot.
    """
    kind = protocol.aggregation.kind
    if judged is None and may_judge(protocol):
        raise UnsupportedAggregationError("aggregation.judge: was not asked about these candidates")
    if kind == "none":
        return unresolved(
            protocol=protocol, snapshot=snapshot, t=t, issues=("the protocol names no aggregator",)
        )
    rule = _RULES.get(kind)
    if rule is None:
        raise UnsupportedAggregationError(f"aggregation.kind: {kind} is not a count of votes")
    voters = _voters(protocol, snapshot)
    return rule(_Case(protocol, voters, zero, draws, t, judged), counted(voters))


def may_judge(protocol: Protocol) -> bool:
    """Return whether some end of a run has a judge decide (S28)."""
    return protocol.aggregation.kind == "judge" or "judge" in protocol.aggregation.tie


def judged_candidates(
    *, protocol: Protocol, snapshot: Snapshot, zero: Snapshot | None, t: int, draws: Draws
) -> tuple[str, ...]:
    """
    Return the values that a judge has to decide among; fewer than two leave nothing to ask.

    With kind judge these are the distinct valid votes, in the order of the configured agents who
    hold them first; with the tie policy judge those that are level when its turn comes.
    """
    voters = _voters(protocol, snapshot)
    held = dict.fromkeys(s.answer.value for s in voters if s.answer.is_vote)
    if protocol.aggregation.kind == "judge":
        return tuple(held)
    if "judge" not in protocol.aggregation.tie:
        return ()
    found = _asking(_Case(protocol, voters, zero, draws, t, None), counted(voters))
    return tuple(value for value in held if value in found)


def _asking(case: _Case, counts: Counts) -> tuple[str, ...]:
    """Return the tied values that no policy before the judge's can tell apart."""
    first = _first_place(counts)
    if case.protocol.aggregation.kind not in ("plurality", "strict_majority") or len(first) < 2:
        return ()
    tie = case.protocol.aggregation.tie
    for policy in tie[: tie.index("judge")]:
        if policy not in _POLICIES or _POLICIES[policy](case, first) is not None:
            return ()
    return first


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


def _judge(case: _Case, counts: Counts) -> Outcome:
    """
    The candidate that the judge's verdicts name under the protocol's rule of combination.

    A single candidate needs no judge. Where the rule names none, the outcome is unresolved and
    says why: a flip between orders is a conflict and never a tie (S28).
    """
    candidates = tuple(dict.fromkeys(s.answer.value for s in case.voters if s.answer.is_vote))
    if not candidates:
        return _outcome(case, counts, _abstention("no valid votes"))
    if len(candidates) == 1:
        return _outcome(case, counts, _winner(case, candidates[0]))
    decision = _decision(case, candidates)
    if decision.winner is not None:
        winner = _outcome(case, counts, _winner(case, decision.winner))
        return replace(winner, open_issues=decision.issues)
    answer = Answer(raw="", kind=AnswerKind.ABSTAIN, reason="unresolved")
    return replace(
        _outcome(case, counts, answer),
        unresolved=True,
        candidates=_listed(case.voters),
        open_issues=decision.issues,
    )


def _decision(case: _Case, candidates: tuple[str, ...]) -> Decision:
    settings = case.protocol.aggregation.judge
    if settings is None or case.judged is None:
        raise UnsupportedAggregationError("aggregation.judge: was not asked")
    return combined(settings=settings, candidates=candidates, verdicts=case.judged)


_RULES: dict[str, Callable[[_Case, Counts], Outcome]] = {
    "single": _single,
    "plurality": _plurality,
    "strict_majority": _strict_majority,
    "judge": _judge,
}


def _first_place(counts: Counts) -> tuple[str, ...]:
    return tuple(value for value, n in counts if n == counts[0][1])


def _resolved(case: _Case, counts: Counts, tied: tuple[str, ...]) -> Outcome:
    """Put a tie through the policies; one that cannot tell passes it on to the next."""
    issues: tuple[str, ...] = ()
    answer, by = _abstention("tied"), ""
    for policy in case.protocol.aggregation.tie:
        if policy == "abstain":
            by = policy
            break
        if policy == "judge":
            decision = _decision(case, tied)
            value, issues = decision.winner, decision.issues
        elif policy in _POLICIES:
            value = _POLICIES[policy](case, tied)
        else:
            raise UnsupportedAggregationError(f"aggregation.tie: {policy} takes a model call")
        if value is not None:
            answer, by = _winner(case, value), policy
            break
    return replace(_outcome(case, counts, answer, tied=True, by=by), open_issues=issues)


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
        candidates=_listed(ordered),
        open_issues=(*issues, *own),
    )


def _listed(states: Sequence[State]) -> tuple[tuple[str, str], ...]:
    return tuple((s.agent_id, s.answer.value or s.answer.kind.value) for s in states)

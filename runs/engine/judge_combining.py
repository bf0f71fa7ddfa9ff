"""
From a judge's verdicts to one candidate (S28): explicit rules, and no silent ties.

A verdict that differs with the order shown is a conflict and is said to be one. What failed is
never a verdict: it can only keep a rule from being met, and it is always named. The order in
which verdicts stand or came decides nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from runs.engine.types import JudgeVerdict, Status
from runs.protocols.decisions import JudgeSettings

#: Kinds of what a judge says.
CANDIDATE, TIE, ABSTAIN, SCORE = "candidate", "tie", "abstain", "score"

JudgeVerdicts = Sequence[JudgeVerdict]

_SHOWN_CHARS = 40


@dataclass(frozen=True, slots=True)
class Decision:
    """``winner`` is None where the rule names no candidate; ``issues`` say why, and what failed."""

    winner: str | None
    issues: tuple[str, ...] = ()


def combined(
    *, settings: JudgeSettings, candidates: Sequence[str], verdicts: JudgeVerdicts
) -> Decision:
    """
    Return the candidate that the verdicts name under ``settings.combine``.

    - ``consistent_only``: every presentation has a verdict and all name the same candidate.
    - ``majority``: more than half of all presentations *asked* name it; a failure counts against.
    - ``summed_scores``: most points (a choice 2, a tie 1 for each shown, a score itself), with a
      verdict in every presentation, since points of unequal orders would carry their position.

    Pairwise among more than two, the first two rules are met pair by pair and the winner is the
    candidate that wins each of its pairs. Pointwise, the repeats stand for the presentations:
    each names the candidate with the highest score, level ones are a tie.
    """
    ordered = sorted(verdicts, key=lambda v: (v.order, v.repeat, v.call_id))
    ballots = _pointwise(candidates, ordered) if settings.mode == "pointwise" else _chosen(ordered)
    failures = _failures(ordered)
    if settings.combine == "summed_scores":
        found = _summed(candidates, ordered, failures)
    elif settings.mode == "pairwise" and len(candidates) > 2:
        found = _by_pairs(candidates, ballots, _RULES[settings.combine])
    else:
        found = _RULES[settings.combine](ballots)
    return Decision(found.winner, (*found.issues, *failures))


@dataclass(frozen=True, slots=True)
class _Ballot:
    """One presentation: whom it names, where it names one; ``said`` is empty for a failure."""

    shown: frozenset[str]
    said: str
    choice: str = ""


def _chosen(verdicts: Iterable[JudgeVerdict]) -> list[_Ballot]:
    return [_Ballot(frozenset(v.order), v.said, v.choice) for v in verdicts]


def _pointwise(candidates: Sequence[str], verdicts: Iterable[JudgeVerdict]) -> list[_Ballot]:
    by_repeat: dict[int, dict[str, JudgeVerdict]] = defaultdict(dict)
    for verdict in verdicts:
        by_repeat[verdict.repeat][verdict.order[0]] = verdict
    return [_scored(candidates, by_repeat[repeat]) for repeat in sorted(by_repeat)]


def _scored(candidates: Sequence[str], given: dict[str, JudgeVerdict]) -> _Ballot:
    """Return whom one repeat's scores name; without a score of each they name nobody."""
    everyone = frozenset(candidates)
    said = {given[value].said if value in given else "" for value in candidates}
    if "" in said:
        return _Ballot(everyone, "")
    if ABSTAIN in said:
        return _Ballot(everyone, ABSTAIN)
    scores = {value: given[value].score or 0 for value in candidates}
    best = [value for value, score in scores.items() if score == max(scores.values())]
    return _Ballot(everyone, CANDIDATE, best[0]) if len(best) == 1 else _Ballot(everyone, TIE)


_Rule = Callable[[Sequence[_Ballot]], Decision]


def _consistent_only(ballots: Sequence[_Ballot]) -> Decision:
    said = {(ballot.said, ballot.choice) for ballot in ballots}
    if "" in {kind for kind, _ in said} or not said:
        return Decision(None, (f"judge: not every presentation has a verdict: {_told(ballots)}",))
    if len(said) > 1:
        return Decision(None, (f"judge: conflict between presentations: {_told(ballots)}",))
    ((kind, choice),) = said
    if kind == CANDIDATE:
        return Decision(choice)
    return Decision(None, (f"judge: no candidate is named: {_told(ballots)}",))


def _majority(ballots: Sequence[_Ballot]) -> Decision:
    counts = Counter(ballot.choice for ballot in ballots if ballot.said == CANDIDATE)
    conflict: tuple[str, ...] = ()
    if len({(b.said, b.choice) for b in ballots if b.said}) > 1:
        conflict = (f"judge: conflict between presentations: {_told(ballots)}",)
    for value, named in counts.items():
        if named * 2 > len(ballots):
            return Decision(value, conflict)
    return Decision(None, conflict or (f"judge: no majority of those asked: {_told(ballots)}",))


_RULES: dict[str, _Rule] = {"consistent_only": _consistent_only, "majority": _majority}


def _by_pairs(candidates: Sequence[str], ballots: Sequence[_Ballot], rule: _Rule) -> Decision:
    wins: Counter[str] = Counter()
    issues: list[str] = []
    for pair in combinations(sorted(candidates), 2):
        found = rule([ballot for ballot in ballots if ballot.shown == frozenset(pair)])
        if found.winner is not None:
            wins[found.winner] += 1
        issues += [f"{_named(pair)}: {issue}" for issue in found.issues]
    for value, won in wins.items():
        if won == len(candidates) - 1:
            return Decision(value, tuple(issues))
    if not issues:
        issues.append("judge: conflict: no candidate wins each of its pairs")
    return Decision(None, tuple(issues))


def _summed(
    candidates: Sequence[str], verdicts: JudgeVerdicts, failures: tuple[str, ...]
) -> Decision:
    if failures or not verdicts:
        return Decision(None, ("judge: points of unequal presentations are not compared",))
    points = dict.fromkeys(sorted(candidates), 0)
    for verdict in verdicts:
        for value, gained in _points(verdict):
            points[value] += gained
    ballots = _chosen(verdicts)
    level = [value for value, sum_ in points.items() if sum_ == max(points.values())]
    named = {ballot.choice for ballot in ballots if ballot.said == CANDIDATE}
    conflict = len({(b.said, b.choice) for b in ballots}) > 1 and bool(named)
    told = ", ".join(f"{_short(value)} {sum_}" for value, sum_ in points.items())
    issues = (f"judge: conflict between presentations: {_told(ballots)}",) if conflict else ()
    if len(level) == 1:
        return Decision(level[0], issues)
    return Decision(None, (*issues, f"judge: no candidate has the most points: {told}"))


def _points(verdict: JudgeVerdict) -> Iterable[tuple[str, int]]:
    if verdict.said == SCORE:
        return [(verdict.choice, verdict.score or 0)]
    if verdict.said == CANDIDATE:
        return [(verdict.choice, 2)]
    return [(value, 1) for value in verdict.order] if verdict.said == TIE else []


def _failures(verdicts: JudgeVerdicts) -> tuple[str, ...]:
    """Say which orders failed, how often and why, so that unequal failures are seen."""
    asked = Counter(v.order for v in verdicts)
    failed = Counter(
        (v.order, v.status, v.reason) for v in verdicts if v.status is not Status.SUCCEEDED
    )
    return tuple(
        f"judge: order {_named(order)}: {times} of {asked[order]} without a verdict: "
        f"{status.value}{f' ({_short(reason)})' if reason else ''}"
        for (order, status, reason), times in sorted(failed.items())
    )


def _told(ballots: Sequence[_Ballot]) -> str:
    """Count what was said, in an order of its own."""
    counts = Counter((ballot.said, ballot.choice) for ballot in ballots)
    words = {TIE: "equally good", ABSTAIN: "cannot decide", "": "no verdict"}
    parts = [f"{words.get(kind) or _short(choice)} {n}" for (kind, choice), n in counts.items()]
    return ", ".join(sorted(parts)) or "nothing was asked"


def _named(order: Iterable[str]) -> str:
    return " | ".join(_short(value) for value in order)


def _short(value: str) -> str:
    return value if len(value) <= _SHOWN_CHARS else f"{value[: _SHOWN_CHARS - 1]}…"

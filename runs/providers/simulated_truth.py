"""
The figures that the simulated agents must show, computed exactly.

Assumptions: every agent has the same parameters and a reference; all answer at t = 0 and in
every round (no abstention, no invalid reply); each agent sees the previous round's answers of
all others (``full``) or of none. The wrong values are equally likely. Enumeration is over
(wrong values + 1)^agents joint answers, so keep that below a few thousand.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, Literal

from runs.providers.plausible import WRONG_VALUES
from runs.providers.simulated import SimulatedParams

RIGHT = 0
MAX_STATES = 10_000

#: One answer an agent: 0 is right, 1 … K are the wrong values.
Answers = tuple[int, ...]
Law = dict[Answers, float]


def simulated_truth(
    params: SimulatedParams,
    n_agents: int,
    peers: Literal["full", "none"] = "full",
    rounds: int = 1,
    *,
    wrong_values: int = WRONG_VALUES,
) -> dict[str, Any]:
    """
    Return the expected figures of ``rounds`` revisions by equal simulated agents.

    ``agent_accuracy`` and ``plurality_accuracy`` (ties are wrong) have one entry per t from 0;
    ``repair_t`` and ``damage_t`` one per revision; ``repair_T`` and ``damage_T`` compare t = 0
    with the end; a rate whose denominator is 0 is None.
    Raises ValueError where an assumption of this module does not hold.
    """
    if params.abstain or params.invalid:
        raise ValueError("the exact figures presume no abstention and no invalid reply")
    if n_agents < 1 or rounds < 0 or (wrong_values + 1) ** n_agents > MAX_STATES:
        raise ValueError("too many joint answers to enumerate")
    law = initial_law(params, n_agents, wrong_values)
    joint = {(start, start): weight for start, weight in law.items()}
    steps: dict[Answers, Law] = {}
    accuracy, plurality = [_accuracy(law)], [_plurality(law)]
    repair_t: list[float | None] = []
    damage_t: list[float | None] = []
    for _ in range(rounds):
        steps |= {a: step_law(params, a, peers, wrong_values) for a in law if a not in steps}
        moves = {(a, b): w * p for a, w in law.items() for b, p in steps[a].items()}
        repair_t.append(_rate(moves.items(), wrong_before=True))
        damage_t.append(_rate(moves.items(), wrong_before=False))
        joint = _advance(joint, steps)
        law = _advance_law(law, steps)
        accuracy.append(_accuracy(law))
        plurality.append(_plurality(law))
    return {
        "agent_accuracy": accuracy,
        "plurality_accuracy": plurality,
        "error_correlation": params.correlation,
        "repair_T": _rate(joint.items(), wrong_before=True),
        "damage_T": _rate(joint.items(), wrong_before=False),
        "repair_t": repair_t,
        "damage_t": damage_t,
    }


def initial_law(params: SimulatedParams, n_agents: int, wrong_values: int) -> Law:
    """Return the joint law of the answers at t = 0."""
    own = _single_law(params.accuracy, wrong_values)
    share = math.sqrt(params.correlation)
    law: Law = defaultdict(float)
    for in_common in itertools.product((True, False), repeat=n_agents):
        weight = math.prod(share if b else 1 - share for b in in_common)
        if weight == 0:
            continue
        for answer, probability in own.items():  # What those that draw in common all say.
            if not any(in_common) and answer != RIGHT:
                continue
            chance = weight * (probability if any(in_common) else 1.0)
            parts = [{answer: 1.0} if b else own for b in in_common]
            for answers, p in _independent(parts).items():
                law[answers] += chance * p
    return dict(law)


def _single_law(accuracy: float, wrong_values: int) -> dict[int, float]:
    wrong = dict.fromkeys(range(1, wrong_values + 1), (1 - accuracy) / wrong_values)
    return {RIGHT: accuracy} | wrong


def _independent(parts: Iterable[dict[int, float]]) -> Law:
    return {
        tuple(answer for answer, _ in combination): math.prod(p for _, p in combination)
        for combination in itertools.product(*(part.items() for part in parts))
    }


def step_law(
    params: SimulatedParams, answers: Answers, peers: Literal["full", "none"], wrong_values: int
) -> Law:
    """Return the law of the next answers; given the last ones, agents revise independently."""
    parts = []
    for i, own in enumerate(answers):
        shown = answers[:i] + answers[i + 1 :] if peers == "full" else ()
        parts.append(_revision_law(params, own, shown, wrong_values))
    return _independent(parts)


def _revision_law(
    params: SimulatedParams, own: int, shown: Answers, wrong_values: int
) -> dict[int, float]:
    plurality = _unique_plurality(shown)
    conform = params.conformity if plurality is not None else 0.0
    churn = (1 - conform) * params.churn
    law: dict[int, float] = defaultdict(float)
    law[own] += 1 - conform - churn
    if plurality is not None:
        law[plurality] += conform
    for answer, probability in _single_law(params.accuracy, wrong_values).items():
        law[answer] += churn * probability
    return {answer: p for answer, p in law.items() if p > 0}


def _unique_plurality(answers: Answers) -> int | None:
    ranked = Counter(answers).most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def _advance(
    joint: dict[tuple[Answers, Answers], float], steps: dict[Answers, Law]
) -> dict[tuple[Answers, Answers], float]:
    moved: dict[tuple[Answers, Answers], float] = defaultdict(float)
    for (start, now), weight in joint.items():
        for then, p in steps[now].items():
            moved[start, then] += weight * p
    return dict(moved)


def _advance_law(law: Law, steps: dict[Answers, Law]) -> Law:
    moved: Law = defaultdict(float)
    for now, weight in law.items():
        for then, p in steps[now].items():
            moved[then] += weight * p
    return dict(moved)


def _accuracy(law: Law) -> float:
    return sum(w * answers.count(RIGHT) / len(answers) for answers, w in law.items())


def _plurality(law: Law) -> float:
    return sum(w for answers, w in law.items() if _unique_plurality(answers) == RIGHT)


def _rate(
    moves: Iterable[tuple[tuple[Answers, Answers], float]], *, wrong_before: bool
) -> float | None:
    """Return P(correctness changed | wrong before), or given right before, over agents."""
    eligible = changed = 0.0
    for (before, after), weight in moves:
        for b, a in zip(before, after, strict=True):
            if (b != RIGHT) == wrong_before:
                eligible += weight
                changed += weight * ((a == RIGHT) == wrong_before)
    return changed / eligible if eligible > 0 else None

"""Short spellings of runs: correctness matrices and answers in, rows out."""

from collections.abc import Mapping, Sequence

from audits.metrics.figures import Figure
from audits.metrics.records import PLURALITY, OutcomeRow, RunRow, StateRow, Usage


def state(
    agent: str,
    t: int,
    correct: bool | None,
    *,
    answer: str | None = "",
    status: str = "SUCCEEDED",
    abstains: bool = False,
) -> StateRow:
    """A state; the default answer tells right from wrong, and a failed status admits nothing."""
    shown = ("right" if correct else f"wrong-{agent}") if answer == "" else answer
    return StateRow(agent, t, shown, abstains, correct, status, status == "SUCCEEDED")


def outcome(t: int, z: int, *, aggregator: str = PLURALITY, **flags: bool) -> OutcomeRow:
    answer = None if flags.get("abstained") or flags.get("unresolved") else "x"
    return OutcomeRow(
        t,
        aggregator,
        answer,
        bool(z),
        flags.get("tied", False),
        flags.get("abstained", False),
        flags.get("unresolved", False),
    )


def run(
    question: str,
    states: Sequence[StateRow] = (),
    outcomes: Sequence[OutcomeRow] = (),
    *,
    agents: Sequence[str] | None = None,
    rounds: int = 2,
    seed: int = 1,
    family: str | None = None,
    condition: str = "debate",
    branch_of: str | None = None,
    stratum: str | None = None,
    usage: Usage | None = None,
) -> RunRow:
    names = agents if agents is not None else sorted({s.agent_id for s in states})
    return RunRow(
        run_key=f"{condition}/{question}/{seed}",
        condition=condition,
        question_id=question,
        family=family or question,
        stratum=stratum,
        seed=seed,
        agent_ids=tuple(names),
        rounds_opened=rounds,
        states=tuple(states),
        outcomes=tuple(outcomes),
        stop_reason="round_limit",
        usage=usage or Usage(),
        branch_of=branch_of,
    )


def trajectory(
    question: str,
    rounds: Sequence[Sequence[int]],
    z: Sequence[int] | None = None,
    *,
    seed: int = 1,
    family: str | None = None,
    condition: str = "debate",
    branch_of: str | None = None,
    stratum: str | None = None,
) -> RunRow:
    """A run from 0/1 correctness by round and agent, and plurality's by round."""
    states = [
        state(f"a{slot}", t, bool(c)) for t, row in enumerate(rounds) for slot, c in enumerate(row)
    ]
    outcomes = [outcome(t, value) for t, value in enumerate(z or ())]
    return run(
        question,
        states,
        outcomes,
        rounds=len(rounds),
        seed=seed,
        family=family,
        condition=condition,
        branch_of=branch_of,
        stratum=stratum,
    )


def trajectories(
    before: Sequence[Sequence[int]],
    after: Sequence[Sequence[int]],
    *,
    condition: str = "debate",
    branch_of: str | None = None,
) -> list[RunRow]:
    """One run a question from initial and final correctness."""
    return [
        trajectory(
            f"q{i:04}",
            pair,
            condition=condition,
            branch_of=f"{branch_of}/q{i:04}/1" if branch_of else None,
        )
        for i, pair in enumerate(zip(before, after, strict=True))
    ]


def find(
    figures: Sequence[Figure],
    metric: str,
    agg: str | None = None,
    *,
    t: int | None = None,
    by: Mapping[str, str] | None = None,
) -> Figure:
    """Return the one figure of this metric whose ``by`` holds ``by`` (an empty one: exactly)."""
    hits = [
        f
        for f in figures
        if (f.metric, f.agg, f.round) == (metric, agg, t)
        and (dict(f.by) == {} if by == {} else dict(by or {}).items() <= dict(f.by).items())
    ]
    assert hits, f"no figure {metric} {agg} {t} {by}"
    return hits[0]

"""What must hold for any debate at all."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

from audits.metrics import Figure, RunRow, Settings, debate_figures, debate_tables
from audits.metrics.records import STATUSES, StateRow, Usage
from tests.audits.metrics.builders import find, outcome, run, state

QUICK = Settings(resamples=50)
#: Figures of a whole condition on a busy machine take longer than a unit of pure code may.
any_debate = settings(max_examples=40, deadline=None)
FAILURES = ("INVALID", "TIMEOUT", "FAILED", "SKIPPED_BUDGET", "NOT_SCHEDULED")


@hs.composite
def debates(draw: hs.DrawFn, questions: int = 5) -> list[RunRow]:
    """Debates in which any agent may fail at any time, a failed one keeping its state."""
    agents = draw(hs.integers(1, 4))
    runs = []
    for q in range(draw(hs.integers(1, questions))):
        rounds = draw(hs.integers(1, 4))
        for seed in range(draw(hs.integers(1, 2))):
            states = [s for a in range(agents) for s in draw(histories(f"a{a}", rounds))]
            outcomes = [outcome(t, draw(hs.integers(0, 1))) for t in range(rounds)]
            names = [f"a{a}" for a in range(agents)]
            runs.append(run(f"q{q}", states, outcomes, agents=names, rounds=rounds, seed=seed))
    return runs


@hs.composite
def histories(draw: hs.DrawFn, agent: str, rounds: int) -> list[StateRow]:
    rows: list[StateRow] = []
    for t in range(rounds):
        if draw(hs.booleans()) or (t and draw(hs.booleans())):
            rows.append(state(agent, t, draw(hs.booleans())))
        elif not rows:
            rows.append(state(agent, 0, False, answer=None, status=draw(hs.sampled_from(FAILURES))))
        else:
            status = draw(hs.sampled_from(FAILURES))
            rows.append(replace(rows[-1], t=t, status=status, admitted=False))
    return rows


def points(figures: list[Figure]) -> dict[str, float | None]:
    """Everything that has no place in the bootstrap: a resample depends on the order of labels."""
    return {json.dumps([f.metric, f.agg, f.round, sorted(f.by.items())]): f.value for f in figures}


@any_debate
@given(debates())
def test_net_flips_are_the_change_of_accuracy(runs: list[RunRow]) -> None:
    figures = debate_figures(runs, settings=QUICK)
    fixed, broke, before, after = (
        find(figures, metric, "pooled").value or 0.0
        for metric in ("fixed", "broke", "agent_accuracy_0", "agent_accuracy_T")
    )
    assert fixed - broke == pytest.approx(after - before)


@any_debate
@given(debates())
def test_net_flips_telescope_over_the_rounds(runs: list[RunRow]) -> None:
    rows = debate_tables(runs)["transitions"]
    assert isinstance(rows, list)
    whole, *steps = rows
    net = whole["fixed"] - whole["broke"]
    assert sum(step["fixed"] - step["broke"] for step in steps) == net


@any_debate
@given(debates(), hs.permutations(["a0", "a1", "a2", "a3"]))
def test_relabelling_agents_changes_no_figure(runs: list[RunRow], names: list[str]) -> None:
    renamed = dict(zip(["a0", "a1", "a2", "a3"], names, strict=True))
    moved = [
        replace(
            r,
            agent_ids=tuple(renamed[a] for a in r.agent_ids),
            states=tuple(replace(s, agent_id=renamed[s.agent_id]) for s in r.states),
        )
        for r in runs
    ]
    before, after = (
        points([f for f in debate_figures(rows, settings=QUICK) if "agent" not in f.by])
        for rows in (runs, moved)
    )
    assert before == pytest.approx(after)


@any_debate
@given(debates())
def test_order_and_names_of_questions_change_no_figure(runs: list[RunRow]) -> None:
    moved = [
        replace(r, question_id=f"x{9 - int(r.question_id[1:])}", family=f"y{r.family}")
        for r in reversed(runs)
    ]
    before = points(debate_figures(runs, settings=QUICK))
    assert before == pytest.approx(points(debate_figures(moved, settings=QUICK)))


@any_debate
@given(debates(), hs.data())
def test_a_failed_agent_never_raises_accuracy(runs: list[RunRow], data: hs.DataObject) -> None:
    broken = list(runs)
    index = data.draw(hs.integers(0, len(runs) - 1))
    agent = data.draw(hs.sampled_from(runs[index].agent_ids))
    broken[index] = replace(
        runs[index],
        states=tuple(
            replace(s, answer=None, correct=False, admitted=False, status="FAILED")
            if s.agent_id == agent
            else s
            for s in runs[index].states
        ),
    )
    for metric in ("agent_accuracy_0", "agent_accuracy_T"):
        whole = find(debate_figures(runs, settings=QUICK), metric, "pooled")
        hurt = find(debate_figures(broken, settings=QUICK), metric, "pooled")
        assert hurt.den == whole.den
        assert (hurt.value or 0) <= (whole.value or 0) + 1e-12


@any_debate
@given(debates())
def test_a_missing_row_means_the_same_as_a_carried_one(runs: list[RunRow]) -> None:
    sparse = [
        replace(r, states=tuple(s for s in r.states if s.t == 0 or s.status != "NOT_SCHEDULED"))
        for r in runs
    ]
    before = points(debate_figures(runs, settings=QUICK))
    assert before == pytest.approx(points(debate_figures(sparse, settings=QUICK)))


@any_debate
@given(debates())
def test_every_report_is_json_and_every_rate_lies_in_its_interval(runs: list[RunRow]) -> None:
    figures = debate_figures(runs, settings=QUICK)
    text = json.dumps([f.to_json() for f in figures], allow_nan=False)
    json.dumps(debate_tables(runs), allow_nan=False)
    assert '"metric": "repair_T"' in text
    for figure in figures:
        if figure.value is None:
            assert figure.reason
        elif figure.ci and figure.ci_method in {"wilson", "cr1_t"}:
            assert figure.ci[0] - 1e-9 <= figure.value <= figure.ci[1] + 1e-9


@any_debate
@given(debates())
def test_statuses_add_up_to_the_agents_asked(runs: list[RunRow]) -> None:
    rows = debate_tables(runs)["status_by_round"]
    assert isinstance(rows, list)
    assert {row["status"] for row in rows} <= set(STATUSES)
    agents = sum(len(r.agent_ids) for r in runs)
    assert sum(row["n"] for row in rows if row["round"] == 0) == agents


def test_a_large_condition_takes_seconds() -> None:
    rng = np.random.default_rng(1)
    rights = rng.random((2_000, 4, 5)) < 0.6
    runs = [
        run(
            f"q{q:05}",
            [state(f"a{i}", t, bool(rights[q, t, i])) for t in range(4) for i in range(5)],
            [outcome(t, int(rights[q, t].sum() > 2)) for t in range(4)],
            rounds=4,
            usage=Usage(calls=20),
        )
        for q in range(2_000)
    ]
    figures = debate_figures(runs, settings=Settings(resamples=2_000, seed=1))
    repair = find(figures, "repair_T", "pooled", by={})
    assert repair.value == pytest.approx(0.6, abs=0.03)
    assert repair.check is not None
    assert repair.check.ci is not None
    assert repair.ci is not None
    assert repair.check.ci == pytest.approx(repair.ci, abs=0.005)

"""The regression against statsmodels, separation, and what is made of lengths and strengths."""

import math
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm

from audits.metrics import Figure, Settings
from audits.metrics.bradley_terry import bradley_terry_figures
from audits.metrics.judge_length import length_figures
from audits.metrics.judge_preferences import score_totals, self_preference
from audits.metrics.judgments import JudgmentRow
from audits.metrics.labels import LabelRow
from audits.metrics.logistic import Fit, clustered_logistic, is_separated, sigmoid
from runs.engine.draws import Draws
from tests.audits.metrics.builders import find
from tests.audits.metrics.judgment_builders import arranged, row
from tests.audits.metrics.label_builders import label

QUICK = Settings(resamples=50, seed=1)
SYSTEMS = {"a": "alpaca", "b": "bard"}


def test_the_fit_equals_statsmodels_with_clustered_covariance() -> None:
    rng = np.random.default_rng(5)
    x = np.column_stack([np.ones(200), rng.normal(size=200), rng.choice([-0.5, 0.5], 200)])
    wins = rng.choice([0.0, 0.5, 1.0], 200)
    clusters = rng.integers(0, 40, 200)
    fit = clustered_logistic(x, wins, np.ones(200), clusters)
    assert isinstance(fit, Fit)
    oracle = sm.GLM(wins, x, family=sm.families.Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False}, tol=1e-12
    )
    assert fit.beta == pytest.approx(oracle.params, abs=1e-6)
    scale = fit.clusters / (fit.clusters - 1)
    assert fit.covariance == pytest.approx(scale * oracle.cov_params(), abs=1e-6)
    halves = np.concatenate([np.arange(200), np.arange(200)])
    split = clustered_logistic(x[halves], wins[halves], np.full(400, 0.5), clusters[halves])
    assert isinstance(split, Fit)
    assert split.covariance == pytest.approx(fit.covariance)


@pytest.mark.parametrize(
    ("x", "wins", "separated"),
    [
        ([-2, -1, 1, 2], [0, 0, 1, 1], True),
        ([-2, -1, 0, 1, 2], [0, 0, 0.5, 1, 1], True),
        ([-2, -1, 0, 0, 2], [0, 0, 0, 1, 1], True),
        ([-2, -1, 1, 2], [0, 1, 0, 1], False),
        ([-2, -1, 1, 2], [0.5, 0, 1, 1], False),
        ([-1, 1], [0.5, 0.5], False),
    ],
)
def test_separation_is_found_complete_or_not(
    x: list[float], wins: list[float], separated: bool
) -> None:
    columns = np.array([[1.0, value] for value in x])
    assert is_separated(columns, np.array(wins)) is separated


def test_what_cannot_be_fitted_says_why() -> None:
    x = np.ones((4, 1))
    wins = np.array([1.0, 0, 1, 0])
    assert clustered_logistic(x, wins, np.ones(4), np.zeros(4, dtype=np.int64)) == (
        "fewer than two questions"
    )
    twice = np.ones((4, 2))
    assert clustered_logistic(twice, wins, np.ones(4), np.arange(4)) == "collinear"
    assert clustered_logistic(x, np.ones(4), np.ones(4), np.arange(4)) == "separated"


def judged(
    slope: float, *, items: int = 400, models: dict[str, str] | None = None, bias: float = 0.0
) -> list[JudgmentRow]:
    """A judge whose log odds for ``a`` are bias + slope·tanh(Δ/100) + position of one."""
    draws = Draws(11, f"length{slope}")
    rows = []
    for i in range(items):
        delta = 200 * (draws.uniform(t=i, purpose="delta") - 0.5)
        for order in (("a", "b"), ("b", "a")):
            eta = bias + slope * math.tanh(delta / 100) + (0.5 if order[0] == "a" else -0.5)
            chance = float(sigmoid(np.array(eta)))
            wins = draws.uniform(agent=order[0], t=i, purpose="verdict") < chance
            lengths = {"a": 500 + delta, "b": 500.0}
            rows.append(
                row(f"i{i:03}", order, "a" if wins else "b", candidates=("a", "b"),
                    lengths=lengths, models=models or {})
            )  # fmt: skip
    return rows


def figures_of(rows: list[JudgmentRow], labels: list[LabelRow] | None = None) -> list[Figure]:
    items, table = arranged(rows)
    return length_figures(items, table, QUICK, labels or [])


def test_a_judge_that_likes_length_has_a_coefficient_and_a_rate_at_equal_length() -> None:
    figures = figures_of(judged(2.0, models=SYSTEMS, bias=0.8))
    found = find(figures, "length_coefficient")
    assert found.ci is not None
    assert 0.5 < found.ci[0] < (found.value or 0) < found.ci[1] < 4
    assert "association: a longer answer may be better" in found.notes
    one, other = (
        find(figures, "length_controlled_rate", by={"model": name}) for name in SYSTEMS.values()
    )
    assert (one.value or 0) + (other.value or 0) == pytest.approx(1)
    assert one.ci is not None
    assert one.ci[0] < sigmoid(np.array(0.8)) < one.ci[1]


def test_a_judge_blind_to_length_has_a_coefficient_whose_interval_covers_zero() -> None:
    found = find(figures_of(judged(0.0)), "length_coefficient")
    assert found.ci is not None
    assert found.ci[0] < 0 < found.ci[1]


def test_always_the_longer_is_separated_and_gives_no_coefficient() -> None:
    rows = [
        replace(r, verdict="a" if r.lengths["a"] > r.lengths["b"] else "b") for r in judged(0.0)
    ]
    figures = figures_of(rows, [label(r.item_id, "p", "a", kind="pairwise") for r in rows[::2]])
    for metric, reason in (("length_coefficient", "separated"), ("length_excess", "judge: separ")):
        found = find(figures, metric)
        assert found.value is None
        assert (found.reason or "").startswith(reason)


def test_which_candidate_stands_first_in_the_file_does_not_matter() -> None:
    rows = judged(1.0, items=100)
    turned = [replace(r, candidates=("b", "a")) if int(r.item_id[1:]) % 3 == 0 else r for r in rows]
    for models in ({}, SYSTEMS):
        before, after = (
            find(figures_of([replace(r, models=models) for r in given]), "length_coefficient")
            for given in (rows, turned)
        )
        assert before.value == pytest.approx(after.value)
        assert before.ci == pytest.approx(after.ci)


def test_excess_is_the_judges_coefficient_less_the_peoples() -> None:
    rows = judged(2.0)
    agreeing = [
        label(r.item_id, r.order[0], str(r.verdict), kind="pairwise", shown_order=r.order)
        for r in rows
    ]
    same = find(figures_of(rows, agreeing), "length_excess")
    assert same.value == pytest.approx(0, abs=1e-9)
    people = [
        label(r.item_id, r.order[0], str(r.verdict), kind="pairwise", shown_order=r.order)
        for r in judged(0.0)
    ]
    more = find(figures_of(rows, people), "length_excess")
    assert more.ci is not None
    assert 0.5 < more.ci[0] < more.ci[1] < 4
    assert find(figures_of(rows), "length_excess").value is None


def test_without_lengths_or_with_equal_ones_there_is_no_coefficient() -> None:
    rows = judged(1.0, items=5)
    bare = find(figures_of([replace(r, lengths={}) for r in rows]), "length_coefficient")
    equal = [replace(r, lengths={"a": 5, "b": 5}) for r in rows]
    assert "known lengths" in (bare.reason or "")
    assert "equally long" in (find(figures_of(equal), "length_coefficient").reason or "")


def battles(*results: tuple[str, str, str, int]) -> list[JudgmentRow]:
    """``count`` pairs of two systems with one verdict each: (x, y, winner or tie, count)."""
    rows = []
    for x, y, verdict, count in results:
        for i in range(count):
            models = {x: f"m{x}", y: f"m{y}"}
            rows.append(row(f"{x}{y}{verdict}{i}", (x, y), verdict, models=models))
    return rows


def strengths(rows: list[JudgmentRow]) -> dict[str, float | None]:
    items, table = arranged(rows)
    return {f.by["model"]: f.value for f in bradley_terry_figures(items, table, QUICK)}


def test_two_systems_differ_by_the_log_odds_of_their_wins_with_half_ties() -> None:
    found = strengths(battles(("x", "y", "x", 5), ("x", "y", "y", 2), ("x", "y", "tie", 2)))
    assert (found["mx"] or 0) - (found["my"] or 0) == pytest.approx(math.log(6 / 3))
    assert sum(value or 0 for value in found.values()) == pytest.approx(0)


def test_strengths_do_not_depend_on_the_order_in_which_pairs_are_read() -> None:
    rows = battles(
        ("x", "y", "x", 5), ("x", "y", "y", 2), ("y", "z", "y", 4), ("y", "z", "z", 3),
        ("x", "z", "tie", 2), ("x", "z", "z", 1),
    )  # fmt: skip
    renamed = [replace(r, item_id=f"{len(rows) - i:03}") for i, r in enumerate(rows)]
    assert strengths(rows) == pytest.approx(strengths(renamed))
    found = strengths(rows)
    assert (found["mx"] or 0) > (found["my"] or 0)


def test_systems_that_never_met_or_never_lost_have_no_strength() -> None:
    apart = battles(("w", "x", "w", 2), ("w", "x", "x", 1), ("y", "z", "y", 2), ("y", "z", "z", 1))
    items, table = arranged(apart)
    for figure in bradley_terry_figures(items, table, QUICK):
        assert figure.reason == "the systems are not all connected by pairs"
    items, table = arranged(battles(("x", "y", "x", 4)))
    assert {f.reason for f in bradley_terry_figures(items, table, QUICK)} == {"separated"}


def test_g16_self_preference_is_a_difference_of_two_rates() -> None:
    rows = [
        row(f"{gold}{i}", ("a", "b"), verdict, gold=gold, own="a")
        for gold, verdict, count in (("a", "a", 45), ("a", "b", 15), ("b", "b", 20), ("b", "a", 30))
        for i in range(100 * (verdict == "a"), 100 * (verdict == "a") + count)
    ]
    items, table = arranged([*rows, row("t", ("a", "b"), "a", gold="tie", own="a")])
    found = self_preference(items, table, QUICK)
    assert found.value == pytest.approx(0.35)
    assert "45/60 less 20/50" in found.notes
    expected = math.sqrt(110 / 109 * (0.75 * 0.25 / 60 + 0.4 * 0.6 / 50))
    assert found.se_cluster == pytest.approx(expected)
    others = self_preference(
        items, table, QUICK, own_of={item.facts.item_id: "b" for item in items}, by={"judge": "k"}
    )
    assert others.value == pytest.approx(20 / 50 - 45 / 60)
    assert others.by == {"judge": "k"}


def test_without_an_answer_of_its_own_there_is_no_self_preference() -> None:
    items, table = arranged([row("x", ("a", "b"), "a", gold="a")])
    assert self_preference(items, table, QUICK).value is None


def test_scores_are_summed_over_items_after_averaging_repeats_and_orders() -> None:
    rows = [
        row("x", ("a", "b"), "a", scores={"a": 9, "b": 6.5}, models=SYSTEMS),
        row("x", ("b", "a"), "a", candidates=("a", "b"), scores={"a": 8, "b": 7.5}, models=SYSTEMS),
        row("y", ("a", "b"), "tie", scores={"a": 5, "b": 5}, models=SYSTEMS),
        row("z", ("a", "b"), None, models=SYSTEMS),
    ]
    items, _ = arranged(rows)
    totals = {f.by["model"]: (f.value, f.n_questions) for f in score_totals(items, QUICK)}
    assert totals == {"alpaca": (13.5, 2), "bard": (12, 2)}


def test_scores_of_unlike_candidates_or_none_have_no_total() -> None:
    strangers = [
        row("x", ("a", "b"), "a", scores={"a": 1, "b": 0}),
        row("y", ("c", "d"), "c", scores={"c": 1, "d": 0}),
    ]
    (found,) = score_totals(arranged(strangers)[0], QUICK)
    assert found.reason == "the candidates of different items are not the same systems"
    (none,) = score_totals(arranged([row("x", ("a", "b"), "a")])[0], QUICK)
    assert none.value is None

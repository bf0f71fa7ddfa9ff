"""Judges of several candidates, and all figures of a judge together."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, kendalltau

from audits.metrics import Figure, Settings
from audits.metrics.judge_figures import judge_figures, judge_tables
from audits.metrics.judge_many import kendall_tau_b, kendall_w, many_figures
from audits.metrics.judgments import JudgmentRow
from runs.engine.draws import Draws
from runs.engine.presentation import presentation_orders
from tests.audits.metrics.builders import find
from tests.audits.metrics.judgment_builders import arranged, row, twin
from tests.audits.metrics.label_builders import label

QUICK = Settings(resamples=50, seed=1)
NAMES = "vwxyz"


def listwise(
    k: int, choose: Callable[[int, tuple[str, ...]], str | None], items: int = 20
) -> list[JudgmentRow]:
    return [
        row(f"i{i:02}", order, choose(i, order), candidates=tuple(NAMES[:k]))
        for i in range(items)
        for order in (tuple(NAMES[j] for j in o) for o in presentation_orders(k))
    ]


def figures_of(rows: list[JudgmentRow]) -> list[Figure]:
    items, table = arranged(rows)
    return many_figures(items, table, QUICK)


def value(figures: list[Figure], metric: str) -> float | None:
    return find(figures, metric, None if metric.endswith("chi2") else "macro").value


@pytest.mark.parametrize("k", [3, 4, 5])
def test_always_the_first_shown_wins_with_everybody(k: int) -> None:
    figures = figures_of(listwise(k, lambda _, order: order[0]))
    assert value(figures, "modal_winner_share") == pytest.approx(1 / k)
    assert value(figures, "winner_entropy") == pytest.approx(1)
    chi2 = find(figures, "winner_position_chi2")
    assert chi2.paired is not None
    assert chi2.paired.p == pytest.approx(1 / 2000)


@pytest.mark.parametrize("k", [3, 5])
def test_a_judge_of_content_alone_has_one_winner_in_every_order(k: int) -> None:
    figures = figures_of(listwise(k, lambda i, _: NAMES[i % k]))
    assert value(figures, "modal_winner_share") == 1
    assert value(figures, "winner_entropy") == 0
    assert value(figures, "winner_differs") == 0
    chi2 = find(figures, "winner_position_chi2")
    assert chi2.value == pytest.approx(0)
    assert chi2.paired is not None and chi2.paired.p == 1


def test_a_judge_of_chance_has_no_place_effect() -> None:
    draws = Draws(2, "chance")
    rows = listwise(3, lambda i, o: o[draws.below(3, agent="".join(o), t=i, purpose="pick")])
    found = find(figures_of(rows), "winner_position_chi2")
    assert found.paired is not None and found.paired.p is not None
    assert found.paired.p > 0.01


def test_winners_of_two_orders_differ_or_not() -> None:
    rows = [row("x", order, winner, candidates="abc") for order, winner in
            (("abc", "a"), ("bca", "a"), ("cab", "b"))]  # fmt: skip
    figures = figures_of(rows)
    assert value(figures, "winner_differs") == pytest.approx(2 / 3)
    assert value(figures, "modal_winner_share") == pytest.approx(2 / 3)


def test_a_design_with_a_hole_has_no_test_of_places() -> None:
    rows = listwise(3, lambda _, order: order[0])
    broken = [replace(rows[0], verdict=None, status="TIMEOUT"), *rows[1:]]
    found = find(figures_of(broken), "winner_position_chi2")
    assert found.value is None
    assert "equally often" in (found.reason or "")


def test_rankings_by_score_are_compared_between_orders() -> None:
    scores = ({"a": 3, "b": 2, "c": 1}, {"a": 3, "b": 1, "c": 2})
    rows = [
        row("x", order, "a", candidates="abc", scores=each)
        for order, each in zip(("abc", "cba"), scores, strict=True)
    ]
    figures = figures_of(rows)
    assert value(figures, "kendall_tau_b") == pytest.approx(1 / 3)
    assert value(figures, "kendall_w") == pytest.approx(0.75)


def test_tau_and_w_equal_scipy() -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        scores = [rng.integers(0, 4, 5).astype(np.float64) for _ in range(4)]
        tau = kendall_tau_b(scores[0], scores[1])
        oracle = kendalltau(scores[0], scores[1]).statistic
        assert np.isnan(oracle) if tau is None else tau == pytest.approx(float(oracle))
        columns = np.stack(scores)
        expected = friedmanchisquare(*columns.T).statistic / (len(scores) * (5 - 1))
        assert kendall_w(scores) == pytest.approx(float(expected))
    assert kendall_w([np.ones(3), np.ones(3)]) is None


def test_pairs_have_no_figures_of_many() -> None:
    assert figures_of(twin("x", "AB")) == []


#: What formats.md promises of a judge.
PROMISED = {
    "judge_accuracy", "position_consistency", "position_consistency_all", "conflict_rate",
    "half_conflict_rate", "hard_flip_rate", "excess_flip", "preference_fairness", "primacy",
    "recency", "repetition_stability", "invalid_rate", "abstain_rate", "length_coefficient",
    "length_excess", "length_controlled_rate", "self_preference", "score_total",
}  # fmt: skip


@pytest.mark.parametrize("places", [["AB", "BA", "CC", "--"], ["--"], []])
def test_every_promised_figure_is_there_and_leaves_as_json(places: list[str]) -> None:
    rows = [j for i, p in enumerate(places) for j in twin(f"i{i}", p, gold="a")]
    figures = judge_figures(rows, settings=QUICK)
    assert {figure.metric for figure in figures} >= PROMISED
    json.dumps([figure.to_json() for figure in figures], allow_nan=False)
    json.dumps(judge_tables(rows), allow_nan=False)


def test_people_stand_beside_the_judge() -> None:
    rows = [j for i in range(4) for j in twin(f"i{i}", "AB", gold="a")]
    labels = [
        label(f"i{i}", who, "ab"[i % 2], kind="pairwise") for i in range(4) for who in ("p", "q")
    ]
    figures = judge_figures(rows, labels=labels, settings=QUICK)
    found = find(
        figures, "percent_agreement", "pooled", by={"pair": "judge|majority", "order": "all"}
    )
    assert (found.num, found.den, found.source) == (2, 4, "human")


def test_tables_tell_what_became_of_the_orders() -> None:
    refused = replace(twin("y", "AB")[1], verdict=None, status="FAILED", cause="http_403")
    rows = [*twin("w", "AB"), *twin("x", "AA"), twin("y", "AB")[0], refused, *twin("z", "CC")]
    tables = judge_tables(rows)
    assert tables["combined"] == {"conflict": 1, "incomplete": 1, "one_chosen": 1, "tie": 1}
    assert tables["failures"] == [
        {"status": "FAILED", "cause": "http_403", "order": "other", "n": 1}
    ]
    matrix = tables["order_matrix"]
    assert isinstance(matrix, list)
    assert matrix[3] == {
        "item_id": "x", "order": ["b", "a"], "verdicts": ["b"], "wins_by_place": [1, 0],
        "without_verdict": 0,
    }  # fmt: skip

"""Golden value G15, and judges who give probabilities."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hs
from sklearn.metrics import brier_score_loss, log_loss

from audits.metrics import Settings
from audits.metrics.arrays import floats
from audits.metrics.beliefs import BadBeliefError, BeliefRow, belief_figures, belief_tables
from audits.metrics.calibration import (
    bin_of,
    brier,
    brier_parts,
    calibration_columns,
    ece_of_sums,
    log_score,
    reliability_table,
)
from tests.audits.metrics.builders import find

QUICK = Settings(resamples=200, seed=1)
R = floats([0.9] * 4 + [0.6] * 2 + [0.2] * 4)
Y = floats([1, 1, 1, 0, 1, 0, 0, 0, 1, 0])


def test_g15_brier_and_its_parts() -> None:
    parts = brier_parts(R, Y, bins=5)
    found = (parts.brier, parts.reliability, parts.resolution, parts.uncertainty, parts.skill)
    assert found == pytest.approx((0.212, 0.012, 0.05, 0.25, 0.152))
    assert parts.within == pytest.approx(0)
    assert parts.brier == pytest.approx(brier_score_loss(Y, R))


def test_g15_log_loss_and_calibration_error() -> None:
    assert log_score(R, Y).mean() == pytest.approx(0.6324652, abs=1e-6)
    assert log_score(R, Y).mean() == pytest.approx(log_loss(Y, R))
    assert ece_of_sums(calibration_columns(R, Y, bins=5).sum(axis=0)) == pytest.approx(0.1)


def test_g15_every_bin_is_in_the_table_the_empty_ones_too() -> None:
    table = reliability_table(R, Y, bins=5)
    assert [each.n for each in table] == [0, 4, 0, 2, 4]
    assert table[0].mean_y is None and table[0].ci is None
    assert table[1].mean_y == pytest.approx(0.25)


@given(hs.lists(hs.tuples(hs.floats(0, 1), hs.booleans()), min_size=1, max_size=30))
def test_the_parts_add_up_whatever_the_bins_hold(drawn: list[tuple[float, bool]]) -> None:
    r, y = (floats([each[i] for each in drawn]) for i in (0, 1))
    parts = brier_parts(r, y)
    whole = parts.reliability - parts.resolution + parts.uncertainty + parts.within
    assert whole == pytest.approx(parts.brier) == pytest.approx(float(brier(r, y).mean()))


def test_an_edge_belongs_to_the_bin_above_and_dust_moves_nothing() -> None:
    edges = floats([0.6, 0.6000000000000001, 0.3, 0.1 + 0.2, 0.7, 1.0, 0.0])
    assert bin_of(edges).tolist() == [6, 6, 3, 3, 7, 9, 0]


def session(
    name: str, *on_correct: float, assigned: str | None = None, question: str = ""
) -> list[BeliefRow]:
    return [
        BeliefRow(name, question or name, turn, {"x": p, "y": 1 - p}, "x", assigned)
        for turn, p in enumerate(on_correct)
    ]


def test_the_last_belief_of_a_session_counts() -> None:
    figures = belief_figures([*session("s", 0.5, 0.2, 0.9), *session("t", 0.4)], QUICK)
    assert find(figures, "judge_accuracy", "pooled").value == 0.5
    assert find(figures, "brier", "pooled").value == pytest.approx((0.01 + 0.36) / 2)
    expected = -(math.log(0.9) + math.log(0.4)) / 2
    assert find(figures, "log_score", "pooled").value == pytest.approx(expected)
    # Confidence .9 and right, .6 and wrong.
    assert find(figures, "ece").value == pytest.approx((0.1 + 0.6) / 2)


def test_sides_are_told_apart() -> None:
    rows = [
        *(r for i in range(6) for r in session(f"c{i}", 0.8, assigned="correct")),
        *(r for i in range(6) for r in session(f"i{i}", 0.3 + i / 10, assigned="incorrect")),
    ]
    figures = belief_figures(rows, QUICK)
    for side, right in (("correct", 6), ("incorrect", 3)):
        found = find(figures, "judge_accuracy", "pooled", by={"assigned": side})
        assert (found.num, found.den) == (right, 6)
    assert find(figures, "judge_accuracy", "pooled", by={}).value == 0.75
    assert [f.by.get("assigned") for f in figures if f.metric == "ece"] == [
        None, "correct", "incorrect",
    ]  # fmt: skip


def test_a_belief_that_is_undecided_is_not_right() -> None:
    figures = belief_figures(session("s", 0.5), QUICK)
    assert find(figures, "judge_accuracy", "pooled").value == 0


def test_certainty_of_the_wrong_option_is_floored_and_said() -> None:
    found = find(belief_figures(session("s", 0.0), QUICK), "log_score", "pooled")
    assert found.value == pytest.approx(-math.log(0.001))
    assert "1 probabilities counted as 0.001" in found.notes


def test_the_brier_score_stays_between_0_and_1_with_three_options() -> None:
    sure = BeliefRow("s", "s", 0, {"x": 0.0, "y": 1.0, "z": 0.0}, "x")
    assert sure.error == 1
    assert replace(sure, belief={"x": 1.0, "y": 0.0, "z": 0.0}).error == 0


def test_the_turn_that_moved_the_belief_most_is_found() -> None:
    tables = belief_tables([*session("s", 0.5, 0.3, 0.8, 0.7), *session("t", 0.9)])
    moves = tables["largest_moves"]
    assert moves == [{"session_id": "s", "after": 2, "change": pytest.approx(0.5)}]
    turns = tables["beliefs_by_turn"]
    assert isinstance(turns, list)
    assert [(t["after"], t["n"]) for t in turns] == [(0, 2), (1, 1), (2, 1), (3, 1)]
    assert turns[0]["mean_on_correct"] == pytest.approx(0.7)
    json.dumps(tables, allow_nan=False)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([BeliefRow("s", "s", 0, {"x": 0.7, "y": 0.7}, "x")], "no probabilities"),
        ([BeliefRow("s", "s", 0, {"x": np.nan, "y": 1.0}, "x")], "no probabilities"),
        ([BeliefRow("s", "s", 0, {"x": 1.0}, "x")], "no probabilities"),
        ([BeliefRow("s", "s", 0, {"x": 0.5, "y": 0.5}, "z")], "correct option z"),
        (session("s", 0.5) + session("s", 0.6), "two beliefs after one turn"),
        (session("s", 0.5) + session("s", 0.5, 0.6, assigned="correct")[1:], "differ in"),
    ],
)
def test_what_is_no_belief_is_refused_in_one_line(rows: list[BeliefRow], problem: str) -> None:
    with pytest.raises(BadBeliefError, match=problem):
        belief_figures(rows, QUICK)


def test_no_beliefs_give_no_figures() -> None:
    assert {f.reason for f in belief_figures([], QUICK)} == {"no beliefs"}
    assert belief_tables([])["beliefs_by_turn"] == []

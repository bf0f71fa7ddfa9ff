import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hs

from audits.metrics import cost
from audits.metrics.arrays import floats

POINTS = {
    "single": (300, 0.60),
    "sc3": (600, 0.66),
    "refine": (600, 0.66),
    "trig": (900, 0.72),
    "sc6": (1000, 0.72),
    "debate": (1800, 0.71),
}


def test_expected_tokens_g20() -> None:
    debate = cost.debate_tokens(agents=3, rounds=2, prompt_tokens=300, answer_tokens=400)
    assert debate == cost.Tokens(5400, 2400)
    six = cost.sampling_tokens(samples=6, prompt_tokens=300, answer_tokens=400)
    assert six == cost.Tokens(1800, 2400)
    triggered = cost.triggered_tokens(
        agents=3, rounds=2, prompt_tokens=300, answer_tokens=400, agreement=0.8
    )
    assert triggered.input == pytest.approx(1800)
    assert triggered.output == pytest.approx(1440)


def test_samples_matched_by_tokens_and_by_money_differ_g20() -> None:
    debate = cost.debate_tokens(agents=3, rounds=2, prompt_tokens=300, answer_tokens=400)
    sample = cost.sampling_tokens(samples=1, prompt_tokens=300, answer_tokens=400)
    assert cost.matched_samples(debate.output, sample.output) == 6
    assert cost.matched_samples(debate.cost(1, 5), sample.cost(1, 5)) == 7
    assert cost.matched_samples(0.3, 0.1) == 3
    with pytest.raises(ValueError, match="free sample"):
        cost.matched_samples(1, 0)


def test_binary_majority_from_one_pool_g20() -> None:
    assert cost.binary_majority_accuracy(9, 6, 3) == pytest.approx(0.7738095, abs=1e-6)
    assert cost.binary_majority_accuracy(9, 6, 5) == pytest.approx(0.8809524, abs=1e-6)
    assert cost.binary_majority_accuracy(2, 1, 2) == 0.5
    with pytest.raises(ValueError, match="cannot draw 10 of 9"):
        cost.binary_majority_accuracy(9, 6, 10)


@given(hs.integers(1, 12), hs.data())
def test_one_voter_is_as_accurate_as_the_pool(pool: int, data: hs.DataObject) -> None:
    right = data.draw(hs.integers(0, pool))
    assert cost.binary_majority_accuracy(pool, right, 1) == pytest.approx(right / pool)


def test_plurality_of_two_answers_agrees_with_the_exact_majority() -> None:
    answers = np.array([0] * 6 + [1] * 3)
    found = cost.plurality_accuracy(answers, answers == 0, 3, 20_000, np.random.default_rng(1))
    assert found == pytest.approx(0.7738095, abs=0.01)


def test_plurality_needs_less_than_half_when_the_wrong_answers_differ() -> None:
    answers = np.array([0, 0, 1, 2, 3])
    rng = np.random.default_rng(1)
    assert cost.plurality_accuracy(answers, answers == 0, 5, 10, rng) == 1.0
    assert cost.plurality_accuracy(np.array([-1, -1]), np.array([False, False]), 2, 10, rng) == 0


def test_the_pareto_front_keeps_equal_points_g20() -> None:
    costs, accuracy = (floats(column) for column in zip(*POINTS.values(), strict=True))
    front = cost.pareto_front(costs, accuracy)
    kept = [name for name, on_front in zip(POINTS, front, strict=True) if on_front]
    assert kept == ["single", "sc3", "refine", "trig"]


@given(hs.lists(hs.tuples(hs.integers(0, 9), hs.integers(0, 9)), min_size=1, max_size=8))
def test_every_point_off_the_front_is_beaten_by_one_on_it(points: list[tuple[int, int]]) -> None:
    costs, accuracy = (floats(column) for column in zip(*points, strict=True))
    front = cost.pareto_front(costs, accuracy)
    assert front.any()
    for i in np.flatnonzero(~front):
        beaten = (costs[front] <= costs[i]) & (accuracy[front] >= accuracy[i])
        assert beaten.any()


def test_membership_is_a_frequency_over_resamples() -> None:
    rng = np.random.default_rng(2)
    gains = floats(rng.random((50, 2)) < [0.5, 0.52])
    share = cost.front_membership(np.tile([1.0, 2.0], (50, 1)), gains, 400, seed=1)
    assert share[0] == 1.0  # the cheapest is always on the front
    assert 0 < share[1] < 1
    assert not math.isnan(share[1])

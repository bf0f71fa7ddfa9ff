import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hs
from hypothesis.extra import numpy as hnp

from audits.metrics import Settings, debate_figures, debate_tables, dependence
from audits.metrics.arrays import FloatArray, floats
from tests.audits.metrics.builders import find, run, state, trajectory

QUICK = Settings(resamples=500)
EASY, HARD = (1, 3, 3, 9), (9, 3, 3, 1)


def from_joint(counts: tuple[int, int, int, int]) -> FloatArray:
    """Errors of two agents from the counts of both, first only, second only, neither wrong."""
    return floats(np.repeat([[1, 1], [1, 0], [0, 1], [0, 0]], counts, axis=0))


@pytest.mark.parametrize(
    ("rho", "expected"),
    [(0.3, 2.2727273), (0.0, 5.0), (1.0, 1.0), (-0.1, 8.3333333), (-0.3, None)],
)
def test_effective_agents_g13(rho: float, expected: float | None) -> None:
    found = dependence.effective_agents(5, rho)
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-6))


def test_variance_of_the_mean_error_g13() -> None:
    assert dependence.mean_error_variance(0.2, 5, 0.3) == pytest.approx(0.0704)


def test_pooled_phi_holds_the_mixing_of_difficulty_g14() -> None:
    pooled = np.concatenate([from_joint(EASY), from_joint(HARD)])
    assert dependence.mean_phi(dependence.moments(pooled)) == pytest.approx(0.25)
    for stratum in (EASY, HARD):
        assert dependence.mean_phi(dependence.moments(from_joint(stratum))) == pytest.approx(0)
    strata = np.repeat([0, 1], 16)
    assert dependence.within_strata_rho(pooled, strata) == pytest.approx(0)


errors_of_some = hnp.arrays(
    np.float64, hs.tuples(hs.integers(3, 20), hs.integers(2, 5)), elements=hs.sampled_from([0, 1])
)


@given(errors_of_some)
def test_the_sums_give_numpys_covariance_and_correlation(errors: FloatArray) -> None:
    sample = dependence.moments(errors)
    assert sample.covariance == pytest.approx(np.cov(errors.T, ddof=1))
    if not dependence.constant_agents(sample).any():
        phi = floats(np.corrcoef(errors.T))
        off = ~np.eye(errors.shape[1], dtype=np.bool_)
        assert dependence.mean_phi(sample) == pytest.approx(phi[off].mean())


@given(errors_of_some)
def test_n_eff_cov_is_the_formula_at_rho_cov(errors: FloatArray) -> None:
    sample = dependence.moments(errors)
    rho, found = float(dependence.rho_cov(sample)), float(dependence.n_eff_cov(sample))
    expected = None if np.isnan(rho) else dependence.effective_agents(sample.agents, rho)
    if expected is None or expected > 1e6:
        return
    assert found == pytest.approx(expected)


@given(errors_of_some)
def test_icc_is_the_one_way_analysis_of_variance(errors: FloatArray) -> None:
    n, agents = errors.shape
    between = agents * np.var(errors.mean(axis=1), ddof=1)
    within = ((errors - errors.mean(axis=1, keepdims=True)) ** 2).sum() / (n * (agents - 1))
    found = float(dependence.icc1(dependence.moments(errors)))
    scale = between + (agents - 1) * within
    if scale < 1e-9:
        assert np.isnan(found)
    else:
        assert found == pytest.approx((between - within) / scale)


@given(errors_of_some)
def test_repeating_every_run_changes_no_moment(errors: FloatArray) -> None:
    once = dependence.moments(errors)
    thrice = dependence.moments(np.repeat(errors, 3, axis=0), np.full(3 * len(errors), 1 / 3))
    assert thrice.covariance == pytest.approx(once.covariance)
    assert float(thrice.n) == pytest.approx(float(once.n))


def test_constant_agents_are_left_out_of_phi_and_listed() -> None:
    runs = [
        trajectory(f"q{i}", [[c, c, 1]], stratum="s") for i, c in enumerate([0, 1, 1, 0, 1, 0] * 4)
    ]
    phi = find(debate_figures(runs, settings=QUICK), "mean_phi", by={"at": "0"})
    assert phi.value == pytest.approx(1)
    assert any(note.endswith("a2") for note in phi.notes)
    table = debate_tables(runs)["dependence"]
    assert isinstance(table, list)
    assert table[0]["constant_agents"] == ["a2"]
    assert table[0]["phi"][2] == [None, None, None]


def test_no_variation_at_all_is_null() -> None:
    runs = [trajectory(f"q{i}", [[1, 1]]) for i in range(5)]
    figures = debate_figures(runs, settings=QUICK)
    for metric in ("mean_phi", "rho_cov", "icc1", "n_eff_cov", "n_eff_phi"):
        figure = find(figures, metric, by={"at": "0"})
        assert figure.value is None, metric
        assert figure.reason, metric


def test_the_interval_is_a_question_bootstrap_that_covers_the_value() -> None:
    rng = np.random.default_rng(5)
    shared = rng.random(150) < 0.4
    rows = [[int(hard or rng.random() < 0.5) for _ in range(3)] for hard in shared]
    runs = [trajectory(f"q{i:03}", [row]) for i, row in enumerate(rows)]
    rho = find(debate_figures(runs, settings=QUICK), "rho_cov", by={"at": "0"})
    assert rho.ci is not None
    assert rho.value is not None
    assert rho.ci[0] < rho.value < rho.ci[1]
    assert (rho.ci_method, rho.resamples) == ("qboot_percentile", 500)


def test_agents_that_differ_between_questions_have_no_correlation() -> None:
    runs = [trajectory("q0", [[1, 0]]), trajectory("q1", [[1, 0, 1]])]
    figure = find(debate_figures(runs, settings=QUICK), "rho_cov", by={"at": "0"})
    assert figure.reason == "agents differ between questions"


def test_missing_agents_are_wrong_together_but_share_no_answer() -> None:
    states = [
        state("a", 0, False, answer="7"),
        state("b", 0, False, answer="7"),
        state("c", 0, False, answer=None, status="TIMEOUT"),
        state("d", 0, False, answer=None, status="TIMEOUT"),
    ]
    figures = debate_figures([run("q", states, rounds=1)], settings=QUICK)
    same = find(figures, "same_wrong_given_both_wrong", "pooled", by={"at": "0"})
    assert (same.num, same.den) == (1, 6)


def test_difficulty_alone_leaves_no_dependence_within_a_run() -> None:
    # Per question the four runs hold every pair of outcomes once: independent given the question.
    runs = [
        trajectory(f"q{i}", [list(pair)], seed=seed)
        for i in range(3)
        for seed, pair in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)])
    ]
    found = find(debate_figures(runs, settings=QUICK), "within_run_dependence")
    # Four runs without replacement: across them the product mean is (4 - 2)/12 below 1/4.
    assert found.value == pytest.approx(0.25 - (4 - 1) / 12)


def test_shared_runs_leave_dependence_within_a_run() -> None:
    runs = [
        trajectory(f"q{i}", [[c, c]], seed=seed) for i in range(3) for seed, c in enumerate((0, 1))
    ]
    assert find(debate_figures(runs, settings=QUICK), "within_run_dependence").value == 0.5
    alone = find(debate_figures(runs[::2], settings=QUICK), "within_run_dependence")
    assert alone.reason == "every question has one run"

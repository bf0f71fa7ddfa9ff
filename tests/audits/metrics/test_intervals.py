import math
from itertools import product

import numpy as np
import pytest
import scipy.stats as st
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as hs
from statsmodels.stats.proportion import proportion_confint

from audits.metrics import bootstrap, intervals
from audits.metrics.arrays import FloatArray, floats

#: The first call of an oracle imports half a library.
against_an_oracle = settings(max_examples=50, deadline=None)
DELTA = floats([1, 1, 0, 0, 0, 0, -1, 0, -1, 1, 1, 1])
FAMILIES = np.repeat(np.arange(4), 3)
D20 = floats([1, 0, 0, 1, 0, -1, 0, 0, 1, 0, 0, 1, 0, 0, 0, -1, 1, 0, 0, 1])


def all_resamples(size: int) -> FloatArray:
    """Every ordered resample of ``size`` units as weights, [size**size, size]."""
    draws = np.array(list(product(range(size), repeat=size)))
    return floats([np.bincount(row, minlength=size) for row in draws])


def test_the_mean_of_families_has_the_cluster_robust_error_g07() -> None:
    iid = intervals.mean_estimate(DELTA)
    found = intervals.mean_estimate(DELTA, FAMILIES)
    assert iid is not None
    assert iid.se is not None
    assert iid.se == pytest.approx(0.2175971, abs=1e-6)
    assert found is not None
    assert found.se is not None
    assert found.value == pytest.approx(0.25)
    assert found.se == pytest.approx(0.3695593, abs=1e-6)
    assert found.ci == pytest.approx((-0.9261026, 1.4261026), abs=1e-6)
    p = 2 * intervals.t_upper_tail(abs(found.value) / found.se, 3)
    assert p == pytest.approx(0.5472220, abs=1e-6)
    # Miller's form adds the cross products to s²/n, without the factor G/(G-1), here 4/3.
    cross = found.se**2 * 3 / 4 - iid.se**2 * 11 / 12
    assert math.sqrt(iid.se**2 + cross) == pytest.approx(0.3261537, abs=1e-6)
    assert (found.se / iid.se) ** 2 == pytest.approx(2.8844444, abs=1e-6)


def test_the_mean_of_families_equals_least_squares_g07() -> None:
    fit = sm.OLS(DELTA, np.ones(12)).fit(
        cov_type="cluster", cov_kwds={"groups": FAMILIES}, use_t=True
    )
    found = intervals.mean_estimate(DELTA, FAMILIES)
    assert found is not None
    assert found.se == pytest.approx(fit.bse[0], abs=1e-12)
    assert found.ci == pytest.approx(tuple(fit.conf_int()[0]), abs=1e-9)


def test_a_pooled_ratio_equals_least_squares_on_the_eligible_pairs() -> None:
    num, den = floats([1, 3, 0, 2, 0]), floats([2, 3, 0, 4, 1])
    question = np.repeat(np.arange(5), den.astype(int))
    outcome = np.concatenate([[1, 0], [1, 1, 1], [1, 1, 0, 0], [0]])
    fit = sm.OLS(outcome, np.ones(10)).fit(
        cov_type="cluster", cov_kwds={"groups": question}, use_t=True
    )
    found = intervals.ratio_estimate(num, den)
    assert found is not None
    assert found.df == 3  # the question without an eligible agent is no cluster
    assert found.se == pytest.approx(fit.bse[0], abs=1e-12)


def test_exhaustive_resampling_of_a_mean_and_of_a_ratio_g08() -> None:
    weights = all_resamples(4)
    assert len(weights) == 256
    means = bootstrap.percentile_interval(weights @ floats([0, 0.5, 1, 1]) / 4)
    assert means.ci == pytest.approx((0.25, 1))
    assert means.se == pytest.approx(0.2072890, abs=1e-6)
    weights = all_resamples(3)
    ratios = bootstrap.ratio_replicates(weights @ floats([1, 0, 2]), weights @ floats([2, 0, 2]))
    found = bootstrap.percentile_interval(ratios)
    assert found.undefined_share == pytest.approx(1 / 27)
    assert found.ci == pytest.approx((0.5, 1))


def test_the_percentile_bootstrap_agrees_with_scipy_g09() -> None:
    for method in ("percentile", "BCa"):
        oracle = st.bootstrap(
            (D20,), np.mean, n_resamples=10_000, method=method, rng=np.random.default_rng(20260328)
        ).confidence_interval
        assert tuple(oracle) == pytest.approx((-0.05, 0.45), abs=1e-6)
    sums = bootstrap.resampled_sums(D20[:, None], 10_000, seed=20260328)
    assert bootstrap.percentile_interval(sums[:, 0] / 20).ci == pytest.approx(
        (-0.05, 0.45), abs=0.05
    )
    assert intervals.bca_interval(D20, 10_000, 20260328) == pytest.approx((-0.05, 0.45), abs=1e-6)


def test_constant_data_have_no_bootstrap_interval_g09() -> None:
    sums = bootstrap.resampled_sums(np.zeros((5, 1)), 1_000, seed=1)
    found = bootstrap.percentile_interval(sums[:, 0])
    assert found.ci is None
    assert found.reason == "constant in every resample"
    assert intervals.bca_interval(np.zeros(5), 1_000, 1) is None
    constant = intervals.mean_estimate(np.zeros(5))
    assert constant is not None
    assert constant.ci is None


def test_more_than_five_percent_undefined_resamples_give_no_interval() -> None:
    replicates = np.concatenate([np.linspace(0, 1, 94), np.full(6, np.nan)])
    found = bootstrap.percentile_interval(replicates)
    assert found.ci is None
    assert found.undefined_share == pytest.approx(0.06)
    assert bootstrap.percentile_interval(replicates[:98]).ci is not None


def test_weights_are_the_same_in_chunks_as_whole_and_for_equal_seeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = np.concatenate(list(bootstrap.weight_chunks(7, 50, seed=3)))
    monkeypatch.setattr(bootstrap, "_CHUNK_WEIGHTS", 7 * 8)
    chunks = list(bootstrap.weight_chunks(7, 50, seed=3))
    assert len(chunks) == 7
    assert (np.concatenate(chunks) == whole).all()
    assert (whole.sum(axis=1) == 7).all()


def test_bonett_price_g21() -> None:
    found = intervals.bonett_price(12, 4, 100)
    assert found is not None
    assert found.value == pytest.approx(0.08)
    centre, se = intervals.bonett_price_centre(12, 4, 100)
    assert centre == pytest.approx(0.0784314, abs=1e-6)
    assert se == pytest.approx(0.0408631, abs=1e-6)
    assert found.ci == pytest.approx((-0.0016589, 0.1585216), abs=1e-6)
    assert intervals.bonett_price(0, 0, 0) is None


@against_an_oracle
@given(hs.integers(1, 200), hs.data())
def test_wilson_and_clopper_pearson_equal_statsmodels(n: int, data: hs.DataObject) -> None:
    successes = data.draw(hs.integers(0, n))
    for ours, method in ((intervals.wilson, "wilson"), (intervals.clopper_pearson, "beta")):
        assert ours(successes, n) == pytest.approx(
            proportion_confint(successes, n, method=method), abs=1e-9
        )


def test_no_rows_give_no_interval() -> None:
    assert intervals.wilson(0, 0) is None
    assert intervals.clopper_pearson(0, 0) is None
    assert intervals.ratio_estimate(floats([0]), floats([0])) is None


def test_one_cluster_has_a_value_but_no_interval() -> None:
    found = intervals.mean_estimate(floats([1, 0, 1]), np.zeros(3, dtype=np.int64))
    assert found is not None
    assert (found.se, found.ci, found.df) == (None, None, 0)

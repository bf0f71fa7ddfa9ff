import numpy as np
import pytest
import scipy.stats as st
from hypothesis import given, settings
from hypothesis import strategies as hs
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from audits.metrics.arrays import floats
from audits.metrics.hypotheses import benjamini_hochberg, holm, mcnemar_exact, sign_flip

#: The first call of an oracle imports half a library.
against_an_oracle = settings(max_examples=50, deadline=None)


def test_mcnemar_exact_and_mid_p_g10() -> None:
    found = mcnemar_exact(12, 4)
    assert found.p == pytest.approx(0.0768127, abs=1e-6)
    assert found.p_mid == pytest.approx(0.0490417, abs=1e-6)
    assert not found.no_discordant


def test_no_discordant_pair_is_flagged_g10() -> None:
    found = mcnemar_exact(0, 0)
    assert (found.p, found.p_mid, found.no_discordant) == (1.0, 1.0, True)


@against_an_oracle
@given(hs.integers(0, 60), hs.integers(0, 60))
def test_mcnemar_equals_statsmodels(gained: int, lost: int) -> None:
    oracle = mcnemar([[3, gained], [lost, 3]], exact=True).pvalue
    assert mcnemar_exact(gained, lost).p == pytest.approx(oracle, abs=1e-9)


def test_holm_g11() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_an_undefined_p_enters_the_family_as_one() -> None:
    assert holm([0.01, None]) == pytest.approx([0.02, 1.0])
    assert benjamini_hochberg([0.01, None]) == pytest.approx([0.02, 1.0])


@against_an_oracle
@given(hs.lists(hs.floats(0, 1), min_size=1, max_size=12))
def test_corrections_equal_statsmodels(p_values: list[float]) -> None:
    for ours, method in ((holm, "holm"), (benjamini_hochberg, "fdr_bh")):
        oracle = multipletests(p_values, method=method)[1]
        assert ours(p_values) == pytest.approx(list(oracle), abs=1e-12)


def test_sign_flip_is_exhaustive_on_few_questions() -> None:
    values = floats([0.5, 1, -0.5, 1, 0, 1, 0.25])
    oracle = st.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=np.inf
    ).pvalue
    assert sign_flip(values, seed=1) == pytest.approx(oracle)


def test_sign_flip_draws_on_many_questions_and_is_never_zero() -> None:
    values = np.ones(60)
    assert sign_flip(values, seed=1) == pytest.approx(1 / 10_000)
    assert sign_flip(values, seed=1) == sign_flip(values, seed=1)
    mixed = floats([0.5, -0.5, 1, 0.25] * 10)
    oracle = st.permutation_test(
        (mixed,), np.mean, permutation_type="samples", rng=np.random.default_rng(1)
    ).pvalue
    assert sign_flip(mixed, seed=1) == pytest.approx(oracle, abs=0.02)


def test_sign_flip_turns_a_family_as_one() -> None:
    values = floats([1, 1, 1, 1])
    assert sign_flip(values, seed=1) == pytest.approx(2 / 16)
    assert sign_flip(values, seed=1, clusters=np.array([0, 0, 1, 1])) == pytest.approx(0.5)


def test_no_effect_at_all_has_p_one() -> None:
    assert sign_flip(np.zeros(5), seed=1) == 1.0

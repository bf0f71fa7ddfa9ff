import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as hs

from audits.metrics.figures import Check, Figure, PairedTest, plain, plain_interval

CONTRACT_KEYS = {
    "metric", "agg", "round", "by", "num", "den", "value", "ci", "ci_method", "B", "seed",
    "n_questions", "n_undefined", "reason", "source", "rows",
}  # fmt: skip


def test_a_figure_has_the_keys_of_the_report_format() -> None:
    body = Figure("repair_T", "pooled", num=4, den=6, value=4 / 6, ci=(0.1, 0.9)).to_json()
    assert body.keys() >= CONTRACT_KEYS
    assert (body["num"], body["den"], body["ci"]) == (4, 6, [0.1, 0.9])


def test_a_paired_difference_carries_its_test_flat() -> None:
    test = PairedTest(0.04, "mcnemar_exact", 0.09, margin=0.02, p_non_inferior=0.01)
    body = Figure("difference", value=0.1, paired=test).to_json()
    expected = {"p": 0.04, "test": "mcnemar_exact", "mde_80": 0.09, "margin": 0.02}
    assert body.items() >= expected.items()
    assert body["p_holm"] is None


def test_a_null_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Figure("repair_T")


def test_a_zero_denominator_never_has_a_value() -> None:
    with pytest.raises(ValueError, match="zero denominator"):
        Figure("repair_T", num=0, den=0, value=0.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="is not a figure"):
        Figure("rho_cov", value=value)


@given(hs.floats(), hs.floats(), hs.floats())
def test_nothing_that_is_not_finite_leaves_for_json(num: float, low: float, high: float) -> None:
    figure = Figure(
        "x", num=num, reason="r", ci=(low, high), se_cluster=num, check=Check((low, high), "m", num)
    )
    json.dumps(figure.to_json(), allow_nan=False)


def test_counts_stay_integers_and_rates_stay_fractions() -> None:
    assert json.dumps([plain(3.0), plain(0.5), plain(None), plain(math.nan)]) == (
        "[3, 0.5, null, null]"
    )
    assert plain_interval((0.0, math.inf)) is None


def test_sums_of_averaged_runs_leave_without_the_dust_of_binary_fractions() -> None:
    thirds = sum([1 / 3] * 6)
    tenths = sum([0.1] * 3)

    body = Figure("repair_T", num=tenths, den=thirds, value=tenths / thirds).to_json()

    assert thirds != 2 and tenths != 0.3
    assert (body["num"], body["den"]) == (0.3, 2)
    assert isinstance(body["den"], int)

from dataclasses import replace

import pytest

from audits.metrics import Figure, Settings, cost_front, holm_adjust, paired_difference
from audits.metrics.errors import QuestionSetsDifferError, UnpairedMetricError
from audits.metrics.figures import PairedTest
from audits.metrics.records import RunRow, Usage
from tests.audits.metrics.builders import trajectory

QUICK = Settings(resamples=500)


def arm(
    outcomes: list[int], condition: str, *, seed: int = 1, family_size: int = 1
) -> list[RunRow]:
    return [
        trajectory(
            f"q{i:04}", [[z]], [z], condition=condition, seed=seed,
            family=f"f{i // family_size}" if family_size > 1 else None,
        )
        for i, z in enumerate(outcomes)
    ]  # fmt: skip


A = [1] * 12 + [0] * 4 + [1] * 40 + [0] * 44
B = [0] * 12 + [1] * 4 + [1] * 40 + [0] * 44


def test_one_binary_outcome_a_question_is_tested_exactly_g10_g21() -> None:
    figure = paired_difference(arm(A, "a"), arm(B, "b"), "accuracy_T", settings=QUICK)
    assert (figure.num, figure.den, figure.n_questions) == (8, 100, 100)
    assert figure.value == pytest.approx(0.08)
    assert figure.ci == pytest.approx((-0.0016589, 0.1585216), abs=1e-6)
    assert figure.ci_method == "bonett_price"
    assert figure.paired is not None
    assert figure.paired.test == "mcnemar_exact"
    assert figure.paired.p == pytest.approx(0.0768127, abs=1e-6)
    assert figure.paired.p_mid == pytest.approx(0.0490417, abs=1e-6)
    assert figure.paired.mde_80 == pytest.approx(2.8015852 * (0.16 / 100) ** 0.5, abs=1e-6)
    assert figure.check is not None  # the percentile bootstrap stands beside it from 100 on
    assert figure.check.ci == pytest.approx((0, 0.16), abs=0.02)


def test_families_are_clusters_of_a_paired_difference_g07() -> None:
    delta = [1, 1, 0, 0, 0, 0, -1, 0, -1, 1, 1, 1]
    a = arm([max(d, 0) for d in delta], "a", family_size=3)
    b = arm([max(-d, 0) for d in delta], "b", family_size=3)
    figure = paired_difference(a, b, "accuracy_T", settings=QUICK)
    assert figure.value == pytest.approx(0.25)
    assert figure.se_cluster == pytest.approx(0.3695593, abs=1e-6)
    assert figure.ci == pytest.approx((-0.9261026, 1.4261026), abs=1e-6)
    assert figure.ci_method == "cr1_t"
    assert figure.n_clusters == 4
    assert figure.paired is not None
    assert figure.paired.test == "sign_flip"
    assert "few questions" in figure.notes


def test_repeats_make_fractional_differences_of_the_same_questions() -> None:
    a = [*arm([1, 1, 0, 1], "a"), *arm([1, 0, 0, 1], "a", seed=2)]
    b = [*arm([0, 1, 0, 0], "b"), *arm([0, 1, 0, 0], "b", seed=2)]
    figure = paired_difference(a, b, "accuracy_T", settings=QUICK)
    assert figure.den == 4
    assert figure.value == pytest.approx((1 - 0.5 + 0 + 1) / 4)
    assert figure.paired is not None
    assert figure.paired.test == "sign_flip"


def test_non_inferiority_needs_a_margin_declared_before() -> None:
    a, b = arm(A, "a"), arm(B, "b")
    plain = paired_difference(b, a, "accuracy_T", settings=QUICK)
    wide = paired_difference(b, a, "accuracy_T", margin=0.2, settings=QUICK)
    narrow = paired_difference(b, a, "accuracy_T", margin=0.02, settings=QUICK)
    assert plain.paired is not None
    assert plain.paired.p_non_inferior is None
    assert wide.paired is not None
    assert wide.paired.p_non_inferior is not None
    assert narrow.paired is not None
    assert narrow.paired.p_non_inferior is not None
    assert wide.paired.p_non_inferior < 0.05 < narrow.paired.p_non_inferior


def test_the_non_inferiority_test_agrees_with_the_one_sided_bound() -> None:
    a, b = arm(A, "a"), arm(B, "b")
    one_sided = replace(QUICK, alpha=0.10)
    figure = paired_difference(a, b, "accuracy_T", settings=one_sided)
    assert figure.ci is not None
    at_bound = paired_difference(a, b, "accuracy_T", margin=-figure.ci[0], settings=one_sided)
    assert at_bound.paired is not None
    assert at_bound.paired.p_non_inferior == pytest.approx(0.05)


def test_equal_arms_are_flagged_not_declared_equal() -> None:
    figure = paired_difference(arm(A, "a"), arm(A, "b"), "accuracy_T", settings=QUICK)
    assert figure.value == 0
    assert figure.paired is not None
    assert (figure.paired.p, figure.paired.flags) == (1.0, ("no_discordant",))
    assert figure.paired.mde_80 is None


def test_other_question_sets_are_refused() -> None:
    with pytest.raises(QuestionSetsDifferError, match="3 only in the first"):
        paired_difference(arm([1, 1, 0, 0], "a"), arm([1], "b"), "accuracy_T")


def test_a_rate_without_a_value_for_every_question_has_no_paired_difference() -> None:
    with pytest.raises(UnpairedMetricError, match="repair_T"):
        paired_difference(arm([1], "a"), arm([1], "b"), "repair_T")


def test_costs_are_compared_by_question() -> None:
    a = [replace(r, usage=Usage(cost_microusd=10 + i)) for i, r in enumerate(arm([1] * 5, "a"))]
    b = [replace(r, usage=Usage(cost_microusd=10)) for r in arm([1] * 5, "b")]
    figure = paired_difference(a, b, "cost_microusd", settings=QUICK)
    assert figure.value == pytest.approx(2)
    assert figure.ci_method == "cr1_t"


def test_holm_covers_the_family_of_all_tests_g11() -> None:
    figures = [
        Figure("difference", value=0.0, paired=PairedTest(p, "t", None))
        for p in (0.01, 0.04, 0.03, 0.005)
    ]
    adjusted = holm_adjust([figures[0], Figure("calls", value=1.0), *figures[1:]])
    found = [f.paired.p_holm for f in adjusted if f.paired]
    assert found == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert {f.paired.holm_m for f in adjusted if f.paired} == {4}
    assert adjusted[1].paired is None


def test_a_cheaper_and_better_arm_pushes_the_other_off_the_front() -> None:
    def priced(runs: list[RunRow], microusd: int) -> list[RunRow]:
        return [replace(r, usage=Usage(cost_microusd=microusd)) for r in runs]

    points = cost_front(
        {"debate": priced(arm(B, "debate"), 900), "vote": priced(arm(A, "vote"), 300)},
        settings=QUICK,
    )
    assert [(p.condition, p.on_front) for p in points] == [("debate", False), ("vote", True)]
    assert points[0].cost_per_question == 900
    assert points[1].accuracy == pytest.approx(0.52)
    assert points[1].membership == 1.0
    assert points[0].membership < 0.2
    assert cost_front({}) == []

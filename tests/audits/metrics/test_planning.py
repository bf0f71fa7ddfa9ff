import pytest

from audits.metrics import planning


def test_questions_effect_and_audit_sizes_g12() -> None:
    variance = planning.binary_difference_variance(0.05, 0.2)
    assert planning.questions_needed(0.05, variance) == 621
    assert planning.detectable_effect(0.2, 200) == pytest.approx(0.0885939, abs=1e-6)
    assert planning.audit_items_needed(0.05) == 385
    assert planning.audit_items_needed(0.05, population=1000) == 278
    assert planning.zero_defect_items(0.05) == 59


@pytest.mark.parametrize(
    ("questions", "effect"), [(100, 0.125), (200, 0.089), (400, 0.063), (1000, 0.040)]
)
def test_the_table_of_detectable_effects(questions: int, effect: float) -> None:
    assert planning.detectable_effect(0.2, questions) == pytest.approx(effect, abs=5e-4)


@pytest.mark.parametrize(("half_width", "items"), [(0.1, 97), (0.05, 385), (0.03, 1068)])
def test_audit_sizes(half_width: float, items: int) -> None:
    assert planning.audit_items_needed(half_width) == items


def test_more_runs_shrink_only_their_own_part_of_the_variance() -> None:
    one = planning.questions_needed(0.05, 0.1, run_variance_a=0.1, run_variance_b=0.1)
    five = planning.questions_needed(
        0.05, 0.1, run_variance_a=0.1, runs_a=5, run_variance_b=0.1, runs_b=5
    )
    floor = planning.questions_needed(0.05, 0.1)
    assert floor < five < one


def test_families_multiply_the_questions_needed() -> None:
    assert planning.design_effect(5, 0.3) == pytest.approx(2.2)
    assert planning.design_effect(1, 0.9) == 1


def test_no_variance_has_no_detectable_effect() -> None:
    assert planning.detectable_effect(0.0, 200) is None
    assert planning.detectable_effect(0.2, 0) is None
    with pytest.raises(ValueError, match="effect of zero"):
        planning.questions_needed(0.0, 0.2)


def test_neyman_gives_more_labels_to_the_uncertain_stratum() -> None:
    assert planning.neyman_allocation([100, 100], [0.5, 0.1], 80) == [50, 30]
    assert planning.neyman_allocation([10, 0], [1.0, 0.5], 20) == [10, 0]

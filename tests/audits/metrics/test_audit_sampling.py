"""Golden values G18 (consensus) and G19, prediction-powered means, and what labels are needed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

from audits.metrics import Figure, Settings
from audits.metrics.audit_sampling import (
    AuditRow,
    BadSampleError,
    SampledStratum,
    audit_figures,
    labels_still_needed,
    sampled_strata,
)
from audits.metrics.dawid_skene import dawid_skene
from audits.metrics.labels import label_table, majority_labels
from audits.metrics.planning import neyman_allocation
from audits.metrics.ppi import Predicted, ppi_figure, ppi_mean
from tests.audits.metrics.builders import find
from tests.audits.metrics.label_builders import from_columns

PLAIN = Settings()
G19 = [SampledStratum("PASS", 800, 80, 76), SampledStratum("FAIL", 200, 40, 8)]


@pytest.mark.parametrize(
    ("metric", "expected", "se"),
    [
        ("precision", 0.95, math.sqrt(0.95 * 0.05 / 79 * 0.9)),
        ("recall", 0.95, 0.0136558),
        ("prevalence", 0.8, 0.0218543),
    ],
)
def test_g19_weights_and_finite_correction(metric: str, expected: float, se: float) -> None:
    found = find(audit_figures(G19, PLAIN), metric)
    assert found.value == pytest.approx(expected, abs=1e-6)
    assert found.se_cluster == pytest.approx(se, abs=1e-6)
    assert found.ci == pytest.approx((expected - 1.96 * se, expected + 1.96 * se), abs=1e-4)
    assert found.ci_method == "delta_fpc"


def audit(*counts: tuple[str, bool | None, int]) -> list[AuditRow]:
    return [AuditRow(predicted, holds) for predicted, holds, n in counts for _ in range(n)]


def test_rows_become_strata_and_what_people_could_not_tell_is_no_pass() -> None:
    rows = audit(("PASS", True, 3), ("PASS", None, 1), ("UNKNOWN", True, 1), ("UNKNOWN", None, 1))
    sizes = {("PASS", ""): 40, ("UNKNOWN", ""): 10, ("FAIL", ""): 0}
    figures = audit_figures(sampled_strata(rows, sizes), PLAIN)
    assert find(figures, "precision").value == pytest.approx(0.75)
    # 30 of the passed hold and 5 of the unknown: an UNKNOWN is not a PASS.
    assert find(figures, "recall").value == pytest.approx(30 / 35)


def test_without_labels_on_what_was_not_passed_there_is_no_recall() -> None:
    figures = audit_figures(
        [SampledStratum("PASS", 800, 80, 76), SampledStratum("FAIL", 200, 0, 0)], PLAIN
    )
    assert find(figures, "precision").value == pytest.approx(0.95)
    for metric in ("recall", "prevalence"):
        found = find(figures, metric)
        assert found.value is None
        assert found.reason == "no labels on 200 items not predicted PASS"


def test_a_whole_population_has_no_sampling_error() -> None:
    whole = [SampledStratum("PASS", 10, 10, 8), SampledStratum("FAIL", 5, 5, 2)]
    found = find(audit_figures(whole, PLAIN), "precision")
    assert (found.value, found.ci) == (0.8, None)
    assert any(note.startswith("no interval") for note in found.notes)


@given(hs.data())
def test_a_sample_of_everything_gives_the_unweighted_shares(data: hs.DataObject) -> None:
    sizes = {name: data.draw(hs.integers(2, 20), label=name) for name in ("PASS", "FAIL")}
    strata = [
        SampledStratum(name, size, size, data.draw(hs.integers(0, size)))
        for name, size in sizes.items()
    ]
    figures = audit_figures(strata, PLAIN)
    hits, misses = strata[0].true, strata[1].true
    assert find(figures, "precision").value == pytest.approx(hits / sizes["PASS"])
    recall = find(figures, "recall").value
    assert recall == (pytest.approx(hits / (hits + misses)) if hits + misses else None)


def test_a_sample_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(BadSampleError, match="3 labels of 2 items"):
        sampled_strata(audit(("PASS", True, 3)), {("PASS", ""): 2})
    with pytest.raises(BadSampleError, match="predicted FAIL, stratum all: labelled, but not"):
        sampled_strata(audit(("FAIL", True, 1)), {("PASS", ""): 2})


def test_nothing_predicted_or_nothing_true_is_null_with_a_reason() -> None:
    nothing = audit_figures([SampledStratum("FAIL", 20, 5, 1)], PLAIN)
    assert all(figure.value is None and figure.reason for figure in nothing)
    none_hold = audit_figures(
        [SampledStratum("PASS", 20, 5, 0), SampledStratum("FAIL", 20, 5, 0)], PLAIN
    )
    assert find(none_hold, "recall").reason == "no labelled item holds"
    assert find(none_hold, "prevalence").value == 0


@pytest.mark.parametrize(("half_width", "needed"), [(0.1, 97), (0.05, 385), (0.03, 1068)])
def test_labels_for_an_interval_of_that_width(half_width: float, needed: int) -> None:
    assert labels_still_needed(0, half_width) == needed
    assert labels_still_needed(needed - 7, half_width) == 7
    assert labels_still_needed(needed + 7, half_width) == 0


def test_a_small_population_needs_fewer_labels_and_strata_share_them_by_spread() -> None:
    assert labels_still_needed(0, 0.05, population=1000) == 278
    assert neyman_allocation([800, 200], [0.95, 0.2], 120) == [82, 38]
    with pytest.raises(ValueError, match="half-width"):
        labels_still_needed(0, 0)


def test_g18_majority_and_consensus_of_three_annotators() -> None:
    columns = {"a": "ABAABA", "b": "ABABBA", "c": "BBABAB"}
    table = label_table(from_columns(columns))
    consensus = dawid_skene(table)
    for codes, expected in ((majority_labels(table), "ABABBA"), (consensus.labels, "ABAABA")):
        assert "".join(table.categories[code] for code in codes) == expected
    assert consensus.notes == ("some people gave fewer than 20 labels",)


@settings(deadline=None, max_examples=30)
@given(hs.lists(hs.text("xy*", min_size=5, max_size=5), min_size=3, max_size=3))
def test_consensus_is_a_probability_whatever_is_missing(drawn: list[str]) -> None:
    table = label_table(from_columns(dict(zip("abc", drawn, strict=True))))
    consensus = dawid_skene(table)
    assert consensus.posterior.sum(axis=1) == pytest.approx(np.ones(len(table.item_ids)))
    assert (consensus.labels >= 0).all()


def test_consensus_does_not_know_the_annotators_names() -> None:
    # From a start without symmetry: at a tie of two solutions rounding alone would decide.
    drawn = ("xxyyxyxx", "xxyyxyyx", "xyyyxxxx")
    one, other = (
        dawid_skene(label_table(from_columns(dict(zip(names, drawn, strict=True)))))
        for names in ("abc", "cab")
    )
    assert one.posterior == pytest.approx(other.posterior, abs=1e-6)


def sample(n: int, others: int, noise: float, seed: int = 4) -> Predicted:
    rng = np.random.default_rng(seed)
    truth = (rng.random(n + others) < 0.7).astype(np.float64)
    wrong = rng.random(n + others) < noise
    judged = np.where(wrong, 1 - truth, truth)
    return Predicted(truth[:n], judged[:n], judged[n:])


def test_the_power_and_variance_are_those_of_the_formulas() -> None:
    drawn = sample(300, 3_000, 0.1)
    found = ppi_mean(drawn)
    every = np.concatenate([drawn.f, drawn.f_rest])
    power = np.cov(drawn.y, drawn.f, ddof=0)[0, 1] / ((1 + 300 / 3_000) * every.var(ddof=1))
    rest = drawn.y - power * drawn.f
    assert found.power == pytest.approx(power)
    assert found.value == pytest.approx(power * drawn.f_rest.mean() + rest.mean())
    expected = power**2 * drawn.f_rest.var() / 3_000 + rest.var() / 300
    assert found.variance == pytest.approx(expected)


def test_a_good_judge_shortens_the_interval_and_a_useless_one_is_not_trusted() -> None:
    good, useless = (ppi_mean(sample(300, 3_000, noise)) for noise in (0.05, 0.5))
    alone = float(np.var(sample(300, 3_000, 0.05).y)) / 300
    assert good.power > 0.7
    assert good.variance < 0.5 * alone
    assert useless.power < 0.2
    assert useless.value == pytest.approx(0.7, abs=0.1)


def test_with_a_perfect_judge_nearly_only_the_size_of_everything_counts() -> None:
    drawn = sample(300, 3_000, 0.0)
    found = ppi_mean(drawn)
    whole = np.concatenate([drawn.y, drawn.f_rest])
    assert found.value == pytest.approx(whole.mean(), abs=0.01)
    assert found.variance == pytest.approx(whole.var() / len(whole), rel=0.15)


def people_figure(*strata: Predicted) -> Figure:
    return ppi_figure(strata, PLAIN)


def test_strata_are_weighed_by_their_items() -> None:
    one, two = sample(300, 3_000, 0.1, seed=1), sample(200, 800, 0.1, seed=2)
    found = people_figure(one, two)
    parts = [ppi_mean(each) for each in (one, two)]
    shares = (3_300 / 4_300, 1_000 / 4_300)
    expected = sum(s * p.value for s, p in zip(shares, parts, strict=True))
    assert found.value == pytest.approx(expected)
    variance = sum(s**2 * p.variance for s, p in zip(shares, parts, strict=True))
    assert found.se_cluster == pytest.approx(math.sqrt(variance))
    assert found.ci_method == "ppi_plus_plus"


def test_equal_weights_change_nothing() -> None:
    drawn = sample(300, 3_000, 0.1)
    weighted = Predicted(drawn.y, drawn.f, drawn.f_rest, np.full(300, 7.0))
    assert ppi_mean(weighted).value == pytest.approx(ppi_mean(drawn).value)
    assert ppi_mean(weighted).variance == pytest.approx(ppi_mean(drawn).variance)


def test_with_few_labels_the_labels_stand_alone() -> None:
    few = people_figure(sample(100, 1_000, 0.1))
    assert few.ci_method == "wilson"
    assert few.notes[0].startswith("too few labels for PPI++")
    rare = Predicted(np.repeat([1.0, 0.0], [290, 10]), np.ones(300), np.ones(500))
    assert people_figure(rare).ci_method == "wilson"
    strata = people_figure(sample(50, 100, 0.1), sample(50, 100, 0.1, seed=5))
    assert strata.value is None
    assert people_figure().reason == "no labels"


def test_a_judge_that_always_says_the_same_is_given_no_power() -> None:
    drawn = sample(300, 3_000, 0.1)
    constant = Predicted(drawn.y, np.ones(300), np.ones(3_000))
    assert ppi_mean(constant).power == 0
    assert ppi_mean(constant).value == pytest.approx(drawn.y.mean())


def test_without_either_kind_of_item_there_is_no_estimate() -> None:
    with pytest.raises(ValueError, match="labelled and unlabelled"):
        ppi_mean(Predicted(np.ones(0), np.ones(0), np.ones(5)))

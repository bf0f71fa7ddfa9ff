"""Golden values G17 and G18, the library as oracle, and what must hold for any labels."""

from collections.abc import Mapping
from dataclasses import replace

import krippendorff
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from audits.metrics import Figure, Settings
from audits.metrics.agreement import Level
from audits.metrics.labels import BadLabelError, LabelRow, MixedKindsError
from audits.metrics.people import passes_gate, people_figures
from tests.audits.metrics.builders import find
from tests.audits.metrics.label_builders import from_columns, from_table, label

QUICK = Settings(resamples=200, seed=1)
COEFFICIENTS = ("krippendorff_alpha", "gwet_ac1", "fleiss_kappa")
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")
G18 = {"a": "*****34121133*3", "b": "1*213343*******", "c": "**21344*21133*4"}


def figures_of(rows: list[LabelRow]) -> list[Figure]:
    return people_figures(rows, settings=QUICK)


def value(figures: list[Figure], metric: str, by: Mapping[str, str] | None = None) -> float | None:
    agg = "pooled" if metric == "percent_agreement" else None
    return find(figures, metric, agg, by=by if by is not None else {}).value


def test_g17_two_raters_who_agree_often_because_one_label_is_common() -> None:
    figures = figures_of(from_table([[90, 4], [5, 1]]))
    pair = {"pair": "r|s"}
    assert value(figures, "percent_agreement", pair) == pytest.approx(0.91)
    assert value(figures, "cohen_kappa", pair) == pytest.approx(0.1346154, abs=1e-6)
    assert value(figures, "gwet_ac1", pair) == pytest.approx(0.8995592, abs=1e-6)
    assert value(figures, "gwet_ac1") == pytest.approx(0.8995592, abs=1e-6)
    nominal = value(figures, "krippendorff_alpha", {"level": "nominal"})
    assert nominal == pytest.approx(0.1385281, abs=1e-6)


def test_g17_without_variation_the_coefficients_are_null_and_plain_agreement_stays() -> None:
    figures = figures_of(from_table([[30, 0], [0, 0]]))
    for metric, by in [("cohen_kappa", {"pair": "r|s"}), *((m, None) for m in COEFFICIENTS)]:
        found = find(figures, metric, by=by)
        assert found.value is None
        assert "all labels are the same" in (found.reason or "")
    assert value(figures, "percent_agreement") == 1


@pytest.mark.parametrize(
    ("level", "expected"),
    [("nominal", 0.6913580), ("ordinal", 0.8067214), ("interval", 0.8108449)],
)
def test_g18_alpha_with_missing_labels_at_every_level(level: str, expected: float) -> None:
    figures = figures_of(from_columns(G18, kind="scale"))
    found = find(figures, "krippendorff_alpha", by={"level": level})
    assert found.value == pytest.approx(expected, abs=1e-6)
    assert found.ci is not None
    assert found.ci[0] < expected < found.ci[1]
    assert found.ci_method == "qboot_percentile"


def test_a_scale_has_three_levels_and_a_name_one() -> None:
    assert len([f for f in figures_of(from_columns(G18)) if "level" in f.by]) == 1
    words = from_columns({"a": "xyz", "b": "xyy"}, kind="scale")
    assert {f.by["level"] for f in figures_of(words) if "level" in f.by} == {"nominal", "ordinal"}


columns = hs.integers(2, 12).flatmap(
    lambda n: hs.lists(hs.text("123*", min_size=n, max_size=n), min_size=2, max_size=4)
)


@settings(deadline=None, max_examples=60)
@given(columns)
def test_alpha_equals_the_library(drawn: list[str]) -> None:
    rows = from_columns({f"r{i}": values for i, values in enumerate(drawn)}, kind="scale")
    figures = people_figures(rows, levels=LEVELS, settings=QUICK) if rows else []
    matrix = np.array([[np.nan if v == "*" else float(v) for v in values] for values in drawn])
    for level in LEVELS if rows else ():
        found = find(figures, "krippendorff_alpha", by={"level": level})
        if found.value is not None:
            oracle = krippendorff.alpha(matrix, level_of_measurement=level)
            assert found.value == pytest.approx(float(oracle))


@settings(deadline=None, max_examples=60)
@given(hs.lists(hs.tuples(*[hs.sampled_from("123")] * 3), min_size=2, max_size=12))
def test_kappas_equal_scikit_learn_and_statsmodels(triples: list[tuple[str, str, str]]) -> None:
    a, b, c = ("".join(values) for values in zip(*triples, strict=True))
    figures = figures_of(from_columns({"a": a, "b": b, "c": c}))
    cohen = value(figures, "cohen_kappa", {"pair": "a|b"})
    fleiss = value(figures, "fleiss_kappa")
    if cohen is not None:
        assert cohen == pytest.approx(cohen_kappa_score(list(a), list(b)))
    if fleiss is not None:
        table, _ = aggregate_raters([[int(v) for v in triple] for triple in triples])
        assert fleiss == pytest.approx(fleiss_kappa(table))


@settings(deadline=None, max_examples=40)
@given(columns, hs.permutations(["p", "q", "r", "s"]), hs.permutations(["1", "2", "3"]))
def test_names_of_annotators_items_and_labels_change_nothing(
    drawn: list[str], people: list[str], words: list[str]
) -> None:
    rows = from_columns(dict(zip("pqrs", drawn, strict=False)))
    renamed = dict(zip("pqrs", people, strict=True))
    reworded = dict(zip("123", words, strict=True))
    moved = [
        replace(
            row,
            annotator=renamed[row.annotator],
            label=reworded[str(row.label)],
            item_id=f"x{999 - int(row.item_id[1:])}",
            question_id=f"y{row.question_id}",
        )
        for row in reversed(rows)
    ]
    for metric in ("percent_agreement", *COEFFICIENTS):
        before, after = (
            find(figures_of(r), metric, "pooled" if metric == "percent_agreement" else None).value
            for r in (rows, moved)
        )
        assert before == (None if after is None else pytest.approx(after))


@given(hs.lists(hs.sampled_from("123"), min_size=2, max_size=20))
@settings(deadline=None, max_examples=30)
def test_perfect_agreement_is_one_wherever_anything_varies(values: list[str]) -> None:
    same = "".join(values)
    figures = figures_of(from_columns({"a": same, "b": same, "c": same}))
    expected = 1 if len(set(same)) > 1 else None
    for metric in COEFFICIENTS:
        found = find(figures, metric).value
        assert found == (expected if expected is None else pytest.approx(expected))


def test_fleiss_needs_as_many_labels_on_every_item() -> None:
    found = find(figures_of(from_columns({"a": "122", "b": "12*", "c": "112"})), "fleiss_kappa")
    assert found.value is None
    assert found.reason == "items have different numbers of labels"


def test_one_label_an_item_gives_no_agreement() -> None:
    figures = figures_of(from_columns({"a": "12*", "b": "**1"}))
    assert value(figures, "percent_agreement") is None
    assert find(figures, "krippendorff_alpha").reason == "no item has two labels"
    assert [f for f in figures if "pair" in f.by] == []


def test_weights_bring_a_sample_back_to_the_population() -> None:
    rare = from_columns({"a": "1122", "b": "1112"})
    heavy = [replace(row, weight=9.0 if row.item_id == "i002" else 1.0) for row in rare]
    assert value(figures_of(rare), "percent_agreement") == 0.75
    weighted = find(figures_of(heavy), "percent_agreement", "pooled", by={})
    assert weighted.value == pytest.approx(3 / 12)
    assert weighted.notes == ("weighted by 1/inclusion probability", "few questions")
    repeated = from_columns({"a": "11" + "2" * 9 + "2", "b": "11" + "1" * 9 + "2"})
    kappas = (value(figures_of(r), "cohen_kappa", {"pair": "a|b"}) for r in (heavy, repeated))
    assert next(kappas) == pytest.approx(next(kappas))


def test_items_of_one_question_are_one_cluster() -> None:
    rows = [
        replace(row, question_id=f"q{int(row.item_id[1:]) % 3}")
        for row in from_columns({"a": "121212121", "b": "122212121"})
    ]
    found = find(figures_of(rows), "percent_agreement", "pooled", by={})
    assert (found.n_questions, found.den, found.ci_method) == (3, 9, "cr1_t")


def test_labels_after_the_reveal_are_left_out_and_counted() -> None:
    rows = from_columns({"a": "1212", "b": "1211"})
    late = label("i003", "c", "2", reveal_state="after_reveal")
    found = find(figures_of([*rows, late]), "percent_agreement", "pooled", by={})
    assert (found.num, found.den) == (3, 4)
    assert "1 labels after the reveal are left out" in found.notes


def served(item: str, *shown: tuple[str, str]) -> list[LabelRow]:
    """One person's labels of an item: (order shown, label) by serving."""
    return [
        label(item, "p", verdict, kind="pairwise", shown_order=tuple(order), serving=i)
        for i, (order, verdict) in enumerate(shown)
    ]


def test_a_persons_order_effect_is_differing_swapped_less_differing_unswapped() -> None:
    rows = [
        *served("i1", ("ab", "a"), ("ba", "b")),
        *served("i2", ("ab", "a"), ("ba", "b")),
        *served("i3", ("ba", "a"), ("ab", "a")),
        *served("i4", ("ab", "a"), ("ab", "b")),
        *served("i5", ("ab", "a"), ("ab", "a")),
        *served("i6", ("ab", "tie")),
    ]
    figures = figures_of(rows)
    flips = find(figures, "human_flip_rate", "pooled")
    effect = find(figures, "human_order_effect", "pooled")
    assert (flips.num, flips.den) == (2, 3)
    assert effect.value == pytest.approx(2 / 3 - 1 / 2)
    assert "2/3 less 1/2" in effect.notes
    assert effect.ci is not None
    assert effect.ci[0] < 0 < effect.ci[1]


def test_without_pairs_served_again_unswapped_a_flip_is_no_order_effect() -> None:
    figures = figures_of(served("i1", ("ab", "a"), ("ba", "b")))
    assert find(figures, "human_flip_rate", "pooled").value == 1
    effect = find(figures, "human_order_effect", "pooled")
    assert effect.value is None
    assert "no order effect" in (effect.reason or "")


def test_gold_accuracy_is_gated_on_the_lower_end_of_its_interval() -> None:
    rows = [
        label(f"i{i:02}", person, "1", gold="1" if i < right else "0")
        for person, right in (("good", 39), ("fair", 32))
        for i in range(40)
    ]
    figures = figures_of(rows)
    good, fair = (
        find(figures, "gold_accuracy", "pooled", by={"annotator": name})
        for name in ("good", "fair")
    )
    assert (good.num, good.den, good.ci_method) == (39, 40, "wilson")
    assert (fair.value or 0) >= 0.8
    assert passes_gate(good, 0.8) and not passes_gate(fair, 0.8)


def test_numbers_that_are_equal_are_one_label() -> None:
    rows = [
        label("i1", "a", 1.0),
        label("i1", "b", "1"),
        label("i2", "a", 2),
        label("i2", "b", 2.0),
    ]
    assert value(figures_of(rows), "percent_agreement") == 1


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([label("x", "p", "1"), label("x", "p", "2")], "two labels of one serving"),
        ([label("x", "p", "1"), label("x", "q", "1", question="y")], "name two questions"),
        ([label("x", "p", "1", family="f"), label("y", "p", "1", question="x")], "two families"),
        ([LabelRow("x", "p", "belief", {"a": 0.5, "b": 0.5}, "x")], "a belief is no category"),
    ],
)
def test_labels_that_contradict_each_other_are_refused_in_one_line(
    rows: list[LabelRow], problem: str
) -> None:
    with pytest.raises(BadLabelError, match=problem) as caught:
        people_figures(rows)
    assert "\n" not in str(caught.value)


def test_a_label_outside_the_rubric_and_mixed_kinds_are_refused() -> None:
    with pytest.raises(BadLabelError, match="not in the rubric"):
        people_figures([label("x", "p", "3")], categories=["1", "2"])
    with pytest.raises(MixedKindsError, match="claim of a item, correctness of a item"):
        people_figures([label("x", "p", "1"), label("x", "q", "1", kind="claim")])


def test_the_rubric_counts_a_category_that_nobody_used() -> None:
    rows = from_table([[90, 4], [5, 1]])
    two, three = (
        find(people_figures(rows, categories=list(names), settings=QUICK), "gwet_ac1", by={}).value
        for names in ("01", "012")
    )
    assert two is not None and three is not None
    assert three > two

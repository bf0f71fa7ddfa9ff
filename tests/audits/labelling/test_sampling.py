"""What a queue draws: weights that sum to the source, distance, and independence of its order."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits.labelling.design import (
    CORRECTNESS,
    Ask,
    Calibration,
    LabelSchema,
    QueueDesign,
    Sampling,
)
from audits.labelling.sampling import Drawn, SamplingError, SourceItem, plan, proportional

CORRECT = LabelSchema(ask=Ask(kind="correctness", title="Is it right?", options=CORRECTNESS))
PAIRS = LabelSchema(ask=Ask(kind="pairwise", title="Which is better?"))
SAMPLINGS = (
    Sampling(),
    Sampling(kind="random", n=7),
    Sampling(kind="stratified", n=9),
    Sampling(kind="stratified", per_stratum=2),
    Sampling(kind="flip_first", random_share=0.25),
    Sampling(kind="disagreement_first", random_share=1.0),
)


def designed(**fields: Any) -> QueueDesign:
    return QueueDesign(**({"label": CORRECT} | fields))


def items(n: int, gold: int = 0) -> list[SourceItem]:
    main = [
        SourceItem(f"i{i}", f"u{i}", stratum="abc"[i % 3], flagged=i % 5 == 0) for i in range(n)
    ]
    return main + [SourceItem(f"g{i}", f"gu{i}", is_gold=True) for i in range(gold)]


@given(st.integers(1, 60), st.sampled_from(SAMPLINGS), st.integers(0, 2**40))
def test_weights_sum_to_the_size_of_the_source_in_every_stratum(
    n: int, how: Sampling, seed: int
) -> None:
    source = items(n)
    drawn = plan(source, designed(sampling=how), seed)
    assert sum(d.weight for d in drawn) == pytest.approx(n)
    if how.kind == "stratified":
        stratum = {item.item_id: item.stratum for item in source}
        sizes = Counter(stratum.values())
        by_stratum: Counter[str] = Counter()
        for d in drawn:
            by_stratum[stratum[d.item_id]] += d.weight  # type: ignore[assignment]
        assert by_stratum == pytest.approx(sizes)


@given(st.randoms(), st.sampled_from(SAMPLINGS), st.integers(0, 9))
def test_the_order_of_the_source_has_no_say(random: Any, how: Sampling, seed: int) -> None:
    source = items(30, gold=8)
    mixed = list(source)
    random.shuffle(mixed)
    design = designed(sampling=how, gold_share=0.1, calibration=Calibration(items=3))
    assert plan(source, design, seed) == plan(mixed, design, seed)


def test_flagged_units_are_drawn_for_certain_and_weigh_one() -> None:
    drawn = plan(items(50), designed(sampling=SAMPLINGS[4]), 1)
    weights = {d.item_id: d.weight for d in drawn}
    assert all(weights[f"i{i}"] == 1 for i in range(0, 50, 5))
    assert {weights[d.item_id] for d in drawn if int(d.item_id[1:]) % 5} == {4.0}


@given(st.integers(2, 30), st.integers(0, 99))
def test_both_ends_of_a_transition_are_drawn_and_lie_as_far_apart_as_can_be(
    units: int, seed: int
) -> None:
    source = [SourceItem(f"u{u}{end}", f"u{u}") for u in range(units) for end in ("first", "last")]
    sampling = Sampling(kind="random", n=max(1, units // 2))
    drawn = plan(source, designed(unit="transition", sampling=sampling), seed)
    place = {d.item_id: index for index, d in enumerate(drawn)}
    ends = {item_id.removesuffix("first").removesuffix("last") for item_id in place}
    assert len(drawn) == 2 * len(ends)
    assert {abs(place[f"{u}first"] - place[f"{u}last"]) for u in ends} == {len(ends)}


def test_calibration_comes_first_and_hidden_gold_is_spread() -> None:
    design = designed(gold_share=0.1, calibration=Calibration(items=4))
    drawn = plan(items(90, gold=20), design, 3)
    assert [d.phase for d in drawn].count("calibration") == 4
    assert all(d.is_gold and d.phase == "calibration" for d in drawn[:4])
    hidden = [place for place, d in enumerate(drawn[4:]) if d.is_gold]
    assert len(hidden) == 10 and len(drawn) == 104
    assert all(a < b < a + 20 for a, b in pairwise(hidden))


@given(st.integers(8, 60), st.integers(0, 99))
def test_second_servings_are_of_the_first_half_and_stand_in_the_second(n: int, seed: int) -> None:
    design = designed(label=PAIRS, swapped_share=0.2, unswapped_share=0.1)
    drawn = plan(items(n), design, seed)
    served: dict[str, list[tuple[int, Drawn]]] = {}
    for place, d in enumerate(drawn):
        served.setdefault(d.item_id, []).append((place, d))
    kinds = Counter(d.served_as for d in drawn)
    assert kinds["swapped"] == round(0.2 * n) and kinds["unswapped"] == round(0.1 * n)
    for its in served.values():
        assert its[0][1].served_as == "first" and len(its) <= 2
        if len(its) == 2:
            assert its[1][1].served_as != "first" and its[1][0] >= (n + 1) // 2 > its[0][0]
            assert its[1][1].weight == its[0][1].weight


def test_missing_gold_doubles_and_mixed_strata_are_refused_in_words() -> None:
    with pytest.raises(SamplingError, match=r"14 gold items .* \(4 for calibration, 10 hidden\)"):
        plan(items(90, gold=3), designed(gold_share=0.1, calibration=Calibration(items=4)), 1)
    with pytest.raises(SamplingError, match="'i0' stands twice"):
        plan([*items(2), SourceItem("i0", "u9")], designed(), 1)
    with pytest.raises(SamplingError, match="two strata"):
        plan([SourceItem("a", "u", "x"), SourceItem("b", "u", "y")], designed(), 1)


@given(st.dictionaries(st.text("abcdef", min_size=1), st.integers(1, 50), min_size=1), st.data())
def test_a_proportional_share_has_the_asked_size_and_no_empty_stratum(
    sizes: dict[str, int], data: st.DataObject
) -> None:
    n = data.draw(st.integers(len(sizes), sum(sizes.values())))
    given_out = proportional(sizes, n)
    assert all(1 <= given_out[stratum] <= size for stratum, size in sizes.items())
    assert n <= sum(given_out.values()) <= n + len(sizes)

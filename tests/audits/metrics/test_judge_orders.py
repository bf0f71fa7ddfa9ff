"""Golden values G16 and G22, the stub judges, and what must hold for any judge."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs
from scipy.stats import binomtest

from audits.metrics import Figure, Settings
from audits.metrics.judge_orders import order_ratios, reply_ratios, with_preference_test
from audits.metrics.judgments import JudgmentRow
from runs.engine.draws import Draws
from tests.audits.metrics.builders import find
from tests.audits.metrics.judgment_builders import arranged, repeats, row, twin

QUICK = Settings(resamples=50, seed=1)
G16 = {"AB": 40, "BA": 30, "CC": 5, "AA": 12, "AC": 3, "CA": 2, "BB": 4, "BC": 1, "CB": 1, "--": 2}


def figures_of(rows: list[JudgmentRow]) -> list[Figure]:
    items, table = arranged(rows)
    ratios = [*order_ratios(items, table), *reply_ratios(items, table)]
    return with_preference_test(table.figures(ratios, QUICK), items, table, QUICK)


def value(figures: list[Figure], metric: str) -> float | None:
    return find(figures, metric, "pooled", by={}).value


def g16() -> list[JudgmentRow]:
    places = [places for places, count in G16.items() for _ in range(count)]
    return [judgment for i, pair in enumerate(places) for judgment in twin(f"i{i:03}", pair)]


@pytest.mark.parametrize(
    ("metric", "num", "den", "expected"),
    [
        ("position_consistency", 75, 98, 0.7653061),
        ("position_consistency_all", 75, 100, 0.75),
        ("preference_fairness", -11, 98, -0.1122449),
        ("conflict_rate", 16, 98, 0.1632653),
        ("half_conflict_rate", 7, 98, 0.0714286),
        ("primacy", 17, 98, 0.1734694),
        ("recency", 6, 98, 0.0612245),
        ("hard_flip_rate", 16, 86, 0.1860465),
        ("invalid_rate", 4, 200, 0.02),
    ],
)
def test_g16_orders_of_a_hundred_pairs(metric: str, num: int, den: int, expected: float) -> None:
    found = find(figures_of(g16()), metric, "pooled", by={})
    assert (found.num, found.den) == (num, den)
    assert found.value == pytest.approx(expected, abs=1e-6)
    assert found.ci is not None
    assert found.ci[0] < expected < found.ci[1]


def test_g16_the_test_of_preference_fairness_is_binomial() -> None:
    test = find(figures_of(g16()), "preference_fairness", "pooled").paired
    assert test is not None
    assert test.test == "binomial"
    assert test.p == pytest.approx(0.0346897, abs=1e-6)
    assert test.p == pytest.approx(binomtest(6, 23).pvalue)


def test_g16_repetition_stability_is_the_mean_modal_share() -> None:
    rows = repeats("x", "AAAB") + repeats("y", "AAAA") + repeats("z", "ABCB")
    assert value(figures_of(rows), "repetition_stability") == pytest.approx(0.75)


def test_g22_excess_flip_is_across_less_within_by_question() -> None:
    rows = repeats("x", "AA", "BA") + repeats("y", "AA", "BB") + repeats("z", "AB", "AB")
    excess = find(figures_of(rows), "excess_flip", "pooled")
    assert excess.num == pytest.approx(0.5)
    assert excess.den == 3
    assert excess.value == pytest.approx(0.1666667, abs=1e-6)
    for item, expected in (("x", 0.0), ("y", 1.0), ("z", -0.5)):
        own = [judgment for judgment in rows if judgment.item_id == item]
        assert value(figures_of(own), "excess_flip") == pytest.approx(expected)


def test_without_repeats_excess_flip_is_null_and_says_that_differing_is_no_order_effect() -> None:
    found = find(figures_of(g16()), "excess_flip", "pooled")
    assert found.value is None
    assert found.n_undefined == 98
    assert "not yet an order effect" in (found.reason or "")


def stub(choose: Callable[[int, tuple[str, ...], int], str], items: int = 60) -> list[JudgmentRow]:
    return [
        row(f"i{i:04}", order, choose(i, order, repeat), repeat=repeat, candidates=("a", "b"))
        for i in range(items)
        for order in (("a", "b"), ("b", "a"))
        for repeat in (1, 2)
    ]


def test_a_judge_that_always_takes_the_first_shown() -> None:
    figures = figures_of(stub(lambda _, order, __: order[0]))
    assert value(figures, "position_consistency") == 0
    assert value(figures, "preference_fairness") == -1
    assert value(figures, "primacy") == value(figures, "conflict_rate") == 1
    assert value(figures, "excess_flip") == 1
    assert value(figures, "repetition_stability") == 1


def test_a_judge_of_content_alone_never_flips() -> None:
    figures = figures_of(stub(lambda i, _, __: "ab"[i % 2]))
    assert value(figures, "position_consistency") == 1
    assert value(figures, "conflict_rate") == value(figures, "hard_flip_rate") == 0
    assert value(figures, "preference_fairness") == value(figures, "excess_flip") == 0


def test_a_judge_that_prefers_one_with_seven_tenths_differs_often_without_an_order_effect() -> None:
    draws = Draws(7, "stub")

    def choose(item: int, order: tuple[str, ...], repeat: int) -> str:
        drawn = draws.uniform(agent="".join(order), t=item, index=repeat, purpose="stub")
        return "a" if drawn < 0.7 else "b"

    figures = figures_of(stub(choose, items=1_000))
    assert value(figures, "conflict_rate") == pytest.approx(0.42, abs=0.05)
    excess = find(figures, "excess_flip", "pooled")
    assert excess.ci is not None
    assert excess.ci[0] < 0 < excess.ci[1]


def test_an_order_that_failed_leaves_the_rates_and_is_counted_with_its_cause() -> None:
    good = [judgment for i in range(8) for judgment in twin(f"i{i}", "AB")]
    refused = replace(
        good[1], item_id="x", question_id="x", verdict=None, status="FAILED", cause="http_403"
    )
    answered = replace(good[0], item_id="x", question_id="x")

    figures = figures_of([*good, answered, refused])

    assert find(figures, "position_consistency", "pooled").den == 8
    assert find(figures, "position_consistency_all", "pooled").den == 9
    failed = find(figures, "invalid_rate", "pooled", by={"status": "FAILED", "cause": "http_403"})
    assert (failed.num, failed.den) == (1, 18)


def test_an_abstention_is_no_tie() -> None:
    rows = [row("x", ("a", "b"), "abstain"), row("x", ("b", "a"), "tie", candidates=("a", "b"))]
    figures = figures_of(rows)
    assert find(figures, "position_consistency", "pooled").den == 0
    assert value(figures, "position_consistency_all") == 0
    assert value(figures, "abstain_rate") == 0.5
    assert value(figures, "invalid_rate") == 0


def test_one_order_only_gives_no_pair() -> None:
    figures = figures_of([row("x", ("a", "b"), "a")])
    for metric in ("position_consistency", "position_consistency_all", "excess_flip"):
        assert value(figures, metric) is None


def test_several_pairs_of_one_question_are_one_cluster_with_a_sign_flip_test() -> None:
    rows = [j for i in range(30) for j in twin(f"i{i:02}", "AA", question=f"q{i % 10}")]
    found = find(figures_of(rows), "preference_fairness", "pooled")
    assert found.n_questions == 10
    assert found.paired is not None
    assert found.paired.test == "sign_flip"
    assert found.paired.p == pytest.approx(2 / 2**10)


verdict_places = hs.sampled_from(["A", "B", "C", "-"])


@hs.composite
def judgments(draw: hs.DrawFn) -> list[JudgmentRow]:
    rows = []
    for i in range(draw(hs.integers(1, 8))):
        for repeat in range(1, draw(hs.integers(1, 3)) + 1):
            places = draw(verdict_places) + draw(verdict_places)
            rows += twin(f"i{i}", places, question=f"q{i // 2}", repeat=repeat)
    return rows


@settings(deadline=None)
@given(judgments())
def test_shares_stay_in_their_range_and_add_up(rows: list[JudgmentRow]) -> None:
    figures = figures_of(rows)
    fairness = value(figures, "preference_fairness")
    if fairness is None:
        return
    consistent, first, last = (
        value(figures, metric) or 0.0 for metric in ("position_consistency", "primacy", "recency")
    )
    assert -1 <= fairness <= 1
    assert consistent + first + last == pytest.approx(1)
    assert fairness == pytest.approx(last - first)
    flips = (value(figures, "conflict_rate") or 0) + (value(figures, "half_conflict_rate") or 0)
    assert consistent + flips == pytest.approx(1)


@settings(deadline=None)
@given(judgments())
def test_names_of_candidates_items_and_questions_change_nothing(rows: list[JudgmentRow]) -> None:
    names = {"a": "z", "b": "y", "tie": "tie", None: None}
    moved = [
        replace(
            judgment,
            item_id=f"x{judgment.item_id}",
            question_id=f"{9 - int(judgment.question_id[1:])}",
            candidates=("z", "y"),
            order=tuple(names[name] or "" for name in judgment.order),
            verdict=names[judgment.verdict],
        )
        for judgment in reversed(rows)
    ]
    before, after = (
        {(f.metric, f.agg, tuple(f.by.items())): f.value for f in figures_of(r)}
        for r in (rows, moved)
    )
    assert before == pytest.approx(after)


@settings(deadline=None)
@given(judgments())
def test_turning_every_pair_round_turns_only_the_orders_round(rows: list[JudgmentRow]) -> None:
    turned = [replace(judgment, candidates=("b", "a")) for judgment in rows]
    before, after = figures_of(rows), figures_of(turned)
    for metric in ("position_consistency", "preference_fairness", "conflict_rate", "excess_flip"):
        assert value(before, metric) == pytest.approx(value(after, metric))

"""A judge against gold and against people, and the alternative annotator test."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control, ttest_1samp

from audits.metrics import Figure, Settings
from audits.metrics.alt_test import benjamini_yekutieli
from audits.metrics.judge_people import gold_agreement_figures, judge_people_figures
from audits.metrics.judgments import JudgedItem, judged_items
from audits.metrics.labels import LabelRow
from runs.engine.draws import Draws
from tests.audits.metrics.builders import find
from tests.audits.metrics.judgment_builders import row, twin
from tests.audits.metrics.label_builders import label

QUICK = Settings(resamples=100, seed=1)


def given_only(verdicts: list[str | None], gold: str = "") -> list[JudgedItem]:
    rows = [
        row(f"i{i:03}", ("a", "b"), verdict, gold=gold[i] if gold else None)
        for i, verdict in enumerate(verdicts)
    ]
    return judged_items(rows)


def people(**columns: str) -> list[LabelRow]:
    return [
        label(f"i{i:03}", name, value, kind="pairwise")
        for name, values in columns.items()
        for i, value in enumerate(values)
        if value != "*"
    ]


def value(figures: list[Figure], metric: str, pair: str, order: str = "given") -> float | None:
    agg = "pooled" if metric == "percent_agreement" else None
    return find(figures, metric, agg, by={"pair": pair, "order": order}).value


def test_kappa_against_gold_by_order_with_a_conflict_agreeing_with_nobody() -> None:
    pairs = [("AB", "a")] * 4 + [("BA", "b")] * 3 + [("AA", "a")] * 2 + [("A-", "b")]
    rows = [j for i, (places, gold) in enumerate(pairs) for j in twin(f"i{i}", places, gold=gold)]
    figures = gold_agreement_figures(judged_items(rows), QUICK)
    assert value(figures, "percent_agreement", "judge|gold") == pytest.approx(9 / 10)
    assert value(figures, "percent_agreement", "judge|gold", "swapped") == pytest.approx(7 / 9)
    assert value(figures, "percent_agreement", "judge|gold", "all") == pytest.approx(7 / 9)
    # By hand: judge a 7, b 3; gold a 6, b 4; observed .9, chance .42 + .12.
    assert value(figures, "cohen_kappa", "judge|gold") == pytest.approx((0.9 - 0.54) / 0.46)


def test_of_the_repeats_of_an_order_the_first_verdict_meets_the_labels() -> None:
    rows = [row("x", ("a", "b"), verdict, repeat=i, gold="a") for i, verdict in enumerate("abb")]
    rows.append(row("y", ("a", "b"), None, repeat=0, gold="b"))
    rows.append(row("y", ("a", "b"), "b", repeat=1, gold="b"))
    figures = gold_agreement_figures(judged_items(rows), QUICK)
    assert value(figures, "percent_agreement", "judge|gold") == 1


def test_against_people_the_majority_leaves_ties_out_and_failed_verdicts_too() -> None:
    items = given_only(["a", "a", "b", None, "b"])
    figures = judge_people_figures(items, people(p="aabba", q="abbba", r="ab*bb"), settings=QUICK)
    majority = find(
        figures, "percent_agreement", "pooled", by={"pair": "judge|majority", "order": "given"}
    )
    assert (majority.num, majority.den) == (2, 4)
    assert majority.source == "human"
    assert value(figures, "percent_agreement", "judge|p") == pytest.approx(3 / 4)
    tied = judge_people_figures(items, people(p="aaaaa", q="bbbbb"), settings=QUICK)
    found = find(tied, "cohen_kappa", by={"pair": "judge|majority", "order": "given"})
    assert found.value is None


def test_judge_and_people_are_compared_with_the_same_others() -> None:
    figures = judge_people_figures(
        given_only(["a", "b"]), people(p="aa", q="aa", r="ab"), settings=QUICK
    )
    # i0: all agree. i1: the judge meets {a,b}, {a,b}, {a,a}; the people {a,b}, {a,b}, {a,a} too.
    assert value(figures, "percent_agreement", "judge|others") == pytest.approx((3 + 1.0) / 6)
    assert value(figures, "percent_agreement", "people|others") == pytest.approx((3 + 1.0) / 6)


def noisy(name: str, right: float, truth: str) -> str:
    draws = Draws(3, name)
    return "".join(
        t if draws.uniform(t=i, purpose="noise") < right else "ab"[t == "a"]
        for i, t in enumerate(truth)
    )


TRUTH = "ab" * 60
CROWD = {name: noisy(name, 0.85, TRUTH) for name in ("p", "q", "r", "s")}


@pytest.mark.parametrize(("right", "rate"), [(0.95, 1.0), (0.35, 0.0)])
def test_a_good_judge_may_replace_people_and_a_bad_one_may_not(right: float, rate: float) -> None:
    items = given_only(list(noisy("judge", right, TRUTH)))
    figures = judge_people_figures(items, people(**CROWD), settings=QUICK)
    found = find(figures, "alt_test_winning_rate", by={"epsilon": "0.2", "order": "given"})
    assert (found.value, found.den) == (rate, 4)


def test_the_test_of_one_person_is_the_one_sample_t_test() -> None:
    judged = noisy("judge", 0.7, TRUTH)
    figures = judge_people_figures(
        given_only(list(judged)), people(**CROWD), epsilon=0.1, settings=QUICK
    )
    found = find(figures, "alt_test_winning_rate", by={"epsilon": "0.1", "order": "given"})
    p_values = []
    for name, own in CROWD.items():
        others = [values for other, values in CROWD.items() if other != name]
        near = [
            (sum(j == o[i] for o in others), sum(own[i] == o[i] for o in others))
            for i, j in enumerate(judged)
        ]
        losses = [float(person >= judge) - float(judge >= person) for judge, person in near]
        p_values.append(ttest_1samp(losses, 0.1, alternative="less").pvalue)
    rejected = false_discovery_control(p_values, method="by") <= 0.05
    assert found.num == rejected.sum()


def test_two_people_are_too_few_for_the_test() -> None:
    two = {name: CROWD[name] for name in ("p", "q")}
    figures = judge_people_figures(given_only(list(TRUTH)), people(**two), settings=QUICK)
    found = find(figures, "alt_test_winning_rate")
    assert found.value is None
    assert found.reason == "fewer than 3 people with 30 items each"


@pytest.mark.parametrize(("kind", "wins"), [("scale", 3), ("correctness", 1)])
def test_on_a_scale_closeness_is_distance(kind: str, wins: int) -> None:
    rows = [
        label(f"i{i:02}", name, number, kind=kind)
        for name, number in (("p", 3), ("q", 3), ("r", 9))
        for i in range(40)
    ]
    judge = [row(f"i{i:02}", ("3", "4", "9"), "4") for i in range(40)]
    figures = judge_people_figures(judged_items(judge), rows, settings=QUICK)
    found = find(figures, "alt_test_winning_rate", by={"order": "given"})
    # A judge that says 4 is near a 3 by distance, but as a name 4 agrees with nobody.
    assert (found.num, found.den) == (wins, 3)


def test_benjamini_yekutieli_equals_scipy() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        p = rng.random(6) ** 4
        expected = false_discovery_control(p, method="by") <= 0.05
        assert benjamini_yekutieli(p.tolist(), 0.05) == expected.tolist()

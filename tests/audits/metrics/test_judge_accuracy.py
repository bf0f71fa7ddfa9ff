from dataclasses import replace

import pytest

from audits.metrics import Figure, Settings
from audits.metrics.judge_accuracy import (
    accuracy_ratios,
    combined_verdict,
    mean_scores,
    panel_verdict,
)
from audits.metrics.judgments import (
    BadJudgmentError,
    JudgmentRow,
    MixedJudgesError,
    judged_items,
)
from tests.audits.metrics.judgment_builders import arranged, row, twin


def accuracy(rows: list[JudgmentRow], **by: str) -> Figure:
    items, table = arranged(rows)
    figures = table.figures(list(accuracy_ratios(items, table)), Settings(resamples=50))
    exact = [f for f in figures if f.agg == "pooled" and dict(f.by) == by]
    assert len(exact) == 1, by
    return exact[0]


def pairs(*places_and_gold: tuple[str, str]) -> list[JudgmentRow]:
    return [
        judgment
        for i, (places, gold) in enumerate(places_and_gold)
        for judgment in twin(f"i{i}", places, gold=gold)
    ]


#: Under the given order right, tied, wrong, tied, right; the gold of the fourth and fifth differ.
FIVE = pairs(("AB", "a"), ("CB", "a"), ("BB", "a"), ("CC", "tie"), ("AC", "tie"))


@pytest.mark.parametrize(
    ("order", "ties", "num", "den"),
    [
        ("given", "class", 2, 5),
        ("given", "decisive", 1, 2),
        ("given", "half", 1 + 0.5 + 0 + 1 + 0.5, 5),
        ("swapped", "class", 5, 5),
        ("swapped", "decisive", 3, 3),
        ("all", "class", 7, 10),
        ("all", "decisive", 4, 5),
        ("all", "half", 8, 10),
    ],
)
def test_three_ways_to_count_a_tie_in_every_order(
    order: str, ties: str, num: float, den: float
) -> None:
    found = accuracy(FIVE, order=order, ties=ties)
    assert (found.num, found.den) == (num, den)


def test_both_orders_must_agree_and_a_conflict_is_a_tie_only_in_the_sensitivity_row() -> None:
    rows = pairs(("AB", "a"), ("AA", "a"), ("AA", "tie"), ("A-", "a"))
    agree = accuracy(rows, order="all", ties="class", combine="agree")
    as_tie = accuracy(rows, order="all", ties="class", combine="conflict_as_tie")
    assert (agree.num, agree.den) == (1, 3)
    assert (as_tie.num, as_tie.den) == (2, 3)


def test_what_has_no_verdict_leaves_accuracy_and_its_variants_say_what_it_would_make() -> None:
    rows = pairs(("A-", "a"), ("-B", "tie"), ("AB", "b"))
    assert (found := accuracy(rows, order="given", ties="class")).den == 2
    assert found.num == 1
    wrong = accuracy(rows, order="given", ties="class", invalid="wrong")
    tied = accuracy(rows, order="given", ties="class", invalid="tie")
    assert (wrong.num, wrong.den) == (1, 3)
    assert (tied.num, tied.den) == (2, 3)


def test_an_abstention_is_not_right_and_decides_nothing() -> None:
    rows = [row("x", ("a", "b"), "abstain", gold="a"), row("y", ("a", "b"), "a", gold="a")]
    assert accuracy(rows, order="given", ties="class").value == 0.5
    assert accuracy(rows, order="given", ties="half").value == 0.5
    assert accuracy(rows, order="given", ties="decisive").den == 1


def test_assigned_sides_are_reported_apart() -> None:
    rows = [
        row(f"i{i}", ("a", "b"), verdict, gold="a", assigned=side)
        for i, (verdict, side) in enumerate(
            [("a", "correct"), ("a", "correct"), ("b", "incorrect"), ("a", "incorrect")]
        )
    ]
    assert accuracy(rows, order="all", ties="class", assigned="correct").value == 1
    assert accuracy(rows, order="all", ties="class", assigned="incorrect").value == 0.5


def test_without_gold_there_is_no_accuracy() -> None:
    found = accuracy([row("x", ("a", "b"), "a")], order="given", ties="class")
    assert found.value is None
    assert found.reason == "no item with a verdict has a gold label"


def test_repeats_never_enlarge_the_number_of_judgments() -> None:
    rows = [row("x", ("a", "b"), v, repeat=i, gold="a") for i, v in enumerate("aab")]
    found = accuracy(rows, order="given", ties="class")
    assert found.num == pytest.approx(2 / 3)
    assert found.den == 1


def test_the_mean_score_over_orders_combines_scores() -> None:
    given = row("x", ("a", "b"), "a", scores={"a": 9, "b": 8})
    swapped = row("x", ("b", "a"), "b", candidates=("a", "b"), scores={"a": 6, "b": 8})
    (item,) = judged_items([given, swapped])
    assert mean_scores(item) == {"a": 7.5, "b": 8}
    assert combined_verdict(item, "mean_score") == "b"
    assert combined_verdict(item) == "conflict"
    failed = replace(swapped, verdict=None, status="TIMEOUT", scores={})
    (half,) = judged_items([given, failed])
    assert combined_verdict(half, "mean_score") is None
    assert combined_verdict(half) is None


def test_a_panel_decides_by_more_votes_than_any_other() -> None:
    assert panel_verdict(["a", "a", "b"]) == "a"
    assert panel_verdict(["a", "b", None]) == "tie"
    assert panel_verdict(["a", None, None]) == "a"
    assert panel_verdict(["a", None, None], unparsed="tie") == "tie"
    assert panel_verdict([None]) is None
    with pytest.raises(ValueError, match="unparsed"):
        panel_verdict(["a"], unparsed="wrong")


def test_judges_with_different_hashes_never_pool() -> None:
    with pytest.raises(MixedJudgesError, match="j, k"):
        judged_items([row("x", ("a", "b"), "a"), row("y", ("a", "b"), "a", judge="k")])


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (row("x", ("a", "a"), "a", candidates=("a", "b")), "not an order"),
        (row("x", ("a", "b"), "c"), "names no candidate"),
        (row("x", ("a", "b"), "a", gold="c"), "gold c"),
        (row("x", ("a", "b"), None, status="SUCCEEDED"), "SUCCEEDED with verdict None"),
        (row("x", ("a", "b"), "a", status="FAILED"), "FAILED with verdict a"),
        (row("x", ("a", "b"), "a", status="DONE"), "DONE is not a status"),
        (row("x", ("tie", "b"), "b"), "word for no candidate"),
    ],
)
def test_a_row_that_contradicts_itself_is_refused_in_one_line(
    bad: JudgmentRow, problem: str
) -> None:
    with pytest.raises(BadJudgmentError, match=problem) as caught:
        judged_items([bad])
    assert str(caught.value).startswith("item x: ")


def test_rows_that_contradict_each_other_are_refused() -> None:
    first = row("x", ("a", "b"), "a")
    with pytest.raises(BadJudgmentError, match="given twice"):
        judged_items([first, first])
    with pytest.raises(BadJudgmentError, match="differ in question"):
        judged_items([first, replace(first, repeat=2, gold="b")])

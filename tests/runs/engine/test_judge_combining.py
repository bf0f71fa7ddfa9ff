"""From verdicts to a candidate (S28): explicit rules, and a conflict that is never a tie."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.judge_combining import Decision, combined
from runs.engine.types import JudgeVerdict, Status
from runs.protocols.decisions import JudgeSettings

RULES = ("consistent_only", "majority", "summed_scores")


def settings(combine: str = "consistent_only", mode: str = "pairwise") -> JudgeSettings:
    return JudgeSettings.model_validate({"prompt": "?", "mode": mode, "combine": combine})


def verdict(order: str, says: str, repeat: int = 1) -> JudgeVerdict:
    """Return a verdict on candidates of one letter: one of them, "=", "?", "!", or a score."""
    shown = tuple(order)
    common: dict[str, Any] = {"call_id": f"judge:{order}{repeat}", "order": shown, "repeat": repeat}
    if says == "!":
        return JudgeVerdict(**common, status=Status.TIMEOUT, reason="round_deadline")
    if says.isdigit():
        return JudgeVerdict(
            **common, status=Status.SUCCEEDED, said="score", choice=order, score=int(says)
        )
    kinds = {"=": "tie", "?": "abstain"}
    choice = "" if says in kinds else says
    return JudgeVerdict(
        **common, status=Status.SUCCEEDED, said=kinds.get(says, "candidate"), choice=choice
    )


def decided(
    given_: str, combine: str = "consistent_only", mode: str = "pairwise", among: str = "AB"
) -> Decision:
    """Combine verdicts written as ``AB>A BA>A``; the same order again is another repeat."""
    seen: dict[str, int] = {}
    verdicts = []
    for item in given_.split():
        order, says = item.split(">")
        seen[order] = seen.get(order, 0) + 1
        verdicts.append(verdict(order, says, seen[order]))
    return combined(
        settings=settings(combine, mode), candidates=tuple(among), verdicts=tuple(verdicts)
    )


@pytest.mark.parametrize("combine", RULES)
def test_a_judge_that_names_one_candidate_in_every_order_decides(combine: str) -> None:
    assert decided("AB>A BA>A", combine) == Decision("A")


@pytest.mark.parametrize("combine", RULES)
def test_a_flip_is_a_conflict_and_said_to_be_one(combine: str) -> None:
    found = decided("AB>A BA>B", combine)
    assert found.winner is None
    assert "conflict" in found.issues[0]
    assert "equally good" not in " ".join(found.issues)


@pytest.mark.parametrize("combine", RULES)
def test_equally_good_in_every_order_is_no_conflict_and_no_winner(combine: str) -> None:
    found = decided("AB>= BA>=", combine)
    assert found.winner is None
    assert "conflict" not in " ".join(found.issues)


@pytest.mark.parametrize("combine", RULES)
def test_one_failed_order_of_two_decides_nothing_and_is_named_with_its_cause(combine: str) -> None:
    found = decided("AB>A BA>!", combine)
    assert found.winner is None
    assert "judge: order B | A: 1 of 1 without a verdict: TIMEOUT (round_deadline)" in found.issues


@pytest.mark.parametrize("combine", RULES)
def test_without_any_verdict_nobody_wins(combine: str) -> None:
    assert decided("AB>! BA>!", combine).winner is None
    assert decided("", combine).winner is None


def test_a_majority_is_of_those_asked_and_its_conflict_and_failures_are_shown() -> None:
    found = decided("AB>A AB>A BA>A BA>!", "majority")
    assert found.winner == "A"
    assert len(found.issues) == 1
    against = decided("AB>A AB>A BA>A BA>B", "majority")
    assert against.winner == "A"
    assert "conflict" in against.issues[0]
    assert decided("AB>A AB>A BA>B BA>!", "majority").winner is None


def test_points_are_two_for_a_choice_and_one_each_for_a_tie() -> None:
    assert decided("AB>A BA>=", "summed_scores").winner == "A"
    assert decided("AB>A BA>?", "summed_scores").winner == "A"


def test_among_three_the_winner_wins_each_of_its_pairs() -> None:
    pairs = "AB>A BA>A AC>A CA>A BC>B CB>C"
    assert decided(pairs, among="ABC").winner == "A"
    circle = decided("AB>A BA>A BC>B CB>B AC>C CA>C", among="ABC")
    assert circle == Decision(None, ("judge: conflict: no candidate wins each of its pairs",))


def test_scores_name_the_best_of_each_repeat() -> None:
    same = decided("A>7 B>4 A>8 B>8", mode="pointwise")
    assert same.winner is None
    assert "conflict" in same.issues[0]
    assert decided("A>7 B>4 A>9 B>8", mode="pointwise").winner == "A"
    assert decided("A>7 B>4 A>8 B>8", "summed_scores", "pointwise").winner == "A"
    assert decided("A>7 B>!", mode="pointwise").winner is None


SAYS = st.sampled_from(["A", "B", "C", "=", "?", "!"])


@st.composite
def ballots(draw: st.DrawFn) -> list[tuple[str, str]]:
    orders = ["".join(order) for order in permutations("ABC")]
    return [(order, draw(SAYS)) for order in orders]


def listwise(given_: list[tuple[str, str]], combine: str) -> Decision:
    verdicts = tuple(verdict(order, says) for order, says in given_)
    return combined(
        settings=settings(combine, "listwise"), candidates=tuple("ABC"), verdicts=verdicts
    )


@given(ballots(), st.sampled_from(RULES), st.randoms(use_true_random=False))
def test_the_order_in_which_verdicts_come_decides_nothing(
    given_: list[tuple[str, str]], combine: str, source: Any
) -> None:
    mixed = list(given_)
    source.shuffle(mixed)
    assert listwise(mixed, combine) == listwise(given_, combine)


@given(ballots(), st.sampled_from(RULES), st.permutations("ABC"))
def test_renaming_the_candidates_renames_the_winner_and_changes_nothing_else(
    given_: list[tuple[str, str]], combine: str, names: list[str]
) -> None:
    new = dict(zip("ABC", names, strict=True))
    renamed = [
        ("".join(new[letter] for letter in order), new.get(says, says)) for order, says in given_
    ]
    plain, other = listwise(given_, combine), listwise(renamed, combine)
    assert other.winner == (None if plain.winner is None else new[plain.winner])
    assert len(other.issues) == len(plain.issues)


@given(ballots())
def test_verdicts_that_differ_never_pass_as_consistent(given_: list[tuple[str, str]]) -> None:
    found = listwise(given_, "consistent_only")
    said = {says for _, says in given_}
    if len(said) > 1:
        assert found.winner is None
        assert ("conflict" in found.issues[0]) == ("!" not in said)
    assert found.winner is None or said == {found.winner}

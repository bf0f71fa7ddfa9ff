"""
The published judgments and sessions, read whole: their right values are known.

Agreement, κ and Brier are counted by hand here, from what the readers yield and nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from runs.importers.judged_records import JudgmentRecord
from runs.importers.judged_registry import read_judgments, read_labels
from runs.importers.records import DebateRecord
from runs.importers.registry import read_debates

pytestmark = pytest.mark.realdata


def kappa(one: Sequence[object], other: Sequence[object]) -> float:
    """Cohen's κ of two lists of labels."""
    n = len(one)
    agreed = sum(a == b for a, b in zip(one, other, strict=True)) / n
    by_one, by_other = Counter(one), Counter(other)
    by_chance = sum(by_one[label] * by_other[label] for label in by_one) / n**2
    return (agreed - by_chance) / (1 - by_chance)


def of(
    records: Iterable[JudgmentRecord], judge: str, group: str
) -> dict[str, list[JudgmentRecord]]:
    """Return a judge's judgments of a group by the output that was shown first."""
    found: dict[str, list[JudgmentRecord]] = {"output_1": [], "output_2": []}
    for record in records:
        if record.judge.name == judge and record.item.group == group:
            found[record.order[0]].append(record)
    return found


def right(records: Iterable[JudgmentRecord]) -> int:
    return sum(record.verdict == record.item.gold for record in records)


@pytest.fixture(scope="module")
def llmbar(real_data: Path) -> list[JudgmentRecord]:
    return list(read_judgments(real_data / "llmbar"))


def test_llmbar_has_1689_rows_in_both_orders_and_1257_first_stages(
    llmbar: list[JudgmentRecord],
) -> None:
    first = [record for record in llmbar if "first stage" in record.judge.name]
    assert (len(llmbar) - len(first), len(first)) == (2 * 1_689, 2 * 1_257)
    assert Counter(record.status for record in llmbar if record not in first)["INVALID"] == 3


def test_llmbar_natural_is_right_92_and_95_times(llmbar: list[JudgmentRecord]) -> None:
    ab, ba = of(llmbar, "GPT-4/Vanilla_NoRules", "LLMBar/Natural").values()
    assert (len(ab), right(ab), right(ba)) == (100, 92, 95)
    assert sum(a.verdict == b.verdict for a, b in zip(ab, ba, strict=True)) == 97
    assert all(record.item.candidates[0].text for record in ab)


@pytest.mark.parametrize(
    ("model", "right_ab", "right_ba", "same"), [("ChatGPT", 44, 32, 12), ("GPT-4", 51, 45, 46)]
)
def test_faireval_depends_on_the_order(
    llmbar: list[JudgmentRecord], model: str, right_ab: int, right_ba: int, same: int
) -> None:
    ab, ba = of(llmbar, f"{model}/Vanilla_NoRules", "Processed/FairEval").values()
    assert (right(ab), right(ba), len(ab)) == (right_ab, right_ba, 66)
    assert sum(a.verdict == b.verdict for a, b in zip(ab, ba, strict=True)) == same


def test_all_54_reversals_of_chatgpt_go_to_the_first_shown(llmbar: list[JudgmentRecord]) -> None:
    ab, ba = of(llmbar, "ChatGPT/Vanilla_NoRules", "Processed/FairEval").values()
    reversed_pairs = [(a, b) for a, b in zip(ab, ba, strict=True) if a.verdict != b.verdict]
    assert len(reversed_pairs) == 54
    assert all(r.verdict == r.order[0] for pair in reversed_pairs for r in pair)


def test_kappa_of_gpt_4_on_faireval_is_different_in_each_order(
    llmbar: list[JudgmentRecord],
) -> None:
    orders = of(llmbar, "GPT-4/Vanilla_NoRules", "Processed/FairEval").values()
    found = [kappa([r.verdict for r in one], [r.item.gold for r in one]) for one in orders]
    assert found == pytest.approx([0.5133, 0.3948], abs=5e-5)


def test_a_result_file_of_llmbar_says_what_the_table_says(
    llmbar: list[JudgmentRecord], real_data: Path
) -> None:
    path = real_data / "llmbar/raw_samples/Processed__FairEval__GPT-4__Vanilla_NoRules.json"
    raw = {(r.item, r.order): r.verdict for r in read_judgments(path)}
    ab, ba = of(llmbar, "GPT-4/Vanilla_NoRules", "Processed/FairEval").values()
    assert raw == {(r.item, r.order): r.verdict for r in (*ab, *ba)}


@pytest.mark.parametrize(
    ("protocol", "repaired", "damaged"),
    [("GPT-4/Swap", (31, 161), (5, 677)), ("ChatGPT/Swap", (72, 497), (63, 341))],
)
def test_two_stages_of_llmbar_are_a_revision(
    real_data: Path, protocol: str, repaired: tuple[int, int], damaged: tuple[int, int]
) -> None:
    moves: Counter[tuple[bool, ...]] = Counter()
    for record in read_debates(real_data / "llmbar/verdicts.csv", "llmbar_swap"):
        if record.protocol == protocol:
            gold = record.question.reference[0]
            for stages in zip(*record.rounds, strict=True):
                moves[tuple(turn.answer == gold for turn in stages)] += 1
    assert (moves[False, True], moves[False, True] + moves[False, False]) == repaired
    assert (moves[True, False], moves[True, False] + moves[True, True]) == damaged


def test_pandalm_people_agree_as_published(real_data: Path) -> None:
    people: dict[str, list[object]] = {}
    for record in read_labels(real_data / "pandalm", "pandalm"):
        people.setdefault(record.annotator, []).append(record.label)
    one, two, three = people.values()
    assert len(one) == len(two) == len(three) == 999
    pairs = sorted([kappa(one, two), kappa(one, three), kappa(two, three)])
    assert pairs == pytest.approx([0.8520227, 0.8616615, 0.8789438], abs=5e-8)
    votes = list(zip(one, two, three, strict=True))
    assert sum(len(set(vote)) == 1 for vote in votes) == 879


def test_pandalm_judges_stand_beside_the_peoples_majority(real_data: Path) -> None:
    records = list(read_judgments(real_data / "pandalm"))
    assert Counter(r.judge.name for r in records) == {"gpt-3.5-turbo": 999, "pandalm-7b": 999}
    gpt = [record for record in records if record.judge.name == "gpt-3.5-turbo"]
    majority = Counter(record.item.gold for record in gpt)
    assert majority == {"tie": 105, "response1": 422, "response2": 472}
    parsed = [record for record in gpt if record.status == "SUCCEEDED"]
    assert len(gpt) - len(parsed) == 25
    assert right(parsed) / len(parsed) == pytest.approx(0.7156057, abs=5e-8)
    as_ties = sum((record.verdict or "tie") == record.item.gold for record in gpt)
    assert as_ties / len(gpt) == pytest.approx(0.7107107, abs=5e-8)


def test_vicuna_scores_add_up_by_pair_of_models(real_data: Path) -> None:
    totals: dict[str, list[float]] = {}
    records = list(read_judgments(real_data / "vicuna_blog"))
    for record in records:
        assert record.scores is not None
        sums = totals.setdefault(record.order[0].partition(":")[0], [0.0, 0.0])
        for place, name in enumerate(record.order):
            sums[place] += record.scores[name]
    assert totals == {
        "llama-13b": [513.0, 694.0],
        "alpaca-13b": [583.0, 704.0],
        "bard": [664.0, 655.5],
        "gpt-3.5-turbo": [693.0, 638.0],
    }
    assert len({record.item.question_id for record in records}) == 80
    assert {record.judge.name for record in records} == {"gpt-4-0328"}
    one = list(read_judgments(real_data / "vicuna_blog/review/review_bard_vicuna-13b.jsonl"))
    assert [record for record in records if record in one] == one


@pytest.mark.parametrize(
    ("rule", "accuracy", "agreement"),
    [("unparsable as tie", 0.55, 0.187), ("unparsable dropped", 0.5375, 0.1516)],
)
def test_chateval_agrees_with_people_by_either_rule(
    real_data: Path, rule: str, accuracy: float, agreement: float
) -> None:
    path = real_data / "chateval/three_turns_sequential_direct_pair_comparison.json"
    panel = [record for record in read_judgments(path) if record.judge.name.endswith(rule)]
    said, gold = [r.verdict for r in panel], [r.item.gold for r in panel]
    assert right(panel) / len(panel) == accuracy
    assert kappa(said, gold) == pytest.approx(agreement, abs=5e-4)


def test_chateval_has_80_labels_and_every_referee(real_data: Path) -> None:
    labels = list(read_labels(real_data / "chateval"))
    assert Counter(label.label for label in labels) == {"gpt35": 41, "vicuna": 25, "tie": 14}
    judges = Counter(record.judge.name for record in read_judgments(real_data / "chateval"))
    assert len(judges) == 6
    assert set(judges.values()) == {80}


@pytest.mark.parametrize(
    ("setting", "n", "n_right", "brier"),
    [("ai_debate", 87, 68, 0.18309), ("ai_consultancy", 76, 61, 0.16849)],
)
def test_judges_of_nyu_believe_as_published(
    real_data: Path, setting: str, n: int, n_right: int, brier: float
) -> None:
    path = real_data / "nyu_debate/ai_sessions.jsonl"
    found = [record for record in read_debates(path) if record.protocol == setting]
    answers = [record.final.answer if record.final else None for record in found]
    gold = [record.question.reference[0] for record in found]
    assert (len(found), sum(a == g for a, g in zip(answers, gold, strict=True))) == (n, n_right)
    shares = [_final_belief(record)[one] for record, one in zip(found, gold, strict=True)]
    assert sum((1 - share) ** 2 for share in shares) / n == pytest.approx(brier, abs=5e-6)


def _final_belief(record: DebateRecord) -> dict[str, float]:
    return dict(record.metadata["final_belief"])


def test_consultants_of_nyu_are_right_38_times_and_wrong_38_times(real_data: Path) -> None:
    found = list(read_debates(real_data / "nyu_debate/ai_sessions.jsonl"))
    sides = Counter(
        (record.protocol, tuple(agent.side for agent in record.agents)) for record in found
    )
    assert sides["ai_consultancy", ("correct",)] == 27 + 11
    assert sides["ai_consultancy", ("incorrect",)] == 20 + 18
    assert sum(count for (protocol, _), count in sides.items() if protocol == "ai_debate") == 87
    assert len({record.question.question for record in found}) == 139


def test_consultancies_of_nyu_are_judged_by_assigned_side(real_data: Path) -> None:
    found = list(read_judgments(real_data / "nyu_debate/ai_sessions.jsonl"))
    alone = [record for record in found if record.item.group == "ai_consultancy"]
    sides = {
        side: [r for r in alone if r.item.metadata["assigned"] == side]
        for side in ("correct", "incorrect")
    }
    assert {side: (len(of_side), right(of_side)) for side, of_side in sides.items()} == {
        "correct": (38, 28),
        "incorrect": (38, 33),
    }
    assert right(record for record in found if record.item.group == "ai_debate") == 68


def test_the_last_belief_of_a_session_is_its_final_one(real_data: Path) -> None:
    path = real_data / "nyu_debate/ai_sessions.jsonl"
    labels = {label.item_id: label.label for label in read_labels(path)}
    debates = list(read_debates(path))
    assert len(labels) == len(debates) == 163
    for record in debates:
        shares = sorted(record.beliefs[-1].belief.values())
        label = labels[record.debate_id]
        assert isinstance(label, dict)
        assert sorted(label.values()) == shares

"""The published files, read whole: their counts are known."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from runs.importers.records import DebateRecord, record_hash
from runs.importers.registry import read_debates, read_questions

pytestmark = pytest.mark.realdata


def test_gsm8k_has_1319_questions_with_plain_numbers(real_data: Path) -> None:
    found = list(read_questions(real_data / "gsm8k_4agents/test.jsonl"))
    assert len(found) == 1_319
    assert all(record.reference[0].lstrip("-").isdigit() for record in found)
    assert (found[0].id, found[0].reference) == ("gsm8k-0001", ("18",))
    assert len({record_hash(record) for record in found}) == 1_319


def test_truthfulqa_has_817_questions_in_either_form(real_data: Path) -> None:
    choice = list(read_questions(real_data / "qa_sets/TruthfulQA.csv"))
    opened = list(read_questions(real_data / "qa_sets/TruthfulQA.csv", "truthfulqa_open"))
    assert len(choice) == len(opened) == 817
    assert {record.answer_type for record in choice} == {"choice"}
    assert {record.answer_type for record in opened} == {"open"}
    assert all(record.reference[0] in record.choices for record in choice)
    assert len({record.stratum for record in choice}) == 38


def test_strategyqa_has_107_times_yes_and_122_times_no(real_data: Path) -> None:
    found = list(read_questions(real_data / "qa_sets/strategyqa_dev_noevidence.json"))
    assert len(found) == 229
    assert Counter(record.reference for record in found) == {("yes",): 107, ("no",): 122}
    assert all(record.evidence for record in found)


def test_a_plain_csv_of_283_questions_is_read_as_open_questions(real_data: Path) -> None:
    found = list(read_questions(real_data / "qa_sets/khan_human_questions.csv"))
    assert len(found) == 283
    assert {(record.answer_type, record.reference) for record in found} == {("open", ())}
    assert set(found[0].metadata) == {"debate_name", "experiment_name"}


@pytest.mark.parametrize(
    ("name", "answer_type"),
    [("gsm_3agents_3rounds.json", "number"), ("mmlu_3agents_3rounds.json", "choice")],
)
def test_du_logs_have_20_debates_of_3_agents_and_3_rounds(
    real_data: Path, name: str, answer_type: str
) -> None:
    found = list(read_debates(real_data / "du_format" / name))
    assert len(found) == 20
    for record in found:
        assert record.question.answer_type == answer_type
        assert len(record.question.choices) == (4 if answer_type == "choice" else 0)
        assert [len(turns) for turns in record.rounds] == [3, 3, 3]
        assert all(turn.text and turn.prompt for turns in record.rounds for turn in turns)


def _right(record: DebateRecord, place: int, agent: int) -> bool:
    answer = record.rounds[place][agent].answer
    try:
        return answer is not None and float(answer) == float(record.question.reference[0])
    except ValueError:
        return False


def test_gsm8k_solutions_agree_with_every_published_flag(real_data: Path) -> None:
    right: Counter[str] = Counter()
    count = 0
    for record in read_debates(real_data / "gsm8k_4agents/example_model_solutions.jsonl"):
        count += 1
        for agent, turn in enumerate(record.rounds[0]):
            assert _right(record, 0, agent) == turn.metadata["is_correct"]
            right[turn.agent_id] += _right(record, 0, agent)
    assert count == 1_319
    assert right == {
        "6b_finetuning": 286,
        "6b_verification": 515,
        "175b_finetuning": 458,
        "175b_verification": 742,
    }


def test_gsm8k_steps_repair_360_of_861_and_damage_76_of_458(real_data: Path) -> None:
    path = real_data / "gsm8k_4agents/example_model_solutions.jsonl"
    moves = Counter(
        (_right(record, 0, 0), _right(record, 1, 0)) for record in read_debates(path, "gsm8k_steps")
    )
    assert moves[False, True] == 360
    assert moves[False, True] + moves[False, False] == 861
    assert moves[True, False] == 76
    assert moves[True, False] + moves[True, True] == 458


def test_questions_and_solutions_of_gsm8k_share_ids(real_data: Path) -> None:
    asked = {
        record.id: record.question
        for record in read_questions(real_data / "gsm8k_4agents/test.jsonl")
    }
    answered = {
        record.question.id: record.question.question
        for record in read_debates(real_data / "gsm8k_4agents/example_model_solutions.jsonl")
    }
    assert asked == answered

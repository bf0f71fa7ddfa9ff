"""Published debate logs, in small files of the same form."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from runs.importers.debate_logs import choices_in, marked_answer, read_gsm8k_solutions
from runs.importers.faults import FaultLog
from runs.importers.sources import Source
from tests.runs.importers.helpers import debate_faults, debates, lines

QUESTION = "How many legs do two dogs have?"
CHOICE = (
    "Can you answer the following question as accurately as possible? Which is red?: A) sky, "
    "B) grass, lawn, C) blood, D) snow Answer in English only. Explain your answer, putting the "
    "answer in the form (X) at the end of your response."
)


def conversation(*replies: str) -> list[dict[str, str]]:
    found = []
    for place, reply in enumerate(replies):
        found.append({"role": "user", "content": f"prompt {place}"})
        found.append({"role": "assistant", "content": reply})
    return found


def du_file(gold: Any = "So 8.\n#### 8", question: str = QUESTION) -> dict[str, Any]:
    return {question: [[conversation("7", "8"), conversation("8", "8")], gold]}


def test_a_du_log_gives_one_round_for_each_reply() -> None:
    (record,) = debates(json.dumps(du_file()), "du")
    assert record.question.question == QUESTION
    assert (record.question.answer_type, record.question.reference) == ("number", ("8",))
    assert [agent.agent_id for agent in record.agents] == ["a", "b"]
    said = [[(turn.agent_id, turn.text, turn.prompt) for turn in turns] for turns in record.rounds]
    assert said == [
        [("a", "7", "prompt 0"), ("b", "8", "prompt 0")],
        [("a", "8", "prompt 1"), ("b", "8", "prompt 1")],
    ]


def test_a_du_reply_is_kept_whole_and_its_rules_are_named() -> None:
    (record,) = debates(json.dumps(du_file()), "du")
    assert {turn.answer for turns in record.rounds for turn in turns} == {None}
    assert {turn.status for turns in record.rounds for turn in turns} == {"SUCCEEDED"}
    assert (record.protocol, record.rules, record.reads_known) == ("du", "du_replay", "assumed")


def test_a_letter_as_gold_makes_a_choice_of_the_options_in_the_prompt() -> None:
    (record,) = debates(json.dumps(du_file("C", CHOICE)), "du")
    assert record.question.choices == ("sky", "grass, lawn", "blood", "snow")
    assert (record.question.answer_type, record.question.reference) == ("choice", ("C",))
    assert record.question.question == CHOICE


@pytest.mark.parametrize("separator", ["", "\n", " \r\n"])
def test_several_du_objects_in_one_file_are_read(separator: str) -> None:
    text = separator.join(json.dumps(du_file(question=f"{n} dogs?")) for n in range(3))
    assert [record.question.question for record in debates(text, "du")] == [
        "0 dogs?",
        "1 dogs?",
        "2 dogs?",
    ]


def test_an_agent_that_replied_less_often_has_fewer_turns() -> None:
    log = {QUESTION: [[conversation("7", "8"), conversation("8")], "#### 8"]}
    (record,) = debates(json.dumps(log), "du")
    assert [len(turns) for turns in record.rounds] == [2, 1]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ([], "value: must be a list of the agents' messages and the gold answer"),
        ([[], "#### 8"], "value[0]: holds 0 agents; 1 to 26 can be"),
        ([[[]], "#### 8"], "value[0]: holds no reply of an assistant"),
        ([[3], "#### 8"], "value[0][0]: must be a list of messages, not 3"),
        ([[[{"role": "user"}]], "#### 8"], "value[0][0][0].content: is missing"),
        ([[[{"content": "x"}]], "#### 8"], "value[0][0][0].role: is missing"),
        ([[conversation("8")], 8], "value[1]: the gold answer must be text, not 8"),
        (
            [[conversation("8")], "C"],
            "value[1]: is neither a solution with #### n nor the letter of a choice",
        ),
    ],
)
def test_a_faulty_du_entry_is_refused_with_its_line(value: Any, fault: str) -> None:
    text = '{"good?": ' + json.dumps(du_file()[QUESTION]) + ',\n"bad?": ' + json.dumps(value) + "}"
    assert f"d.jsonl:2: {fault}" in debate_faults(text, "du")


def test_a_question_that_stands_twice_in_a_du_log_is_refused() -> None:
    entry = json.dumps(QUESTION) + ": " + json.dumps(du_file()[QUESTION])
    (fault,) = debate_faults("{" + entry + ",\n" + entry + "}", "du")
    assert fault.startswith("d.jsonl:2: debate_id: ")


@pytest.mark.parametrize(
    ("prompt", "choices"),
    [
        ("Pick: A) 1, B) 2", ("1", "2")),
        ("Take vitamin A) or so: A) x, B) y, C) z", ("x", "y", "z")),
        ("Pick: A) a (B) or not, B) b", ("a (B) or not", "b")),
        ("No options", ()),
    ],
)
def test_options_are_found_by_their_letters_in_order(prompt: str, choices: tuple[str, ...]) -> None:
    assert choices_in(prompt) == choices


SOLUTIONS: dict[str, Any] = {
    "question": QUESTION,
    "ground_truth": "2*4=8\nA: 8",
    "small": {"is_correct": False, "solution": "2+4=6\nA: 6"},
    "large": {"is_correct": True, "solution": "2*4=<<2*4=8>>8\nA: $8.0"},
    "broken": {"is_correct": False, "solution": "2*2*2*2*2*2"},
}


def test_gsm8k_solutions_are_one_round_of_agents_that_read_nobody() -> None:
    (record,) = debates(lines(SOLUTIONS), "gsm8k_solutions")
    (turns,) = record.rounds
    assert [(turn.agent_id, turn.answer, turn.status) for turn in turns] == [
        ("small", "6", "SUCCEEDED"),
        ("large", "8.0", "SUCCEEDED"),
        ("broken", None, "INVALID"),
    ]
    assert turns[0].text == "2+4=6\nA: 6"
    assert turns[0].metadata == {"is_correct": False}
    assert record.question.id == "gsm8k-0001"
    assert record.question.reference == ("8",)
    assert record.reads_known == "recorded"


def test_two_models_can_be_read_as_an_answer_and_its_revision() -> None:
    source = Source(io.BytesIO(lines(SOLUTIONS).encode()), "f", owned=True)
    log = FaultLog("f")
    ((_, record),) = read_gsm8k_solutions(source, log, steps={"small": "large"})
    assert [agent.agent_id for agent in record.agents] == ["small"]
    assert [[turn.answer for turn in turns] for turns in record.rounds] == [["6"], ["8.0"]]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"ground_truth": "8"}, 'ground_truth: has no number after "A:"'),
        ({"small": {"is_correct": True}}, "small.solution: is missing"),
        ({"small": "A: 6"}, 'small: must be an object, not "A: 6"'),
    ],
)
def test_faulty_gsm8k_solutions_are_refused(changes: dict[str, Any], fault: str) -> None:
    text = lines(SOLUTIONS, {**SOLUTIONS, **changes})
    assert f"d.jsonl:2: {fault}" in debate_faults(text, "gsm8k_solutions")


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        ("x\nA: 1,200", "1200"),
        ("A: 1\nA: 2", "2"),
        ("A: $5", "5"),
        ("QA: 5", None),
        ("A:", None),
        ("5", None),
    ],
)
def test_a_marked_answer_stands_at_the_start_of_a_line(solution: str, answer: str | None) -> None:
    assert marked_answer(solution) == answer

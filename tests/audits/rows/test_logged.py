"""Debates that ran elsewhere, scored as they were logged."""

from __future__ import annotations

from typing import Any

import pytest

from audits.metrics import RunRow
from audits.rows.logged import LOGGED, logged_run, names_simulated_agents, starts_blind
from runs.engine.types import Question

NUMBER = Question(id="q", text="How many?", answer_type="number", reference=("4",))
CHOICE = Question(
    id="q", text="Which?", answer_type="choice", choices=("one", "two"), reference=("A",)
)
OPEN = Question(id="q", text="Why?", answer_type="open")


def turn(agent: str, answer: str | None = None, **more: Any) -> dict[str, Any]:
    return {"agent_id": agent, "answer": answer, **more}


def row(
    *rounds: list[dict[str, Any]], question: Question = NUMBER, rules: str = "as_given", **more: Any
) -> RunRow:
    body = {
        "debate_id": "d",
        "agents": [{"agent_id": agent} for agent in "abc"],
        "rounds": list(rounds),
        **more,
    }
    return logged_run(
        body, condition="du", question=question, family="q", stratum=None, rules=rules
    )


def states(found: RunRow, agent: str) -> list[tuple[int, str | None, bool | None, str]]:
    return [(s.t, s.answer, s.correct, s.status) for s in found.states if s.agent_id == agent]


def plurality(found: RunRow) -> list[tuple[str | None, bool, bool]]:
    return [(o.answer, o.correct, o.tied) for o in found.outcomes if o.aggregator == "plurality"]


def test_an_unscorable_reply_is_wrong_and_keeps_no_earlier_answer() -> None:
    first = [turn("a", "4"), turn("b", "4"), turn("c", "5")]
    second = [turn("a", "no idea what"), turn("b", "4"), turn("c", "5")]
    found = row(first, second)
    assert states(found, "a") == [(0, "4", True, "SUCCEEDED"), (1, None, False, "INVALID")]
    assert plurality(found) == [("4", True, False), (None, False, True)]


def test_an_agent_without_a_turn_keeps_what_it_said() -> None:
    found = row([turn("a", "4"), turn("b", "5")], [turn("c", "4")])
    assert states(found, "a") == [(0, "4", True, "SUCCEEDED")]
    assert states(found, "c") == [(0, None, False, "INACTIVE"), (1, "4", True, "SUCCEEDED")]
    assert plurality(found) == [(None, False, True), ("4", True, False)]


def test_equal_values_are_one_answer() -> None:
    found = row([turn("a", "4.0"), turn("b", "$4"), turn("c", "5")])
    assert plurality(found) == [("4", True, False)]


def test_an_abstention_is_an_answer_and_no_vote() -> None:
    found = row([turn("a", "I don't know"), turn("b", "I don't know"), turn("c", "5")])
    assert [s.is_abstention for s in found.states] == [True, True, False]
    assert plurality(found) == [("5", False, False)]
    silent = row([turn(agent, "I don't know") for agent in "abc"])
    assert [(o.answer, o.abstained) for o in silent.outcomes] == [(None, True)]


@pytest.mark.parametrize(
    ("text", "answer"),
    [("so it is (A)", "A"), ("The answer is B.", "B"), ("A good question (X)", None)],
)
def test_a_reply_without_an_answer_is_read_by_the_named_rules(text: str, answer: str) -> None:
    found = row(
        [turn(agent, None, text=text) for agent in "abc"], question=CHOICE, rules="du_replay"
    )
    assert [s.answer for s in found.states] == [answer] * 3


def test_without_rules_a_reply_without_an_answer_is_unscorable() -> None:
    found = row([turn(agent, None, text="It is 4.") for agent in "abc"])
    assert [s.status for s in found.states] == ["INVALID"] * 3


def test_a_cut_reply_is_not_read() -> None:
    cut = turn("a", None, text="It is 4, or", finish_reason="length")
    found = row([cut, turn("b", "4"), turn("c", "4")], rules="du_replay")
    assert states(found, "a") == [(0, None, False, "TRUNCATED")]


def test_the_status_of_the_log_is_kept() -> None:
    found = row([turn("a", None, status="TIMEOUT"), turn("b", "4"), turn("c", "4")])
    assert states(found, "a") == [(0, None, False, "TIMEOUT")]


def test_the_final_answer_of_the_log_stands_beside_plurality() -> None:
    said = {"answer": "4", "aggregator": "judge"}
    found = row([turn("a", "5"), turn("b", "5"), turn("c", "4")], final=said)
    (final,) = [o for o in found.outcomes if o.aggregator == LOGGED]
    assert (final.t, final.answer, final.correct) == (0, "4", True)


def test_open_questions_are_not_scored() -> None:
    found = row([turn(agent, "because") for agent in "abc"], question=OPEN)
    assert [s.correct for s in found.states] == [None] * 3


def test_what_a_log_does_not_record_is_unknown() -> None:
    found = row([turn("a", "4")], usage={"input_tokens": 10, "cost_usd": 0.0000015})
    assert (found.usage.input_tokens, found.usage.output_tokens) == (10, None)
    assert (found.usage.cost_microusd, found.usage.calls) == (2, None)


def test_a_start_is_blind_unless_the_log_says_otherwise() -> None:
    blind = {"rounds": [[turn("a", "4"), turn("b", "4", reads=[])]]}
    one_by_one = {"rounds": [[turn("a", "4", order=0), turn("b", "4", order=1)]]}
    reading = {"rounds": [[turn("a", "4"), turn("b", "4", reads=[{"agent_id": "a"}])]]}
    assert [starts_blind(body) for body in (blind, one_by_one, reading)] == [True, False, False]


@pytest.mark.parametrize(
    ("model", "simulated"),
    [("simulated", True), ("simulated:accuracy=0.6", True), ("openai/simulated-7b", False)],
)
def test_simulated_agents_are_known_by_their_model(model: str, simulated: bool) -> None:
    agents = [{"agent_id": "a", "model": "openai/gpt"}, {"agent_id": "b", "model": model}]
    assert names_simulated_agents({"agents": agents}) is simulated

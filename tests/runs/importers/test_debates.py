"""Debates of our own format: what is read, and every fault with its line and field."""

from __future__ import annotations

from typing import Any

import pytest

from runs.importers.records import (
    BeliefRecord,
    ClaimRecord,
    FinalRecord,
    ReadRecord,
    UsageRecord,
)
from tests.runs.importers.helpers import a_debate, a_turn, debate_faults, debates, lines

READ_B = [{"agent_id": "b", "round": 0, "position": 0}]
READ_A = [{"agent_id": "a", "round": 0, "position": 0}]
FIRST = [a_turn("a"), a_turn("b")]


def test_a_debate_is_read_with_everything_it_says() -> None:
    turn = a_turn(
        "a",
        text="So 4.",
        prompt="2 + 2?",
        claims=[{"claim_id": "c1", "text": "Two and two is four."}],
        finish_reason="stop",
        confidence=0.75,
        reads=READ_B,
        order=0,
        seconds=1.5,
    )
    (record,) = debates(
        lines(
            a_debate(
                seed=3,
                agents=[
                    {"agent_id": "a", "model": "m", "role": "debater", "side": "correct"},
                    {"agent_id": "b", "model": "n", "team": "x"},
                ],
                rounds=[FIRST, [turn, a_turn("b", reads=READ_A)]],
                beliefs=[{"judge": "j", "after": 1, "belief": {"4": 0.75, "5": 0.25}}],
                final={"answer": "4", "aggregator": "plurality"},
                usage={"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.01},
                site="lab",
            )
        )
    )
    revised = record.rounds[1][0]
    assert revised.claims == (ClaimRecord("c1", "Two and two is four."),)
    assert revised.reads == (ReadRecord("b", 0, 0),)
    assert (revised.confidence, revised.order, revised.metadata) == (0.75, 0, {"seconds": 1.5})
    assert record.agents[0].side == "correct"
    assert record.agents[1].metadata == {"team": "x"}
    assert record.beliefs == (BeliefRecord("j", 1, {"4": 0.75, "5": 0.25}),)
    assert record.final == FinalRecord("4", "plurality")
    assert record.usage == UsageRecord(10, 5, 0.01)
    assert (record.seed, record.reads_known, record.metadata) == (3, "recorded", {"site": "lab"})
    assert record.question.id == "q1"


def test_reads_are_unknown_unless_every_answered_revision_tells_them() -> None:
    (silent,) = debates(lines(a_debate()))
    half = [FIRST, [a_turn("a", reads=READ_B), a_turn("b")]]
    (partly,) = debates(lines(a_debate(rounds=half)))
    failed = [FIRST, [a_turn("a", reads=READ_B), a_turn("b", None, status="TIMEOUT")]]
    (told,) = debates(lines(a_debate(rounds=failed)))
    (alone,) = debates(lines(a_debate(rounds=[FIRST])))
    kinds = [record.reads_known for record in (silent, partly, told, alone)]
    assert kinds == ["unknown", "unknown", "recorded", "recorded"]


def test_a_log_may_say_that_its_protocol_fixes_the_reads() -> None:
    (record,) = debates(lines(a_debate(reads_known="assumed")))
    assert record.reads_known == "assumed"


def test_a_turn_without_a_status_succeeded_only_if_it_said_something() -> None:
    rounds = [[a_turn("a", None), a_turn("b", None, text="hm")]]
    (record,) = debates(lines(a_debate(rounds=rounds)))
    assert [turn.status for turn in record.rounds[0]] == ["INVALID", "SUCCEEDED"]


def test_an_agent_that_never_speaks_stays_configured() -> None:
    (record,) = debates(lines(a_debate(rounds=[[a_turn("a")]])))
    assert [agent.agent_id for agent in record.agents] == ["a", "b"]


def test_a_sequential_turn_may_read_its_own_round() -> None:
    rounds = [[a_turn("a", order=0), a_turn("b", order=1, reads=READ_A)]]
    (record,) = debates(lines(a_debate(rounds=rounds)))
    assert record.rounds[0][1].reads == (ReadRecord("a", 0, 0),)


def _round_one(**changes: Any) -> dict[str, Any]:
    return {"rounds": [FIRST, [a_turn("a", **changes)]]}


def _read(**changes: Any) -> dict[str, Any]:
    return _round_one(reads=[{**READ_B[0], **changes}])


def _belief(**changes: Any) -> dict[str, Any]:
    return {"beliefs": [{"judge": "j", "after": 1, "belief": {"4": 1}, **changes}]}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"debate_id": ...}, "debate_id: is missing"),
        ({"question_id": ...}, "question_id: is missing"),
        ({"protocol": ""}, "protocol: is empty"),
        ({"seed": -1}, "seed: must be from 0 to 2^53 - 1, not -1"),
        ({"seed": 1.5}, "seed: must be a whole number, not 1.5"),
        ({"seed": True}, "seed: must be a whole number, not true"),
        ({"agents": []}, "agents: must list at least one agent"),
        ({"agents": {"a": "m"}}, "agents: must be a list, not an object"),
        ({"agents": [{"agent_id": "a"}]}, "agents[0].model: is missing"),
        (
            {"agents": [{"agent_id": "a", "model": "m"}] * 2},
            'agents[1].agent_id: "a" stands twice',
        ),
        ({"rounds": []}, "rounds: must list at least one round"),
        ({"rounds": [a_turn("a")]}, "rounds[0]: must be a list of turns, not an object"),
        ({"rounds": [[]] * 66}, "rounds: lists 66 rounds; the most is 65"),
        ({"rounds": [[a_turn("z")]]}, 'rounds[0][0].agent_id: "z" is none of the agents'),
        (
            {"rounds": [[a_turn("a"), a_turn("a")]]},
            'rounds[0][1].agent_id: "a" has two turns in this round',
        ),
        (
            {"rounds": [[a_turn("a", order=1), a_turn("b", order=1)]]},
            "rounds[0]: two turns have the same order",
        ),
        ({"rounds": [[{"agent_id": "a"}]]}, "rounds[0][0].answer: is missing"),
        (_round_one(answer=4), 'rounds[1][0].answer: must be text, not 4; write "4"'),
        (_round_one(status="OK"), "rounds[1][0].status: must be one of SUCCEEDED, INVALID, "),
        (
            _round_one(answer=None, status="SUCCEEDED"),
            "rounds[1][0].status: is SUCCEEDED, but the turn has neither answer nor text",
        ),
        (_round_one(confidence=1.1), "rounds[1][0].confidence: must be from 0 to 1, not 1.1"),
        (_round_one(confidence="high"), 'rounds[1][0].confidence: must be a number, not "high"'),
        (
            _round_one(claims=[{"claim_id": "c", "text": "t"}] * 2),
            'rounds[1][0].claims[1].claim_id: "c" stands twice',
        ),
        (_read(round=2), "rounds[1][0].reads[0].round: 2 is later than the turn's round 1"),
        (_read(agent_id="z"), 'rounds[1][0].reads[0]: there is no turn of "z" in round 0'),
        (_read(agent_id="a", round=1), "rounds[1][0].reads[0]: a turn cannot read itself"),
        (_round_one(reads=READ_B * 2), "rounds[1][0].reads: two reads have the same position"),
        (
            _round_one(reads=[{"agent_id": "b", "round": 0}]),
            "rounds[1][0].reads[0].position: is missing",
        ),
        (
            {"reads_known": "recorded"},
            "reads_known: is recorded, but some revisions do not say what they read",
        ),
        ({"reads_known": "guessed"}, "reads_known: must be one of recorded, assumed, unknown"),
        (_belief(after=3), "beliefs[0].after: 3 is more than the 2 rounds"),
        (_belief(belief={"4": 1.5}), "beliefs[0].belief.4: must be from 0 to 1"),
        (_belief(belief={"4": 0.8, "5": 0.8}), "beliefs[0].belief: adds up to 1.6, more than 1"),
        (_belief(belief={"4": None}), "beliefs[0].belief: has an option without a share"),
        ({"final": {"answer": "4"}}, "final.aggregator: is missing"),
        ({"final": "4"}, 'final: must be an object, not "4"'),
        ({"usage": {"cost_usd": -1}}, "usage.cost_usd: must be not negative, not -1"),
    ],
)
def test_a_faulty_debate_is_refused_by_line_and_field(changes: dict[str, Any], fault: str) -> None:
    found = debate_faults(lines(a_debate(debate_id="good"), a_debate(**changes)))
    assert any(line.startswith(f"d.jsonl:2: {fault}") for line in found), found


def test_one_question_id_is_one_question() -> None:
    other = a_debate(debate_id="d2", question="2 + 3?")
    assert debate_faults(lines(a_debate(), other)) == [
        'd.jsonl:2: question_id: "q1" is another question than on line 1'
    ]


def test_a_debate_id_that_stands_twice_is_refused() -> None:
    assert debate_faults(lines(a_debate(), a_debate())) == [
        'd.jsonl:2: debate_id: "d1" stands on line 1 already'
    ]

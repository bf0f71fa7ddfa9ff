"""Replies in JSON, read strictly (S11)."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.hashing import canonical_bytes, claim_hash
from runs.engine.parsing import ParsedReply, parse_reply, response_schema
from runs.engine.types import AnswerKind, AnswerType, Question
from tests.runs.engine.builders import protocol

ASKED = protocol(
    output={"format": "json", "claims": True, "confidence": True, "change_reason": True}
)
NUMBER = Question("q", "How many?", "number")


def reply_to(text: str, question: Question = NUMBER) -> ParsedReply:
    raw = text.encode("utf-8", "surrogatepass")
    return parse_reply(raw, question=question, protocol=ASKED, prompt=(), finish_reason="stop")


FULL: dict[str, Any] = {
    "reasoning": "9 times 2",
    "answer": "18 dollars",
    "confidence": 0.8,
    "claims": ["nine are sold", {"claim_id": "price", "text": "each costs 2"}],
    "change": {"kind": "revise", "claim_id": "price", "text": "it was 3"},
}


@pytest.mark.parametrize("around", ["{}", "```json\n{}\n```", "Here:\n```\n{}\n```\nDone."])
def test_an_object_is_read_bare_or_in_one_fenced_block(around: str) -> None:
    reply = reply_to(around.replace("{}", json.dumps(FULL)))
    assert (reply.answer.value, reply.answer.rule) == ("18", "json")
    assert reply.confidence == "0.8"
    assert [(c.claim_id, c.claim_hash) for c in reply.claims] == [
        ("c1", claim_hash("nine are sold")),
        ("price", claim_hash("each costs 2")),
    ]
    assert reply.change == (("kind", "revise"), ("claim_id", "price"), ("text", "it was 3"))
    assert reply.problems == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "broken JSON at line 1"),
        ('{"answer": "5",}', "broken JSON at line 1"),
        ("42", "not a JSON object"),
        ("null", "not a JSON object"),
        ('["5"]', "not a JSON object"),
        ('{"anwser": "5"}', "answer: missing"),
        ('{"answer": null}', "answer: not a text"),
        ('{"answer": ["5"]}', "answer: not a text"),
        ('{"answer": true}', "answer: not a text"),
        ('{"answer": NaN}', "NaN is not JSON"),
        ('{"answer": -Infinity}', "-Infinity is not JSON"),
        ('{"answer": "5", "answer": "6"}', "a key is given twice"),
        ('{"answer": "5", "x": {"y": 1, "y": 2}}', "a key is given twice"),
        ('{"answer": "5", "x": ' + "[" * 20 + "]" * 20 + "}", "nested deeper than 16"),
        ("[" * 100_000, "nested deeper than 16"),
        ('{"answer": "5", "confidence": 1.5}', "confidence: not a number between 0 and 1"),
        ('{"answer": "5", "confidence": "high"}', "confidence: not a number between 0 and 1"),
        ('{"answer": "5", "confidence": []}', "confidence: not a text"),
        ('{"answer": "5", "claims": "x"}', "claims: not a list"),
        ('{"answer": "5", "claims": [1, null]}', "claims[2]: not a text"),
        ('{"answer": "5", "claims": [" "]}', "claims[1]: blank"),
        ('{"answer": "5", "claims": ["a", {"claim_id": "c1", "text": "b"}]}', "given twice"),
        ('{"answer": "5", "change": "no"}', "change: not an object"),
        ('{"answer": "5", "change": {"kind": "burn"}}', "change.kind: not one of"),
        ('{"answer": "<answer>"}', "the prompt's placeholder"),
        ('{"answer": ' + "9" * 10_000 + "}", "longer than 1000 characters"),
        ('{"answer": 1e999999999}', "an exponent beyond 300"),
        ('{"answer": "\\ud800"}', "text before the number"),
        ('{"answer": "4\\u00002"}', "more than one number"),
        ('```json\n{"answer": "5"}\n```\n```json\n{"answer": "6"}\n```', "broken JSON"),
        ('{"answer": "5"} {"answer": "6"}', "broken JSON"),
    ],
)
def test_what_is_not_the_asked_object_is_invalid_with_its_reason(text: str, reason: str) -> None:
    answer = reply_to(text).answer
    assert answer.kind is AnswerKind.INVALID
    assert reason in answer.reason


def test_numbers_and_booleans_are_answers_where_the_type_has_them() -> None:
    assert reply_to('{"answer": 4.20e1}').answer.value == "42"
    assert reply_to('{"answer": true}', Question("q", "?", "yesno")).answer.value == "yes"


def test_what_is_missing_beside_the_answer_is_a_problem_and_no_fault() -> None:
    reply = reply_to('{"answer": "42"}')
    assert reply.answer.value == "42"
    assert reply.problems == ("confidence: missing", "claims: missing", "change: missing")


def test_a_refusal_in_plain_text_is_a_refusal() -> None:
    assert reply_to("I'm sorry, but I can't help with that.").answer.kind is AnswerKind.REFUSAL


def test_plain_text_replies_have_no_schema() -> None:
    assert response_schema(NUMBER, protocol()) is None


@pytest.mark.parametrize("answer_type", ["number", "choice", "yesno", "text", "open"])
def test_the_schema_is_strict_and_has_a_canonical_form(answer_type: AnswerType) -> None:
    schema = response_schema(Question("q", "?", answer_type, choices=("x", "y")), ASKED)
    assert schema is not None
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["reasoning", "answer", "confidence", "claims", "change"]
    assert schema["additionalProperties"] is False
    canonical_bytes(schema)


def test_the_schema_offers_the_options_and_abstention() -> None:
    question = Question("q", "?", "choice", choices=("x", "y", "z"))
    schema = response_schema(question, ASKED)
    assert schema is not None
    assert schema["properties"]["answer"]["enum"] == ["A", "B", "C", "ABSTAIN"]
    strict = protocol(output={"format": "json", "abstention_allowed": False})
    schema = response_schema(Question("q", "?", "yesno"), strict)
    assert schema is not None
    assert schema["properties"]["answer"]["enum"] == ["yes", "no"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["answer", "claims", "confidence", "change", "text", "kind"]), inner
            )
        ),
    )
)
def test_any_json_value_is_an_answer_or_invalid(value: Any) -> None:
    reply = reply_to(json.dumps(value))
    if reply.answer.is_vote:
        assert isinstance(value, dict)
        assert "answer" in value
    canonical_bytes([reply.text, reply.answer.raw, reply.answer.reason, reply.confidence])

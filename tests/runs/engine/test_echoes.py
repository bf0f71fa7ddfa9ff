"""What a model repeats of its prompt is no answer; what it takes from a peer is one (S26)."""

from __future__ import annotations

import pytest

from runs.engine.parsing import ECHO, parse_reply
from runs.engine.types import Answer, AnswerKind, PromptMessage, Question
from tests.runs.engine.builders import protocol

QUESTION = Question("q", "How many of the 12 eggs are left over?", "number")
LOOSE = protocol(
    prompts={
        "initial": "Reply in 3 sentences. {{question}}\n{{answer_format}}",
        "revision": "These are the others' solutions:\n{{peers}}\nReply in 3 sentences.",
        "answer_format": {"number": "Write your number at the end, such as 17 or so, in a box."},
    },
    output={"extraction": {"number": ["final_line", "boxed", "last_number"]}},
)
INITIAL = (
    "Reply in 3 sentences. How many of the 12 eggs are left over?\n"
    "Write your number at the end, such as 17 or so, in a box."
)


def answer_to(text: str, *prompt: str) -> Answer:
    reply = parse_reply(
        text.encode(),
        question=QUESTION,
        protocol=LOOSE,
        prompt=tuple(PromptMessage("user", content) for content in prompt or (INITIAL,)),
        finish_reason="stop",
    )
    return reply.answer


@pytest.mark.parametrize(
    "text",
    [
        INITIAL,
        INITIAL.replace(" ", "\n  "),
        "Reply in 3 sentences.",
        "Sure! Reply in 3 sentences.",
        "Write your number at the end, such as 17 or so, in a box.",
        "end, such as 17 or so, in",
        "How many of the 12 eggs are left over?",
    ],
)
def test_an_echo_of_the_instructions_is_invalid(text: str) -> None:
    answer = answer_to(text)
    assert (answer.kind, answer.reason) == (AnswerKind.INVALID, ECHO)


def test_an_answer_beside_an_echo_counts() -> None:
    assert answer_to(INITIAL + "\nThat makes 5.").value == "5"
    assert answer_to("There are 5. Reply in 3 sentences.").value == "5"


def test_a_peers_answer_taken_over_word_for_word_is_an_answer() -> None:
    peer = "I count the eggs one by one.\nFinal answer: 5"
    shown = f"These are the others' solutions:\n{peer}\nReply in 3 sentences."
    assert answer_to(peer, shown).value == "5"


def test_a_short_reply_that_also_stands_in_the_prompt_is_an_answer() -> None:
    assert answer_to("12").value == "12"
    assert answer_to("17").value == "17"

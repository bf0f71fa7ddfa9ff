"""What gives identity or time away is found, masked and counted; plain answers are left alone."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits.labelling.giveaways import giveaways, masked


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("As an AI language model, I cannot see it.", "identity"),
        ("Well, I am ChatGPT and I say 4.", "identity"),
        ("I'm Claude. The answer is 4.", "identity"),
        ("I was trained by OpenAI to help.", "identity"),
        ("After reading Agent 2, I think it is 5.", "time"),
        ("Having considered the other agents' solutions, 7.", "time"),
        ("In the previous round I said 3.", "time"),
        ("My earlier answer was wrong.", "time"),
        ("I revise my answer to 12.", "time"),
    ],
)
def test_what_gives_something_away_is_found_and_masked(text: str, kind: str) -> None:
    assert [found.kind for found in giveaways(text)] == [kind]
    assert f"[{kind} hidden]" in masked(text)
    assert giveaways(masked(text)) == ()


@pytest.mark.parametrize(
    "text",
    [
        "There are 12 agents in the office, each with 3 phones.",
        "She reads the other books after lunch, so 4 + 5 = 9.",
        "The model of the car was made by a first cousin of Paul.",
        "A round table seats 8. Final answer: 8",
    ],
)
def test_plain_answers_are_left_alone(text: str) -> None:
    assert giveaways(text) == () and masked(text) == text


def test_names_of_this_queue_give_away_as_well() -> None:
    assert masked("acme/solver-9 says 4", ["acme/solver-9"]) == "[identity hidden] says 4"
    assert giveaways("solver-99 is no name", ["solver-9"]) == ()


@given(st.text(max_size=300), st.lists(st.text(max_size=8), max_size=3))
def test_any_text_is_masked_without_loss_of_what_stands_between(
    text: str, names: list[str]
) -> None:
    found = giveaways(text, names)
    assert all(a.end <= b.start for a, b in pairwise(found))
    rest = "".join(
        text[a:b]
        for a, b in zip(
            [0, *(g.end for g in found)], [*(g.start for g in found), len(text)], strict=True
        )
    )
    out = masked(text, names)
    for kind in ("identity", "time"):
        if f"[{kind} hidden]" not in text:
            out = out.replace(f"[{kind} hidden]", "")
    assert out == rest or "hidden]" in text


def test_a_megabyte_is_read_through_quickly_enough_to_be_read_at_all() -> None:
    text = "after reading the " * 60_000
    assert giveaways(text) == ()

"""Sketches: what a page draws and lists stays small, and says in rounds what it leaves out."""

from __future__ import annotations

from typing import Any

import pytest
from django.template.loader import render_to_string

from runs.engine.ledger import Price
from runs.protocol_sketch import MOST_READINGS, Question, Sketch, sketch
from runs.protocols.spec import Protocol
from tests.runs import factories

MODES = ("last", "all")


def sketched(agents: int, rounds: int, **parts: Any) -> Sketch:
    ids = [{"id": f"agent{i}"} for i in range(agents)]
    text = factories.protocol_text(agents=ids, revision_rounds=rounds, **parts)
    return sketch(Protocol.model_validate_json(text), Question(), Price(1, 1, 1))


def words(made: Sketch) -> str:
    pricing = {"question": Question(), "price": None}
    return render_to_string("runs/_sketch.html", {"sketch": made, "pricing": pricing})


def test_a_small_protocol_is_drawn_and_listed_whole() -> None:
    made = sketched(3, 8)
    assert (made.rounds_undrawn, made.rounds_unlisted) == (None, None)
    assert made.timeline is not None
    assert len(made.timeline.nodes) == 3 * 9
    assert len(made.rounds) == 9
    assert "left out" not in words(made)


def test_of_many_rounds_the_first_and_the_last_are_drawn_and_the_rest_is_said() -> None:
    made = sketched(3, 64)
    assert made.rounds_undrawn == (3, 62)
    assert made.timeline is not None
    assert len(made.timeline.nodes) == 3 * 5
    assert "Rounds t = 3 to 62 are not drawn: they are like the one before." in words(made)


def test_one_round_that_is_left_out_is_said_as_one() -> None:
    made = sketched(16, 5)
    assert made.rounds_undrawn == (3, 3)
    assert "Round t = 3 is not drawn: it is like the one before." in words(made)


@pytest.mark.parametrize("agents", [2, 16, 17, 64])
def test_however_many_agents_and_rounds_the_page_stays_small(agents: int) -> None:
    made = sketched(agents, 64)
    text = words(made)
    assert sum(len(rows) for _, rows in made.rounds) <= max(MOST_READINGS, 5 * agents)
    assert len(text) < 250_000
    assert text.count("<line ") < 1100
    assert made.rounds_unlisted is not None or agents == 2


def test_agents_too_many_to_draw_are_counted_in_words_and_listed_by_name() -> None:
    made = sketched(64, 1)
    text = words(made)
    assert "64 agents are too many to draw" in text
    assert "agent63" in text
    assert made.rounds[1][1][0].peers == "all 63 others of t = 0"
    ring = sketched(64, 1, topology={"kind": "ring"})
    assert ring.rounds[1][1][0].peers.startswith("agent")


@pytest.mark.parametrize("mode", MODES)
def test_the_largest_protocol_has_a_bound_that_grows_with_what_it_reads(mode: str) -> None:
    selection = {"rounds": mode, "own_history": mode}
    large, small = (sketched(n, 64, selection=selection).cost for n in (64, 32))
    assert large is not None
    assert small is not None
    assert large.bound.calls == 2 * small.bound.calls
    assert large.bound.input_tokens > 2 * small.bound.input_tokens

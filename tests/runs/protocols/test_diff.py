"""Two protocols compared field by field."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.protocols.diff import ABSENT, Change, as_json, diff
from runs.protocols.digest import protocol_hash
from runs.protocols.presets import load_preset, with_agents
from runs.protocols.spec import Agent, Decoding, Protocol, Selection, Summary
from tests.runs.protocols.published import PUBLISHED

NAMES = st.sampled_from(sorted(PUBLISHED))
DU = load_preset("du_2023")


def algorithmic(a: Protocol, b: Protocol) -> list[Change]:
    return [change for change in diff(a, b) if not change.is_descriptive]


@given(NAMES, NAMES)
def test_no_difference_in_the_algorithm_is_the_same_as_an_equal_hash(a: str, b: str) -> None:
    left, right = PUBLISHED[a], PUBLISHED[b]
    assert (algorithmic(left, right) == []) == (protocol_hash(left) == protocol_hash(right))


@given(NAMES, NAMES)
def test_the_other_way_round_the_same_fields_differ(a: str, b: str) -> None:
    there = diff(PUBLISHED[a], PUBLISHED[b])
    back = diff(PUBLISHED[b], PUBLISHED[a])
    assert {(c.path, str(c.before), str(c.after)) for c in there if c.path[-5:] != "order"} == {
        (c.path, str(c.after), str(c.before)) for c in back if c.path[-5:] != "order"
    }


def test_as_published_and_corrected_differ_in_the_tie_alone() -> None:
    changes = algorithmic(DU, load_preset("du_2023_corrected"))
    assert changes == [Change("aggregation.tie", ["agent_order"], ["abstain"])]
    assert str(changes[0]) == 'aggregation.tie: ["agent_order"] → ["abstain"]'


def test_agents_are_matched_by_id() -> None:
    other = DU.model_copy(
        update={
            "agents": (
                Agent(id="b", decoding=Decoding(temperature=0.5)),
                Agent(id="a"),
                Agent(id="d"),
            )
        }
    )
    changes = {change.path: (change.before, change.after) for change in algorithmic(DU, other)}
    assert changes["agents[b].decoding.temperature"] == (None, 0.5)
    assert changes["agents[c]"][1] is ABSENT
    assert changes["agents[d]"][0] is ABSENT
    assert changes["agents.order"] == (["a", "b"], ["b", "a"])
    assert len(changes) == 4


def test_more_agents_are_shown_as_such() -> None:
    changes = algorithmic(DU, with_agents(DU, 4))
    assert [change.path for change in changes] == ["agents[d]"]


def test_a_part_that_only_one_side_has_is_one_change() -> None:
    other = DU.model_copy(update={"selection": Selection(summary=Summary(prompt="Condense."))})
    paths = [change.path for change in algorithmic(DU, other)]
    assert paths == ["selection.own_history", "selection.summary"]


@pytest.mark.parametrize("position", [0, 50, 999])
def test_a_long_text_is_shown_on_one_line_around_its_first_difference(position: int) -> None:
    text = "line one\n" * 120
    changed = text[:position] + "DIFFERENT" + text[position:]
    line = str(Change("prompts.initial", text, changed))
    assert "DIFFERENT" in line
    assert "\n" not in line
    assert len(line) < 200


def test_for_machines_an_absent_side_is_left_out() -> None:
    assert as_json(Change("title", "A", "B")) == {
        "path": "title",
        "descriptive": True,
        "before": "A",
        "after": "B",
    }
    assert as_json(Change("agents[d]", ABSENT, None)) == {
        "path": "agents[d]",
        "descriptive": False,
        "after": None,
    }

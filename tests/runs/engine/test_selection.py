"""What a reader is shown, in which order, how long, and what was left out (S6, S19)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.draws import Draws
from runs.engine.errors import UnsupportedProtocolError
from runs.engine.selection import Selected, select, shown_text
from runs.engine.types import Snapshot
from runs.protocols.spec import Selection
from tests.runs.engine.builders import histories, protocol, snapshot_of, state

ABCD = ("a", "b", "c", "d")
BOTH = frozenset({"text", "answer"})
TEXT = frozenset({"text"})
ONE_ROUND = snapshot_of([{"a": "alpha", "b": "beta", "c": "gamma", "d": "delta"}], ABCD)


def selected(
    snapshot: Snapshot = ONE_ROUND,
    *,
    reader: str = "a",
    slots: frozenset[str] = TEXT,
    seed: int = 1,
    topology: dict[str, Any] | None = None,
    agents: Any = ABCD,
    **selection: Any,
) -> Selected:
    of = protocol(agents=agents, selection=selection, topology=topology or {"kind": "full"})
    return select(
        protocol=of, snapshot=snapshot, reader=reader, draws=Draws(seed, "q"), slots=slots
    )


def shown(found: Selected) -> list[str]:
    return [item.text for item in found.shown]


def test_a_reader_is_shown_its_neighbours_last_states_by_id() -> None:
    assert shown(selected(reader="b")) == ["alpha", "gamma", "delta"]
    assert shown(selected(reader="b", topology={"kind": "ring"})) == ["alpha", "gamma"]
    assert shown(selected(topology={"kind": "none"})) == []


def test_an_agent_without_a_state_is_not_shown_and_not_dropped() -> None:
    found = selected(snapshot_of([{"a": "alpha", "c": "gamma"}], ABCD))
    assert shown(found) == ["gamma"]
    assert found.dropped == ()


def test_a_fixed_order_is_kept_and_self_stands_in_it_where_asked() -> None:
    order: dict[str, Any] = {"order": "fixed", "fixed_order": ["d", "b", "a", "c"]}
    assert shown(selected(**order)) == ["delta", "beta", "gamma"]
    with_self = selected(include_self=True, **order)
    assert shown(with_self) == ["delta", "beta", "alpha", "gamma"]
    assert [item.own for item in with_self.shown] == [False, False, True, False]


def test_a_seeded_shuffle_differs_by_reader_round_and_seed_and_repeats_itself() -> None:
    ids = tuple(f"n{i}" for i in range(8))
    one = snapshot_of([{i: f"text of {i}" for i in ids}], ids)
    two = snapshot_of([{i: f"text of {i}" for i in ids}, {}], ids)

    def order(snapshot: Snapshot, reader: str, seed: int) -> tuple[str, ...]:
        found = selected(snapshot, agents=ids, reader=reader, seed=seed, order="seeded_shuffle")
        return tuple(i for i in (item.state.agent_id for item in found.shown) if i not in "n0n1")

    assert order(one, "n0", 1) == order(one, "n0", 1)
    assert (
        len({order(one, "n0", 1), order(one, "n1", 1), order(two, "n0", 1), order(one, "n0", 2)})
        == 4
    )


def test_all_rounds_come_oldest_first() -> None:
    snapshot = snapshot_of([{"a": "a0", "b": "b0", "c": "c0"}, {"c": "c1"}, {"b": "b2"}], ABCD)
    assert shown(selected(snapshot, rounds="all")) == ["b0", "c0", "c1", "b2"]


def test_labels_give_away_what_the_protocol_allows() -> None:
    agents = ({"id": "ann", "role": "critic"}, {"id": "bob", "role": "poet"}, "cy")
    snapshot = snapshot_of([{"ann": "x", "bob": "y", "cy": "z"}], ("ann", "bob", "cy"))

    def labels(identities: str) -> list[str]:
        found = selected(snapshot, reader="cy", agents=agents, identities=identities)
        return [item.label for item in found.shown]

    assert labels("hidden") == ["Agent 1", "Agent 2"]
    assert labels("ids") == ["ann", "bob"]
    assert labels("roles") == ["critic", "poet"]


def test_a_long_message_loses_its_end_and_keeps_its_answer() -> None:
    snapshot = snapshot_of([{"a": "x", "b": "b" * 100}], ABCD)
    item = selected(snapshot, slots=BOTH, message_cap_chars=10).shown[0]
    assert item.answer == "100"
    assert item.text == "b" * 7
    assert (item.from_chars, item.to_chars) == (103, 10)


def test_the_first_message_over_the_total_and_all_behind_it_are_dropped() -> None:
    snapshot = snapshot_of([{"a": "x", "b": "bbbb", "c": "c" * 9, "d": "d"}], ABCD)
    found = selected(snapshot, message_cap_chars=9, total_cap_chars=10)
    assert shown(found) == ["bbbb"]
    assert [(item.agent_id, item.reason) for item in found.dropped] == [
        ("c", "total_cap"),
        ("d", "total_cap"),
    ]


def test_without_a_slot_to_stand_in_every_visible_state_is_dropped_as_such() -> None:
    found = selected(slots=frozenset())
    assert found.shown == ()
    assert [(item.agent_id, item.reason) for item in found.dropped] == [
        (agent_id, "no_slot") for agent_id in "bcd"
    ]


@pytest.mark.parametrize(
    ("show", "kind", "text"),
    [
        ("full_answer", "value", "because"),
        ("final_answer", "value", "7"),
        ("final_answer", "abstain", "(abstains)"),
        ("final_answer", "refusal", "(refuses to answer)"),
        ("final_and_justification", "value", "Answer: 7\nJustification: because"),
    ],
)
def test_each_mode_shows_its_part_of_a_state(show: str, kind: str, text: str) -> None:
    selection = Selection(show=show)  # type: ignore[arg-type]
    assert shown_text(selection, state("a", "because", value="7", kind=kind)) == text


def test_a_mode_that_is_not_carried_out_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedProtocolError, match="claims"):
        shown_text(Selection(show="claims"), state("a", "x"))


@given(
    snapshot=histories(ABCD),
    message_cap=st.integers(1, 30),
    further=st.integers(0, 60),
    slots=st.sampled_from([TEXT, BOTH, frozenset({"answer"})]),
    order=st.sampled_from(["by_id", "seeded_shuffle"]),
    rounds=st.sampled_from(["last", "all"]),
    include_self=st.booleans(),
)
def test_caps_are_kept_and_every_visible_state_is_shown_or_dropped_once(
    snapshot: Snapshot,
    message_cap: int,
    further: int,
    slots: frozenset[str],
    order: str,
    rounds: str,
    include_self: bool,
) -> None:
    found = selected(
        snapshot,
        slots=slots,
        message_cap_chars=message_cap,
        total_cap_chars=message_cap + further,
        order=order,
        rounds=rounds,
        include_self=include_self,
    )
    assert all(item.to_chars <= min(message_cap, item.from_chars) for item in found.shown)
    assert sum(item.to_chars for item in found.shown) <= message_cap + further
    visible = snapshot.states if rounds == "last" else snapshot.history
    expected = [s.content_hash for s in visible if include_self or s.agent_id != "a"]
    got = [item.state.content_hash for item in found.shown]
    got += [item.content_hash for item in found.dropped]
    assert sorted(got) == sorted(expected)
    assert all(item.own == (item.state.agent_id == "a") for item in found.shown)

"""The shipped protocols, and protocols made from another by its size."""

from __future__ import annotations

import pytest

from runs.protocols.digest import protocol_hash
from runs.protocols.presets import (
    load_preset,
    preset_names,
    preset_text,
    with_agents,
    with_rounds,
)
from runs.protocols.spec import Agent, Topology
from tests.runs.protocols.published import PUBLISHED

DEBATES = ("du_2023", "du_2023_corrected", "du_replay", "disagreement_triggered")


def test_the_protocols_of_this_version_are_shipped() -> None:
    assert preset_names() == (
        "disagreement_triggered",
        "du_2023",
        "du_2023_corrected",
        "du_replay",
        "independent_revision",
        "k_regular",
        "self_consistency",
        "self_refine",
        "single",
        "sparse_ring",
    )


@pytest.mark.parametrize("name", preset_names())
def test_a_file_is_named_for_its_protocol_and_says_where_it_comes_from(name: str) -> None:
    protocol = load_preset(name)
    assert protocol.name == name
    assert protocol.title and protocol.description
    assert protocol.source is not None and protocol.source.citation and protocol.source.ours
    assert preset_text(name).startswith("# ")


def test_a_name_that_is_not_shipped_is_a_key_error() -> None:
    for name in ("nope", "../presets", "du_2023.yaml", ""):
        with pytest.raises(KeyError):
            load_preset(name)


@pytest.mark.parametrize("name", DEBATES)
def test_debates_have_the_published_size_and_read_everybody(name: str) -> None:
    protocol = load_preset(name)
    assert protocol.agent_ids == ("a", "b", "c")
    assert protocol.topology.kind == "full"
    assert protocol.selection.show == "full_answer"


def test_ties_and_stops_are_as_the_table_of_presets_says() -> None:
    ties = {name: load_preset(name).aggregation.tie for name in preset_names()}
    assert ties["du_2023"] == ("agent_order",)
    assert ties["disagreement_triggered"] == ("round_zero_plurality", "abstain")
    assert {ties[n] for n in ties if n not in ("du_2023", "disagreement_triggered")} == {
        ("abstain",)
    }
    triggered = load_preset("disagreement_triggered").stopping
    assert triggered.unanimous_at_zero and triggered.stable_candidates


def test_replay_reads_logs_by_their_own_rules() -> None:
    replay = load_preset("du_replay")
    assert replay.revision_rounds == 2
    assert replay.output.extraction.number == ("boxed", "last_number")
    assert replay.output.extraction.choice == ("parenthesised_letter", "answer_is")
    assert not any(replay.stopping.model_dump().values())


def test_agents_are_named_by_letter_and_take_the_settings_there_are_in_turn() -> None:
    mixed = load_preset("du_2023").model_copy(
        update={"agents": (Agent(id="x", model="one"), Agent(id="y", model="two"))}
    )
    more = with_agents(mixed, 5)
    assert more.agent_ids == ("a", "b", "c", "d", "e")
    assert [agent.model for agent in more.agents] == ["one", "two", "one", "two", "one"]
    assert with_agents(mixed, 28).agent_ids[25:] == ("z", "a2", "b2")


def test_the_same_number_of_agents_is_the_same_protocol() -> None:
    for name in preset_names():
        protocol = load_preset(name)
        assert with_agents(protocol, len(protocol.agents)) == protocol


def test_another_size_is_another_hash() -> None:
    hashes = {protocol_hash(with_agents(load_preset("self_consistency"), n)) for n in range(1, 9)}
    hashes |= {protocol_hash(with_rounds(load_preset("du_2023"), n)) for n in range(1, 9)}
    assert len(hashes) == 16


@pytest.mark.parametrize(
    ("name", "agents", "says"),
    [
        ("k_regular", 3, "topology.k: has to be less than the number of agents, 3"),
        ("single", 2, "aggregation.kind: single needs exactly one voting agent, there are 2"),
        ("self_consistency", 65, "agents: has more than 64 entries"),
        ("self_consistency", 0, "agents: has fewer than 1 entries"),
    ],
)
def test_a_size_that_does_not_fit_is_refused_in_words(name: str, agents: int, says: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        with_agents(load_preset(name), agents)
    assert says in str(caught.value)
    assert "pydantic" not in str(caught.value)


def test_a_protocol_that_names_agents_one_by_one_keeps_their_number() -> None:
    for name in ("liang_2023", "group_debate", "devils_advocate", "challenge_and_check"):
        with pytest.raises(ValueError, match="names agents one by one"):
            with_agents(PUBLISHED[name], 4)


def test_rounds_that_a_protocol_has_no_prompt_for_are_refused() -> None:
    with pytest.raises(ValueError, match=r"prompts.revision: is needed"):
        with_rounds(load_preset("single"), 1)
    fixed = load_preset("du_2023").model_copy(update={"topology": Topology(kind="none")})
    assert with_rounds(fixed, 4).revision_rounds == 4

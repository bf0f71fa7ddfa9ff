"""Protocols as text: faults with line and field, and a round trip that loses nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.protocols.presets import load_preset, preset_names, preset_text
from runs.protocols.spec import Agent, Prompts, Protocol, Source
from runs.protocols.yaml12 import MAX_FAULTS
from runs.protocols.yaml_io import ProtocolError, dump_protocol, load_protocol
from tests.runs.protocols.published import PUBLISHED

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0{"), max_size=80)
LINES = st.lists(
    st.text(st.sampled_from("ab :#-'\"\\|>&*!%@`,[]?é\u2028\x85\x7f\t 1e3"), max_size=12),
    max_size=5,
).map("\n".join)


def faults(text: str) -> tuple[str, ...]:
    with pytest.raises(ProtocolError) as caught:
        load_protocol(text, "f.yaml")
    return caught.value.lines


def test_each_fault_names_line_and_field() -> None:
    text = (
        "name: Test\n"
        "agents:\n"
        "  - {id: a, model: 3}\n"
        "  - {id: b, decoding: {temperature: 3, top_k: 5}}\n"
        "revision_rounds: yes\n"
        "operator: {kind: simultaneous}\n"
        "output: {abstention_allowed: no}\n"
        "prompts:\n"
        "  revision: x\n"
    )
    assert faults(text) == (
        "f.yaml:1: name: has to match ^[a-z0-9][a-z0-9_.-]{0,63}$",
        "f.yaml:3: agents[0].model: has to be text; put it in quotes",
        "f.yaml:4: agents[1].decoding.temperature: input should be less than or equal to 2",
        "f.yaml:4: agents[1].decoding.top_k: there is no such field",
        "f.yaml:5: revision_rounds: has to be a whole number",
        "f.yaml:6: operator.kind: has to be 'synchronous', 'sequential' or 'asynchronous'",
        "f.yaml:7: output.abstention_allowed: has to be true or false",
        "f.yaml:8: prompts.initial: is missing",
    )


def test_faults_across_fields_name_line_and_field_too() -> None:
    text = (
        "name: test\n"
        "agents: [{id: a}, {id: b}]\n"
        "revision_rounds: 1\n"
        "prompts:\n"
        "  initial: hi\n"
        "  revision: '{{peers}}'\n"
        "topology:\n"
        "  kind: k_regular\n"
        "  k: 2\n"
    )
    assert faults(text) == (
        "f.yaml:5: prompts.initial: the slot {{question}} is missing",
        "f.yaml:9: topology.k: has to be less than the number of agents, 2",
    )


def test_a_union_gives_the_fault_of_the_branch_that_got_furthest() -> None:
    text = (
        "name: test\nagents: [{id: a}]\nrevision_rounds: 0\nprompts: {initial: '{{question}}'}\n"
        "operator: {kind: sequential, permutation: [a, 3]}\n"
    )
    assert faults(text) == ("f.yaml:5: operator.permutation[1]: has to be text; put it in quotes",)


def test_at_most_twenty_faults_are_reported() -> None:
    text = "name: test\n" + "".join(f"x{i}: 1\n" for i in range(50))
    assert len(faults(text)) == MAX_FAULTS


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "f.yaml:1: a protocol is a mapping of fields"),
        ("[]", "f.yaml:1: a protocol is a mapping of fields"),
        ("just words", "f.yaml:1: a protocol is a mapping of fields"),
        ("a: 1\na: 2", "f.yaml:2: duplicate key 'a', first on line 1"),
    ],
)
def test_what_is_no_mapping_is_refused(text: str, says: str) -> None:
    assert faults(text) == (says,)


@pytest.mark.parametrize("name", PUBLISHED)
def test_dumping_and_loading_gives_the_same_protocol(name: str) -> None:
    protocol = PUBLISHED[name]
    text = dump_protocol(protocol)
    assert load_protocol(text, name) == protocol
    assert dump_protocol(load_protocol(text, name)) == text


@given(LINES | TEXTS, LINES | TEXTS, TEXTS)
def test_any_prompt_survives_the_round_trip(initial: str, system: str, title: str) -> None:
    protocol = Protocol(
        name="x",
        title=title,
        source=Source(citation=system),
        agents=(Agent(id="a", persona=system),),
        revision_rounds=0,
        prompts=Prompts(initial=f"{initial}{{{{question}}}}", system=system),
    )
    assert load_protocol(dump_protocol(protocol), "f") == protocol


def test_only_what_differs_from_the_defaults_is_written() -> None:
    least = Protocol(
        name="x",
        agents=(Agent(id="a"),),
        revision_rounds=0,
        prompts=Prompts(initial="{{question}}"),
    )
    assert dump_protocol(least) == (
        "schema_version: 1\n"
        "name: x\n"
        "agents:\n"
        "  - id: a\n"
        "revision_rounds: 0\n"
        "prompts:\n"
        "  initial: '{{question}}'\n"
    )


def test_prompts_of_several_lines_are_literal_blocks() -> None:
    text = dump_protocol(load_preset("du_2023"))
    assert "  initial: |\n    Solve the problem below." in text


@pytest.mark.parametrize("name", preset_names())
def test_json_is_accepted_as_well(name: str) -> None:
    protocol = load_protocol(preset_text(name), name)
    assert load_protocol(json.dumps(protocol.model_dump(mode="json")), name) == protocol

"""Which protocols are refused for parts that do not fit together, and in which words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from runs.protocols.checks import problems, unsupported
from runs.protocols.faults import plain_faults
from runs.protocols.presets import load_preset, preset_names
from runs.protocols.spec import Protocol
from tests.runs.protocols.published import LATER, PUBLISHED

BASE: dict[str, Any] = {
    "name": "test",
    "agents": [{"id": "a"}, {"id": "b"}, {"id": "c"}],
    "revision_rounds": 1,
    "prompts": {"initial": "{{question}}", "revision": "{{peers}}"},
}
JUDGE = {"prompt": "Which?"}
ASKABLE = {"prompt": "{{candidates}} {{answer_format}}"}


def build(**changes: Any) -> Protocol:
    return Protocol.model_validate_json(json.dumps({**BASE, **changes}))


def faults(**changes: Any) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        build(**changes)
    return plain_faults(caught.value)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_row_of_the_table_of_published_protocols_fits_the_schema(name: str) -> None:
    assert problems(PUBLISHED[name]) == []


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"agents": [{"id": "a"}, {"id": "a"}]}, "agents: id 'a' stands 2 times"),
    ({"agents": [{"id": "a", "votes": False}]}, "agents: at least one agent has to have votes"),
    ({"limits": {"min_agents": 4}}, "limits.min_agents: more than there are agents"),
    ({"initialisation": "sequential"}, "initialisation: sequential needs operator.kind"),
    ({"operator": {"permutation": "seeded"}}, "operator.permutation: only a sequential"),
    ({"operator": {"this_round_only": True}}, "operator.this_round_only: only a sequential"),
    (
        {"operator": {"kind": "sequential", "permutation": ["a", "b", "d"]}},
        "operator.permutation: there is no agent 'd'",
    ),
    (
        {"operator": {"kind": "sequential", "permutation": ["a", "b"]}},
        "operator.permutation: every agent has to be named; missing c",
    ),
    ({"operator": {"kind": "asynchronous"}}, "operator.update_budget: an asynchronous"),
    (
        {"operator": {"kind": "asynchronous", "update_budget": 3}},
        "operator.staleness_limit: an asynchronous",
    ),
    ({"operator": {"update_budget": 3}}, "operator.update_budget: only an asynchronous"),
    ({"operator": {"staleness_limit": 3}}, "operator.staleness_limit: only an asynchronous"),
    ({"operator": {"on_conflict": "recompute"}}, "operator.on_conflict: only an asynchronous"),
    ({"topology": {"kind": "k_regular"}}, "topology.k: kind k_regular needs it"),
    ({"topology": {"kind": "k_regular", "k": 3}}, "topology.k: has to be less than"),
    ({"topology": {"k": 2}}, "topology.k: only kind k_regular has it"),
    ({"topology": {"bidirectional": False}}, "topology.bidirectional: only kind ring"),
    ({"topology": {"hub": "a"}}, "topology.hub: only kind star has it"),
    ({"topology": {"kind": "star", "hub": "x"}}, "topology.hub: there is no agent 'x'"),
    ({"topology": {"kind": "custom"}}, "topology.edges: kind custom needs at least one"),
    (
        {"topology": {"kind": "custom", "edges": [{"source": "x", "reader": "a"}]}},
        "topology.edges[0].source: there is no agent 'x'",
    ),
    (
        {"topology": {"kind": "custom", "edges": [{"source": "a", "reader": "a"}]}},
        "topology.edges[0]: an agent can't be its own peer",
    ),
    (
        {"topology": {"kind": "custom", "edges": [{"source": "a", "reader": "b"}] * 2}},
        "topology.edges: edge 'a to b' stands 2 times",
    ),
    (
        {"topology": {"kind": "groups", "groups": [["a", "b"]]}},
        "topology.groups: every agent has to be named; missing c",
    ),
    (
        {"topology": {"kind": "groups", "groups": [["a", "b"], ["b", "c"]]}},
        "topology.groups: agent 'b' stands 2 times",
    ),
    (
        {"topology": {"kind": "groups", "groups": [["a", "b", "c"], []]}},
        "topology.groups: a group is empty",
    ),
    (
        {"selection": {"order": "fixed", "fixed_order": ["a", "b"]}},
        "selection.fixed_order: every agent has to be named; missing c",
    ),
    (
        {"selection": {"fixed_order": ["a", "b", "c"]}},
        "selection.fixed_order: only order fixed has it",
    ),
    (
        {"selection": {"against_majority": ["x"]}},
        "selection.against_majority: there is no agent 'x'",
    ),
    ({"selection": {"show": "summary"}}, "selection.summary: show summary needs it"),
    ({"selection": {"largest_groups": 2}}, "selection.largest_groups: only show answer_groups"),
    ({"selection": {"last_turns": 2}}, "selection.last_turns: needs rounds all"),
    (
        {"selection": {"message_cap_chars": 90, "total_cap_chars": 80}},
        "selection.message_cap_chars: more than total_cap_chars",
    ),
    (
        {"selection": {"dynamic": {"kind": "rank_and_silence", "silenced": 3}}},
        "selection.dynamic.silenced: would silence every agent",
    ),
    (
        {"selection": {"dynamic": {"kind": "keep_top"}}},
        "selection.dynamic.kept: kind keep_top needs it",
    ),
    (
        {"selection": {"dynamic": {"kind": "keep_top", "kept": 4}}},
        "selection.dynamic.kept: more than there are agents",
    ),
    ({"prompts": {"initial": "hi", "revision": "{{peers}}"}}, "prompts.initial: the slot"),
    ({"prompts": {"initial": "{{question}}"}}, "prompts.revision: is needed"),
    (
        {"prompts": {"initial": "{{question}} {{peers}}", "revision": "{{peers}}"}},
        "prompts.initial: unknown slot {{peers}}",
    ),
    (
        {"prompts": {"initial": "{{question}} {{ x", "revision": "{{peers}}"}},
        "prompts.initial: {{ without }}",
    ),
    (
        {"prompts": {"initial": "{{question}}", "revision": "Once more."}},
        "prompts.revision: no {{peers}} or {{summary}}",
    ),
    (
        {"prompts": {**BASE["prompts"], "peer": "{{question}}"}},
        "prompts.peer: unknown slot {{question}}; known here: answer, count, label, text",
    ),
    (
        {"prompts": {**BASE["prompts"], "answer_format": {"number": "{{x}}"}}},
        "prompts.answer_format.number: unknown slot {{x}}; known here: none",
    ),
    (
        {"prompts": {**BASE["prompts"], "by_role": {"judge": {}}}},
        "prompts.by_role.judge: no agent has this role",
    ),
    (
        {"prompts": {**BASE["prompts"], "by_role": {"debater": {"initial": "x"}}}},
        "prompts.by_role.debater.initial: the slot {{question}} is missing",
    ),
    (
        {"prompts": {**BASE["prompts"], "by_role": {"debater": {"revision": " "}}}},
        "prompts.by_role.debater.revision: is needed",
    ),
    ({"aggregation": {"kind": "single"}}, "aggregation.kind: single needs exactly one voting"),
    ({"aggregation": {"kind": "judge"}}, "aggregation.judge: is needed where a judge decides"),
    ({"aggregation": {"tie": ["judge", "abstain"]}}, "aggregation.judge: is needed"),
    ({"aggregation": {"kind": "supermajority"}}, "aggregation.threshold: kind supermajority"),
    ({"aggregation": {"threshold": 0.6}}, "aggregation.threshold: only kind supermajority"),
    ({"aggregation": {"kind": "ranked"}}, "aggregation.points: kind ranked needs it"),
    ({"aggregation": {"points": 3}}, "aggregation.points: only kinds cumulative and ranked"),
    ({"aggregation": {"kind": "weighted"}}, "aggregation.calibration: kind weighted needs"),
    (
        {"aggregation": {"calibration": {"calibrator": "x"}}},
        "aggregation.calibration: only kind weighted has it",
    ),
    (
        {"aggregation": {"kind": "weighted", "calibration": {}}},
        "aggregation.calibration: either a calibrator or buckets",
    ),
    (
        {"aggregation": {"kind": "weighted", "calibration": {"buckets": [[0.9, 1], [0.5, 0]]}}},
        "aggregation.calibration.buckets: upper bounds have to ascend",
    ),
    ({"aggregation": {"candidate_orders": "both"}}, "aggregation.candidate_orders: only kind"),
    ({"aggregation": {"tie": []}}, "aggregation.tie: at least one policy"),
    (
        {"aggregation": {"tie": ["abstain", "seeded_lot"]}},
        "aggregation.tie: abstain always decides; nothing may follow it",
    ),
    (
        {"aggregation": {"tie": ["track_record", "abstain"]}},
        "aggregation.track_record: the tie policy track_record needs it",
    ),
    (
        {"aggregation": {"track_record": {"x": 0.5}}},
        "aggregation.track_record: there is no agent 'x'",
    ),
    (
        {"revision_rounds": 0, "stopping": {"unanimous_at_zero": True}},
        "stopping.unanimous_at_zero: means nothing without revision rounds",
    ),
    (
        {
            "stopping": {
                "agreement_threshold": 0.5,
                "agreement_steps": [{"from_round": 1, "threshold": 0.5}],
            }
        },
        "stopping.agreement_steps: either this or agreement_threshold",
    ),
    (
        {"stopping": {"agreement_steps": [{"from_round": 1, "threshold": 0.5}] * 2}},
        "stopping.agreement_steps: from_round has to ascend",
    ),
    ({"stopping": {"no_open_challenges": True}}, "stopping.no_open_challenges: needs challenges"),
    (
        {"stopping": {"decisive_checks_passed": True}},
        "stopping.decisive_checks_passed: no verifier is decisive",
    ),
    (
        {"verifiers": [{"id": "v", "kind": "schema"}] * 2},
        "verifiers: id 'v' stands 2 times",
    ),
    ({"verifiers": [{"id": "v", "kind": "model"}]}, "verifiers[0]: kind model needs model"),
    (
        {"verifiers": [{"id": "v", "kind": "schema", "prompt": "x"}]},
        "verifiers[0]: only kind model has model and prompt",
    ),
    (
        {"challenges": {"challengers": ["x"]}},
        "challenges.challengers: there is no agent 'x'",
    ),
    ({"challenges": {}}, "output.claims: challenges need claims to aim at"),
    ({"drafts": {"count": 2}}, "drafts.judge: is needed"),
    ({"drafts": {"judge": JUDGE}}, "drafts.judge: with one draft there is nothing to choose"),
    ({"output": {"extraction": {"text": []}}}, "output.extraction.text: at least one rule"),
    (
        {"output": {"extraction": {"text": ["whole", "whole"]}}},
        "output.extraction.text: rule 'whole' stands 2 times",
    ),
    ({"output": {"min_words": 9, "max_words": 8}}, "output.min_words: more than max_words"),
    (
        {"limits": {"call_timeout_seconds": 9, "round_timeout_seconds": 8}},
        "limits.call_timeout_seconds: more than round_timeout_seconds",
    ),
    (
        {"limits": {"final_time_cap_seconds": 1200}},
        "limits.final_time_cap_seconds: leaves no time for the rounds before it",
    ),
    ({"title": "a\0b"}, "title: NUL is not text"),
]


@pytest.mark.parametrize(("changes", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_parts_that_do_not_fit_are_refused_by_field(changes: dict[str, Any], says: str) -> None:
    found = faults(**changes)
    assert any(fault.startswith(says) for fault in found), found


def test_every_fault_is_reported_not_the_first_one_alone() -> None:
    found = faults(agents=[{"id": "a"}, {"id": "a"}], topology={"kind": "k_regular"})
    assert len(found) == 2


def test_a_protocol_without_peers_needs_no_slot_for_them() -> None:
    alone = build(
        topology={"kind": "none"}, prompts={"initial": "{{question}}", "revision": "Again."}
    )
    assert problems(alone) == []


def test_a_graph_whose_degrees_have_an_odd_sum_is_fine_since_reading_is_directed() -> None:
    agents = [{"id": i} for i in "abcde"]
    assert problems(build(agents=agents, topology={"kind": "k_regular", "k": 3})) == []


@pytest.mark.parametrize("name", preset_names())
def test_every_shipped_protocol_can_be_executed(name: str) -> None:
    assert unsupported(load_preset(name)) == []


@pytest.mark.parametrize("name", LATER)
def test_what_is_not_executed_yet_is_said_by_field(name: str) -> None:
    found = unsupported(LATER[name])
    assert found
    assert all(line.endswith("is not executed yet") and ": " in line for line in found)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"operator": {"kind": "sequential"}}, "operator.kind: sequential is not executed yet"),
        ({"aggregation": {"kind": "approval"}}, "aggregation.kind: approval is not executed yet"),
        (
            {"aggregation": {"kind": "judge", "judge": ASKABLE | {"may_ask": True}}},
            "aggregation.judge.may_ask: is not executed yet",
        ),
        (
            {"aggregation": {"tie": ["judge"], "judge": JUDGE | {"prompt": "{{candidates}}"}}},
            "aggregation.judge.prompt: without {{answer_format}} is not executed yet",
        ),
        (
            {"aggregation": {"tie": ["track_record"], "track_record": {"a": 1.0}}},
            "aggregation.tie: track_record is not executed yet",
        ),
        (
            {"agents": [{"id": "a", "tools": ["python"]}]},
            "agents[0].tools: python is not executed yet",
        ),
        (
            {"normaliser": {"model": {"prompt": "Same?"}}},
            "normaliser.model: is not executed yet",
        ),
        ({"selection": {"show": "claims"}}, "selection.show: claims is not executed yet"),
    ],
)
def test_one_part_that_is_not_executed_is_named(changes: dict[str, Any], says: str) -> None:
    assert unsupported(build(**changes)) == [says]

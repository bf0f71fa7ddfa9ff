"""The cost bound against what the engine renders, and the display model's golden values."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.engine.errors import UnsupportedProtocolError
from runs.engine.judging import plan_judging
from runs.engine.ledger import Price
from runs.engine.operators import plan_round
from runs.engine.types import CallPlan, Evidence, Question, Snapshot, Stop, StopReason
from runs.protocols.cost import Bound, Sizes, bound, expected, in_degree, match_samples
from runs.protocols.presets import load_preset, preset_names, with_agents, with_rounds
from runs.protocols.spec import Protocol
from tests.runs.engine.builders import snapshot_of
from tests.runs.protocols.published import LATER

MAX_ROUNDS = 3
IDS = ("a", "b", "c", "d")
PLAIN = Price(1_000_000, 500_000, 5_000_000)  # 1:5, as in the golden example.
PRICES = {"default": PLAIN}

TEXTS = st.text(st.sampled_from("a é→𝄞\n(A){{question}}\x7f"), min_size=1, max_size=60).filter(
    str.strip
)
TEMPLATES = st.lists(
    st.sampled_from(
        [
            "{{own_text}}",
            "{{own_answer}}",
            "{{peers}}",
            "{{choices}}",
            "{{evidence}}",
            "{{persona}}",
            "{{side}}",
            "{{answer_format}}",
            "Weigh the reasons. ",
            "é𝄞",
        ]
    ),
    max_size=8,
).map("".join)
PEERS = st.lists(
    st.sampled_from(["{{label}}", "{{text}}", "{{answer}}", "{{count}}", " says: "]), max_size=5
).map("".join)
TOPOLOGIES = st.sampled_from(
    [
        {"kind": "full"},
        {"kind": "none"},
        {"kind": "ring"},
        {"kind": "ring", "bidirectional": False},
        {"kind": "star"},
        {"kind": "star", "hub": "b"},
        {"kind": "k_regular", "k": 1},
        {"kind": "custom", "edges": [{"source": "b", "reader": "a"}]},
    ]
)


@st.composite
def protocols(draw: st.DrawFn) -> Protocol:
    """Draw a protocol that the engine executes, with caps small enough to bite."""
    count = draw(st.integers(2, len(IDS)))
    agents = [
        {"id": i, "persona": draw(TEXTS), "role": draw(TEXTS), "side": draw(st.none() | TEXTS)}
        for i in IDS[:count]
    ]
    message_cap = draw(st.integers(1, 50))
    selection = {
        "show": draw(st.sampled_from(["full_answer", "final_answer", "final_and_justification"])),
        "rounds": draw(st.sampled_from(["last", "all"])),
        "order": draw(st.sampled_from(["by_id", "seeded_shuffle"])),
        "message_cap_chars": message_cap,
        "total_cap_chars": draw(st.integers(message_cap, 120)),
        "own_history": draw(st.sampled_from(["none", "last", "all"])),
        "include_self": draw(st.booleans()),
        "identities": draw(st.sampled_from(["hidden", "ids", "roles"])),
    }
    prompts = {
        "system": draw(st.sampled_from(["", "You are {{persona}}.", "{{side}}{{evidence}}"])),
        "initial": draw(TEMPLATES)
        .replace("{{own_", "{{")
        .replace("{{text}}", "")
        .replace("{{answer}}", "")
        .replace("{{peers}}", "")
        + "{{question}}",
        "revision": draw(TEMPLATES) + "{{question}}{{peers}}",
        "peer": draw(PEERS),
        "separator": draw(st.sampled_from(["", "\n\n", "————"])),
    }
    return Protocol.model_validate_json(
        json.dumps(
            {
                "name": "drawn",
                "agents": agents,
                "revision_rounds": draw(st.integers(1, MAX_ROUNDS)),
                "topology": draw(TOPOLOGIES),
                "selection": selection,
                "prompts": prompts,
                "output": {
                    "format": draw(st.sampled_from(["text", "json"])),
                    "claims": draw(st.booleans()),
                    "confidence": draw(st.booleans()),
                },
            }
        )
    )


@st.composite
def questions(draw: st.DrawFn) -> Question:
    choices = draw(st.lists(TEXTS, min_size=2, max_size=4, unique=True))
    return Question(id="q", text=draw(TEXTS), answer_type="choice", choices=tuple(choices))


EVIDENCE = st.lists(
    st.builds(Evidence, id=st.sampled_from("xyz"), text=TEXTS, source=st.just("") | TEXTS),
    max_size=2,
).map(tuple)


@st.composite
def snapshots(draw: st.DrawFn, protocol: Protocol) -> Snapshot:
    """Draw a read buffer of any round of ``protocol``; replies are longer than their caps."""
    t = draw(st.integers(0, protocol.revision_rounds))
    replies = st.dictionaries(st.sampled_from(protocol.agent_ids), TEXTS, max_size=len(IDS))
    first = {agent_id: draw(TEXTS) for agent_id in protocol.agent_ids}
    later = [draw(replies) for _ in range(t - 1)]
    return snapshot_of([first, *later] if t else [], protocol.agent_ids)


def planned(
    protocol: Protocol, question: Question, evidence: tuple[Evidence, ...], snapshot: Snapshot
) -> tuple[CallPlan, ...]:
    active = None if snapshot.t == 0 else tuple(s.agent_id for s in snapshot.states)
    return plan_round(
        protocol=protocol,
        question=question,
        evidence=evidence,
        snapshot=snapshot,
        active=active,
        run_seed=7,
        t=snapshot.t,
    ).calls


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_prompt_that_the_engine_renders_is_beyond_the_bound(data: st.DataObject) -> None:
    protocol = data.draw(protocols())
    question, evidence = data.draw(questions()), data.draw(EVIDENCE)
    snapshot = data.draw(snapshots(protocol))
    most = bound(protocol, Sizes.of(protocol, question, evidence))
    allowed = {(c.agent_id, c.t): c for c in most.per_call}
    for call in planned(protocol, question, evidence, snapshot):
        limit = allowed[call.agent_id, call.t]
        assert call.input_token_bound <= limit.input_tokens
        assert call.max_output_tokens <= limit.output_tokens
        assert sum(len(m.content.encode()) for m in call.prompt) <= limit.input_tokens


@pytest.mark.parametrize("name", preset_names())
def test_the_bound_is_nearly_reached_by_replies_as_long_as_they_may_be_shown(name: str) -> None:
    protocol = load_preset(name)
    question = Question(id="q", text="How many?" * 30, answer_type="number")
    whole = dict.fromkeys(protocol.agent_ids, "𝄞" * protocol.selection.message_cap_chars)
    last = snapshot_of([whole] * protocol.revision_rounds, protocol.agent_ids)
    most = bound(protocol, Sizes.of(protocol, question, ()))
    allowed = {(c.agent_id, c.t): c.input_tokens for c in most.per_call}
    for call in planned(protocol, question, (), last):
        reached = Fraction(call.input_token_bound, allowed[call.agent_id, call.t])
        assert Fraction(98, 100) < reached <= 1


def test_a_message_that_stands_twice_in_a_prompt_counts_twice() -> None:
    once = load_preset("du_2023")
    prompts = once.prompts.model_copy(update={"peer": "{{text}}{{text}}"})
    twice = once.model_copy(update={"prompts": prompts})
    question = Question(id="q", text="How many?", answer_type="number")
    whole = dict.fromkeys(twice.agent_ids, "𝄞" * twice.selection.message_cap_chars)
    most = bound(twice, Sizes.of(twice, question, ()))
    calls = planned(twice, question, (), snapshot_of([whole], twice.agent_ids))
    limits = [call.input_tokens for call in most.per_call if call.t == 1]
    assert max(call.input_token_bound for call in calls) <= min(limits)
    assert min(call.input_token_bound for call in calls) > 0.98 * min(limits)


def test_the_bound_counts_every_retry_of_every_call() -> None:
    protocol = load_preset("du_2023")
    most = bound(protocol, Sizes(question_bytes=300))
    attempts = 1 + protocol.retries.transport + protocol.retries.timeout + protocol.retries.invalid
    assert most.calls == 6 * attempts
    assert most.output_tokens == 6 * attempts * 1024
    assert most.input_tokens == attempts * sum(call.input_tokens for call in most.per_call)


def test_the_bound_in_money_rounds_every_call_up_and_adds_the_final_reservation() -> None:
    protocol = Protocol.model_validate_json(
        json.dumps(
            {
                "name": "x",
                "agents": [{"id": "a", "decoding": {"max_output_tokens": 1}}],
                "revision_rounds": 0,
                "topology": {"kind": "none"},
                "prompts": {"initial": "{{question}}"},
                "retries": {"transport": 1},
                "limits": {"final_microusd": 40},
            }
        )
    )
    most = bound(protocol, Sizes(question_bytes=0))
    assert most.microusd({"default": Price(0, 0, 1)}) == 2 * 1 + 40
    assert most.microusd({"default": Price.free()}) == 40


def test_the_dearest_way_to_read_a_token_bounds_its_price() -> None:
    most = bound(load_preset("single"), Sizes(question_bytes=1_000_000))
    dear_cache = {"default": Price(1, 1_000_000, 0)}
    assert most.microusd(dear_cache) >= most.input_tokens


def test_a_slot_without_a_price_is_named() -> None:
    most = bound(load_preset("single"), Sizes(question_bytes=1))
    usual = expected(load_preset("single"), q_tokens=1, a_tokens=1)
    for cost in (most, usual):
        with pytest.raises(ValueError, match="model slot 'default' has no price"):
            cost.microusd({})


@pytest.mark.parametrize("name", ["wr", "khan_2024_debate", "async_gossip"])
def test_what_is_not_executed_has_no_bound(name: str) -> None:
    with pytest.raises(UnsupportedProtocolError):
        bound(LATER[name], Sizes(question_bytes=1))


@given(st.integers(0, 500), st.integers(0, 500))
def test_a_longer_question_never_has_a_smaller_bound(one: int, other: int) -> None:
    costs = [
        bound(load_preset("du_2023"), Sizes(question_bytes=n)).input_tokens
        for n in sorted((one, other))
    ]
    assert costs[0] <= costs[1]


def test_the_degree_is_what_the_topology_lets_an_agent_read() -> None:
    ring = load_preset("sparse_ring")
    assert {in_degree(ring, agent_id) for agent_id in ring.agent_ids} == {2}
    assert {in_degree(load_preset("k_regular"), i) for i in "abcdef"} == {3}
    grouped = LATER["group_debate"]
    assert [in_degree(grouped, agent_id) for agent_id in grouped.agent_ids] == [1, 1, 1, 1]
    report = LATER["mallm_report"]
    assert [in_degree(report, agent_id) for agent_id in report.agent_ids] == [2, 1, 1]
    pairs = LATER["mallm_debate"]
    assert [in_degree(pairs, agent_id) for agent_id in pairs.agent_ids] == [1, 2, 1]


def usual(protocol: Protocol, **changes: Any) -> Any:
    return expected(protocol, **{"q_tokens": 300, "a_tokens": 400, **changes})


def test_golden_example_20_debate_plurality_and_triggered_debate() -> None:
    debate = usual(load_preset("du_2023"))
    assert (debate.input_tokens, debate.output_tokens) == (5400, 2400)
    assert debate.calls == 6
    votes = usual(with_agents(load_preset("self_consistency"), 6))
    assert (votes.input_tokens, votes.output_tokens) == (1800, 2400)
    once = with_rounds(load_preset("disagreement_triggered"), 1)
    triggered = usual(once, agreement=0.8)
    assert (triggered.input_tokens, triggered.output_tokens) == (1800, 1440)


def test_golden_example_20_samples_matched_by_output_and_by_money() -> None:
    debate = usual(load_preset("du_2023"))
    sample = usual(with_agents(load_preset("self_consistency"), 1))
    assert match_samples(debate, sample, by="output_tokens") == 6
    by_money = match_samples(
        debate, sample, by="microusd", target_prices=PRICES, sample_prices=PRICES
    )
    assert by_money == 7


def test_agreement_matters_only_where_disagreement_triggers_the_debate() -> None:
    assert usual(load_preset("du_2023"), agreement=0.8) == usual(load_preset("du_2023"))
    certain = usual(load_preset("disagreement_triggered"), agreement=1.0)
    assert (certain.calls, certain.input_tokens, certain.output_tokens) == (3, 900, 1200)


def test_a_conversation_that_is_kept_is_read_again_in_every_round() -> None:
    kept = load_preset("du_replay")
    last = kept.model_copy(
        update={"selection": kept.selection.model_copy(update={"own_history": "last"})}
    )
    assert usual(last).input_tokens == 3 * 300 + 2 * 3 * (300 + 3 * 400)
    assert usual(kept).input_tokens == usual(last).input_tokens + 3 * 3 * 400


def test_at_least_one_sample_is_matched_and_a_free_one_never() -> None:
    small = usual(load_preset("single"), a_tokens=1)
    large = usual(with_agents(load_preset("self_consistency"), 1))
    assert match_samples(small, large, by="output_tokens") == 1
    free = {"default": Price.free()}
    with pytest.raises(ValueError, match="one sample uses no microusd"):
        match_samples(large, large, by="microusd", target_prices=PRICES, sample_prices=free)


@pytest.mark.parametrize("name", preset_names())
def test_what_is_expected_is_within_the_bound(name: str) -> None:
    protocol = load_preset(name)
    most: Bound = bound(protocol, Sizes(question_bytes=300))
    likely = usual(protocol)
    assert likely.calls <= most.calls
    assert likely.input_tokens <= most.input_tokens
    assert likely.output_tokens <= most.output_tokens
    assert likely.microusd(PRICES) <= most.microusd(PRICES)


@settings(max_examples=100, deadline=None)
@given(st.data(), EVIDENCE)
def test_no_judge_is_shown_more_or_asked_more_often_than_the_bound_says(
    data: st.DataObject, evidence: tuple[Evidence, ...]
) -> None:
    mode = data.draw(st.sampled_from(["pairwise", "listwise", "pointwise", "transcript"]))
    judge = {
        "prompt": "{{question}}{{evidence}}{{transcript}}{{candidates}}{{answer_format}}",
        "mode": mode,
        "orders": data.draw(st.sampled_from(["given", "both", "all", "balanced"])),
        "sees_rounds": data.draw(st.sampled_from(["first", "last", "all"])),
        "repeats": data.draw(st.integers(1, 2)),
    }
    protocol = Protocol.model_validate_json(
        json.dumps(
            {
                "name": "x",
                "agents": [{"id": key} for key in "abcde"],
                "revision_rounds": 2,
                "prompts": {"initial": "{{question}}", "revision": "{{peers}}"},
                "selection": {"message_cap_chars": 50},
                "aggregation": {"kind": "judge", "judge": judge},
            }
        )
    )
    texts = st.text(st.sampled_from("a𝄞"), min_size=1, max_size=80)
    rounds = [{key: data.draw(texts) for key in "abcde"} for _ in range(3)]
    last, question = snapshot_of(rounds, "abcde"), Question(id="q", text="ü?", answer_type="text")
    plan = plan_judging(
        protocol=protocol,
        question=question,
        evidence=evidence,
        zero=last,
        last=last,
        stop=Stop(StopReason.ROUND_LIMIT),
        t=2,
        stage_t=3,
        run_seed=1,
    )
    (most,) = bound(protocol, Sizes.of(protocol, question, evidence)).judging
    calls = plan.calls if plan is not None else ()
    attempts = 1 + protocol.retries.transport
    assert len(calls) * attempts <= most.attempts
    assert all(call.input_token_bound <= most.input_tokens for call in calls)
    assert all(call.max_output_tokens <= most.output_tokens for call in calls)

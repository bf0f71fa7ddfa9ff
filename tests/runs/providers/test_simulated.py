from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.types import CallKind, CallStatus, PromptMessage
from runs.providers.base import Origin, ProviderRequest
from runs.providers.errors import ModelSpecError
from runs.providers.plausible import right_answer, wrong_answers
from runs.providers.simulated import (
    SimulatedParams,
    SimulatedProvider,
    parse_spec,
    simulate,
    simulated_latency_seconds,
)
from runs.providers.simulated_truth import simulated_truth

AGENTS = ("a", "b", "c")
QUESTIONS = 5_000
SPEC = "simulated:accuracy=0.6,correlation=0.3,conformity=0.4,churn=0.1,seed=7"


def ask(origin: Origin, params: SimulatedParams) -> str:
    """Return the answer in the simulated reply."""
    request = ProviderRequest(
        model="m",
        prompt=(PromptMessage("user", "?"),),
        max_output_tokens=100,
        timeout_seconds=1.0,
        origin=origin,
    )
    return simulate(request, params).rpartition("Final answer: ")[2]


def debate(question: int, params: SimulatedParams, rounds: int) -> list[list[str]]:
    """Return the answers [t][agent] of a fully connected synchronous debate."""
    origin = Origin(
        run_seed=1,
        question_hash=f"hash-{question}",
        answer_type="number",
        reference=("42",),
    )
    answers = [[ask(replace(origin, agent_id=a), params) for a in AGENTS]]
    for t in range(1, rounds + 1):
        last = answers[-1]
        answers.append(
            [
                ask(
                    replace(
                        origin,
                        agent_id=agent,
                        t=t,
                        kind=CallKind.REVISION,
                        own_answer=last[i],
                        peer_answers=tuple(last[:i] + last[i + 1 :]),
                    ),
                    params,
                )
                for i, agent in enumerate(AGENTS)
            ]
        )
    return answers


@pytest.fixture(scope="module")
def correct() -> list[list[list[bool]]]:
    """Correctness [question][t][agent] of many debates."""
    params = parse_spec(SPEC)
    debates = (debate(q, params, 2) for q in range(QUESTIONS))
    return [[[a == "42" for a in at] for at in answers] for answers in debates]


@pytest.fixture(scope="module")
def truth() -> dict[str, float]:
    figures = simulated_truth(parse_spec(SPEC), len(AGENTS), rounds=2)
    flat = {"repair_T": figures["repair_T"], "damage_T": figures["damage_T"]}
    for t in range(3):
        flat[f"accuracy_{t}"] = figures["agent_accuracy"][t]
        flat[f"plurality_{t}"] = figures["plurality_accuracy"][t]
    return flat


def assert_within_three_standard_errors(pairs: list[tuple[float, float]], expected: float) -> None:
    """``pairs`` are numerator and denominator of a ratio, one question each (the cluster)."""
    total = sum(den for _, den in pairs)
    ratio = sum(num for num, _ in pairs) / total
    used = [(num, den) for num, den in pairs if den]
    squares = sum((num - ratio * den) ** 2 for num, den in used)
    error = math.sqrt(len(used) / (len(used) - 1) * squares) / total
    assert 0 < error < 0.02
    assert abs(ratio - expected) <= 3 * error


@pytest.mark.parametrize("t", [0, 1, 2])
def test_agent_accuracy_is_the_computed_one(
    t: int, correct: list[list[list[bool]]], truth: dict[str, float]
) -> None:
    pairs = [(float(sum(q[t])), float(len(AGENTS))) for q in correct]
    assert_within_three_standard_errors(pairs, truth[f"accuracy_{t}"])


def test_pairwise_error_correlation_is_the_parameter(correct: list[list[list[bool]]]) -> None:
    p = 0.6
    products = [
        ((not q[0][i]) - (1 - p)) * ((not q[0][j]) - (1 - p))
        for q in correct
        for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    by_question = [sum(products[k : k + 3]) / 3 / (p * (1 - p)) for k in range(0, len(products), 3)]
    mean = sum(by_question) / len(by_question)
    spread = math.sqrt(sum((x - mean) ** 2 for x in by_question) / (len(by_question) - 1))
    assert abs(mean - 0.3) <= 3 * spread / math.sqrt(len(by_question))


@pytest.mark.parametrize(("name", "wrong_before"), [("repair_T", True), ("damage_T", False)])
def test_repair_and_damage_are_the_computed_ones(
    name: str, wrong_before: bool, correct: list[list[list[bool]]], truth: dict[str, float]
) -> None:
    pairs = []
    for question in correct:
        eligible = [i for i in range(3) if question[0][i] != wrong_before]
        changed = [i for i in eligible if question[2][i] == wrong_before]
        pairs.append((float(len(changed)), float(len(eligible))))
    assert_within_three_standard_errors(pairs, truth[name])


def test_truth_agrees_with_closed_forms() -> None:
    p = 0.6
    alone = simulated_truth(SimulatedParams(accuracy=p, churn=1.0), 3, "none", 1)
    assert alone["repair_T"] == pytest.approx(p)
    assert alone["damage_T"] == pytest.approx(1 - p)
    stubborn = simulated_truth(SimulatedParams(accuracy=p, correlation=0.5), 3, "full", 4)
    assert stubborn["agent_accuracy"] == pytest.approx([p] * 5)
    assert (stubborn["repair_T"], stubborn["damage_T"]) == (0.0, 0.0)
    # Two independent peers that are both right convert a wrong agent that conforms.
    docile = simulated_truth(SimulatedParams(accuracy=p, conformity=1.0), 3, "full", 1)
    assert docile["repair_t"] == pytest.approx([p**2])
    same_wrong = (1 - p) ** 2 / 4
    assert docile["damage_t"] == pytest.approx([same_wrong])
    one_mind = simulated_truth(SimulatedParams(accuracy=p, correlation=1.0), 3)
    assert one_mind["plurality_accuracy"] == pytest.approx([p, p])


def test_truth_refuses_what_it_does_not_model() -> None:
    with pytest.raises(ValueError, match="abstention"):
        simulated_truth(SimulatedParams(abstain=0.1), 3)
    with pytest.raises(ValueError, match="too many"):
        simulated_truth(SimulatedParams(), 12)


def test_a_rate_without_a_denominator_is_none() -> None:
    figures = simulated_truth(SimulatedParams(accuracy=1.0), 2)
    assert figures["repair_T"] is None
    assert figures["damage_T"] == 0.0


@given(st.permutations(range(6)))
def test_the_order_of_calls_changes_no_reply(order: list[int]) -> None:
    params = parse_spec(SPEC)
    origins = [
        Origin(run_seed=3, question_hash="q", reference=("1",), agent_id=a, t=t, own_answer="2")
        for a in AGENTS
        for t in (0, 1)
    ]
    straight = [ask(origin, params) for origin in origins]
    shuffled = {i: ask(origins[i], params) for i in order}
    assert [shuffled[i] for i in range(6)] == straight


def test_the_same_key_gives_the_same_bytes_in_another_process() -> None:
    origins = [Origin(run_seed=5, question_hash=f"q{k}", reference=("1",)) for k in range(20)]
    here = [ask(origin, parse_spec(SPEC)) for origin in origins]
    program = f"""
import json
from runs.engine.types import PromptMessage
from runs.providers.base import Origin, ProviderRequest
from runs.providers.simulated import parse_spec, simulate
def ask(k):
    origin = Origin(run_seed=5, question_hash=f"q{{k}}", reference=("1",))
    request = ProviderRequest("m", (PromptMessage("user", "?"),), 100, 1.0, origin=origin)
    return simulate(request, parse_spec({SPEC!r})).rpartition("Final answer: ")[2]
print(json.dumps([ask(k) for k in reversed(range(20))]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    assert json.loads(done.stdout) == here[::-1]


def test_another_seed_of_model_or_run_gives_other_answers() -> None:
    def answers(run_seed: int, model_seed: int) -> list[str]:
        params = SimulatedParams(accuracy=0.5, seed=model_seed)
        return [
            ask(Origin(run_seed=run_seed, question_hash=f"q{k}", reference=("1",)), params)
            for k in range(40)
        ]

    assert answers(1, 1) == answers(1, 1)
    assert answers(1, 1) != answers(2, 1)
    assert answers(1, 1) != answers(1, 2)


def test_full_correlation_makes_all_agents_say_the_same() -> None:
    params = SimulatedParams(accuracy=0.3, correlation=1.0)
    for k in range(50):
        origin = Origin(question_hash=f"q{k}", answer_type="number", reference=("7",))
        assert len({ask(replace(origin, agent_id=a), params) for a in AGENTS}) == 1


def test_a_tie_among_peers_is_no_plurality() -> None:
    origin = Origin(question_hash="q", t=1, own_answer="1", peer_answers=("2", "3", None))
    assert ask(origin, SimulatedParams(conformity=1.0)) == "1"
    assert ask(replace(origin, peer_answers=("2", None)), SimulatedParams(conformity=1.0)) == "2"


def test_forms_of_reply() -> None:
    origin = Origin(question_hash="q", answer_type="number", reference=("42",))
    request = ProviderRequest("m", (), 100, 1.0, origin=origin)
    sure = SimulatedParams(accuracy=1.0)
    text = simulate(request, sure)
    assert text.splitlines()[-1] == "Final answer: 42"
    assert "[simulated]" in text
    as_json = simulate(replace(request, origin=replace(origin, output_format="json")), sure)
    assert json.loads(as_json)["answer"] == "42"
    assert "[simulated]" in as_json
    assert simulate(request, SimulatedParams(abstain=1.0)).endswith("Final answer: abstain")
    assert "Final answer" not in simulate(request, SimulatedParams(invalid=1.0))


@pytest.mark.parametrize(
    ("origin", "right", "wrong"),
    [
        (Origin(answer_type="number", reference=("42",)), "42", ("43", "41", "84", "52")),
        (Origin(answer_type="number", reference=("0",)), "0", ("1", "-1", "10", "-10")),
        (Origin(answer_type="number", reference=("4", "5")), "4", ("3", "8", "14", "-6")),
        (Origin(answer_type="number", reference=("$1,000",)), "$1,000", ("$1001",)),
        (Origin(answer_type="number", reference=("50%",)), "50%", ("51%", "49%")),
        (Origin(answer_type="number", reference=("many",)), "many", ("1", "2")),
        (Origin(answer_type="yesno", reference=("True",)), "yes", ("no",)),
        (Origin(answer_type="yesno", reference=("no",)), "no", ("yes",)),
        (Origin(answer_type="yesno"), None, ("yes", "no")),
        (Origin(answer_type="choice", choices=("x", "y", "z"), reference=("y",)), "B", ("A", "C")),
        (Origin(answer_type="choice", choices=("x", "y"), reference=("(A)",)), "A", ("B",)),
        (Origin(answer_type="text", reference=("Oslo",)), "Oslo", ("wrong-1", "wrong-2")),
        (Origin(answer_type="open"), None, ("wrong-1",)),
    ],
)
def test_wrong_answers_are_plausible_and_wrong(
    origin: Origin, right: str | None, wrong: tuple[str, ...]
) -> None:
    assert right_answer(origin) == right
    assert wrong_answers(origin)[: len(wrong)] == wrong
    assert right not in wrong_answers(origin)


def test_a_spec_is_read_with_defaults() -> None:
    assert parse_spec("simulated:") == SimulatedParams()
    assert parse_spec("simulated:accuracy=0.6, correlation=0.3,seed=7") == SimulatedParams(
        accuracy=0.6, correlation=0.3, seed=7
    )


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ("simulated:accuraccy=1", "unknown parameter 'accuraccy=1'"),
        ("simulated:accuracy", "unknown parameter"),
        ("simulated:accuracy=1.5", "accuracy=1.5 is not a number from 0 to 1"),
        ("simulated:accuracy=nan", "accuracy=nan is not a number"),
        ("simulated:latency=-1", "latency=-1 is not a number from 0 to 3600"),
        ("simulated:seed=x", "seed=x is not a whole number"),
        ("simulated:tokens=1.5", "tokens=1.5 is not a whole number"),
        ("simulated:seed=1,seed=2", "seed is given twice"),
        ("simulate:x", "does not start with"),
    ],
)
def test_a_bad_spec_is_said_in_one_line(spec: str, what: str) -> None:
    with pytest.raises(ModelSpecError, match=what.replace(".", r"\.")) as caught:
        parse_spec(spec)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_spec_is_parsed_or_refused(text: str) -> None:
    message = ""
    try:
        params = parse_spec("simulated:" + text)
    except ModelSpecError as exc:
        message = str(exc)
    else:
        assert 0 <= params.accuracy <= 1
    assert message.isprintable()


def test_the_provider_reports_seeded_latency_and_tokens() -> None:
    params = SimulatedParams(latency=0.01, tokens=120)
    request = ProviderRequest("m", (PromptMessage("user", "x" * 10),), 100, 1.0)
    reply = asyncio.run(SimulatedProvider(params).complete(request))
    assert reply.simulated
    assert reply.latency_seconds == simulated_latency_seconds(request, params)
    assert 0.005 <= reply.latency_seconds <= 0.015
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 100)


def test_a_simulated_latency_beyond_the_time_out_times_out() -> None:
    request = ProviderRequest("m", (), 100, 0.01)
    reply = asyncio.run(SimulatedProvider(SimulatedParams(latency=10)).complete(request))
    assert reply.status is CallStatus.TIMEOUT
    assert reply.error_class == "timeout"

"""Whole experiments on the database, with replies that the test decides."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pytest

from runs.importers.records import AgentRecord, DebateRecord, TurnRecord
from runs.models import (
    Attempt,
    AttemptOutcome,
    Commit,
    Epoch,
    Experiment,
    Message,
    Run,
    State,
    Verdict,
)
from runs.providers import endings
from runs.providers.base import ProviderReply
from runs.providers.endings import failed
from runs.providers.gateway import Gateway
from runs.providers.simulated import SimulatedProvider, parse_spec
from runs.services.imports import import_debates
from tests.runs import factories
from tests.runs.checks import assert_balanced, assert_verified, content_of
from tests.runs.scripted import Call, ScriptedGateway, replied, said

Held = list[tuple[Call, ProviderReply]]

pytestmark = pytest.mark.django_db


def one_run(made: Experiment) -> Run:
    return made.runs.get()


def test_three_agents_and_two_revisions_leave_every_record_and_agree_with_their_replay(
    tmp_path: Path,
) -> None:
    made = factories.finish(factories.experiment(tmp_path))
    run = one_run(made)
    assert (made.status, run.status, run.stop_reason) == ("FINISHED", "DONE", "round_limit")
    assert Epoch.objects.count() == Commit.objects.count() == 3
    assert AttemptOutcome.objects.filter(status="SUCCEEDED").count() == 9
    assert Verdict.objects.filter(status="SUCCEEDED").count() == 9
    assert State.objects.count() == Message.objects.count() == 9
    assert run.aggregates.get().answer_value == "2"
    assert run.account.settled_output_tokens == 9 * 20
    assert run.account.settled_microusd == 9 * (50 * 1 + 20 * 10)
    assert_verified(made)
    assert_balanced()


@dataclass(frozen=True)
class Reordered:
    """Deliver the replies of a round in this order."""

    order: tuple[int, ...]

    def __call__(self, held: Held) -> Held:
        return [held[place] for place in self.order]


def test_every_order_of_completion_and_double_deliveries_give_the_same_bytes(
    tmp_path: Path,
) -> None:
    def script(call: Call) -> ProviderReply:
        return said(str("abc".index(call.agent_id) + call.t))

    found = []
    for order in permutations(range(3)):
        for twice in (False, True):
            gateway = ScriptedGateway(script, hold=Reordered(order), twice=twice)
            made = factories.finish(factories.experiment(tmp_path), gateway)
            found.append(content_of(one_run(made)))
            assert one_run(made).account.settled_output_tokens == 9 * 20
            assert_verified(made)
    assert len(found) == 12
    assert all(content == found[0] for content in found)
    assert_balanced()


def test_one_seed_gives_the_same_bytes_in_every_order_of_work_and_concurrency(
    tmp_path: Path,
) -> None:
    contents = []
    orders: list[Callable[[list[Run]], list[Run]]] = [
        lambda runs: runs,
        lambda runs: runs[::-1],
        lambda runs: sorted(runs, key=lambda run: (run.question_hash, -run.seed)),
    ]
    for concurrency, order in zip((1, 8, 64), orders, strict=True):
        gateway = SimulatedGateway()
        made = factories.experiment(
            tmp_path,
            question_count=4,
            seeds=[1, 2],
            model=factories.SIMULATED,
            concurrency=concurrency,
        )
        factories.finish(made, gateway, order=order)
        contents.append([content_of(run) for run in made.runs.order_by("position")])
        assert_verified(made)
    assert contents[0] == contents[1] == contents[2]
    assert contents[0][0] != contents[0][1], "another seed gives other bytes"


class SimulatedGateway(ScriptedGateway):
    """The shipped simulated agents, answering at once."""

    def __init__(self) -> None:
        provider = SimulatedProvider(parse_spec(factories.SIMULATED))
        super().__init__(lambda call: asyncio.run(provider.complete(call.request)))


def test_an_invalid_reply_keeps_the_last_valid_state_and_is_not_repeated(tmp_path: Path) -> None:
    def script(call: Call) -> ProviderReply:
        if (call.agent_id, call.t) == ("b", 1):
            return replied("I have nothing to say.")
        return said("2")

    gateway = ScriptedGateway(script)
    made = factories.finish(factories.experiment(tmp_path), gateway)
    assert list(
        Verdict.objects.filter(agent_id="b").order_by("t").values_list("status", "state_version")
    ) == [("SUCCEEDED", 1), ("INVALID", None), ("SUCCEEDED", 2)]
    assert len(gateway.calls) == 9
    assert_verified(made)


def test_an_agent_without_an_initial_answer_is_inactive_and_keeps_its_id(tmp_path: Path) -> None:
    gateway = ScriptedGateway(
        lambda call: replied("nothing") if call.agent_id == "c" else said("2")
    )
    made = factories.finish(factories.experiment(tmp_path), gateway)
    statuses = Verdict.objects.filter(agent_id="c").order_by("t").values_list("status", flat=True)
    assert list(statuses) == ["INVALID", "INACTIVE", "INACTIVE"]
    assert len(gateway.calls) == 3 + 2 + 2
    assert_verified(made)


def test_a_run_in_which_nobody_answers_ends_unresolved(tmp_path: Path) -> None:
    made = factories.finish(
        factories.experiment(tmp_path), ScriptedGateway(lambda _call: replied("nothing"))
    )
    run = one_run(made)
    assert run.stop_reason == "no_admitted_initial_states"
    assert run.aggregates.get().unresolved
    assert_verified(made)


def test_a_call_that_outlives_its_round_is_a_timeout_whose_reservation_stays_held(
    tmp_path: Path,
) -> None:
    gateway = ScriptedGateway(lambda c: None if (c.agent_id, c.t) == ("b", 1) else said("2"))
    made = factories.finish(
        factories.experiment(
            tmp_path,
            protocol={
                "limits": {"round_timeout_seconds": 1, "call_timeout_seconds": 1},
                "revision_rounds": 1,
            },
        ),
        gateway,
    )
    lost = Attempt.objects.get(agent_id="b", t=1)
    outcome = lost.outcomes.get()
    assert (outcome.status, outcome.error_class) == ("TIMEOUT", "round_deadline")
    run = one_run(made)
    assert run.stop_reason == "round_limit"
    assert run.account.held_output_tokens == lost.reserved_output_tokens > 0
    assert Verdict.objects.get(agent_id="b", t=1).status == "TIMEOUT"
    assert_verified(made)
    assert_balanced()


@pytest.mark.parametrize(
    ("retries", "bad", "calls"),
    [
        ({"transport": 2}, failed(endings.RATE_LIMITED, "slow down"), 3),
        ({"transport": 0}, failed(endings.RATE_LIMITED, "slow down"), 1),
        ({"transport": 2}, failed(endings.BAD_REQUEST, "no"), 1),
        ({"timeout": 1}, failed(endings.TIMEOUT, "slow"), 2),
        ({"timeout": 0}, failed(endings.TIMEOUT, "slow"), 1),
        ({"invalid": 1}, replied("nothing"), 2),
        ({"invalid": 0}, replied("nothing"), 1),
    ],
)
def test_a_call_is_repeated_as_often_as_its_protocol_allows(
    tmp_path: Path, retries: dict[str, int], bad: ProviderReply, calls: int
) -> None:
    gateway = ScriptedGateway(lambda c: bad if (c.agent_id, c.t) == ("b", 1) else said("2"))
    made = factories.finish(factories.experiment(tmp_path, protocol={"retries": retries}), gateway)
    repeated = list(Attempt.objects.filter(agent_id="b", t=1).order_by("ordinal"))
    assert [a.ordinal for a in repeated] == list(range(calls))
    assert [a.retry_of_id for a in repeated] == [None, *[a.pk for a in repeated[:-1]]]
    assert_verified(made)
    assert_balanced()


def test_a_repetition_that_succeeds_is_admitted_and_paid_from_the_same_budget(
    tmp_path: Path,
) -> None:
    def script(call: Call) -> ProviderReply:
        first = (call.agent_id, call.t, call.nth) == ("b", 0, 0)
        return failed(endings.SERVER_ERROR, "oops") if first else said("2")

    made = factories.finish(factories.experiment(tmp_path), ScriptedGateway(script))
    verdict = Verdict.objects.get(agent_id="b", t=0)
    assert (verdict.status, verdict.attempt and verdict.attempt.ordinal) == ("SUCCEEDED", 1)
    failed_one = Attempt.objects.get(agent_id="b", t=0, ordinal=0)
    assert one_run(made).account.held_output_tokens == failed_one.reserved_output_tokens
    assert_verified(made)
    assert_balanced()


def test_a_retry_after_that_ends_after_the_round_is_no_retry(tmp_path: Path) -> None:
    slow = ProviderReply(
        endings.RATE_LIMITED.status,
        error_class="rate_limited",
        transient=True,
        billed="no",
        retry_after_seconds=100_000.0,
    )
    gateway = ScriptedGateway(lambda call: slow if call.agent_id == "b" else said("2"))
    made = factories.finish(factories.experiment(tmp_path), gateway)
    assert Attempt.objects.filter(agent_id="b").count() == 1
    assert_verified(made)


def test_a_hostile_reply_ends_its_call_and_no_round(tmp_path: Path) -> None:
    hostile = [
        replied(b"\x00\xff\xed\xa0\x80 \\boxed{1} the answer is \x00 7", finish_reason="x" * 200),
        replied("the answer is \ud800\u202e 7\x00", model_version="m\u202e" + "v" * 190),
        replied("So the answer is 2." * 20_000, None, None),
    ]
    gateway = ScriptedGateway(lambda call: hostile["abc".index(call.agent_id)])
    made = factories.finish(factories.experiment(tmp_path), gateway)
    run = one_run(made)
    assert run.stop_reason in ("round_limit", "no_admitted_initial_states")
    stored = AttemptOutcome.objects.get(attempt__t=0, attempt__agent_id="b")
    assert bytes(stored.raw) == hostile[1].raw
    assert_verified(made)
    assert_balanced()


def test_a_model_that_changes_its_name_within_a_run_raises_a_flag(tmp_path: Path) -> None:
    gateway = ScriptedGateway(lambda call: said("2", model_version=f"m{call.t}"))
    made = factories.finish(factories.experiment(tmp_path), gateway)
    assert one_run(made).model_changed
    same = factories.finish(factories.experiment(tmp_path))
    assert not one_run(same).model_changed


def test_claims_confidence_and_change_are_stored_as_the_model_gave_them(tmp_path: Path) -> None:
    body = {
        "answer": "2",
        "confidence": 0.7,
        "claims": [{"claim_id": "c1", "text": "One and one make two."}],
        "change": {"kind": "retain", "claim_id": "c1", "text": "It still holds."},
    }
    output = {"format": "json", "claims": True, "confidence": True, "change_reason": True}
    made = factories.finish(
        factories.experiment(tmp_path, protocol={"output": output}),
        ScriptedGateway(lambda _call: replied(json.dumps(body))),
    )
    state = State.objects.get(agent_id="a", round=1)
    assert state.confidence == "0.7"
    assert dict(state.change)["kind"] == "retain"
    claim = state.claim_rows.get()
    assert (claim.claim_id, claim.text) == ("c1", "One and one make two.")
    assert len(claim.claim_hash) == 64
    assert_verified(made)


def test_the_real_gateway_carries_simulated_agents_through_whole_debates(tmp_path: Path) -> None:
    gateway = Gateway()
    try:
        made = factories.experiment(tmp_path, question_count=3, model=factories.SIMULATED)
        factories.finish(made, gateway)
    finally:
        gateway.close()
    assert set(made.runs.values_list("stop_reason", flat=True)) == {"round_limit"}
    assert AttemptOutcome.objects.filter(status="SUCCEEDED").count() == 27
    assert_verified(made)
    assert_balanced()


def test_a_recorded_debate_gives_its_replies_again_through_the_engine(tmp_path: Path) -> None:
    home = factories.workspace()
    turns = (("2", "3", "2"), ("2", "2", "2"))
    debate = DebateRecord(
        debate_id="d1",
        question=factories.questions(1)[0],
        protocol="du",
        agents=tuple(AgentRecord(agent_id=name, model="m") for name in "xyz"),
        rounds=tuple(
            tuple(
                TurnRecord(agent_id=name, answer=None, text=f"So it is \\boxed{{{answer}}}")
                for name, answer in zip("xyz", answers, strict=True)
            )
            for answers in turns
        ),
    )
    import_debates(workspace=home, name="log", format_name="jsonl", records=[debate])
    gateway = Gateway()
    try:
        made = factories.experiment(
            tmp_path,
            in_workspace=home,
            questions="log",
            arms=[
                {
                    "name": "again",
                    "protocol": "du_2023",
                    "models": {"default": "recorded:log"},
                }
            ],
        )
        factories.finish(made, gateway)
    finally:
        gateway.close()
    answers = State.objects.order_by("round", "agent_id").values_list("answer_value", flat=True)
    assert list(answers) == [*turns[0], *turns[1]]
    assert made.arms.get().marked == "recorded"
    assert one_run(made).account.settled_microusd == 0
    assert_verified(made)

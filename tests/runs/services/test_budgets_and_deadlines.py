"""Budgets and deadlines of runs: what they hold back, and how runs end by them (S30, S31)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from runs.models import (
    Attempt,
    Epoch,
    Experiment,
    LedgerEntry,
    Run,
    Verdict,
)
from tests.runs import factories
from tests.runs.checks import assert_balanced, assert_verified
from tests.runs.scripted import ScriptedGateway, said

pytestmark = pytest.mark.django_db


def one_run(made: Experiment) -> Run:
    return made.runs.get()


def test_known_use_beyond_the_reservation_is_an_overrun_and_stops_the_run(tmp_path: Path) -> None:
    gateway = ScriptedGateway(lambda _call: said("2", output_tokens=10**6))
    made = factories.finish(factories.experiment(tmp_path), gateway)
    run = one_run(made)
    attempts = list(Attempt.objects.all())
    assert run.stop_reason == "worker_budget"
    assert {a.t for a in attempts} == {0}
    assert run.account.settled_output_tokens == sum(a.reserved_output_tokens for a in attempts)
    assert run.account.overrun_output_tokens == 3 * 10**6 - run.account.settled_output_tokens
    made.account.refresh_from_db()
    assert made.account.overrun_output_tokens == run.account.overrun_output_tokens
    assert LedgerEntry.objects.filter(kind="overrun", account=run.account).count() == 3
    assert_verified(made)
    assert_balanced()


def capped_agents(tokens: int) -> list[dict[str, Any]]:
    return [{"id": name, "decoding": {"max_output_tokens": tokens}} for name in "abc"]


def test_a_round_that_its_budget_cannot_hold_makes_no_call_at_all(tmp_path: Path) -> None:
    gateway = ScriptedGateway()
    made = factories.finish(
        factories.experiment(
            tmp_path,
            protocol={"agents": capped_agents(100)},
            budget={"output_tokens_per_run": 310, "microusd_per_run": 10**9},
        ),
        gateway,
    )
    assert one_run(made).stop_reason == "worker_budget"
    assert len(gateway.calls) == 3, "all or nothing"
    skipped = Verdict.objects.filter(status="SKIPPED_BUDGET").values_list("t", flat=True)
    assert list(skipped) == [1, 1, 1]
    assert_verified(made)
    assert_balanced()


def test_a_seeded_order_gives_calls_to_some_agents_where_not_all_can_be_paid(
    tmp_path: Path,
) -> None:
    protocol = {
        "limits": {"round_reservation": "seeded_order"},
        "agents": [{"id": agent_id, "decoding": {"max_output_tokens": 100}} for agent_id in "abc"],
    }
    skipped = set()
    for seed in range(6):
        made = factories.finish(
            factories.experiment(
                tmp_path,
                protocol=protocol,
                seeds=[seed],
                budget={"output_tokens_per_run": 250, "microusd_per_run": 10**9},
            ),
            ScriptedGateway(lambda _call: said("2", output_tokens=100)),
        )
        first = Verdict.objects.filter(run=one_run(made), t=0, status="SKIPPED_BUDGET")
        skipped.add(first.get().agent_id)
        assert one_run(made).account.settled_output_tokens == 200
        assert_verified(made)
    assert len(skipped) > 1, "which agent goes without is drawn"
    assert_balanced()


def test_a_run_that_cannot_keep_its_final_budget_back_makes_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = ScriptedGateway()
    factories.unchecked_caps(monkeypatch)
    made = factories.finish(
        factories.experiment(
            tmp_path,
            protocol={"limits": {"final_microusd": 500}},
            budget={"microusd_per_run": 400},
            question_count=3,
        ),
        gateway,
    )
    assert made.status == "FINISHED"
    assert set(made.runs.values_list("stop_reason", flat=True)) == {"insufficient_final_budget"}
    assert gateway.calls == []
    assert all(run.aggregates.get().unresolved for run in made.runs.all())
    assert_verified(made)
    assert_balanced()


def test_a_run_past_its_deadline_ends_with_what_it_has(tmp_path: Path) -> None:
    made = factories.experiment(
        tmp_path,
        protocol={"limits": {"final_time_cap_seconds": 50}},
        budget={"deadline_seconds": 60},
    )
    (run,) = factories.begin(made)
    factories.execute(run, ScriptedGateway())
    moved(run, deadline_seconds=49)
    factories.finish(made)
    run.refresh_from_db()
    assert (run.stop_reason, run.next_round) == ("work_deadline", 1)
    assert run.aggregates.get().answer_value == "2"
    assert_verified(made)
    assert_balanced()


def test_a_round_ends_in_time_for_the_final_aggregation(tmp_path: Path) -> None:
    made = factories.experiment(
        tmp_path,
        protocol={"limits": {"final_time_cap_seconds": 50}},
        budget={"deadline_seconds": 60},
    )
    (run,) = factories.begin(made)
    gateway = ScriptedGateway()
    factories.execute(run, gateway)
    epoch = Epoch.objects.get()
    assert run.deadline_at is not None
    assert 49.9 < (run.deadline_at - epoch.deadline_at).total_seconds() < 50.1
    assert all(call.request.timeout_seconds <= 10 for call in gateway.calls)


def moved(run: Run, *, deadline_seconds: float) -> None:
    """Let a run's deadline be so many seconds from now."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_run SET deadline_at = clock_timestamp() + %s * interval '1 second'"
            " WHERE id = %s",
            [deadline_seconds, run.pk],
        )

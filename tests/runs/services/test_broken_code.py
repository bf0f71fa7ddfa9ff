"""Our own code breaks, or a record is not what it was: runs still end, and others go on (S14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from runs.models import Attempt, AttemptOutcome, Run
from runs.services import experiments, starting
from runs.services.sweep import sweep
from tests.runs import factories
from tests.runs.checks import assert_balanced
from tests.runs.scripted import ScriptedGateway

pytestmark = pytest.mark.django_db


def broken(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError


def test_a_round_that_breaks_in_our_own_code_three_times_ends_the_run_with_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)
    gateway = ScriptedGateway()
    factories.execute(run, gateway)
    with monkeypatch.context() as patched:
        patched.setattr("runs.execution.commit_round", broken)
        seen = [factories.execute(run, gateway).crashes for _ in range(3)]
    assert seen[:2] == [1, 2]
    assert (run.status, run.stop_reason) == ("DONE", "error")
    assert run.stop_observables == {"t": 1, "crashes": 3}
    assert run.aggregates.get().answer_value == "2", "what round 0 admitted still counts"
    assert len(gateway.calls) == 6, "results that are in are not asked for again"
    made.refresh_from_db()
    assert made.status == "FINISHED"
    assert_balanced()


def test_calls_in_flight_when_our_own_code_breaks_for_good_stay_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)
    monkeypatch.setattr("runs.execution.CallDesk.collect", broken)
    for _ in range(3):
        factories.execute(run, ScriptedGateway(lambda _call: None))
    assert (run.status, run.stop_reason) == ("DONE", "error")
    assert AttemptOutcome.objects.filter(error_class="lost_worker").count() == 9
    reserved = sum(Attempt.objects.values_list("reserved_output_tokens", flat=True))
    assert run.account.held_output_tokens == reserved
    assert_balanced()


def test_a_run_whose_aggregation_breaks_too_still_ends_with_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)
    monkeypatch.setattr("runs.execution.commit_round", broken)
    monkeypatch.setattr("runs.services.crash.final_outcome", broken)
    for _ in range(3):
        factories.execute(run, ScriptedGateway())
    assert (run.status, run.stop_reason) == ("DONE", "error")
    aggregate = run.aggregates.get()
    assert aggregate.unresolved
    assert "the run stopped: error" in aggregate.open_issues
    assert_balanced()


def test_a_round_that_goes_well_forgets_earlier_breaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)
    for _ in range(3):
        with monkeypatch.context() as patched:
            patched.setattr("runs.execution.commit_round", broken)
            for _ in range(2):
                factories.execute(run, ScriptedGateway())
        assert run.crashes == 2
        factories.execute(run, ScriptedGateway())
    assert (run.status, run.stop_reason) == ("DONE", "round_limit")
    assert_balanced()


def test_an_experiment_that_cannot_be_started_keeps_no_other_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bells: list[Any]
) -> None:
    bad, good = factories.experiment(tmp_path), factories.experiment(tmp_path)
    for made in (bad, good):
        experiments.start(experiment=made)
    real = starting.start_runs

    def start_runs(*, experiment_id: int) -> list[tuple[int, int]]:
        if experiment_id == bad.pk:
            raise ZeroDivisionError
        return real(experiment_id=experiment_id)

    monkeypatch.setattr("runs.services.starting.start_runs", start_runs)
    bells.clear()
    assert sweep() == 1
    assert bells == [("runs.execute_round", [good.runs.get().pk, 0])]


def test_a_branch_whose_source_was_tampered_with_ends_with_error_and_the_rest_goes_on(
    tmp_path: Path,
) -> None:
    arms = [
        {"name": "debate", "protocol": "p.json", "models": {"default": "scripted"}},
        {"name": "alone", "protocol": "p.json", "branch_from": {"arm": "debate", "t": 0}},
    ]
    made = factories.experiment(tmp_path, arms=arms, question_count=2)
    first = factories.begin(made)[0]
    factories.execute(first, ScriptedGateway())
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET LOCAL session_replication_role = 'replica'")
        cursor.execute("UPDATE runs_state SET text = 'other' WHERE run_id = %s", [first.pk])
        cursor.execute("SET LOCAL session_replication_role = 'origin'")
    starting.start_runs(experiment_id=made.pk)
    branch = Run.objects.get(branch_source=first)
    assert (branch.status, branch.stop_reason) == ("DONE", "error")
    assert "is not what was hashed" in branch.stop_observables["detail"]
    assert branch.aggregates.get().unresolved
    factories.finish(made)
    assert made.status == "FINISHED"
    stops = made.runs.order_by("position").values_list("stop_reason", flat=True)
    assert list(stops) == ["round_limit", "error", "round_limit", "round_limit"]
    assert_balanced()

"""The dispatcher: windows, stages, budgets, branches, and two of it at once (S30, S31)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from debateweb.errors import StateError
from debateweb.models import AuditEvent
from runs.models import Aggregate, Experiment, ExperimentStatus, Run, State, Verdict
from runs.services import experiments, starting
from runs.services.sweep import sweep
from tests.races import in_own_session, wait_for_blocked_session
from tests.runs import factories
from tests.runs.checks import assert_balanced, assert_verified
from tests.runs.scripted import ScriptedGateway, replied, said

BRANCHING = [
    {"name": "debate", "protocol": "p.json", "models": {"default": "scripted"}},
    {"name": "alone", "protocol": "p.json", "branch_from": {"arm": "debate", "t": 0}},
]


def narrow(made: Experiment) -> int:
    """Return the window of an experiment that was made with concurrency 1."""
    assert made.window < made.runs.count(), "the test needs more runs than fit the window"
    return made.window


@pytest.mark.django_db
def test_no_more_runs_are_under_way_than_the_window_holds(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path, question_count=9, concurrency=1)
    window = narrow(made)
    most = 0
    factories.begin(made)
    while runs := factories.under_way(made):
        most = max(most, len(runs))
        factories.execute(runs[-1], ScriptedGateway())
    made.refresh_from_db()
    assert made.status == "FINISHED"
    assert most == window
    assert_balanced()


@pytest.mark.django_db
def test_starting_a_run_costs_a_handful_of_statements_however_many_wait(tmp_path: Path) -> None:
    counts = []
    for questions in (8, 40):
        made = factories.experiment(tmp_path, question_count=questions, concurrency=1)
        factories.begin(made)
        for _ in range(3):
            run = factories.execute(factories.under_way(made)[0], ScriptedGateway())
        assert run.status == "DONE"
        run = factories.under_way(made)[0]
        for _ in range(2):
            factories.execute(run, ScriptedGateway())
        with CaptureQueriesContext(
            connection,
        ) as queries:
            factories.execute(run, ScriptedGateway())
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 40


@pytest.mark.django_db(transaction=True)
def test_two_dispatchers_at_once_do_not_exceed_the_window(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path, question_count=9, concurrency=1)
    window = narrow(made)
    experiments.start(experiment=made)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            first = starting.start_runs(experiment_id=made.pk)
            second = pool.submit(in_own_session(lambda: starting.start_runs(experiment_id=made.pk)))
            wait_for_blocked_session()
        assert second.result(timeout=10) == []
    assert len(first) == len(factories.under_way(made)) == window
    assert_balanced()


@pytest.mark.django_db(transaction=True)
def test_a_dispatcher_that_waited_does_not_finish_an_experiment_whose_last_run_just_started(
    tmp_path: Path,
) -> None:
    made = factories.experiment(tmp_path)
    experiments.start(experiment=made)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert len(starting.start_runs(experiment_id=made.pk)) == 1
            second = pool.submit(in_own_session(lambda: starting.start_runs(experiment_id=made.pk)))
            wait_for_blocked_session()
        assert second.result(timeout=10) == []
    made.refresh_from_db()
    assert made.status == "RUNNING"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("act", "status"), [("pause", "PAUSED"), ("cancel", "CANCELLED")])
def test_a_start_that_waited_for_a_pause_or_a_cancellation_starts_nothing(
    tmp_path: Path, act: str, status: str
) -> None:
    made = factories.experiment(tmp_path, question_count=3)
    experiments.start(experiment=made)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            getattr(experiments, act)(experiment=made)
            waiting = pool.submit(
                in_own_session(lambda: starting.start_runs(experiment_id=made.pk))
            )
            wait_for_blocked_session()
        assert waiting.result(timeout=10) == []
    made.refresh_from_db()
    assert made.status == status
    assert not factories.under_way(made)
    assert made.runs.filter(status="DONE").count() == (3 if act == "cancel" else 0)
    assert_balanced()


@pytest.mark.django_db(transaction=True)
def test_a_cancellation_that_waited_for_a_start_ends_what_was_started(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path, question_count=3, concurrency=1)
    experiments.start(experiment=made)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            starting.start_runs(experiment_id=made.pk)
            again = Experiment.objects.get(pk=made.pk)
            waiting = pool.submit(in_own_session(lambda: experiments.cancel(experiment=again)))
            wait_for_blocked_session()
        waiting.result(timeout=10)
    factories.finish(made)
    assert set(made.runs.values_list("status", "stop_reason")) == {("DONE", "cancelled")}
    assert Aggregate.objects.count() == 3
    assert_balanced()


@pytest.mark.django_db
def test_a_cancelled_experiment_ends_its_pending_runs_without_a_call_and_in_few_statements(
    tmp_path: Path,
) -> None:
    made = factories.experiment(tmp_path, question_count=60, concurrency=1)
    factories.begin(made)
    running = len(factories.under_way(made))
    experiments.cancel(experiment=made)
    with CaptureQueriesContext(connection) as queries:
        experiments.end_pending(made)
    assert len(queries) < 120
    assert made.runs.filter(status="DONE").count() == 60 - running
    gateway = ScriptedGateway()
    factories.finish(made, gateway)
    assert gateway.calls == []
    assert_verified(made)
    assert_balanced()


@pytest.mark.django_db
def test_a_paused_experiment_ends_its_rounds_and_opens_none_until_it_is_resumed(
    tmp_path: Path, bells: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)
    factories.execute(run, ScriptedGateway())
    experiments.pause(experiment=made)
    assert factories.execute(run, ScriptedGateway()).next_round == 1
    bells.clear()
    assert sweep() == 0
    with django_capture_on_commit_callbacks(execute=True):
        experiments.resume(experiment=made)
    assert ("runs.execute_round", [run.pk, 1]) in bells
    assert factories.finish(made).status == "FINISHED"
    assert_verified(made)


@pytest.mark.django_db
def test_a_stage_stops_for_confirmation_and_goes_on_after_it(tmp_path: Path) -> None:
    made = factories.experiment(
        tmp_path, question_count=5, seeds=[1, 2], budget={"stage": {"questions": 2}}
    )
    factories.finish(made)
    assert made.status == "AWAITING_CONFIRMATION"
    assert made.runs.filter(status="DONE").count() == 4
    assert not made.runs.filter(status="DONE", in_stage=False).exists()
    assert sweep() == 0
    experiments.pause(experiment=made)
    experiments.resume(experiment=made)
    starting.start_runs(experiment_id=made.pk)
    made.refresh_from_db()
    assert made.status == "AWAITING_CONFIRMATION", "a pause is no confirmation"
    experiments.confirm_stage(experiment=made)
    factories.finish(made)
    assert made.status == "FINISHED"
    assert made.runs.filter(status="DONE").count() == 10
    assert_balanced()


@pytest.mark.django_db
@pytest.mark.parametrize(("above", "status"), [(7, "AWAITING"), (9 * 250 * 5, "FINISHED")])
def test_a_stage_whose_projected_total_is_small_enough_goes_on_without_asking(
    tmp_path: Path, above: int, status: str
) -> None:
    made = factories.experiment(
        tmp_path,
        question_count=5,
        budget={"stage": {"questions": 2, "confirm_above_microusd": above}},
    )
    factories.finish(made)
    assert made.status.startswith(status)
    passed = AuditEvent.objects.filter(act="experiment.stage_passed").count()
    assert passed == (1 if status == "FINISHED" else 0)


@pytest.mark.django_db
def test_a_stage_of_all_questions_just_finishes(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path, question_count=2, budget={"stage": {"questions": 2}})
    assert factories.finish(made).status == "FINISHED"


@pytest.mark.django_db
def test_what_the_total_budget_cannot_start_ends_without_a_call(tmp_path: Path) -> None:
    made = factories.experiment(
        tmp_path,
        question_count=4,
        budget={"microusd_per_run": 20_000_000, "microusd_total": 20_003_000},
    )
    gateway = ScriptedGateway()
    factories.finish(made, gateway)
    assert made.status == "FINISHED"
    stops = list(made.runs.order_by("position").values_list("stop_reason", flat=True))
    assert stops == ["round_limit", "round_limit", "worker_budget", "worker_budget"]
    assert len(gateway.calls) == 18
    assert_verified(made)
    assert_balanced()


@pytest.mark.django_db
def test_a_branch_starts_from_the_very_bytes_of_its_source(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path, arms=BRANCHING, question_count=2, seeds=[1, 2])
    gateway = ScriptedGateway(
        lambda c: (
            replied("nothing") if (c.agent_id, c.t) == ("c", 0) else said(c.agent_id * 0 + "2")
        )
    )
    factories.finish(made, gateway)
    branches = made.runs.filter(arm__name="alone")
    assert branches.count() == 4
    for branch in branches:
        own = State.objects.filter(run=branch, round=0).order_by("agent_id")
        theirs = State.objects.filter(run=branch.branch_source, round=0).order_by("agent_id")
        columns = ("agent_id", "content_hash", "raw_hash", "text", "answer_value")
        assert list(own.values_list(*columns)) == list(theirs.values_list(*columns))
        assert [s.origin_id for s in own] == [s.pk for s in theirs]
        assert branch.active == ["a", "b"]
        assert Verdict.objects.get(run=branch, t=0, agent_id="c").status == "INACTIVE"
        assert not branch.attempts.filter(t=0).exists()
        assert branch.stop_reason == "round_limit"
    assert_verified(made)
    assert_balanced()


@pytest.mark.django_db
def test_a_branch_waits_for_its_source_and_the_experiment_for_the_branch(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path, arms=BRANCHING)
    (source,) = factories.begin(made)
    assert source.arm.name == "debate"
    factories.execute(source, ScriptedGateway())
    starting.start_runs(experiment_id=made.pk)
    assert {run.arm.name for run in factories.under_way(made)} == {"debate", "alone"}
    assert factories.finish(made).status == "FINISHED"
    assert made.runs.filter(status="DONE").count() == 2


@pytest.mark.django_db
def test_a_branch_of_a_source_without_answers_ends_as_its_source_did(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path, arms=BRANCHING)
    gateway = ScriptedGateway(lambda _call: replied("nothing"))
    factories.finish(made, gateway)
    assert made.status == "FINISHED"
    assert set(made.runs.values_list("stop_reason", flat=True)) == {"no_admitted_initial_states"}
    assert len(gateway.calls) == 3
    assert_verified(made)
    assert_balanced()


@pytest.mark.django_db
def test_an_act_that_the_status_does_not_allow_is_one_clear_line(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path)
    with pytest.raises(StateError, match=r"'e\d+' is READY; resume needs PAUSED"):
        experiments.resume(experiment=made)
    factories.finish(made)
    for act in (experiments.start, experiments.pause, experiments.cancel, experiments.resume):
        with pytest.raises(StateError, match="is FINISHED"):
            act(experiment=made)


@pytest.mark.django_db
def test_every_act_on_an_experiment_is_on_the_trail(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path, question_count=2, budget={"stage": {"questions": 1}})
    factories.begin(made)
    experiments.pause(experiment=made)
    experiments.resume(experiment=made)
    factories.finish(made)
    experiments.confirm_stage(experiment=made)
    factories.finish(made)
    other = factories.experiment(tmp_path)
    experiments.cancel(experiment=other)
    acts = AuditEvent.objects.filter(object_kind="experiment").order_by("pk")
    assert list(acts.filter(object_id=made.pk).values_list("act", flat=True)) == [
        "experiment.create",
        "experiment.start",
        "experiment.pause",
        "experiment.resume",
        "experiment.stage_done",
        "experiment.confirm",
        "experiment.finish",
    ]
    assert acts.get(object_id=other.pk, act="experiment.cancel").actor_name == "machine"


@pytest.mark.django_db
def test_runs_that_end_in_the_same_breath_do_not_stop_the_dispatcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.unchecked_caps(monkeypatch)
    made = factories.experiment(
        tmp_path,
        question_count=130,
        protocol={"limits": {"final_microusd": 500}},
        budget={"microusd_per_run": 400},
        concurrency=1,
    )
    factories.begin(made)
    made.refresh_from_db()
    assert made.status == ExperimentStatus.FINISHED
    assert Run.objects.exclude(stop_reason="insufficient_final_budget").count() == 0

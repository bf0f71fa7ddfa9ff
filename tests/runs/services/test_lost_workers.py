"""Leases, fences and what a worker finds that another one left (S10, S33)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from runs.engine.types import CallStatus
from runs.leases import LeaseKeeper, Signal
from runs.models import Attempt, AttemptOutcome, Epoch, Run, State, Verdict
from runs.providers import endings
from runs.providers.endings import failed
from runs.services import experiments
from tests.runs import factories
from tests.runs.checks import assert_balanced, assert_verified, content_of
from tests.runs.scripted import Call, ScriptedGateway, said


class Died(BaseException):
    """The worker process is gone: nothing of ours runs after this."""


def dies_after(count: int, script: Any = lambda _call: said("2")) -> ScriptedGateway:
    """Answer so many calls; the next one to be handed in kills the worker."""
    gateway = ScriptedGateway()

    def answer(call: Call) -> Any:
        if len(gateway.calls) > count:
            raise Died
        return script(call)

    gateway.script = answer
    return gateway


def lease_runs_out(run: Run) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_run SET lease_expires_at = clock_timestamp() - interval '1 second'"
            " WHERE id = %s AND lease_expires_at IS NOT NULL",
            [run.pk],
        )


def dies(run: Run, gateway: ScriptedGateway) -> None:
    with pytest.raises(Died):
        factories.execute(run, gateway, worker="dead")
    lease_runs_out(run)


@pytest.mark.django_db
def test_calls_in_flight_of_a_lost_worker_are_held_and_made_again(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)
    dies(run, dies_after(2))
    assert Attempt.objects.count() == 3
    assert AttemptOutcome.objects.count() == 0
    factories.finish(made)
    lost = AttemptOutcome.objects.filter(status="CANCELLED", error_class="lost_worker")
    assert lost.count() == 3
    run.refresh_from_db()
    held = sum(o.attempt.reserved_output_tokens for o in lost)
    assert run.account.held_output_tokens == held > 0
    assert Epoch.objects.filter(t=0).count() == 1
    assert State.objects.filter(round=0).count() == 3
    assert_verified(made)
    assert_balanced()


@pytest.mark.django_db
def test_results_that_are_in_are_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)

    def killed(*_: Any, **__: Any) -> None:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr("runs.execution.finish.commit_and_close", killed)
        dies(run, ScriptedGateway())
    again = ScriptedGateway()
    factories.execute(run, again)
    assert again.calls == []
    assert State.objects.filter(round=0).count() == 3
    factories.finish(made)
    assert_verified(made)
    assert_balanced()


@pytest.mark.django_db
def test_a_call_that_had_failed_for_good_is_not_made_again_by_the_next_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)

    def killed(*_: Any, **__: Any) -> None:
        raise Died

    def script(call: Call) -> Any:
        return failed(endings.BAD_REQUEST, "no") if call.agent_id == "b" else said("2")

    with monkeypatch.context() as patched:
        patched.setattr("runs.execution.finish.commit_and_close", killed)
        dies(run, ScriptedGateway(script))
    again = ScriptedGateway()
    factories.execute(run, again)
    assert again.calls == []
    assert Verdict.objects.get(t=0, agent_id="b").status == "FAILED"


@pytest.mark.django_db
def test_repetitions_before_the_loss_count_after_it(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path, protocol={"retries": {"transport": 1}})
    (run,) = factories.begin(made)

    def fails(call: Call) -> Any:
        bad = failed(endings.UNREACHABLE, "away")
        return bad if call.agent_id == "b" else said("2")

    gateway = ScriptedGateway()

    def then_dies(call: Call) -> Any:
        if call.nth == 1:
            raise Died
        return fails(call)

    gateway.script = then_dies
    dies(run, gateway)
    factories.execute(run, ScriptedGateway(fails))
    causes = AttemptOutcome.objects.filter(attempt__t=0, attempt__agent_id="b").order_by("attempt")
    assert list(causes.values_list("error_class", flat=True)) == [
        "unreachable",
        "lost_worker",
        "unreachable",
    ]


@pytest.mark.django_db
def test_an_overrun_before_the_loss_stops_the_run_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)

    def killed(*_: Any, **__: Any) -> None:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr("runs.execution.finish.commit_and_close", killed)
        dies(run, ScriptedGateway(lambda _call: said("2", output_tokens=10**6)))
    factories.finish(made)
    run.refresh_from_db()
    assert run.stop_reason == "worker_budget"
    assert_verified(made)
    assert_balanced()


@pytest.mark.django_db
@pytest.mark.parametrize("end", ["cancelled", "work_deadline"])
def test_a_run_that_ends_without_its_lost_round_holds_what_was_in_flight(
    tmp_path: Path, end: str
) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)
    dies(run, dies_after(1))
    if end == "cancelled":
        experiments.cancel(experiment=made)
    else:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE runs_run SET deadline_at = clock_timestamp()")
    factories.execute(run, ScriptedGateway())
    assert (run.status, run.stop_reason) == ("DONE", end)
    assert AttemptOutcome.objects.filter(error_class="lost_worker").count() == 3
    assert run.account.held_output_tokens > 0
    assert_verified(made)
    assert_balanced()


@pytest.mark.django_db
def test_killed_at_every_call_the_run_ends_as_if_nobody_had_died(tmp_path: Path) -> None:
    def script(call: Call) -> Any:
        return said(str("abc".index(call.agent_id) + call.t))

    calm = factories.finish(factories.experiment(tmp_path), ScriptedGateway(script)).runs.get()
    wanted = content_of(calm)
    for count in range(3):
        made = factories.experiment(tmp_path)
        (run,) = factories.begin(made)
        while run.status != "DONE":
            dies(run, dies_after(count, script))
            factories.execute(run, ScriptedGateway(script))
        found = content_of(run)
        for part in ("commits", "states", "aggregates", "stop", "verdicts"):
            assert found[part] == wanted[part], part
        assert_verified(made)
    assert_balanced()


@pytest.mark.django_db
def test_a_result_that_comes_after_its_attempt_was_given_up_is_late_and_settles_once(
    tmp_path: Path,
) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)
    keeper = LeaseKeeper(renew_leases=lambda held: dict.fromkeys(held, False))

    class Stalled(ScriptedGateway):
        """While its worker stands still, another one takes the run over and ends the round."""

        def submit(self, *args: Any, **kwargs: Any) -> Call:
            call = super().submit(*args, **kwargs)
            if len(self.calls) == 3:
                lease_runs_out(run)
                factories.execute(Run.objects.get(pk=run.pk), ScriptedGateway(), worker="new")
            return call

    factories.execute(run, Stalled(), worker="old", keeper=keeper)
    late = AttemptOutcome.objects.filter(late=True)
    assert late.count() == 3
    assert {o.attempt.worker for o in late} == {"old"}
    assert State.objects.filter(round=0).count() == 3
    assert not State.objects.filter(attempt__worker="old").exists()
    run.refresh_from_db()
    assert run.next_round == 1
    assert run.account.settled_output_tokens == 6 * 20
    assert run.account.held_output_tokens == 0
    factories.finish(made)
    assert_verified(made)
    assert_balanced()


@pytest.mark.django_db
def test_a_round_told_that_its_lease_is_lost_stops_and_writes_nothing(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)

    class Lost(ScriptedGateway):
        def submit(self, *args: Any, **kwargs: Any) -> Call:
            call = super().submit(*args, **kwargs)
            if len(self.calls) == 3:
                call.results.put(Signal.LEASE_LOST)
            return call

    gateway = Lost(lambda _call: None)
    factories.execute(run, gateway)
    assert all(call.is_ended for call in gateway.calls)
    assert (run.next_round, run.crashes) == (0, 0)
    assert not Verdict.objects.exists()


@pytest.mark.django_db
def test_a_round_told_of_a_cancellation_gives_its_calls_up_and_holds_them(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)

    class Cancelled(ScriptedGateway):
        def submit(self, *args: Any, **kwargs: Any) -> Call:
            call = super().submit(*args, **kwargs)
            if len(self.calls) == 3:
                experiments.cancel(experiment=made)
                call.results.put(Signal.CANCELLED)
            return call

    factories.execute(run, Cancelled(lambda c: said("2") if c.agent_id == "a" else None))
    assert (run.status, run.stop_reason) == ("DONE", "cancelled")
    ends = dict(AttemptOutcome.objects.values_list("attempt__agent_id", "status"))
    assert ends == {"a": "SUCCEEDED", "b": CallStatus.CANCELLED, "c": CallStatus.CANCELLED}
    assert run.account.held_output_tokens > 0
    assert_verified(made)
    assert_balanced()

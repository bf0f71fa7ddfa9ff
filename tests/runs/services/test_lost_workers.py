"""Leases, fences and what a worker finds that another one left (S10, S33)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction

from runs.engine.snapshots import initial_snapshot
from runs.engine.types import CallStatus
from runs.leases import LeaseKeeper, Signal
from runs.models import Attempt, AttemptOutcome, Epoch, Run, State, Verdict
from runs.providers import endings
from runs.providers.endings import failed
from runs.services import experiments, ledger, rounds
from runs.services.ledger import LeaseLostError
from runs.services.rounds import CommitDraft, claim, due_again, open_epoch, release, renew
from runs.services.sweep import sweep
from tests.races import in_own_session, wait_for_blocked_session
from tests.runs import factories
from tests.runs.checks import assert_balanced, assert_verified, content_of
from tests.runs.drafts import attempt_draft
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


def an_empty_commit(t: int = 0) -> CommitDraft:
    empty = initial_snapshot()
    return CommitDraft(t + 1, empty.snapshot_hash, ("a",), closes_epoch=True)


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
def test_a_worker_whose_lease_ran_out_can_open_reserve_and_commit_nothing(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)
    old = claim(run_id=run.pk, t=0, worker="old")
    assert old is not None
    lease_runs_out(run)
    new = claim(run_id=run.pk, t=0, worker="new")
    assert new is not None and new.fence == old.fence + 1
    with pytest.raises(LeaseLostError):
        open_epoch(old, round_seconds=10, final_seconds=0)
    with pytest.raises(LeaseLostError):
        ledger.reserve_attempts(
            run_id=run.pk, t=0, fence=old.fence, worker="old", drafts=[attempt_draft()]
        )
    with pytest.raises(LeaseLostError):
        rounds.commit(run_id=run.pk, t=0, fence=old.fence, draft=an_empty_commit())
    assert release(old, crashed=True) is None
    assert renew({run.pk: old.fence}) == {}
    assert renew({run.pk: new.fence}) == {run.pk: False}
    assert not Epoch.objects.exists() and not Attempt.objects.exists()
    assert_balanced()


@pytest.mark.django_db
def test_an_epoch_is_opened_once_and_keeps_its_first_deadline(tmp_path: Path) -> None:
    (run,) = factories.begin(factories.experiment(tmp_path))
    first = claim(run_id=run.pk, t=0, worker="w1")
    assert first is not None
    opened = open_epoch(first, round_seconds=10, final_seconds=0)
    deadline = Epoch.objects.get().deadline_at
    lease_runs_out(run)
    second = claim(run_id=run.pk, t=0, worker="w2")
    assert second is not None
    found = open_epoch(second, round_seconds=100, final_seconds=0)
    assert (opened.resumed, found.resumed) == (False, True)
    assert found.remaining_seconds <= 10
    assert Epoch.objects.get().deadline_at == deadline


@pytest.mark.django_db
def test_a_round_is_closed_once(tmp_path: Path) -> None:
    (run,) = factories.begin(factories.experiment(tmp_path))
    lease = claim(run_id=run.pk, t=0, worker="w1")
    assert lease is not None
    rounds.commit(run_id=run.pk, t=0, fence=lease.fence, draft=an_empty_commit())
    with pytest.raises(LeaseLostError):
        rounds.commit(run_id=run.pk, t=0, fence=lease.fence, draft=an_empty_commit())
    assert run.commits.count() == 1


@pytest.mark.django_db
def test_a_doorbell_for_another_round_or_a_held_run_does_nothing(tmp_path: Path) -> None:
    (run,) = factories.begin(factories.experiment(tmp_path))
    assert claim(run_id=run.pk, t=1, worker="w1") is None
    assert claim(run_id=run.pk, t=0, worker="w1") is not None
    assert claim(run_id=run.pk, t=0, worker="w2") is None


@pytest.mark.django_db
def test_the_deadline_of_a_lease_is_told_by_the_clock_of_the_database(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path, budget={"deadline_seconds": 60})
    (run,) = factories.begin(made)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_run SET deadline_at = clock_timestamp() + interval '7 seconds'")
    lease = claim(run_id=run.pk, t=0, worker="w1")
    assert lease is not None
    assert 6.5 < lease.deadline_seconds <= 7


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


@pytest.mark.django_db
def test_the_sweep_rings_for_lost_doorbells_and_dead_workers_and_for_nothing_else(
    tmp_path: Path, bells: list[Any]
) -> None:
    made = factories.experiment(tmp_path, question_count=3)
    quiet, dead, busy = factories.begin(made)
    for run in (dead, busy):
        assert claim(run_id=run.pk, t=0, worker="w") is not None
    lease_runs_out(dead)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_run SET rung_at = clock_timestamp() - interval '1 minute'")
    bells.clear()
    assert sweep() == 2
    assert sorted(bells) == sorted(
        [("runs.execute_round", [quiet.pk, 0]), ("runs.execute_round", [dead.pk, 0])]
    )
    assert sweep() == 0, "whoever was just rung for is left alone for a while"


@pytest.mark.django_db(transaction=True)
def test_two_workers_that_claim_one_round_get_one_lease(tmp_path: Path) -> None:
    (run,) = factories.begin(factories.experiment(tmp_path))
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            first = claim(run_id=run.pk, t=0, worker="first")
            second = pool.submit(in_own_session(lambda: claim(run_id=run.pk, t=0, worker="second")))
            wait_for_blocked_session()
        assert first is not None
        assert second.result() is None
    run.refresh_from_db()
    assert (run.fence, run.lease_owner) == (1, "first")


@pytest.mark.django_db(transaction=True)
def test_a_reservation_that_waited_for_a_new_lease_is_refused(tmp_path: Path) -> None:
    (run,) = factories.begin(factories.experiment(tmp_path))
    old = claim(run_id=run.pk, t=0, worker="old")
    assert old is not None
    lease_runs_out(run)

    def reserve() -> str:
        try:
            ledger.reserve_attempts(
                run_id=run.pk, t=0, fence=old.fence, worker="old", drafts=[attempt_draft()]
            )
        except LeaseLostError:
            return "lost"
        return "reserved"

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert claim(run_id=run.pk, t=0, worker="new") is not None
            waiting = pool.submit(in_own_session(reserve))
            wait_for_blocked_session()
        assert waiting.result() == "lost"
    run.account.refresh_from_db()
    assert run.account.reserved_output_tokens == 0
    assert not Attempt.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_committer_that_waited_for_the_first_one_loses(tmp_path: Path) -> None:
    (run,) = factories.begin(factories.experiment(tmp_path))
    lease = claim(run_id=run.pk, t=0, worker="w1")
    assert lease is not None

    def commit() -> str:
        try:
            rounds.commit(run_id=run.pk, t=0, fence=lease.fence, draft=an_empty_commit())
        except LeaseLostError:
            return "lost"
        return "won"

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert commit() == "won"
            second = pool.submit(in_own_session(commit))
            wait_for_blocked_session()
        assert second.result() == "lost"
    assert run.commits.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_sweeps_at_once_ring_for_different_runs(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path, question_count=4)
    factories.begin(made)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_run SET rung_at = NULL")
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        first = due_again(most=2)
        second = pool.submit(in_own_session(lambda: due_again(most=10))).result(timeout=10)
    assert len(first) == len(second) == 2
    assert not {run_id for run_id, _ in first} & {run_id for run_id, _ in second}


def test_a_keeper_tells_of_a_lost_lease_and_of_a_cancellation() -> None:
    leases = [factories.lease(run_id) for run_id in (1, 2, 3)]
    keeper = LeaseKeeper(renew_leases=lambda _held: {2: False, 3: True})
    with (
        keeper.holding(leases[0]) as lost,
        keeper.holding(leases[1]) as ours,
        keeper.holding(leases[2]) as cancelled,
    ):
        keeper._renew_and_tell({w.lease.run_id: w for w in (lost, ours, cancelled)})
        keeper._renew_and_tell({w.lease.run_id: w for w in (lost, ours, cancelled)})
    assert lost.inbox.get_nowait() is Signal.LEASE_LOST
    assert cancelled.inbox.get_nowait() is Signal.CANCELLED
    assert all(watch.inbox.empty() for watch in (lost, ours, cancelled))

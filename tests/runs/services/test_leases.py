"""Leases and their fences: who holds one may write, nobody else (S10)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction

from runs.engine.snapshots import initial_snapshot
from runs.leases import LeaseKeeper, Signal
from runs.models import Attempt, Epoch
from runs.services import ledger, rounds
from runs.services.ledger import LeaseLostError
from runs.services.rounds import CommitDraft, claim, due_again, open_epoch, release, renew
from runs.services.sweep import sweep
from tests.races import in_own_session, wait_for_blocked_session
from tests.runs import factories
from tests.runs.checks import assert_balanced
from tests.runs.drafts import attempt_draft
from tests.runs.services.test_lost_workers import lease_runs_out


def an_empty_commit(t: int = 0) -> CommitDraft:
    empty = initial_snapshot()
    return CommitDraft(t + 1, empty.snapshot_hash, ("a",), closes_epoch=True)


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

"""The ledger under forced interleavings: no cap is exceeded, nothing is paid twice (S31)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from django.db import connection, transaction

from runs.models import Account, Attempt, Run
from runs.services import ledger
from runs.services.rounds import Lease
from tests.races import in_own_session, wait_for_blocked_session
from tests.runs.accounts import CAP, account_of, end, end_run, late, leased, reserve
from tests.runs.checks import assert_balanced
from tests.runs.drafts import outcome_draft

INTERLEAVINGS = 200


@pytest.mark.django_db(transaction=True)
def test_the_cap_holds_at_every_instant_of_two_hundred_forced_interleavings(
    tmp_path: Path,
) -> None:
    draw = random.Random(31)
    lease = leased(tmp_path, cap=CAP)
    with observer(lease.account_id) as observe, ThreadPoolExecutor(3) as pool:
        for _ in range(INTERLEAVINGS):
            _interleave(lease, draw, observe, pool)
            _settle_all(lease, draw)
            observe()
    assert_balanced()
    assert account_of(lease).settled_output_tokens > 0


def _interleave(
    lease: Lease, draw: random.Random, observe: Callable[[], None], pool: ThreadPoolExecutor
) -> None:
    """One session holds its transaction open, others wait for it; nobody ever sees too much."""
    acts = [_act(lease, draw, number) for number in range(draw.choice([2, 3]))]
    observe()
    with transaction.atomic():
        acts[0]()
        waiting: list[Future[None]] = []
        for act in acts[1:]:
            waiting.append(pool.submit(in_own_session(act)))
            wait_for_blocked_session(len(waiting))
            observe()
    observe()
    for each in waiting:
        each.result(timeout=10)
        observe()


def _act(lease: Lease, draw: random.Random, number: int) -> Callable[[], None]:
    """Return a reservation, or the end of an open attempt, that needs the account's row."""
    open_ones = list(Attempt.objects.filter(outcomes=None).order_by("pk"))
    kind = draw.choice(["reserve", "reserve", "settle", "release"])
    if kind == "reserve" or number >= len(open_ones):
        # Each fits what is committed, so that it asks for the account's row and has to wait.
        room = CAP - _used(account_of(lease))
        tokens = draw.randint(1, room)
        return lambda: (reserve(lease, tokens), None)[1]
    attempt = open_ones[number]
    billed, used = ("yes", 0) if kind == "settle" else ("no", None)
    draft = outcome_draft(
        attempt.pk, reserved=attempt.reserved_output_tokens, used=used, billed=billed
    )
    return lambda: (
        ledger.record_outcomes(run_id=lease.run_id, account_id=lease.account_id, outcomes=[draft]),
        None,
    )[1]


def _settle_all(lease: Lease, draw: random.Random) -> None:
    """Free most of what is reserved, so that the next interleaving has room to fight for."""
    account = account_of(lease)
    left = CAP - account.settled_output_tokens
    for attempt in Attempt.objects.filter(outcomes=None):
        if draw.random() < 0.7 or CAP - _used(account_of(lease)) < 10:
            used = min(1, attempt.reserved_output_tokens) if left > 40 else 0
            end(lease, attempt.pk, reserved=attempt.reserved_output_tokens, used=used)


def _used(account: Account) -> int:
    return (
        account.settled_output_tokens + account.held_output_tokens + account.reserved_output_tokens
    )


@contextmanager
def observer(account_id: int) -> Iterator[Callable[[], None]]:
    """Yield a look at the account through a connection of its own, as anybody would see it."""
    parameters = connection.get_connection_params()
    parameters = {k: v for k, v in parameters.items() if k in ("dbname", "user", "host", "port")}
    with psycopg.connect(**parameters, autocommit=True) as other:

        def observe() -> None:
            row = other.execute(
                "SELECT cap_output_tokens, settled_output_tokens, held_output_tokens,"
                " reserved_output_tokens, (SELECT coalesce(sum(CASE kind WHEN 'reserve' THEN"
                " output_tokens WHEN 'overrun' THEN 0 ELSE -output_tokens END), 0)"
                " FROM runs_ledgerentry WHERE account_id = a.id)"
                " FROM runs_account a WHERE id = %s",
                [account_id],
            ).fetchone()
            assert row is not None
            cap, settled, held, reserved, by_entries = row
            assert settled + held + reserved <= cap
            assert reserved == by_entries, "balance and entries become visible together"

        yield observe


@pytest.mark.django_db(transaction=True)
def test_of_two_reservations_for_the_last_tokens_one_is_refused(tmp_path: Path) -> None:
    lease = leased(tmp_path)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert reserve(lease, 60) is not None
            second = pool.submit(in_own_session(lambda: reserve(lease, 60)))
            wait_for_blocked_session()
        assert second.result(timeout=10) is None
    assert account_of(lease).reserved_output_tokens == 60
    assert_balanced()


@pytest.mark.django_db(transaction=True)
def test_two_workers_that_end_one_attempt_at_once_pay_it_once(tmp_path: Path) -> None:
    lease = leased(tmp_path)
    both = reserve(lease, 10, 10) or []

    def end_all(order: list[int]) -> set[int]:
        return ledger.record_outcomes(
            run_id=lease.run_id,
            account_id=lease.account_id,
            outcomes=[outcome_draft(each, used=5) for each in order],
        )

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert end_all(both) == set(both)
            second = pool.submit(in_own_session(lambda: end_all(both[::-1])))
            wait_for_blocked_session()
        assert second.result(timeout=10) == set()
    assert account_of(lease).settled_output_tokens == 10
    assert_balanced()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("first", ["receipt", "end"])
def test_a_late_receipt_and_the_end_of_its_run_leave_one_true_balance(
    tmp_path: Path, first: str
) -> None:
    lease = leased(tmp_path)
    (attempt_id,) = reserve(lease, 10) or []
    end(lease, attempt_id)
    acts = {
        "receipt": lambda: late(lease, attempt_id, used=7),
        "end": lambda: end_run(lease),
    }
    (other,) = acts.keys() - {first}
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            acts[first]()
            waiting = pool.submit(in_own_session(acts[other]))
            wait_for_blocked_session()
        waiting.result(timeout=10)
    parent = Run.objects.get().experiment.account
    assert (parent.settled_output_tokens, parent.held_output_tokens) == (7, 0)
    assert_balanced()


@pytest.mark.django_db(transaction=True)
def test_a_late_receipt_does_not_deadlock_with_an_outcome_of_its_run(tmp_path: Path) -> None:
    lease = leased(tmp_path)
    first, second = reserve(lease, 10, 10) or []
    end(lease, first)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            end(lease, second, used=5)
            waiting = pool.submit(in_own_session(lambda: late(lease, first, used=7)))
            wait_for_blocked_session()
            with connection.cursor() as cursor:  # What a foreign key to the run asks for.
                cursor.execute("SELECT 1 FROM runs_run WHERE id = %s FOR KEY SHARE", [lease.run_id])
        waiting.result(timeout=10)
    assert account_of(lease).settled_output_tokens == 12
    assert_balanced()

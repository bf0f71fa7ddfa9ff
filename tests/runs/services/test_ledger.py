"""The ledger on PostgreSQL: conservation, caps, and every amount paid once (S31)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs.engine.finish import final_outcome
from runs.engine.ledger import Amount, Settlement
from runs.engine.snapshots import initial_snapshot
from runs.engine.types import Stop, StopReason
from runs.models import Account, Attempt, AttemptOutcome, LedgerEntry, Run
from runs.queries import arm_context, question_by_id
from runs.services import finish, ledger
from runs.services.rounds import CommitDraft, Lease, claim
from tests.races import in_own_session, wait_for_blocked_session
from tests.runs import factories
from tests.runs.checks import assert_balanced
from tests.runs.drafts import attempt_draft, outcome_draft

CAP = 100


def leased(folder: Path, cap: int = CAP) -> Lease:
    """Return a lease on a run whose cap is so many tokens and micro-USD."""
    made = factories.experiment(
        folder, budget={"output_tokens_per_run": cap, "microusd_per_run": cap}
    )
    (run,) = factories.begin(made)
    lease = claim(run_id=run.pk, t=0, worker="w1")
    assert lease is not None
    return lease


def account_of(lease: Lease) -> Account:
    return Account.objects.get(pk=lease.account_id)


def reserve(lease: Lease, *tokens: int) -> list[int] | None:
    made = ledger.reserve_attempts(
        run_id=lease.run_id,
        t=0,
        fence=lease.fence,
        worker="w1",
        drafts=[attempt_draft(each) for each in tokens],
    )
    return sorted(made.values()) if made is not None else None


def end(lease: Lease, attempt_id: int, *, reserved: int = 10, used: int | None = None) -> set[int]:
    return ledger.record_outcomes(
        run_id=lease.run_id,
        account_id=lease.account_id,
        outcomes=[outcome_draft(attempt_id, reserved=reserved, used=used)],
    )


def late(lease: Lease, attempt_id: int, *, used: int | None, reserved: int = 10) -> None:
    finish.record_late(lease, [outcome_draft(attempt_id, reserved=reserved, used=used)])


def end_run(lease: Lease) -> None:

    stop = Stop(StopReason.CANCELLED, {"t": 0})
    empty = initial_snapshot()
    outcome = final_outcome(
        protocol=arm_context(lease.arm_id).protocol,
        question=question_by_id(lease.question_id),
        zero=empty,
        last=empty,
        stop=stop,
        t=0,
        run_seed=1,
    )
    draft = CommitDraft(0, empty.snapshot_hash, (), closes_epoch=False, stop=stop, outcome=outcome)
    finish.commit_and_close(lease, draft)


# What one statement does ---------------------------------------------------------------------


@pytest.mark.django_db
def test_a_round_is_reserved_whole_or_not_at_all(tmp_path: Path) -> None:
    lease = leased(tmp_path)
    assert reserve(lease, 60, 41) is None
    assert not Attempt.objects.exists()
    assert account_of(lease).reserved_output_tokens == 0
    made = reserve(lease, 60, 40)
    assert made is not None and len(made) == 2
    assert account_of(lease).reserved_output_tokens == CAP
    assert reserve(lease, 1) is None
    assert_balanced()


@pytest.mark.django_db
def test_each_cap_binds_by_itself(tmp_path: Path) -> None:
    lease = leased(tmp_path)
    for amount, fits in (
        (Amount(101, 1), False),
        (Amount(1, 101), False),
        (Amount(100, 100), True),
    ):
        found = ledger.reserve_attempts(
            run_id=lease.run_id,
            t=0,
            fence=lease.fence,
            worker="w1",
            drafts=[attempt_draft(reserve=amount)],
        )
        assert (found is not None) is fits


@pytest.mark.django_db
def test_a_second_delivery_of_an_outcome_changes_nothing_and_is_paid_once(tmp_path: Path) -> None:
    lease = leased(tmp_path)
    (attempt_id,) = reserve(lease, 10) or []
    assert end(lease, attempt_id, used=4) == {attempt_id}
    before = (account_of(lease).__dict__ | {"_state": None}, LedgerEntry.objects.count())
    assert end(lease, attempt_id, used=9) == set()
    assert (account_of(lease).__dict__ | {"_state": None}, LedgerEntry.objects.count()) == before
    assert AttemptOutcome.objects.get().output_tokens == 4


@pytest.mark.django_db
def test_known_use_beyond_the_reservation_stands_outside_the_cap(tmp_path: Path) -> None:
    lease = leased(tmp_path)
    (attempt_id,) = reserve(lease, CAP) or []
    end(lease, attempt_id, reserved=CAP, used=250)
    account = account_of(lease)
    assert (account.settled_output_tokens, account.overrun_output_tokens) == (CAP, 150)
    assert (account.settled_microusd, account.overrun_microusd) == (CAP, 150)
    assert_balanced()


@pytest.mark.django_db
def test_a_late_receipt_settles_what_was_held_and_only_once(tmp_path: Path) -> None:
    lease = leased(tmp_path)
    (attempt_id,) = reserve(lease, 10) or []
    end(lease, attempt_id)
    assert account_of(lease).held_output_tokens == 10
    late(lease, attempt_id, used=7)
    late(lease, attempt_id, used=9)
    account = account_of(lease)
    assert (account.settled_output_tokens, account.held_output_tokens) == (7, 0)
    assert AttemptOutcome.objects.filter(attempt_id=attempt_id).count() == 2
    assert_balanced()


@pytest.mark.django_db
def test_a_late_receipt_for_what_was_settled_changes_nothing(tmp_path: Path) -> None:
    lease = leased(tmp_path)
    (attempt_id,) = reserve(lease, 10) or []
    end(lease, attempt_id, used=3)
    late(lease, attempt_id, used=9)
    assert account_of(lease).settled_output_tokens == 3
    assert_balanced()


@pytest.mark.django_db
def test_a_late_receipt_that_says_nothing_leaves_the_hold(tmp_path: Path) -> None:
    lease = leased(tmp_path)
    (attempt_id,) = reserve(lease, 10) or []
    end(lease, attempt_id)
    late(lease, attempt_id, used=None)
    assert account_of(lease).held_output_tokens == 10
    assert_balanced()


@pytest.mark.django_db
def test_a_receipt_after_the_run_is_told_to_the_experiment(tmp_path: Path) -> None:
    lease = leased(tmp_path)
    first, second = reserve(lease, 10, 20) or []
    end(lease, first)
    end(lease, second, reserved=20)
    end_run(lease)
    parent = Run.objects.get().experiment.account
    assert (parent.held_output_tokens, parent.reserved_output_tokens) == (30, 0)
    late(lease, first, used=6)
    late(lease, second, used=25, reserved=20)
    parent.refresh_from_db()
    assert (parent.settled_output_tokens, parent.held_output_tokens) == (26, 0)
    assert parent.overrun_output_tokens == 5
    assert_balanced()


@pytest.mark.django_db
def test_a_run_that_is_over_gives_back_what_it_did_not_need(tmp_path: Path) -> None:
    lease = leased(tmp_path)
    (attempt_id,) = reserve(lease, 10) or []
    parent = Run.objects.get().experiment.account
    assert parent.reserved_output_tokens == CAP
    end(lease, attempt_id, used=4)
    end_run(lease)
    parent.refresh_from_db()
    assert (parent.settled_output_tokens, parent.reserved_output_tokens) == (4, 0)
    assert_balanced()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "balance", ["reserved_microusd = cap_microusd + 1", "held_output_tokens = -1"]
)
def test_the_schema_itself_keeps_an_account_within_its_cap(tmp_path: Path, balance: str) -> None:
    lease = leased(tmp_path)
    with pytest.raises(IntegrityError), connection.cursor() as cursor:
        cursor.execute(f"UPDATE runs_account SET {balance} WHERE id = %s", [lease.account_id])


# Any sequence of operations ------------------------------------------------------------------

_OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "settle", "hold", "release", "late", "again", "end"]),
        st.integers(0, 10**6),
        st.integers(0, 60),
    ),
    max_size=25,
)


@pytest.mark.django_db
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(operations=_OPERATIONS)
def test_entries_add_up_to_the_balance_after_any_sequence_of_operations(
    tmp_path: Path, operations: list[tuple[str, int, int]]
) -> None:
    with transaction.atomic():
        lease = leased(tmp_path)
        model = _Model(lease)
        for name, pick, tokens in operations:
            model.apply(name, pick, tokens)
            assert_balanced_or_under_way(lease)
        model.close()
        assert_balanced()
        transaction.set_rollback(True)


class _Model:
    """Applies operations and remembers which attempts are open, ended and held."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.open: dict[int, int] = {}
        self.ended: dict[int, int] = {}
        self.is_over = False

    def apply(self, name: str, pick: int, tokens: int) -> None:
        if name == "reserve" and not self.is_over:
            for attempt_id in reserve(self.lease, tokens) or []:
                self.open[attempt_id] = tokens
        elif name == "end":
            self.close()
        elif name in ("late", "again"):
            self._after(name, pick, tokens)
        elif self.open:
            attempt_id = sorted(self.open)[pick % len(self.open)]
            self._end(name, attempt_id, tokens)

    def close(self) -> None:
        if not self.is_over:
            for attempt_id in sorted(self.open):
                self._end("hold", attempt_id, 0)
            end_run(self.lease)
            self.is_over = True

    def _end(self, name: str, attempt_id: int, tokens: int) -> None:
        reserved = self.open.pop(attempt_id)
        self.ended[attempt_id] = reserved
        draft = outcome_draft(
            attempt_id,
            reserved=reserved,
            used=tokens if name == "settle" else None,
            billed="no" if name == "release" else "yes",
        )
        ledger.record_outcomes(
            run_id=self.lease.run_id, account_id=self.lease.account_id, outcomes=[draft]
        )

    def _after(self, name: str, pick: int, tokens: int) -> None:
        if not self.ended:
            return
        attempt_id = sorted(self.ended)[pick % len(self.ended)]
        reserved = self.ended[attempt_id]
        if name == "late":
            late(self.lease, attempt_id, used=tokens, reserved=reserved)
        else:
            assert end(self.lease, attempt_id, used=tokens, reserved=reserved) == set()


def assert_balanced_or_under_way(lease: Lease) -> None:
    assert_balanced()
    account = account_of(lease)
    used = account.settled_microusd + account.held_microusd + account.reserved_microusd
    assert used <= CAP


# Forced interleavings ------------------------------------------------------------------------

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


@pytest.mark.django_db
def test_nothing_reserved_and_nothing_ended_writes_no_entry(tmp_path: Path) -> None:
    lease = leased(tmp_path)
    count = LedgerEntry.objects.count()
    assert (
        ledger.record_outcomes(run_id=lease.run_id, account_id=lease.account_id, outcomes=[])
        == set()
    )
    assert reserve(lease, 0) is not None
    assert LedgerEntry.objects.count() == count + 1
    assert Settlement().overran is False

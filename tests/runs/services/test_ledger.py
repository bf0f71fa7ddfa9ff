"""The ledger on PostgreSQL: conservation, caps, and every amount paid once (S31)."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs.engine.ledger import Amount, Settlement
from runs.models import Attempt, AttemptOutcome, LedgerEntry, Run
from runs.services import ledger
from runs.services.rounds import Lease
from tests.runs.accounts import CAP, account_of, end, end_run, late, leased, reserve
from tests.runs.checks import assert_balanced
from tests.runs.drafts import attempt_draft, outcome_draft

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

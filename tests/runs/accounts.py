"""Hands on one run's account, without a round around them."""

from __future__ import annotations

from pathlib import Path

from runs.engine.finish import final_outcome
from runs.engine.snapshots import initial_snapshot
from runs.engine.types import Stop, StopReason
from runs.models import Account
from runs.queries import arm_context, question_by_id
from runs.services import finish, ledger
from runs.services.rounds import CommitDraft, Lease, claim
from tests.runs import factories
from tests.runs.drafts import attempt_draft, outcome_draft

CAP = 100


def leased(folder: Path, cap: int = CAP) -> Lease:
    """Return a lease on a run whose cap is so many tokens and micro-USD."""
    agents = [{"id": key, "decoding": {"max_output_tokens": 1}} for key in "abc"]
    made = factories.experiment(
        folder,
        model=factories.SIMULATED,
        protocol={"agents": agents},
        budget={"output_tokens_per_run": cap, "microusd_per_run": cap},
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

"""The end of a round and of a run, and what arrives after it."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from runs.models import Attempt, Run, RunStatus
from runs.services import ledger, resume, rounds
from runs.services.ledger import OutcomeDraft
from runs.services.rounds import CommitDraft, Lease


def commit_and_close(lease: Lease, draft: CommitDraft) -> None:
    """Commit a round; where the run ends with it, hand its balance on in the same transaction."""
    if draft.stop is None:
        rounds.commit(run_id=lease.run_id, t=lease.t, fence=lease.fence, draft=draft)
        return
    with transaction.atomic():
        rounds.commit(run_id=lease.run_id, t=lease.t, fence=lease.fence, draft=draft)
        if not draft.closes_epoch:  # An earlier worker may have left calls of it in flight (S31).
            resume.attempts_of_round(lease)
        ledger.close_run(run_id=lease.run_id)


def record_late(lease: Lease, outcomes: Sequence[OutcomeDraft]) -> None:
    """
    Record results that arrived after another worker had ended their attempts (S10, S31).

    What they cost is settled from what was held; where the run is over by now, the experiment's
    account is told too. They change no state.
    """
    with transaction.atomic():
        # The end of the run waits for this row, so the balance is passed on exactly once. No
        # stronger lock: entries refer to the run, and their writer may hold its account.
        run = (
            Run.objects.select_for_update(no_key=True, of=("self",))
            .select_related("experiment")
            .get(pk=lease.run_id)
        )
        held = _still_held(outcomes)
        told = [o for o in outcomes if o.attempt_id in held]
        recorded = ledger.record_late_receipts(
            run_id=lease.run_id, account_id=lease.account_id, outcomes=told
        )
        if run.status != RunStatus.DONE:
            return
        for outcome in told:
            if outcome.attempt_id in recorded:
                ledger.pass_on_receipt(
                    run_id=lease.run_id,
                    account_id=run.experiment.account_id,
                    settlement=outcome.settlement,
                )


def _still_held(outcomes: Sequence[OutcomeDraft]) -> set[int]:
    """Return the attempts whose reservation was held when they ended: only these can settle."""
    ids = [o.attempt_id for o in outcomes]
    return set(
        Attempt.objects.filter(pk__in=ids, entries__kind="hold").values_list("pk", flat=True)
    )

"""The end of a round and of a run, and what arrives after it."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from runs.models import Attempt, Run, RunStatus
from runs.services import ledger, resume, rounds
from runs.services.ledger import OutcomeDraft
from runs.services.rounds import CommitDraft, Lease, OpenEpoch


def commit_and_close(lease: Lease, draft: CommitDraft) -> None:
    """Commit a round; where the run ends with it, hand its balance on in the same transaction."""
    if draft.stop is None or (draft.to_be_judged and draft.closes_epoch):
        rounds.commit(run_id=lease.run_id, t=lease.t, fence=lease.fence, draft=draft)
        return
    with transaction.atomic():
        rounds.commit(run_id=lease.run_id, t=lease.t, fence=lease.fence, draft=draft)
        if not draft.closes_epoch:  # An earlier worker may have left calls of it in flight (S31).
            resume.attempts_of_round(lease)
        if draft.ends_run:
            ledger.close_run(run_id=lease.run_id)


def open_judging(lease: Lease, *, final_seconds: int) -> OpenEpoch:
    """
    Open the stage in which a judge is asked, once, and free what was kept back for it (S28, S30).

    It ends after ``final_seconds`` or at the run's deadline. Raises LeaseLostError.
    """
    with transaction.atomic():
        epoch = rounds.open_epoch(lease, round_seconds=final_seconds, final_seconds=0)
        if not epoch.resumed:
            ledger.free_final_reserve(account_id=lease.account_id, run_id=lease.run_id)
    return epoch


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

"""What a worker finds of a round that another one began (S33)."""

from __future__ import annotations

from dataclasses import dataclass

from runs.engine.ledger import Amount, Settlement
from runs.engine.types import CallPlan, CallResult, CallStatus
from runs.models import Attempt, AttemptOutcome, EntryKind, LedgerEntry
from runs.services.ledger import OutcomeDraft, record_outcomes
from runs.services.rounds import Lease

LOST_WORKER = "lost_worker"

#: Which allowance a repetition uses up, by how the attempt before it ended (retries.py). A call
#: that was lost with its worker uses up none.
_ALLOWANCES = {
    CallStatus.FAILED.value: "transport",
    CallStatus.TIMEOUT.value: "timeout",
    CallStatus.SUCCEEDED.value: "invalid",
}


@dataclass(frozen=True, slots=True)
class PastAttempt:
    """An attempt of this round that has ended, made by whichever worker."""

    attempt_id: int
    agent_id: str
    ordinal: int
    parent_version: int
    request_digest: str
    status: str
    raw: bytes
    finish_reason: str
    error_class: str
    #: The allowance that this attempt used up, where it repeats one that ended by itself.
    repeats_after: str | None

    def result(self, call: CallPlan) -> CallResult:
        """Return it as admission sees it."""
        return CallResult(
            agent_id=self.agent_id,
            t=call.t,
            status=CallStatus(self.status),
            attempt=self.ordinal,
            raw=self.raw,
            finish_reason=self.finish_reason,
            error_class=self.error_class,
            request_digest=self.request_digest,
            parent_version=self.parent_version,
        )


def attempts_of_round(lease: Lease) -> list[PastAttempt]:
    """
    Return the ended attempts of the lease's round; those in flight at the loss end here.

    Nobody knows whether a lost call was served: its reservation stays held (S31).
    """
    attempts = list(Attempt.objects.filter(run_id=lease.run_id, t=lease.t).order_by("pk"))
    ended = _outcomes(attempts)
    lost = [a for a in attempts if a.pk not in ended and a.fence < lease.fence]
    if lost:
        record_outcomes(
            run_id=lease.run_id,
            account_id=lease.account_id,
            outcomes=[_lost(attempt) for attempt in lost],
        )
        ended = _outcomes(attempts)
    return [_past(a, ended) for a in attempts if a.pk in ended]


def has_overrun(lease: Lease) -> bool:
    """Return whether some call of the run used more than it had reserved (S31)."""
    return LedgerEntry.objects.filter(account_id=lease.account_id, kind=EntryKind.OVERRUN).exists()


def _outcomes(attempts: list[Attempt]) -> dict[int, AttemptOutcome]:
    rows = AttemptOutcome.objects.filter(attempt__in=attempts, late=False)
    return {row.attempt_id: row for row in rows}


def _lost(attempt: Attempt) -> OutcomeDraft:
    reserved = Amount(attempt.reserved_microusd, attempt.reserved_output_tokens)
    return OutcomeDraft(
        attempt_id=attempt.pk,
        status=CallStatus.CANCELLED.value,
        raw=b"",
        finish_reason="",
        error_class=LOST_WORKER,
        error_detail="the worker that made this call is gone",
        input_tokens=None,
        cached_tokens=None,
        output_tokens=None,
        reasoning_tokens=None,
        cost_microusd=None,
        latency_milliseconds=None,
        queued_milliseconds=None,
        model_version="",
        settlement=Settlement(hold=reserved),
    )


def _past(attempt: Attempt, ended: dict[int, AttemptOutcome]) -> PastAttempt:
    outcome = ended[attempt.pk]
    before = ended.get(attempt.retry_of_id) if attempt.retry_of_id is not None else None
    return PastAttempt(
        attempt_id=attempt.pk,
        agent_id=attempt.agent_id,
        ordinal=attempt.ordinal,
        parent_version=attempt.parent_version,
        request_digest=attempt.request_digest,
        status=outcome.status,
        raw=bytes(outcome.raw),
        finish_reason=outcome.finish_reason,
        error_class=outcome.error_class,
        repeats_after=_ALLOWANCES.get(before.status) if before is not None else None,
    )

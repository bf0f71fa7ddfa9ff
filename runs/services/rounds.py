"""
One round of one run in the database: claim, open, commit, release (S9, S10, S33).

A lease is a fencing token: ``fence`` grows with every claim, and every write names the fence it
was made under. The database's clock decides when a lease or a deadline is over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from runs.engine.types import JudgeVerdict, Outcome, State, Stop, StopReason, Verdict
from runs.services.ledger import LeaseLostError

#: A worker that says nothing for so long has lost its runs.
LEASE_SECONDS = 8.0
#: How often a worker says that it lives.
HEARTBEAT_SECONDS = 2.0
#: A running run that nobody holds and nobody was called for so long ago is rung for again.
RING_AGAIN_SECONDS = 6.0
#: After so many rounds that broke in our own code, a run ends with ``error``.
CRASHES_ALLOWED = 3


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to work on one run, and what is needed to begin."""

    run_id: int
    t: int
    fence: int
    worker: str
    experiment_id: int
    arm_id: int
    question_id: int
    account_id: int
    seed: int
    active: tuple[str, ...] | None
    snapshot_hash: str
    evidence_hash: str
    cancelled: bool
    crashes: int
    deadline_seconds: float  # Until the run's deadline, by the database's clock.
    stop: Stop | None = None  # Why its rounds ended, where only its judge is left (S28).


@dataclass(frozen=True, slots=True)
class OpenEpoch:
    """``resumed`` is true where an earlier worker had opened this epoch and did not close it."""

    remaining_seconds: float
    resumed: bool


_CLAIM = """
UPDATE runs_run r
SET fence = r.fence + 1, lease_owner = %(worker)s,
    lease_expires_at = clock_timestamp() + %(lease)s * interval '1 second'
FROM runs_experiment e
WHERE r.id = %(run)s AND e.id = r.experiment_id
  AND r.status = 'RUNNING' AND r.next_round = %(t)s
  AND (r.lease_expires_at IS NULL OR r.lease_expires_at < clock_timestamp())
  AND e.status IN ('RUNNING', 'CANCELLED')
RETURNING r.id, r.next_round, r.fence, r.lease_owner, r.experiment_id, r.arm_id, r.question_id,
    r.account_id, r.seed, r.active, r.snapshot_hash, r.evidence_hash, e.status = 'CANCELLED',
    r.crashes, extract(epoch FROM r.deadline_at - clock_timestamp())::float8,
    r.stop_reason, r.stop_observables
"""


def claim(*, run_id: int, t: int, worker: str) -> Lease | None:
    """Take the lease for round ``t``, or return None: not due, not running, or held."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, {"run": run_id, "t": t, "worker": worker, "lease": LEASE_SECONDS})
        row = cursor.fetchone()
    if row is None:
        return None
    values = list(row)
    values[9] = tuple(json.loads(row[9])) if row[9] is not None else None
    reason, observables = values[-2:]
    values[-2:] = [Stop(StopReason(reason), json.loads(observables)) if reason else None]
    return Lease(*values)


_OPEN = """
WITH opened AS (
    INSERT INTO runs_epoch (run_id, t, snapshot_hash, evidence_hash, deadline_at)
    SELECT r.id, %(t)s, r.snapshot_hash, r.evidence_hash,
        least(clock_timestamp() + %(round)s * interval '1 second',
              r.deadline_at - %(final)s * interval '1 second')
    FROM runs_run r
    WHERE r.id = %(run)s AND r.fence = %(fence)s AND r.status = 'RUNNING'
    ON CONFLICT (run_id, t) DO NOTHING
    RETURNING deadline_at
)
SELECT extract(epoch FROM deadline_at - clock_timestamp())::float8, false FROM opened
UNION ALL
SELECT extract(epoch FROM x.deadline_at - clock_timestamp())::float8, true
FROM runs_epoch x JOIN runs_run r ON r.id = x.run_id
WHERE x.run_id = %(run)s AND x.t = %(t)s AND r.fence = %(fence)s AND r.status = 'RUNNING'
"""


def open_epoch(lease: Lease, *, round_seconds: int, final_seconds: int) -> OpenEpoch:
    """
    Open the epoch of the lease's round, once, or find it open (S10).

    Its deadline is an instant of the database's clock: the round's time or the run's deadline
    less the time kept for the final aggregation (S30), whichever comes first.
    Raises LeaseLostError.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _OPEN,
            {
                "run": lease.run_id,
                "t": lease.t,
                "fence": lease.fence,
                "round": round_seconds,
                "final": final_seconds,
            },
        )
        row = cursor.fetchone()
    if row is None:
        raise LeaseLostError(lease.run_id)
    return OpenEpoch(remaining_seconds=float(row[0]), resumed=bool(row[1]))


_RENEW = """
UPDATE runs_run r
SET lease_expires_at = clock_timestamp() + %(lease)s * interval '1 second'
FROM unnest(%(runs)s::bigint[], %(fences)s::bigint[]) AS h(run_id, fence), runs_experiment e
WHERE r.id = h.run_id AND r.fence = h.fence AND r.status = 'RUNNING'
  AND r.lease_expires_at IS NOT NULL AND e.id = r.experiment_id
RETURNING r.id, e.status = 'CANCELLED'
"""


def renew(held: Mapping[int, int]) -> dict[int, bool]:
    """
    Renew leases, given as run id → fence. Returns run id → "is cancelled" for those still ours.
    """
    if not held:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            _RENEW,
            {"lease": LEASE_SECONDS, "runs": list(held), "fences": list(held.values())},
        )
        return {run_id: bool(cancelled) for run_id, cancelled in cursor.fetchall()}


_RELEASE = """
UPDATE runs_run
SET lease_owner = '', lease_expires_at = NULL, rung_at = clock_timestamp(),
    crashes = crashes + %(crashed)s
WHERE id = %(run)s AND fence = %(fence)s AND status = 'RUNNING'
RETURNING crashes
"""


def release(lease: Lease, *, crashed: bool) -> int | None:
    """Give the lease back unused; returns how often the run crashed, None if it was not ours."""
    with connection.cursor() as cursor:
        cursor.execute(
            _RELEASE, {"run": lease.run_id, "fence": lease.fence, "crashed": int(crashed)}
        )
        row = cursor.fetchone()
    return None if row is None else int(row[0])


@dataclass(frozen=True, slots=True)
class CommitDraft:
    """
    All that one transaction writes at the end of a round.

    ``closes_epoch`` is false where the run ends without its next round having been opened.
    ``attempts`` and ``origins`` give the attempt, or the branched state, behind an agent's new
    state; ``recipients`` who may read it. A run with a ``stop`` ends, unless ``to_be_judged``:
    then its judge is asked under ``next_round`` first (S28). ``judged`` are a judge's verdicts,
    whose attempts stand under their calls in ``attempts``.
    """

    next_round: int
    snapshot_hash: str
    active: tuple[str, ...]
    closes_epoch: bool
    scheduled: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    attempts: Mapping[str, int | None] | None = None
    origins: Mapping[str, int] | None = None
    recipients: Mapping[str, Sequence[str]] | None = None
    stop: Stop | None = None
    outcome: Outcome | None = None
    to_be_judged: bool = False
    judged: tuple[JudgeVerdict, ...] = ()

    @property
    def ends_run(self) -> bool:
        return self.stop is not None and not self.to_be_judged


_COMMIT = """
WITH run AS (
    UPDATE runs_run
    SET next_round = %(next_round)s, snapshot_hash = %(snapshot_hash)s, active = %(active)s::jsonb,
        lease_owner = '', lease_expires_at = NULL, rung_at = clock_timestamp(), crashes = 0,
        status = CASE WHEN %(ends)s THEN 'DONE' ELSE 'RUNNING' END,
        stop_reason = %(stop_reason)s, stop_observables = %(observables)s::jsonb,
        ended_at = CASE WHEN %(ends)s THEN clock_timestamp() END,
        -- A model that called itself by two names within a run raises a flag on it (S4).
        model_changed = %(ends)s AND EXISTS (
            SELECT 1 FROM runs_attempt a JOIN runs_attemptoutcome o ON o.attempt_id = a.id
            WHERE a.run_id = %(run)s AND o.model_version <> ''
            GROUP BY a.model HAVING count(DISTINCT o.model_version) > 1)
    WHERE id = %(run)s AND fence = %(fence)s AND next_round = %(t)s AND status = 'RUNNING'
    RETURNING id, fence
), closed AS (
    INSERT INTO runs_commit (run_id, t, snapshot_hash, active, scheduled, fence)
    SELECT id, %(t)s, %(snapshot_hash)s, %(active)s::jsonb, %(scheduled)s::jsonb, fence
    FROM run WHERE %(closes)s
), stated AS (
    INSERT INTO runs_state (run_id, agent_id, state_version, parent_version, round, text,
        answer_raw, answer_kind, answer_value, answer_rule, raw_hash, content_hash, claims,
        evidence_refs, unresolved, confidence, change, attempt_id, origin_id)
    SELECT run.id, s.agent_id, s.state_version, s.parent_version, s.round, s.text,
        s.answer_raw, s.answer_kind, s.answer_value, s.answer_rule, s.raw_hash, s.content_hash,
        s.claims, s.evidence_refs, s.unresolved, s.confidence, s.change, s.attempt_id,
        s.origin_id
    FROM run, jsonb_to_recordset(%(states)s::jsonb) AS s(agent_id text, state_version int,
        parent_version int, round int, text text, answer_raw text, answer_kind text,
        answer_value text, answer_rule text, raw_hash text, content_hash text, claims jsonb,
        evidence_refs jsonb, unresolved jsonb, confidence text, change jsonb,
        attempt_id bigint, origin_id bigint)
    RETURNING id, claims
), claimed AS (
    INSERT INTO runs_claim (state_id, claim_id, claim_hash, text)
    SELECT stated.id, c.claim_id, c.claim_hash, c.text
    FROM stated, jsonb_to_recordset(stated.claims)
        AS c(claim_id text, claim_hash text, text text)
), sent AS (
    INSERT INTO runs_message (run_id, t, kind, sender, recipients, source_state_version,
        target, content_hash)
    SELECT run.id, %(t)s, m.kind, m.sender, m.recipients, m.source_state_version, NULL,
        m.content_hash
    FROM run, jsonb_to_recordset(%(messages)s::jsonb) AS m(kind text, sender text,
        recipients jsonb, source_state_version int, content_hash text)
), judged AS (
    INSERT INTO runs_verdict (run_id, t, agent_id, status, reason, state_version, attempt_id)
    SELECT run.id, %(t)s, v.agent_id, v.status, v.reason, v.state_version, v.attempt_id
    FROM run, jsonb_to_recordset(%(verdicts)s::jsonb) AS v(agent_id text, status text,
        reason text, state_version int, attempt_id bigint)
), ruled AS (
    INSERT INTO runs_judgeverdict (run_id, t, position, call_id, "order", repeat, status, reason,
        said, choice, score, raw_hash, attempt_id)
    SELECT run.id, %(t)s, j.position, j.call_id, j."order", j.repeat, j.status, j.reason, j.said,
        j.choice, j.score, j.raw_hash, j.attempt_id
    FROM run, jsonb_to_recordset(%(judged)s::jsonb) AS j(position int, call_id text,
        "order" jsonb, repeat int, status text, reason text, said text, choice text, score int,
        raw_hash text, attempt_id bigint)
), aggregated AS (
    INSERT INTO runs_aggregate (run_id, ordinal, t, aggregator, answer_raw, answer_kind,
        answer_value, answer_rule, answer_reason, counts, tied, tie_resolved_by, unresolved,
        candidates, open_issues)
    SELECT run.id, 0, a.t, a.aggregator, a.answer_raw, a.answer_kind, a.answer_value,
        a.answer_rule, a.answer_reason, a.counts, a.tied, a.tie_resolved_by, a.unresolved,
        a.candidates, a.open_issues
    FROM run, jsonb_to_recordset(%(outcomes)s::jsonb) AS a(t int, aggregator text,
        answer_raw text, answer_kind text, answer_value text, answer_rule text,
        answer_reason text, counts jsonb, tied boolean,
        tie_resolved_by text, unresolved boolean, candidates jsonb, open_issues jsonb)
)
SELECT count(*) FROM run
"""


def commit(*, run_id: int, t: int, fence: int, draft: CommitDraft) -> None:
    """
    Publish a round and move the run on, in one statement, or change nothing (S9, S33).

    The WHERE clause compares the fence and the round, the row count tells who won.
    Raises LeaseLostError for the one who did not.
    """
    stop = draft.stop
    params: dict[str, Any] = {
        "run": run_id,
        "t": t,
        "fence": fence,
        "next_round": draft.next_round,
        "snapshot_hash": draft.snapshot_hash,
        "active": json.dumps(draft.active),
        "scheduled": json.dumps(draft.scheduled),
        "closes": draft.closes_epoch,
        "stop_reason": stop.reason.value if stop is not None else "",
        "observables": json.dumps(stop.observables if stop is not None else {}),
        "states": json.dumps([_state(draft, v.state) for v in draft.verdicts if v.state]),
        "messages": json.dumps([_message(draft, v.state) for v in draft.verdicts if v.state]),
        "verdicts": json.dumps([_verdict(draft, v) for v in draft.verdicts]),
        "ends": draft.ends_run,
        "judged": json.dumps(
            [_judge_verdict(draft, place, v) for place, v in enumerate(draft.judged, start=1)]
        ),
        "outcomes": json.dumps([outcome_row(draft.outcome)] if draft.outcome is not None else []),
    }
    with connection.cursor() as cursor:
        cursor.execute(_COMMIT, params)
        if cursor.fetchone()[0] != 1:
            raise LeaseLostError(run_id)


def _state(draft: CommitDraft, state: State) -> dict[str, Any]:
    return {
        "agent_id": state.agent_id,
        "state_version": state.state_version,
        "parent_version": state.parent_version,
        "round": state.round,
        "text": state.text,
        "answer_raw": state.answer.raw,
        "answer_kind": state.answer.kind.value,
        "answer_value": state.answer.value,
        "answer_rule": state.answer.rule,
        "raw_hash": state.raw_hash,
        "content_hash": state.content_hash,
        "claims": [
            {"claim_id": c.claim_id, "claim_hash": c.claim_hash, "text": c.text}
            for c in state.claims
        ],
        "evidence_refs": state.evidence_refs,
        "unresolved": state.unresolved,
        "confidence": state.confidence,
        "change": state.change,
        "attempt_id": (draft.attempts or {}).get(state.agent_id),
        "origin_id": (draft.origins or {}).get(state.agent_id),
    }


def _message(draft: CommitDraft, state: State) -> dict[str, Any]:
    return {
        "kind": "PROPOSAL" if state.parent_version == 0 else "REVISION",
        "sender": state.agent_id,
        "recipients": list((draft.recipients or {}).get(state.agent_id, ())),
        "source_state_version": state.state_version,
        "content_hash": state.content_hash,
    }


def _verdict(draft: CommitDraft, verdict: Verdict) -> dict[str, Any]:
    return {
        "agent_id": verdict.agent_id,
        "status": verdict.status.value,
        "reason": verdict.reason,
        "state_version": verdict.state.state_version if verdict.state is not None else None,
        "attempt_id": (draft.attempts or {}).get(verdict.agent_id),
    }


def _judge_verdict(draft: CommitDraft, position: int, verdict: JudgeVerdict) -> dict[str, Any]:
    return {
        "position": position,
        "call_id": verdict.call_id,
        "order": verdict.order,
        "repeat": verdict.repeat,
        "status": verdict.status.value,
        "reason": verdict.reason,
        "said": verdict.said,
        "choice": verdict.choice,
        "score": verdict.score,
        "raw_hash": verdict.raw_hash,
        "attempt_id": (draft.attempts or {}).get(verdict.call_id),
    }


def outcome_row(outcome: Outcome) -> dict[str, Any]:
    """Return the columns of an aggregate, run and ordinal apart."""
    return {
        "t": outcome.t,
        "aggregator": outcome.aggregator,
        "answer_raw": outcome.answer.raw,
        "answer_kind": outcome.answer.kind.value,
        "answer_value": outcome.answer.value,
        "answer_rule": outcome.answer.rule,
        "answer_reason": outcome.answer.reason,
        "counts": outcome.counts,
        "tied": outcome.tied,
        "tie_resolved_by": outcome.tie_resolved_by,
        "unresolved": outcome.unresolved,
        "candidates": outcome.candidates,
        "open_issues": outcome.open_issues,
    }


_DUE = """
UPDATE runs_run r SET rung_at = clock_timestamp()
WHERE r.id IN (
    SELECT d.id FROM runs_run d JOIN runs_experiment e ON e.id = d.experiment_id
    WHERE d.status = 'RUNNING' AND e.status IN ('RUNNING', 'CANCELLED')
      AND ((d.lease_expires_at IS NULL
            AND (d.rung_at IS NULL
                 OR d.rung_at < clock_timestamp() - %(again)s * interval '1 second'))
           -- A dead worker's run is rung for once a lease's time, not at every sweep.
           OR (d.lease_expires_at < clock_timestamp()
               AND (d.rung_at IS NULL OR d.rung_at < d.lease_expires_at
                    OR d.rung_at < clock_timestamp() - %(again)s * interval '1 second')))
    ORDER BY d.id LIMIT %(most)s FOR UPDATE OF d SKIP LOCKED
)
RETURNING r.id, r.next_round
"""


def due_again(*, most: int) -> list[tuple[int, int]]:
    """Return (run_id, t) of at most ``most`` runs whose worker is gone or whose ring was lost."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE, {"again": RING_AGAIN_SECONDS, "most": most})
        return [(run_id, t) for run_id, t in cursor.fetchall()]

"""
The ledger's movements, each one statement (S30, S31).

The guarded UPDATE of the account, the attempts or outcomes and the entries that explain it are
parts of the same statement: no reader ever sees one without the others, and the row of the
account is locked for no client round trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from runs.engine.ledger import Amount, Settlement


@dataclass(frozen=True, slots=True)
class AttemptDraft:
    """An attempt about to be made, with the most that it can use."""

    agent_id: str
    kind: str
    ordinal: int
    request_digest: str
    model_slot: str
    model: str
    prompt: str
    read_set: str
    decoding: str
    parent_version: int
    reserve: Amount
    retry_of: int | None = None


@dataclass(frozen=True, slots=True)
class OutcomeDraft:
    """How an attempt ended and what becomes of its reservation."""

    attempt_id: int
    status: str
    raw: bytes
    finish_reason: str
    error_class: str
    error_detail: str
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    cost_microusd: int | None
    latency_milliseconds: int | None
    queued_milliseconds: int | None
    model_version: str
    settlement: Settlement


_RESERVE = """
WITH held AS (
    -- The lease's fence guards it: a worker that came back too late reserves nothing (S10).
    SELECT id, account_id FROM runs_run
    WHERE id = %(run)s AND fence = %(fence)s AND status = 'RUNNING'
    FOR SHARE
), taken AS (
    UPDATE runs_account a
    SET reserved_microusd = a.reserved_microusd + %(microusd)s,
        reserved_output_tokens = a.reserved_output_tokens + %(tokens)s
    FROM held
    WHERE a.id = held.account_id
      AND (a.cap_microusd IS NULL OR a.settled_microusd + a.held_microusd
           + a.reserved_microusd + %(microusd)s <= a.cap_microusd)
      AND (a.cap_output_tokens IS NULL OR a.settled_output_tokens + a.held_output_tokens
           + a.reserved_output_tokens + %(tokens)s <= a.cap_output_tokens)
    RETURNING a.id
), drafts AS (
    SELECT * FROM unnest(
        %(agent_id)s::text[], %(kind)s::text[], %(ordinal)s::int[], %(digest)s::text[],
        %(slot)s::text[], %(model)s::text[], %(prompt)s::text[], %(read_set)s::jsonb[],
        %(decoding)s::jsonb[], %(parent)s::int[], %(reserve_m)s::bigint[],
        %(reserve_t)s::bigint[], %(retry_of)s::bigint[]
    ) AS d(agent_id, kind, ordinal, request_digest, model_slot, model, prompt, read_set,
           decoding, parent_version, reserved_microusd, reserved_output_tokens, retry_of_id)
), made AS (
    INSERT INTO runs_attempt (run_id, t, agent_id, kind, ordinal, request_digest, model_slot,
        model, prompt, read_set, decoding, parent_version, reserved_microusd,
        reserved_output_tokens, retry_of_id, fence, worker)
    SELECT %(run)s, %(t)s, d.agent_id, d.kind, d.ordinal, d.request_digest, d.model_slot,
        d.model, d.prompt, d.read_set, d.decoding, d.parent_version, d.reserved_microusd,
        d.reserved_output_tokens, d.retry_of_id, %(fence)s, %(worker)s
    FROM drafts d, taken
    RETURNING id, agent_id, ordinal, reserved_microusd, reserved_output_tokens
), entries AS (
    INSERT INTO runs_ledgerentry
        (account_id, attempt_id, run_id, kind, source, microusd, output_tokens)
    SELECT taken.id, made.id, %(run)s, 'reserve', '', made.reserved_microusd,
        made.reserved_output_tokens
    FROM made, taken
)
SELECT (SELECT count(*) FROM held), made.id, made.agent_id, made.ordinal
FROM (SELECT 1) AS one LEFT JOIN made ON true
"""


def reserve_attempts(
    *, run_id: int, t: int, fence: int, worker: str, drafts: Sequence[AttemptDraft]
) -> dict[tuple[str, int], int] | None:
    """
    Reserve for all of ``drafts`` and write them as attempts, or change nothing (S31).

    Returns attempt ids by (agent_id, ordinal), or None where the account has too little left.
    Raises LeaseLostError where another worker holds the run by now.
    """
    total = sum((d.reserve for d in drafts), Amount())
    params: dict[str, Any] = {
        "run": run_id,
        "t": t,
        "fence": fence,
        "worker": worker,
        "microusd": total.microusd,
        "tokens": total.output_tokens,
        "agent_id": [d.agent_id for d in drafts],
        "kind": [d.kind for d in drafts],
        "ordinal": [d.ordinal for d in drafts],
        "digest": [d.request_digest for d in drafts],
        "slot": [d.model_slot for d in drafts],
        "model": [d.model for d in drafts],
        "prompt": [d.prompt for d in drafts],
        "read_set": [d.read_set for d in drafts],
        "decoding": [d.decoding for d in drafts],
        "parent": [d.parent_version for d in drafts],
        "reserve_m": [d.reserve.microusd for d in drafts],
        "reserve_t": [d.reserve.output_tokens for d in drafts],
        "retry_of": [d.retry_of for d in drafts],
    }
    with connection.cursor() as cursor:
        cursor.execute(_RESERVE, params)
        rows = cursor.fetchall()
    if rows[0][0] == 0:
        raise LeaseLostError(run_id)
    if rows[0][1] is None:
        return None
    return {(agent_id, ordinal): pk for _, pk, agent_id, ordinal in rows}


class LeaseLostError(Exception):
    """Another worker holds this run's lease: nothing was written, and nothing may be (S10)."""

    def __init__(self, run_id: int) -> None:
        super().__init__(f"the lease on run {run_id} is lost")


_GIVEN = """
    SELECT * FROM unnest(
        %(attempt)s::bigint[], %(status)s::text[], %(raw)s::bytea[], %(finish)s::text[],
        %(error)s::text[], %(detail)s::text[], %(input)s::bigint[], %(cached)s::bigint[],
        %(output)s::bigint[], %(reasoning)s::bigint[], %(cost)s::bigint[],
        %(latency)s::bigint[], %(queued)s::bigint[], %(version)s::text[],
        %(settle_m)s::bigint[], %(settle_t)s::bigint[], %(hold_m)s::bigint[],
        %(hold_t)s::bigint[], %(release_m)s::bigint[], %(release_t)s::bigint[],
        %(over_m)s::bigint[], %(over_t)s::bigint[]
    ) AS g(attempt_id, status, raw, finish_reason, error_class, error_detail, input_tokens,
           cached_tokens, output_tokens, reasoning_tokens, cost_microusd,
           latency_milliseconds, queued_milliseconds, model_version, settle_m, settle_t,
           hold_m, hold_t, release_m, release_t, over_m, over_t)
"""

_END = """
WITH given AS ({given}), ended AS (
    INSERT INTO runs_attemptoutcome (attempt_id, late, status, raw, finish_reason, error_class,
        error_detail, input_tokens, cached_tokens, output_tokens, reasoning_tokens,
        cost_microusd, latency_milliseconds, queued_milliseconds, model_version)
    SELECT attempt_id, %(late)s, status, raw, finish_reason, error_class, error_detail,
        input_tokens, cached_tokens, output_tokens, reasoning_tokens, cost_microusd,
        latency_milliseconds, queued_milliseconds, model_version
    FROM given
    ORDER BY attempt_id
    -- An attempt ends once; a duplicate delivery changes nothing and is paid once.
    ON CONFLICT (attempt_id, late) DO NOTHING
    RETURNING attempt_id
), entries AS (
    INSERT INTO runs_ledgerentry
        (account_id, attempt_id, run_id, kind, source, microusd, output_tokens)
    SELECT %(account)s, g.attempt_id, %(run)s, m.kind, m.source, m.microusd, m.output_tokens
    FROM given g JOIN ended USING (attempt_id)
    CROSS JOIN LATERAL (VALUES
        ('settle', %(source)s, g.settle_m, g.settle_t),
        ('hold', %(source)s, g.hold_m, g.hold_t),
        ('release', %(source)s, g.release_m, g.release_t),
        ('overrun', '', g.over_m, g.over_t)
    ) AS m(kind, source, microusd, output_tokens)
    WHERE (m.microusd > 0 OR m.output_tokens > 0)
      AND NOT (m.kind = 'hold' AND %(source)s = 'held')
), sums AS (
    SELECT coalesce(sum(settle_m), 0) AS settle_m, coalesce(sum(settle_t), 0) AS settle_t,
        coalesce(sum(hold_m), 0) AS hold_m, coalesce(sum(hold_t), 0) AS hold_t,
        coalesce(sum(release_m), 0) AS release_m, coalesce(sum(release_t), 0) AS release_t,
        coalesce(sum(over_m), 0) AS over_m, coalesce(sum(over_t), 0) AS over_t
    FROM given JOIN ended USING (attempt_id)
), moved AS (
    UPDATE runs_account a
    SET settled_microusd = a.settled_microusd + s.settle_m,
        settled_output_tokens = a.settled_output_tokens + s.settle_t,
        overrun_microusd = a.overrun_microusd + s.over_m,
        overrun_output_tokens = a.overrun_output_tokens + s.over_t,
        {balance}
    FROM sums s
    WHERE a.id = %(account)s
    RETURNING a.overrun_microusd, a.overrun_output_tokens
)
SELECT attempt_id FROM ended
"""
# What a reservation becomes is taken from `reserved`; what a late receipt tells, from `held`.
_END_RESERVED = _END.format(
    given=_GIVEN,
    balance="""held_microusd = a.held_microusd + s.hold_m,
        held_output_tokens = a.held_output_tokens + s.hold_t,
        reserved_microusd = a.reserved_microusd - s.settle_m - s.hold_m - s.release_m,
        reserved_output_tokens =
            a.reserved_output_tokens - s.settle_t - s.hold_t - s.release_t""",
)
_END_HELD = _END.format(
    given=_GIVEN,
    balance="""held_microusd = a.held_microusd - s.settle_m - s.release_m,
        held_output_tokens = a.held_output_tokens - s.settle_t - s.release_t""",
)


def record_outcomes(*, run_id: int, account_id: int, outcomes: Sequence[OutcomeDraft]) -> set[int]:
    """
    End attempts and settle, hold or release their reservations in one statement.

    Returns the attempts that ended by this call; one that had ended before is not among them,
    and neither its row nor the account changes for it.
    """
    return _end(_END_RESERVED, "reserved", False, run_id, account_id, outcomes)


def record_late_receipts(
    *, run_id: int, account_id: int, outcomes: Sequence[OutcomeDraft]
) -> set[int]:
    """
    Record results that came after their attempt had ended, and settle what was held (S10).

    A receipt that again says nothing about its use leaves the hold as it is.
    """
    return _end(_END_HELD, "held", True, run_id, account_id, outcomes)


def _end(
    sql: str,
    source: str,
    late: bool,
    run_id: int,
    account_id: int,
    outcomes: Sequence[OutcomeDraft],
) -> set[int]:
    if not outcomes:
        return set()
    # Two workers may end the same attempts at once: one order for both cannot deadlock.
    outcomes = sorted(outcomes, key=lambda outcome: outcome.attempt_id)
    params: dict[str, Any] = {
        "run": run_id,
        "account": account_id,
        "late": late,
        "source": source,
        "attempt": [o.attempt_id for o in outcomes],
        "status": [o.status for o in outcomes],
        "raw": [o.raw for o in outcomes],
        "finish": [o.finish_reason for o in outcomes],
        "error": [o.error_class for o in outcomes],
        "detail": [o.error_detail for o in outcomes],
        "input": [o.input_tokens for o in outcomes],
        "cached": [o.cached_tokens for o in outcomes],
        "output": [o.output_tokens for o in outcomes],
        "reasoning": [o.reasoning_tokens for o in outcomes],
        "cost": [o.cost_microusd for o in outcomes],
        "latency": [o.latency_milliseconds for o in outcomes],
        "queued": [o.queued_milliseconds for o in outcomes],
        "version": [o.model_version for o in outcomes],
        "settle_m": [o.settlement.settle.microusd for o in outcomes],
        "settle_t": [o.settlement.settle.output_tokens for o in outcomes],
        "hold_m": [o.settlement.hold.microusd for o in outcomes],
        "hold_t": [o.settlement.hold.output_tokens for o in outcomes],
        "release_m": [o.settlement.release.microusd for o in outcomes],
        "release_t": [o.settlement.release.output_tokens for o in outcomes],
        "over_m": [o.settlement.overrun.microusd for o in outcomes],
        "over_t": [o.settlement.overrun.output_tokens for o in outcomes],
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return {row[0] for row in cursor.fetchall()}


_TAKE = """
WITH taken AS (
    UPDATE runs_account
    SET reserved_microusd = reserved_microusd + %(microusd)s,
        reserved_output_tokens = reserved_output_tokens + %(tokens)s
    WHERE id = %(account)s
      AND (cap_microusd IS NULL OR settled_microusd + held_microusd + reserved_microusd
           + %(microusd)s <= cap_microusd)
      AND (cap_output_tokens IS NULL OR settled_output_tokens + held_output_tokens
           + reserved_output_tokens + %(tokens)s <= cap_output_tokens)
    RETURNING id
)
INSERT INTO runs_ledgerentry (account_id, run_id, kind, source, microusd, output_tokens)
SELECT id, %(run)s, 'reserve', '', %(microusd)s, %(tokens)s FROM taken RETURNING id
"""


def take(*, account_id: int, run_id: int, amount: Amount) -> bool:
    """Reserve ``amount`` on an account for a run as a whole; False where it does not fit."""
    with connection.cursor() as cursor:
        cursor.execute(
            _TAKE,
            {
                "account": account_id,
                "run": run_id,
                "microusd": amount.microusd,
                "tokens": amount.output_tokens,
            },
        )
        return cursor.fetchone() is not None


_GIVE_BACK = """
WITH before AS (
    SELECT id, reserved_microusd, reserved_output_tokens FROM runs_account
    WHERE id = %(account)s FOR UPDATE
), moved AS (
    UPDATE runs_account a SET reserved_microusd = 0, reserved_output_tokens = 0
    FROM before WHERE a.id = before.id
)
INSERT INTO runs_ledgerentry (account_id, run_id, kind, source, microusd, output_tokens)
SELECT id, %(run)s, 'release', 'reserved', reserved_microusd, reserved_output_tokens
FROM before WHERE reserved_microusd > 0 OR reserved_output_tokens > 0
"""


def free_final_reserve(*, account_id: int, run_id: int) -> None:
    """
    Free what was kept back for a run's end, for the calls of that end to reserve (S30).

    Nothing else may be in flight on the account, and nobody else reserves on it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_GIVE_BACK, {"account": account_id, "run": run_id})


_CLOSE = """
WITH run AS (
    SELECT r.id, r.account_id, e.account_id AS parent_id
    FROM runs_run r JOIN runs_experiment e ON e.id = r.experiment_id WHERE r.id = %(run)s
), before AS (
    SELECT a.* FROM runs_account a JOIN run ON a.id = run.account_id FOR UPDATE OF a
), own AS (
    -- Nothing is in flight any more: what is still reserved is the final aggregation's.
    UPDATE runs_account a SET reserved_microusd = 0, reserved_output_tokens = 0
    FROM before WHERE a.id = before.id
    RETURNING a.id
), parent AS (
    UPDATE runs_account p
    SET reserved_microusd = p.reserved_microusd - b.cap_microusd,
        settled_microusd = p.settled_microusd + b.settled_microusd,
        held_microusd = p.held_microusd + b.held_microusd,
        overrun_microusd = p.overrun_microusd + b.overrun_microusd,
        reserved_output_tokens = p.reserved_output_tokens - b.cap_output_tokens,
        settled_output_tokens = p.settled_output_tokens + b.settled_output_tokens,
        held_output_tokens = p.held_output_tokens + b.held_output_tokens,
        overrun_output_tokens = p.overrun_output_tokens + b.overrun_output_tokens
    FROM before b, run WHERE p.id = run.parent_id
    RETURNING p.id
)
INSERT INTO runs_ledgerentry (account_id, run_id, kind, source, microusd, output_tokens)
SELECT m.account_id, run.id, m.kind, m.source, m.microusd, m.output_tokens
FROM run, before b CROSS JOIN LATERAL (VALUES
    (b.id, 'release', 'reserved', b.reserved_microusd, b.reserved_output_tokens),
    (run.parent_id, 'settle', 'reserved', b.settled_microusd, b.settled_output_tokens),
    (run.parent_id, 'hold', 'reserved', b.held_microusd, b.held_output_tokens),
    (run.parent_id, 'overrun', '', b.overrun_microusd, b.overrun_output_tokens),
    (run.parent_id, 'release', 'reserved',
     b.cap_microusd - b.settled_microusd - b.held_microusd,
     b.cap_output_tokens - b.settled_output_tokens - b.held_output_tokens)
) AS m(account_id, kind, source, microusd, output_tokens)
WHERE m.microusd > 0 OR m.output_tokens > 0
"""


def close_run(*, run_id: int) -> None:
    """Release what the run did not need and hand its balance to the experiment (S31)."""
    with connection.cursor() as cursor:
        cursor.execute(_CLOSE, {"run": run_id})


_PASS_ON = """
WITH moved AS (
    UPDATE runs_account
    SET held_microusd = held_microusd - %(held_m)s,
        held_output_tokens = held_output_tokens - %(held_t)s,
        settled_microusd = settled_microusd + %(settle_m)s,
        settled_output_tokens = settled_output_tokens + %(settle_t)s,
        overrun_microusd = overrun_microusd + %(over_m)s,
        overrun_output_tokens = overrun_output_tokens + %(over_t)s
    WHERE id = %(account)s RETURNING id
)
INSERT INTO runs_ledgerentry (account_id, run_id, kind, source, microusd, output_tokens)
SELECT moved.id, %(run)s, m.kind, m.source, m.microusd, m.output_tokens
FROM moved CROSS JOIN LATERAL (VALUES
    ('settle', 'held', %(settle_m)s::bigint, %(settle_t)s::bigint),
    ('release', 'held', %(held_m)s::bigint - %(settle_m)s::bigint,
     %(held_t)s::bigint - %(settle_t)s::bigint),
    ('overrun', '', %(over_m)s::bigint, %(over_t)s::bigint)
) AS m(kind, source, microusd, output_tokens)
WHERE m.microusd > 0 OR m.output_tokens > 0
"""


def pass_on_receipt(*, run_id: int, account_id: int, settlement: Settlement) -> None:
    """Tell the experiment's account what a receipt settled after the run had ended."""
    freed = settlement.settle + settlement.release
    with connection.cursor() as cursor:
        cursor.execute(
            _PASS_ON,
            {
                "account": account_id,
                "run": run_id,
                "held_m": freed.microusd,
                "held_t": freed.output_tokens,
                "settle_m": settlement.settle.microusd,
                "settle_t": settlement.settle.output_tokens,
                "over_m": settlement.overrun.microusd,
                "over_t": settlement.overrun.output_tokens,
            },
        )

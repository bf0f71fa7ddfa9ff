"""
Records that the host keeps beside what replay reads: do they follow from the states? (S34)

Replay recomputes a run from calls and replies. Who was scheduled, which snapshot a commit
published, what was sent to whom and how a call was decoded is written beside it, by the host
alone, and is recomputed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runs.engine.draws import Draws
from runs.engine.hashing import request_digest
from runs.engine.judge_prompts import judge_agent
from runs.engine.operators import decoding_settings
from runs.engine.parsing import response_schema
from runs.engine.replay import CallRecord, Disagreement, RunRecord
from runs.engine.snapshots import initial_snapshot, restored_snapshot
from runs.engine.topology import readers_of
from runs.engine.types import CallKind, Status
from runs.models import Attempt, Commit, Message, Run
from runs.protocols.spec import Agent

_WITHOUT_CALL = frozenset((Status.INACTIVE, Status.NOT_SCHEDULED))


def disagreements(run: Run, record: RunRecord) -> Iterator[Disagreement]:
    """Yield what was stored otherwise than the host would have written it, in order of rounds."""
    yield from _commits(run, record)
    yield from _messages(run, record)
    yield from _decodings(run, record)


def _commits(run: Run, record: RunRecord) -> Iterator[Disagreement]:
    states = [state for stored in record.rounds for state in stored.states]
    agent_ids = record.protocol.agent_ids
    last = initial_snapshot().snapshot_hash
    rounds = {stored.t: stored for stored in record.rounds}
    for commit in Commit.objects.filter(run=run).order_by("t"):
        where = f"round {commit.t}"
        history = [state for state in states if state.round <= commit.t]
        last = restored_snapshot(t=commit.t + 1, history=history, agent_ids=agent_ids).snapshot_hash
        yield from _compare(where, "commit.snapshot_hash", commit.snapshot_hash, last)
        if commit.t > 0 or record.branched is None:
            verdicts = rounds[commit.t].verdicts
            scheduled = [v.agent_id for v in verdicts if v.status not in _WITHOUT_CALL]
            yield from _compare(where, "commit.scheduled", commit.scheduled, scheduled)
    yield from _compare("run", "snapshot_hash", run.snapshot_hash, last)


def _messages(run: Run, record: RunRecord) -> Iterator[Disagreement]:
    protocol = record.protocol
    readers = readers_of(
        protocol.topology, protocol.agent_ids, Draws(run.seed, record.question_hash)
    )
    due: dict[tuple[int, str], tuple[Any, ...]] = {}
    for stored in record.rounds:
        for state in stored.states:
            due[stored.t, state.agent_id] = (
                "PROPOSAL" if state.parent_version == 0 else "REVISION",
                list(readers.get(state.agent_id, ())),
                state.state_version,
                state.content_hash,
            )
    sent = {
        (row.t, row.sender): (
            row.kind,
            row.recipients,
            row.source_state_version,
            row.content_hash,
        )
        for row in Message.objects.filter(run=run)
    }
    for t, sender in sorted(due.keys() | sent.keys()):
        stored_one, due_one = sent.get((t, sender)), due.get((t, sender))
        yield from _compare(f"round {t}, agent {sender}", "message", stored_one, due_one)


def _decodings(run: Run, record: RunRecord) -> Iterator[Disagreement]:
    calls = {(stored.t, c.agent_id): c for stored in record.rounds for c in stored.calls}
    judging = record.judging
    calls |= {(judging.t, c.agent_id): c for c in judging.calls} if judging is not None else {}
    for attempt in Attempt.objects.filter(run=run).order_by("pk"):
        call = calls.get((attempt.t, attempt.agent_id))
        if call is None:  # Of a round that was never committed: nothing follows from it.
            continue
        where = f"round {attempt.t}, agent {attempt.agent_id}"
        agent, asked_schema = _asked_of(record, call)
        settings = agent.decoding.model_dump(mode="json", exclude_none=True)
        seed = attempt.decoding.get("seed")
        yield from _compare(where, "decoding", attempt.decoding, {**settings, "seed": seed})
        due = request_digest(
            model_slot=agent.model,
            prompt=call.prompt,
            decoding=decoding_settings(agent, seed),
            response_schema=asked_schema,
        )
        yield from _compare(where, "request_digest", attempt.request_digest, due)
        yield from _compare(where, "model_slot", attempt.model_slot, agent.model)
        yield from _compare(where, "kind", CallKind(attempt.kind), call.kind)


def _asked_of(record: RunRecord, call: CallRecord) -> tuple[Agent, dict[str, Any] | None]:
    """Return who was called, and the schema that the reply was bound to."""
    judge = record.protocol.aggregation.judge
    if call.kind is CallKind.JUDGE and judge is not None:
        return judge_agent(judge), None
    schema = response_schema(record.question, record.protocol)
    return record.protocol.agent(call.agent_id), schema


def _compare(where: str, field: str, stored: Any, recomputed: Any) -> Iterator[Disagreement]:
    if stored != recomputed:
        yield Disagreement(where, field, str(stored)[:300], str(recomputed)[:300])

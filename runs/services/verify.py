"""Replaying stored runs (S34): the records are read as the engine knows them and recomputed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from runs.engine.replay import (
    CallRecord,
    Disagreement,
    JudgingRecord,
    RoundRecord,
    RunRecord,
    replay,
)
from runs.engine.snapshots import initial_snapshot
from runs.engine.types import (
    Answer,
    AnswerKind,
    CallKind,
    CallResult,
    CallStatus,
    Dropped,
    JudgeVerdict,
    Outcome,
    PromptMessage,
    ReadEntry,
    ReadSet,
    Status,
    Stop,
    StopReason,
    Verdict,
)
from runs.models import (
    Aggregate,
    Attempt,
    AttemptOutcome,
    Commit,
    Epoch,
    Experiment,
    Run,
    RunStatus,
)
from runs.models import JudgeVerdict as JudgeVerdictRow
from runs.models import State as StateRow
from runs.models import Verdict as VerdictRow
from runs.queries import arm_context, engine_state, question_by_id
from runs.services import host_records


@dataclass(frozen=True, slots=True)
class RunDisagreement:
    """The first record of a run that does not follow from the others."""

    run_id: int
    found: Disagreement

    def __str__(self) -> str:
        return f"run {self.run_id}: {self.found}"


def verify_experiment(
    experiment: Experiment, *, tell: Callable[[int, int], None]
) -> tuple[int, list[RunDisagreement]]:
    """Replay every ended run; returns how many, and each run's first disagreement."""
    ids = list(
        Run.objects.filter(experiment=experiment, status=RunStatus.DONE)
        .order_by("position")
        .values_list("pk", flat=True)
    )
    found = []
    for count, run_id in enumerate(ids, start=1):
        first = first_disagreement(run_id)
        if first is not None:
            found.append(RunDisagreement(run_id, first))
        tell(count, len(ids))
    return len(ids), found


def first_disagreement(run_id: int) -> Disagreement | None:
    """Return the first record of a run that does not follow from the others, or None."""
    record = run_record(run_id)
    replayed = replay(record)
    if replayed:
        return replayed[0]
    return next(host_records.disagreements(Run.objects.get(pk=run_id), record), None)


def run_record(run_id: int) -> RunRecord:
    """Return all that is stored of a run, as replay reads it."""
    run = Run.objects.select_related("arm").get(pk=run_id)
    context = arm_context(run.arm_id)
    question = question_by_id(run.question_id)
    states = [engine_state(row) for row in StateRow.objects.filter(run=run)]
    order = {agent_id: i for i, agent_id in enumerate(context.protocol.agent_ids)}
    states.sort(key=lambda s: (order[s.agent_id], s.state_version))
    zero = [s for s in states if s.round == 0]
    aggregate = Aggregate.objects.filter(run=run, ordinal=0).first()
    return RunRecord(
        protocol=context.protocol,
        protocol_hash=run.protocol_hash,
        question=question,
        question_hash=run.question_hash,
        evidence=question.evidence,
        evidence_hash=run.evidence_hash,
        run_seed=run.seed,
        rounds=tuple(_rounds(run, states, order)),
        branched=tuple(zero) if run.branch_source_id is not None else None,
        stop=Stop(StopReason(run.stop_reason), run.stop_observables) if run.stop_reason else None,
        outcome=_outcome(aggregate) if aggregate is not None else None,
        judging=_judging(run),
        is_judging=run.status == RunStatus.RUNNING and bool(run.stop_reason),
    )


def _judging(run: Run) -> JudgingRecord | None:
    """Return what a judge was asked and said, None where there is nothing of both."""
    attempts = list(Attempt.objects.filter(run=run, kind=CallKind.JUDGE.value).order_by("pk"))
    rows = list(JudgeVerdictRow.objects.filter(run=run).order_by("position"))
    if not attempts and not rows:
        return None
    order = {a.agent_id: place for place, a in enumerate(attempts)}
    ordinals = {a.pk: a.ordinal for a in attempts}
    ends: dict[int, list[AttemptOutcome]] = defaultdict(list)
    for outcome in AttemptOutcome.objects.filter(attempt__in=attempts).order_by("pk"):
        ends[outcome.attempt_id].append(outcome)
    return JudgingRecord(
        t=rows[0].t if rows else attempts[0].t,
        calls=tuple(_calls(attempts, order)),
        results=tuple(_results(attempts, ends)),
        verdicts=tuple(_judge_verdict(row, ordinals) for row in rows),
    )


def _judge_verdict(row: JudgeVerdictRow, ordinals: dict[int, int]) -> JudgeVerdict:
    return JudgeVerdict(
        call_id=row.call_id,
        order=tuple(row.order),
        repeat=row.repeat,
        status=Status(row.status),
        reason=row.reason,
        said=row.said,
        choice=row.choice,
        score=row.score,
        attempt=ordinals.get(row.attempt_id) if row.attempt_id is not None else None,
        raw_hash=row.raw_hash,
    )


def _rounds(run: Run, states: list[Any], order: dict[str, int]) -> Iterable[RoundRecord]:
    attempts: dict[int, list[Attempt]] = defaultdict(list)
    debated = Attempt.objects.filter(run=run).exclude(kind=CallKind.JUDGE.value)
    for attempt in debated.order_by("pk"):
        attempts[attempt.t].append(attempt)
    ends: dict[int, list[AttemptOutcome]] = defaultdict(list)
    for outcome in AttemptOutcome.objects.filter(attempt__run=run).order_by("pk"):
        ends[outcome.attempt_id].append(outcome)
    verdicts: dict[int, list[VerdictRow]] = defaultdict(list)
    for verdict in VerdictRow.objects.filter(run=run):
        verdicts[verdict.t].append(verdict)
    buffers = dict(Epoch.objects.filter(run=run).values_list("t", "snapshot_hash"))
    for commit in Commit.objects.filter(run=run).order_by("t"):
        mine = sorted(verdicts[commit.t], key=lambda v: order[v.agent_id])
        admitted = [s for s in states if s.round == commit.t]
        yield RoundRecord(
            t=commit.t,
            # A branch opens no epoch at t = 0: its read buffer is the empty one.
            snapshot_hash=buffers.get(commit.t, initial_snapshot().snapshot_hash),
            calls=tuple(_calls(attempts[commit.t], order)),
            results=tuple(_results(attempts[commit.t], ends)),
            verdicts=tuple(_verdict(v, admitted) for v in mine),
            states=tuple(admitted),
            active=tuple(commit.active),
            skipped=tuple(v.agent_id for v in mine if v.status == Status.SKIPPED_BUDGET),
        )


def _calls(attempts: Iterable[Attempt], order: dict[str, int]) -> Iterable[CallRecord]:
    first: dict[str, Attempt] = {}
    for attempt in attempts:
        first.setdefault(attempt.agent_id, attempt)
    for agent_id in sorted(first, key=order.__getitem__):
        row = first[agent_id]
        yield CallRecord(
            agent_id=agent_id,
            kind=CallKind(row.kind),
            prompt=tuple(PromptMessage(m["role"], m["content"]) for m in json.loads(row.prompt)),
            read_set=_read_set(row.read_set),
            parent_version=row.parent_version,
            request_digest=row.request_digest,
        )


def _read_set(body: dict[str, Any]) -> ReadSet:
    return ReadSet(
        entries=tuple(ReadEntry(**entry) for entry in body["entries"]),
        dropped=tuple(Dropped(**entry) for entry in body["dropped"]),
    )


def _results(
    attempts: Iterable[Attempt], ends: dict[int, list[AttemptOutcome]]
) -> Iterable[CallResult]:
    for attempt in attempts:
        for end in ends[attempt.pk]:
            yield CallResult(
                agent_id=attempt.agent_id,
                t=attempt.t,
                status=CallStatus(end.status),
                attempt=attempt.ordinal,
                raw=bytes(end.raw),
                finish_reason=end.finish_reason,
                error_class=end.error_class,
                request_digest=attempt.request_digest,
                parent_version=attempt.parent_version,
                late=end.late,
            )


def _verdict(row: VerdictRow, admitted: list[Any]) -> Verdict:
    mine = [s for s in admitted if s.agent_id == row.agent_id]
    return Verdict(
        agent_id=row.agent_id,
        t=row.t,
        status=Status(row.status),
        reason=row.reason,
        state=mine[0] if mine else None,
    )


def _outcome(row: Aggregate) -> Outcome:
    return Outcome(
        t=row.t,
        aggregator=row.aggregator,
        answer=Answer(
            raw=row.answer_raw,
            kind=AnswerKind(row.answer_kind),
            value=row.answer_value,
            rule=row.answer_rule,
            reason=row.answer_reason,
        ),
        counts=tuple((value, count) for value, count in row.counts),
        tied=row.tied,
        tie_resolved_by=row.tie_resolved_by,
        unresolved=row.unresolved,
        candidates=tuple((agent_id, value) for agent_id, value in row.candidates),
        open_issues=tuple(row.open_issues),
    )

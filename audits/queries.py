"""
What a report is made from: the rows of an experiment or of imported debates.

The number of queries is fixed whatever the size. Records are streamed in the order of their
runs, so that beside the rows themselves only one run's records are in memory.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from audits.metrics.beliefs import BeliefRow
from audits.metrics.records import RunRow, Usage
from audits.rows.executed import Verdict, outcome_rows, snapshots, state_rows
from audits.rows.logged import (
    logged_beliefs,
    logged_run,
    names_simulated_agents,
    starts_blind,
)
from audits.rows.scoring import Scorer
from runs.engine.draws import Draws
from runs.engine.hashing import canonical_bytes
from runs.engine.types import Answer, AnswerKind, Outcome, Question, State, StopReason
from runs.models import (
    Aggregate,
    Arm,
    Attempt,
    Commit,
    Debate,
    DebateSet,
    Experiment,
    Run,
    RunStatus,
)
from runs.models import Question as QuestionRow
from runs.models import State as StateRecord
from runs.models import Verdict as VerdictRecord
from runs.protocols.spec import Protocol
from runs.queries import engine_question

CHUNK = 2_000


@dataclass
class ArmRows:
    """
    An arm with the rows of its runs, in the order of the experiment.

    ``designed`` counts all runs; ``withdrawn`` those that the experiment's cancellation ended
    before their first round: they say nothing about the protocol and have no row.
    """

    arm: Arm
    protocol: Protocol
    runs: list[RunRow] = field(default_factory=list)
    designed: int = 0
    withdrawn: int = 0
    model_changed: int = 0


@dataclass
class ExperimentRows:
    """The arms in order, and a hash of all that their runs came to: no ids and no times."""

    arms: dict[str, ArmRows]
    results_hash: str


@dataclass
class LoggedRows:
    """One protocol of an imported set. ``reads`` counts debates by what is known of reads."""

    runs: list[RunRow] = field(default_factory=list)
    reads: Counter[str] = field(default_factory=Counter)
    blind_start: bool = True
    simulated: bool = False
    beliefs: list[BeliefRow] = field(default_factory=list)


def experiment_rows(experiment: Experiment) -> ExperimentRows:
    """Return the rows of every run that is done. Nine queries."""
    arms = _arms(experiment)
    questions = _questions(experiment)
    records = _Records(experiment)
    read: list[tuple[int, int, RunRow, list[Any]]] = []
    for run in _done_runs(experiment):
        own = arms[run.arm_id]
        commits = records.commits.of(run.pk)
        own.model_changed += run.model_changed
        if run.stop_reason == StopReason.CANCELLED and not commits:
            own.withdrawn += 1
            continue
        row = _run_row(run, own, questions[run.question_id], len(commits), records)
        read.append((run.position, run.arm_id, row, [h for _, _, h in commits]))
    read.sort(key=lambda item: item[0])
    whole = hashlib.sha256()
    for _, arm_id, row, hashes in read:
        arms[arm_id].runs.append(row)
        whole.update(canonical_bytes(_result(row, hashes)) + b"\n")
    return ExperimentRows({own.arm.name: own for own in arms.values()}, whole.hexdigest())


def _arms(experiment: Experiment) -> dict[int, ArmRows]:
    arms = experiment.arms.select_related("protocol", "branch_from").order_by("position")
    rows = {
        arm.pk: ArmRows(arm, Protocol.model_validate_json(arm.protocol.canonical)) for arm in arms
    }
    counts = Run.objects.filter(experiment=experiment).values_list("arm_id")
    for arm_id, count in counts.annotate(count=Count("pk")).order_by():
        rows[arm_id].designed = count
    return rows


def _questions(experiment: Experiment) -> dict[int, QuestionRow]:
    """Return the questions that were debated, without their texts: scoring needs none."""
    used = Run.objects.filter(experiment=experiment).values("question_id")
    rows = QuestionRow.objects.filter(pk__in=used).defer("text", "evidence", "metadata")
    return {row.pk: row for row in rows.iterator(CHUNK)}


def _scored_question(row: QuestionRow) -> Question:
    """Return what scoring reads of a question: no text, no evidence."""
    return Question(
        id=row.external_id,
        text="",
        answer_type=row.answer_type,  # type: ignore[arg-type]  # A check constraint's values.
        choices=tuple(row.choices),
        reference=tuple(row.reference),
    )


def _done_runs(experiment: Experiment) -> Iterator[Run]:
    runs = Run.objects.filter(experiment=experiment, status=RunStatus.DONE)
    return runs.select_related("account").order_by("pk").iterator(CHUNK)


class _ByRun:
    """Records that come in the order of their runs, asked for in that order."""

    def __init__(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._rows = iter(rows)
        self._next = next(self._rows, None)

    def of(self, run_id: int) -> list[tuple[Any, ...]]:
        """Return the records of a run; those of runs that nobody asked for are passed over."""
        found = []
        while self._next is not None and self._next[0] <= run_id:
            if self._next[0] == run_id:
                found.append(self._next)
            self._next = next(self._rows, None)
        return found


class _Records:
    """All that is stored about the ended runs of an experiment, one query a kind."""

    def __init__(self, experiment: Experiment) -> None:
        done = Q(run__experiment=experiment, run__status=RunStatus.DONE)
        self.commits = _stream(Commit.objects.filter(done), "t", "snapshot_hash")
        self.states = _stream(
            StateRecord.objects.filter(done).order_by("run_id", "agent_id", "state_version"),
            "agent_id", "state_version", "parent_version", "round",
            "answer_kind", "answer_value",
        )  # fmt: skip
        self.verdicts = _stream(
            VerdictRecord.objects.filter(done), "t", "agent_id", "status", "state_version"
        )
        # A later resolution is appended: the last one stands (S24).
        self.aggregates = _stream(
            Aggregate.objects.filter(done).order_by("run_id", "ordinal"),
            "t", "aggregator", "answer_kind", "answer_value", "tied", "unresolved",
        )  # fmt: skip
        self.usage = _ByRun(_usage_by_kind(done).iterator(CHUNK))


def _stream(rows: QuerySet[Any], *names: str) -> _ByRun:
    ordered = rows if rows.query.order_by else rows.order_by("run_id", "t")
    return _ByRun(ordered.values_list("run_id", *names).iterator(CHUNK))


def _usage_by_kind(done: Q) -> QuerySet[Any, tuple[Any, ...]]:
    return (
        Attempt.objects.filter(done)
        .values_list("run_id", "kind")
        .annotate(
            Count("pk", distinct=True),  # An attempt with a late receipt has two outcomes (S10).
            Sum("outcomes__input_tokens"),
            Sum("outcomes__cached_tokens"),
            Sum("outcomes__output_tokens"),
            Sum("outcomes__reasoning_tokens"),
            Sum("outcomes__cost_microusd"),
        )
        .order_by("run_id", "kind")
    )


_USAGE_NAMES = (
    "calls",
    "input_tokens",
    "cached_input_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost_microusd",
)


def _run_row(
    run: Run, own: ArmRows, question: QuestionRow, rounds: int, records: _Records
) -> RunRow:
    protocol = own.protocol
    scorer = Scorer(_scored_question(question), protocol.normaliser)
    after = snapshots(protocol, [_state(row) for row in records.states.of(run.pk)], rounds)
    verdicts = {
        (t, agent_id): Verdict(status, version is not None)
        for _, t, agent_id, status, version in records.verdicts.of(run.pk)
    }
    aggregates = records.aggregates.of(run.pk)
    return RunRow(
        run_key=_run_key(own.arm.name, question, run),
        condition=own.arm.name,
        question_id=question.external_id,
        family=question.family or question.external_id,
        stratum=question.stratum or None,
        seed=run.seed,
        agent_ids=protocol.agent_ids,
        rounds_opened=rounds,
        states=state_rows(scorer, protocol, after, verdicts),
        outcomes=outcome_rows(
            scorer,
            protocol,
            after,
            final=_outcome(aggregates[-1]) if aggregates else None,
            draws=Draws(run.seed, run.question_hash),
        ),
        stop_reason=run.stop_reason,
        usage=_usage(run, records.usage.of(run.pk)),
        branch_of=(
            _run_key(own.arm.branch_from.name, question, run)
            if own.arm.branch_from is not None
            else None
        ),
    )


def _run_key(arm: str, question: QuestionRow, run: Run) -> str:
    """Name a run by what it is, not by its id: equal experiments have equal keys."""
    return f"{arm}/{question.external_id}/{run.seed}"


def _state(row: tuple[Any, ...]) -> State:
    """Return what counting reads of a state: no text and no hash."""
    _, agent_id, version, parent, t, kind, value = row
    return State(
        agent_id=agent_id,
        state_version=version,
        parent_version=parent,
        round=t,
        text="",
        answer=Answer(raw="", kind=AnswerKind(kind), value=value),
        raw_hash="",
        content_hash="",
    )


def _outcome(row: tuple[Any, ...]) -> Outcome:
    _, t, aggregator, kind, value, tied, is_unresolved = row
    return Outcome(
        t=t,
        aggregator=aggregator,
        answer=Answer(raw="", kind=AnswerKind(kind), value=value),
        counts=(),
        tied=tied,
        unresolved=is_unresolved,
    )


def _usage(run: Run, rows: Iterable[tuple[Any, ...]]) -> Usage:
    by_kind = {
        kind: {name: int(n or 0) for name, n in zip(_USAGE_NAMES, numbers, strict=True)}
        for _, kind, *numbers in rows
    }
    total: Counter[str] = Counter()
    for counts in by_kind.values():
        total.update(counts)
    ran = run.started_at is not None and run.ended_at is not None
    return Usage(
        calls=total["calls"],
        input_tokens=total["input_tokens"],
        cached_input_tokens=total["cached_input_tokens"],
        output_tokens=total["output_tokens"],
        reasoning_tokens=total["reasoning_tokens"],
        cost_microusd=run.account.settled_microusd,
        held_microusd=run.account.held_microusd,
        overrun_microusd=run.account.overrun_microusd,
        wall_seconds=(run.ended_at - run.started_at).total_seconds() if ran else 0.0,  # type: ignore[operator]
        by_kind=by_kind,
    )


def _result(row: RunRow, snapshot_hashes: list[str]) -> list[Any]:
    """Return what a run came to as JSON: all that figures are made of but the time it took."""
    usage = row.usage
    return [
        row.run_key,
        row.stop_reason,
        snapshot_hashes,
        [[state.status, state.correct] for state in row.states],
        [[o.t, o.aggregator, o.answer, o.tied, o.unresolved] for o in row.outcomes],
        [usage.cost_microusd, usage.held_microusd, usage.overrun_microusd],
        {kind: dict(counts) for kind, counts in usage.by_kind.items()},
    ]


def debate_set_rows(debate_set: DebateSet) -> dict[str, LoggedRows]:
    """Return the rows of imported debates by protocol, scored as logged. One query."""
    found: dict[str, LoggedRows] = {}
    debates = Debate.objects.filter(debate_set=debate_set).select_related("question")
    for debate in debates.order_by("position").iterator(CHUNK):
        own = found.setdefault(debate.protocol, LoggedRows())
        body: Mapping[str, Any] = debate.body
        question, asked = debate.question, engine_question(debate.question)
        family = question.family or question.external_id
        own.runs.append(
            logged_run(
                body,
                condition=debate.protocol,
                question=asked,
                family=family,
                stratum=question.stratum or None,
                rules=debate_set.rules,
            )
        )
        own.beliefs += logged_beliefs(body, question=asked, family=family)
        own.reads[body.get("reads_known", "unknown")] += 1
        own.blind_start &= starts_blind(body)
        own.simulated |= names_simulated_agents(body)
    return found

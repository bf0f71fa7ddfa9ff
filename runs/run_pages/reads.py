"""
What the run page and the cell page read: a fixed number of queries, whatever a run's size.

Long texts are cut by the database, so that neither memory nor page grows with a hostile reply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import BinaryField, Count, F, Func, IntegerField, QuerySet, Value
from django.db.models.functions import Left, Length

from debateweb.models import Workspace
from runs.engine.types import Answer, AnswerKind
from runs.models import Aggregate, Attempt, AttemptOutcome, CheckResult, LedgerEntry, Run
from runs.models import State as StateRow
from runs.models import Verdict as VerdictRow
from runs.run_pages.texts import Cut

#: Characters of a candidate's text that the matrix may show, of an answer, of a reason.
MATRIX_TEXT_CHARS = 2_000
ANSWER_CHARS = 300
REASON_CHARS = 400
#: Characters or bytes of one text on the cell page without ``?all=1``.
CELL_TEXT_CHARS = 20_000
#: What PostgreSQL takes for "to the end".
WHOLE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Version:
    """One admitted candidate with the beginning of its texts."""

    agent_id: str
    state_version: int
    parent_version: int
    round: int
    answer: Answer  # ``raw`` is cut.
    text: Cut
    content_hash: str
    claims: int
    unresolved: int
    confidence: str | None
    origin_id: int | None


@dataclass(frozen=True, slots=True)
class Ruling:
    """Admission's record of an agent in a round, with its reason cut."""

    t: int
    agent_id: str
    status: str
    reason: str
    state_version: int | None


@dataclass(frozen=True, slots=True)
class RunRows:
    """The rows behind the matrix: versions by agent, rulings and attempts by (t, agent)."""

    versions: dict[str, list[Version]]
    rulings: dict[tuple[int, str], Ruling]
    attempts: dict[tuple[int, str], int]
    checks: dict[tuple[str, int], dict[str, int]]


def run_in(workspace: Workspace, run_id: int) -> Run | None:
    """Return a run of the workspace with all that stands beside it. One query."""
    return (
        Run.objects.filter(experiment__workspace=workspace, pk=run_id)
        .select_related("experiment", "arm__protocol", "arm__branch_from", "question", "account")
        .defer(
            "experiment__spec",
            "experiment__analysis",
            "arm__bindings",
            "arm__protocol__canonical",
            "question__metadata",
        )
        .first()
    )


def neighbours_of(run: Run) -> tuple[int | None, int | None]:
    """Return the runs before and after this one in its experiment. Two queries by index."""
    runs = Run.objects.filter(experiment=run.experiment_id)
    before = runs.filter(position__lt=run.position).order_by("-position")
    after = runs.filter(position__gt=run.position).order_by("position")
    return tuple(found.values_list("pk", flat=True).first() for found in (before, after))  # type: ignore[return-value]


def rows_of(run: Run) -> RunRows:
    """Return what the matrix is made of. Four queries."""
    versions: dict[str, list[Version]] = {}
    for version in versions_of(run.pk, MATRIX_TEXT_CHARS):
        versions.setdefault(version.agent_id, []).append(version)
    attempts = Attempt.objects.filter(run=run).values_list("t", "agent_id")
    counted = attempts.annotate(n=Count("pk")).order_by()
    return RunRows(
        versions=versions,
        rulings={(r.t, r.agent_id): r for r in rulings_of(run.pk)},
        attempts={(t, agent_id): n for t, agent_id, n in counted},
        checks=checks_of(run.pk),
    )


def versions_of(run_id: int, text_chars: int, *, agent_id: str | None = None) -> list[Version]:
    """Return the admitted states of a run, or of one agent, oldest version first. One query."""
    rows = StateRow.objects.filter(run_id=run_id)
    if agent_id is not None:
        rows = rows.filter(agent_id=agent_id)
    found = rows.annotate(
        text_start=Left("text", text_chars),
        text_chars=Length("text"),
        raw_start=Left("answer_raw", ANSWER_CHARS),
        claim_count=_elements("claims"),
        unresolved_count=_elements("unresolved"),
    ).order_by("agent_id", "state_version")
    return [
        _version(row)
        for row in found.values(
            "agent_id", "state_version", "parent_version", "round", "answer_kind", "answer_value",
            "answer_rule", "content_hash", "confidence", "origin_id", "text_start", "text_chars",
            "raw_start", "claim_count", "unresolved_count",
        )
    ]  # fmt: skip


def _elements(column: str) -> Func:
    return Func(F(column), function="jsonb_array_length", output_field=IntegerField())


def _version(row: Mapping[str, Any]) -> Version:
    return Version(
        agent_id=row["agent_id"],
        state_version=row["state_version"],
        parent_version=row["parent_version"],
        round=row["round"],
        answer=Answer(
            raw=row["raw_start"],
            kind=AnswerKind(row["answer_kind"]),
            value=row["answer_value"],
            rule=row["answer_rule"],
        ),
        text=Cut(row["text_start"], row["text_chars"], len(row["text_start"]) < row["text_chars"]),
        content_hash=row["content_hash"],
        claims=row["claim_count"],
        unresolved=row["unresolved_count"],
        confidence=row["confidence"],
        origin_id=row["origin_id"],
    )


def rulings_of(run_id: int) -> list[Ruling]:
    """Return the verdicts of a run in order of rounds. One query."""
    rows = VerdictRow.objects.filter(run_id=run_id).annotate(start=Left("reason", REASON_CHARS))
    found = rows.values_list("t", "agent_id", "status", "start", "state_version")
    return [Ruling(*row) for row in found.order_by("t", "agent_id")]


def checks_of(run_id: int) -> dict[tuple[str, int], dict[str, int]]:
    """Return how many checks of each status the claims of each version have. One query."""
    rows = (
        CheckResult.objects.filter(claim__state__run_id=run_id, superseded_by=None)
        .values_list("claim__state__agent_id", "claim__state__state_version", "status")
        .annotate(n=Count("pk"))
        .order_by("status")
    )
    found: dict[tuple[str, int], dict[str, int]] = {}
    for agent_id, version, status, count in rows:
        found.setdefault((agent_id, version), Counter())[status] = count
    return found


def aggregates_of(run: Run) -> list[Aggregate]:
    """Return the stored aggregates, the newest first. One query."""
    return list(Aggregate.objects.filter(run=run).order_by("-ordinal"))


def places_of_states(run_id: int) -> dict[tuple[str, int], tuple[int, str]]:
    """Return round and content hash of every state by agent and version. One query."""
    rows = StateRow.objects.filter(run_id=run_id)
    found = rows.values_list("agent_id", "state_version", "round", "content_hash")
    return {(agent, version): (t, digest) for agent, version, t, digest in found}


def attempts_at(run_id: int, t: int, agent_id: str) -> list[Attempt]:
    """Return the attempts of an agent in a round by ordinal, without prompts. One query."""
    rows = Attempt.objects.filter(run_id=run_id, t=t, agent_id=agent_id)
    return list(rows.defer("prompt").order_by("ordinal", "pk"))


def prompts_of(attempts: list[Attempt]) -> dict[str, str]:
    """Return the stored prompt of each request: one digest is one prompt. One query."""
    first = {a.request_digest: a.pk for a in reversed(attempts)}
    rows = Attempt.objects.filter(pk__in=first.values())
    return dict(rows.values_list("request_digest", "prompt"))


def outcomes_of(attempts: list[Attempt], limit: int | None) -> QuerySet[AttemptOutcome]:
    """Return the outcomes with ``raw_start`` and ``raw_bytes`` in place of the reply. One query."""
    start = Func(
        F("raw"), Value(1), Value(limit or WHOLE), function="substr", output_field=BinaryField()
    )
    size = Func(F("raw"), function="octet_length", output_field=IntegerField())
    rows = AttemptOutcome.objects.filter(attempt__in=[a.pk for a in attempts]).defer("raw")
    return rows.annotate(raw_start=start, raw_bytes=size).order_by("late", "pk")


def entries_of(attempts: list[Attempt]) -> QuerySet[LedgerEntry]:
    """Return the ledger's movements of the attempts in order. One query."""
    return LedgerEntry.objects.filter(attempt__in=[a.pk for a in attempts]).order_by("pk")


def state_at(run_id: int, t: int, agent_id: str) -> StateRow | None:
    """Return the whole state admitted in round ``t``, with where it branched from. One query."""
    rows = StateRow.objects.filter(run_id=run_id, round=t, agent_id=agent_id)
    return rows.annotate(
        origin_run=F("origin__run_id"),
        origin_round=F("origin__round"),
        origin_agent=F("origin__agent_id"),
    ).first()

"""All records of one run as the API tells them. Six queries, whatever the run."""

from __future__ import annotations

import json
from typing import Any

from django.db.models import Prefetch

from runs.models import Attempt, AttemptOutcome, LedgerEntry, Run

_SUMMARY = (
    "position", "seed", "status", "stop_reason", "next_round", "started_at", "ended_at",
)  # fmt: skip
_OWN = (
    "protocol_hash", "question_hash", "evidence_hash", "snapshot_hash", "deadline_at",
    "stop_observables", "model_changed",
)  # fmt: skip
_ATTEMPT = (
    "t", "agent_id", "kind", "ordinal", "model", "read_set", "decoding", "reserved_microusd",
    "reserved_output_tokens", "retry_of_id", "created_at",
)  # fmt: skip


def run_json(run: Run) -> dict[str, Any]:
    """Return a run with its records; ``run`` has its experiment, arm, question and account."""
    entries = list(LedgerEntry.objects.filter(run=run).order_by("pk"))
    return {
        **run_summary(run),
        **{name: getattr(run, name) for name in _OWN},
        "experiment": run.experiment.name,
        "question": run.question,
        "balance": run.account,
        "states": list(run.states.order_by("round", "agent_id")),
        "verdicts": list(run.verdicts.order_by("t", "agent_id")),
        "attempts": _attempts(run, entries),
        "entries": [entry for entry in entries if entry.attempt_id is None],
        "aggregates": list(run.aggregates.order_by("ordinal")),
    }


def run_summary(run: Run) -> dict[str, Any]:
    """Return a run without its records; ``run`` has its arm and question."""
    own = {name: getattr(run, name) for name in _SUMMARY}
    names = {"arm": run.arm.name, "question_id": run.question.external_id}
    return {"id": run.pk, **names, **own}


def _attempts(run: Run, entries: list[LedgerEntry]) -> list[dict[str, Any]]:
    outcomes = Prefetch("outcomes", AttemptOutcome.objects.order_by("pk"))
    return [
        {
            "id": attempt.pk,
            **{name: getattr(attempt, name) for name in _ATTEMPT},
            "prompt": json.loads(attempt.prompt),
            "outcomes": list(attempt.outcomes.all()),
            "entries": [entry for entry in entries if entry.attempt_id == attempt.pk],
        }
        for attempt in Attempt.objects.filter(run=run).prefetch_related(outcomes).order_by("pk")
    ]

"""The rows behind the figures of a report, as they are stored beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from audits.metrics.panel import Panel, build_panel
from audits.metrics.records import STATUSES, RunRow
from audits.models import Report, ReportRow
from runs.models import Experiment, Run

CHUNK = 2_000


def store_rows(report: Report, conditions: Iterable[Sequence[RunRow]]) -> None:
    """Append the rows of every condition: one a run and agent, and one a run's aggregates."""
    ids = _run_ids(report)
    for runs in conditions:
        drafts = (ReportRow(report=report, **fields) for fields in _rows(build_panel(runs), ids))
        ReportRow.objects.bulk_create(drafts, batch_size=CHUNK)


def _run_ids(report: Report) -> dict[str, int]:
    """Return the keys of runs by their names; debates that ran elsewhere have none."""
    experiment = Experiment.objects.filter(workspace=report.workspace, name=report.name).first()
    if experiment is None:
        return {}
    names = Run.objects.filter(experiment=experiment).values_list(
        "arm__name", "question__external_id", "seed", "pk"
    )
    return {f"{arm}/{question}/{seed}": pk for arm, question, seed, pk in names.iterator(CHUNK)}


def _rows(panel: Panel, ids: dict[str, int]) -> Iterator[dict[str, Any]]:
    right = (panel.correct[:, 0] & panel.configured).sum(axis=1)
    for r, run in enumerate(panel.runs):
        place = {
            "condition": run.condition,
            "run_id": ids.get(run.run_key),
            "run_key": run.run_key,
            "question_id": run.question_id,
            "stratum": run.stratum or "",
            "seed": run.seed,
            "rounds_opened": run.rounds_opened,
            "right_at_start": int(right[r]),
            "agents": len(run.agent_ids),
        }
        yield place | _aggregate(panel, r)
        answers = _answers(run)
        for slot, agent_id in enumerate(sorted(run.agent_ids)):
            yield place | _agent(panel, r, slot, agent_id, answers)


def _answers(run: RunRow) -> dict[tuple[str, int], str | None]:
    return {
        (state.agent_id, state.t): "abstains" if state.is_abstention else state.answer
        for state in run.states
    }


def _aggregate(panel: Panel, r: int) -> dict[str, Any]:
    scored = bool(panel.scored[r])
    correct = {
        name: [
            bool(outcome.correct[r, t]) if scored and outcome.ran[r, t] else None for t in (0, -1)
        ]
        for name, outcome in panel.outcomes.items()
    }
    answers: dict[str, list[str | None]] = {name: [None, None] for name in panel.outcomes}
    for outcome in sorted(panel.runs[r].outcomes, key=lambda one: one.t):
        if outcome.t == 0:
            answers[outcome.aggregator][0] = outcome.answer
        answers[outcome.aggregator][1] = outcome.answer
    return {"agent_id": "", "correct": correct, "answers": answers, "statuses": []}


def _agent(
    panel: Panel, r: int, slot: int, agent_id: str, answers: dict[tuple[str, int], str | None]
) -> dict[str, Any]:
    rounds = max(panel.runs[r].rounds_opened, 1)
    scored = bool(panel.scored[r])
    held: list[str | None] = []
    for t in range(rounds):
        held.append(answers.get((agent_id, t), held[-1] if held else None))
    status = np.asarray(panel.status[r, :rounds, slot])
    return {
        "agent_id": agent_id,
        "correct": [bool(c) if scored else None for c in panel.correct[r, :rounds, slot]],
        "answers": held,
        "statuses": [STATUSES[int(code)] for code in status],
    }

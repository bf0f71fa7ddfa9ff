"""The rows behind the figures of a report, as they are stored beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from audits.metrics import MetricsError
from audits.metrics.debates import debate_ratios
from audits.metrics.panel import Panel, build_panel
from audits.metrics.ratio import Ratio
from audits.metrics.records import STATUSES, RunRow
from audits.models import Report, ReportRow
from audits.reports.build import ConditionRuns
from audits.reports.item_rows import store_items
from audits.reports.judged import ConditionItems
from runs.models import Experiment, Run

CHUNK = 2_000
Rate = dict[str, Any]


def store_rows(
    report: Report, conditions: Iterable[ConditionRuns | ConditionItems]
) -> dict[str, list[Rate]]:
    """
    Append the rows of every condition: one a run and agent, and one a run's aggregates; of a
    judge and of people one an item.

    Returns by condition the rates that the rows' ``counts`` are of. Runs that no figure can be
    made of leave none.
    """
    ids = _run_ids(report)
    counted: dict[str, list[Rate]] = {}
    for condition in conditions:
        if isinstance(condition, ConditionItems):
            counted[condition.name] = store_items(report, condition)
            continue
        counted[condition.name] = []
        try:
            panel, ratios = _counted(condition)
        except MetricsError:
            continue  # The report's own figures say why.
        counted[condition.name] = [rate_of(ratio) for ratio in ratios]
        drafts = (ReportRow(report=report, **fields) for fields in _rows(panel, ratios, ids))
        while batch := list(islice(drafts, CHUNK)):
            ReportRow.objects.bulk_create(batch)
    return counted


def _counted(condition: ConditionRuns) -> tuple[Panel, list[Ratio]]:
    panel = build_panel(condition.runs)
    blind = condition.blind_start
    if not condition.same_start:
        return panel, debate_ratios(panel, blind_start=blind)
    try:
        alone = build_panel(condition.same_start)
        return panel, debate_ratios(panel, alone=alone, blind_start=blind)
    except MetricsError:  # The pairing is what is refused: the rest stands without it.
        return panel, debate_ratios(panel, blind_start=blind)


def rate_of(ratio: Ratio) -> Rate:
    """Return what tells a rate from the others of its condition."""
    return {"metric": ratio.metric, "round": ratio.round, "by": dict(ratio.by)}


def _run_ids(report: Report) -> dict[str, int]:
    """Return the keys of runs by their names; debates that ran elsewhere have none."""
    experiment = Experiment.objects.filter(workspace=report.workspace, name=report.name).first()
    if experiment is None:
        return {}
    names = Run.objects.filter(experiment=experiment).values_list(
        "arm__name", "question__external_id", "seed", "pk"
    )
    return {f"{arm}/{question}/{seed}": pk for arm, question, seed, pk in names.iterator(CHUNK)}


def _rows(panel: Panel, ratios: Sequence[Ratio], ids: dict[str, int]) -> Iterator[dict[str, Any]]:
    counts = [_counts(panel, ratio) for ratio in ratios]
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
        yield place | _aggregate(panel, r) | {"counts": [own[r] for own in counts]}
        answers = _answers(run)
        for slot, agent_id in enumerate(sorted(run.agent_ids)):
            yield place | _agent(panel, r, slot, agent_id, answers)


def _counts(panel: Panel, ratio: Ratio) -> list[list[float] | None]:
    """Return numerator and denominator of each run, before runs are averaged."""
    asked = np.ones(len(panel.runs), dtype=np.bool_) if ratio.applies is None else ratio.applies
    if ratio.needs_check:
        asked = asked & panel.scored
    known = asked & np.isfinite(ratio.num) & np.isfinite(ratio.den)
    parts = zip(known, ratio.num, ratio.den, strict=True)
    return [[_short(num), _short(den)] if is_known else None for is_known, num, den in parts]


def _short(value: float) -> float:
    return int(value) if float(value).is_integer() else float(value)


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

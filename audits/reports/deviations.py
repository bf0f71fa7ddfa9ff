"""Where what ran departs from what was planned: printed with every report, never left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from audits.metrics.records import NOT_ATTEMPTED, RunRow
from audits.queries import ArmRows, ExperimentRows
from runs.engine.types import StopReason
from runs.models import Experiment, ExperimentStatus

#: Ends that no protocol asks for.
CUT_SHORT = (
    StopReason.WORKER_BUDGET,
    StopReason.INSUFFICIENT_FINAL_BUDGET,
    StopReason.WORK_DEADLINE,
    StopReason.CANCELLED,
    StopReason.ERROR,
)

Deviation = dict[str, Any]


def deviations(experiment: Experiment, rows: ExperimentRows) -> list[Deviation]:
    """Return what a reader has to know before the figures, the whole first, then arm by arm."""
    found = [*_of_the_whole(experiment)]
    for own in rows.arms.values():
        found += _of_an_arm(own)
    return found


def _of_the_whole(experiment: Experiment) -> Iterator[Deviation]:
    if experiment.status != ExperimentStatus.FINISHED:
        yield _said("not_finished", f"the experiment is {experiment.status}")
    split = experiment.analysis["analysis"]["split"]
    if split is None:
        return
    if experiment.question_set.questions.exclude(split="").exists():
        yield _said("split", f"only questions of the split {split} were asked")
    else:
        yield _said(
            "split_unknown", f"the split {split} is declared, but the questions name no split"
        )


def _of_an_arm(own: ArmRows) -> Iterator[Deviation]:
    arm, done = own.arm.name, len(own.runs)
    if done != own.designed:
        withdrawn = (
            f"; {own.withdrawn} were cancelled before their first round and are left out"
            if own.withdrawn
            else ""
        )
        text = f"{done} of {own.designed} runs done{withdrawn}"
        yield _said("runs_not_done", text, arm, own.designed - done)
    stops = Counter(run.stop_reason for run in own.runs)
    for reason in CUT_SHORT:
        if stops[reason]:
            yield _said("cut_short", f"{stops[reason]} runs ended {reason}", arm, stops[reason])
    yield from _money(own)
    yield from failed_replies(arm, own.runs)
    if own.model_changed:
        text = f"the model's version changed within {own.model_changed} runs"
        yield _said("model_changed", text, arm, own.model_changed)


def _money(own: ArmRows) -> Iterator[Deviation]:
    held = sum(run.usage.held_microusd or 0 for run in own.runs)
    overrun = sum(run.usage.overrun_microusd or 0 for run in own.runs)
    if held:
        text = f"{held} micro-USD are held for calls of unknown outcome: cost may rise by that"
        yield _said("held", text, own.arm.name, held)
    if overrun:
        text = f"{overrun} micro-USD were used beyond reservations"
        yield _said("overrun", text, own.arm.name, overrun)


def failed_replies(condition: str, runs: Sequence[RunRow]) -> Iterator[Deviation]:
    """Say how many of the answers asked for did not come or could not be read, by status."""
    statuses = Counter(
        state.status
        for run in runs
        for state in run.states
        if run.rounds_opened
        and state.status not in NOT_ATTEMPTED
        # The initial answers of a branch were taken over, not asked for.
        and not (run.branch_of is not None and state.t == 0)
    )
    asked = sum(statuses.values())
    for status, n in sorted(statuses.items()):
        if status != "SUCCEEDED":
            share = f"{100 * n / asked:.1f} %"
            text = f"{n} of {asked} answers asked for were {status} ({share})"
            yield _said("not_admitted", text, condition, n) | {"status": status}
    yield from _unasked(condition, runs)


def _unasked(condition: str, runs: Sequence[RunRow]) -> Iterator[Deviation]:
    """Say how many answers were never asked for: they count as wrong where nothing was there."""
    unasked = sum(state.status == "SKIPPED_BUDGET" for run in runs for state in run.states)
    if unasked:
        text = f"{unasked} answers were not asked for: the budget of their runs was too small"
        yield _said("skipped_budget", text, condition, unasked)


def _said(code: str, text: str, arm: str | None = None, count: int | None = None) -> Deviation:
    return {"code": code, "condition": arm, "count": count, "text": text}

"""What a pilot stage has shown: what the whole will cost, what failed, what can be detected."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass

from audits.metrics.planning import detectable_effect
from audits.metrics.records import RunRow
from audits.queries import ArmRows, experiment_rows
from runs.engine.types import Status
from runs.models import Experiment, Run, RunStatus
from runs.models import Verdict as VerdictRecord
from runs.services.starting import projected_microusd


@dataclass(frozen=True, slots=True)
class Contrast:
    """
    The smallest difference in final accuracy that the whole experiment finds with 80 % power.

    ``discordance`` is the mean squared paired difference of the stage: the share of questions
    on which two arms of one seed differ. ``mde_80`` is None where they never did.
    """

    a: str
    b: str
    stage_questions: int
    discordance: float
    mde_80: float | None


@dataclass(frozen=True, slots=True)
class Stage:
    """
    Shares are of the answers that were asked for; None where none was.

    ``projected_microusd`` is what the stage used per run, held money included, times all runs.
    """

    runs_done: int
    runs: int
    projected_microusd: int
    truncated_share: float | None
    invalid_share: float | None
    contrasts: tuple[Contrast, ...]

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def stage_of(experiment: Experiment) -> Stage:
    """Return what the ended runs of an experiment say about the rest of it."""
    runs = Run.objects.filter(experiment=experiment)
    total, done = runs.count(), runs.filter(status=RunStatus.DONE).count()
    asked = VerdictRecord.objects.filter(run__experiment=experiment, attempt__isnull=False)
    answers = asked.count()
    rows = experiment_rows(experiment).arms
    planned = runs.values("question_id").distinct().count()
    alpha = float(experiment.analysis["analysis"]["alpha"])
    return Stage(
        runs_done=done,
        runs=total,
        projected_microusd=projected_microusd(experiment),
        truncated_share=_share(asked.filter(status=Status.TRUNCATED).count(), answers),
        invalid_share=_share(asked.filter(status=Status.INVALID).count(), answers),
        contrasts=tuple(
            _contrast(rows[a], rows[b], planned, alpha)
            for a, b in experiment.analysis["analysis"]["contrasts"]
        ),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _contrast(a: ArmRows, b: ArmRows, planned: int, alpha: float) -> Contrast:
    left, right = _accuracies(a), _accuracies(b)
    both = sorted(left.keys() & right.keys())
    squares = [(left[q] - right[q]) ** 2 for q in both]
    discordance = sum(squares) / len(squares) if squares else 0.0
    return Contrast(
        a=a.arm.name,
        b=b.arm.name,
        stage_questions=len(both),
        discordance=discordance,
        mde_80=detectable_effect(discordance, planned, alpha),
    )


def _accuracies(arm: ArmRows) -> dict[str, float]:
    """Return the final accuracy of each question, repeats averaged."""
    found: dict[str, list[float]] = defaultdict(list)
    for run in arm.runs:
        found[run.question_id].append(float(_is_right(run, arm.protocol.aggregation.kind)))
    return {question: sum(values) / len(values) for question, values in found.items()}


def _is_right(run: RunRow, aggregator: str) -> bool:
    """A run without an outcome of its own aggregator answered nothing."""
    own = [outcome for outcome in run.outcomes if outcome.aggregator == aggregator]
    return bool(own) and max(own, key=lambda outcome: outcome.t).correct

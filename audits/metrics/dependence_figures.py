"""The figures of correlated errors of one condition, at round 0 and at T."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from audits.metrics import dependence
from audits.metrics.arrays import BoolArray, FloatArray, floats, sums_by
from audits.metrics.bootstrap import METHOD, percentile_interval, resampled_sums
from audits.metrics.dependence import Moments
from audits.metrics.figures import FEW_QUESTIONS, FEW_QUESTIONS_NOTE, Figure
from audits.metrics.panel import NO_ANSWER, Panel
from audits.metrics.ratio import NO_CHECK_REASON, Ratio, Settings

NOT_BLIND = "initial answers are not independent: the protocol starts sequentially"
CAPTION = "not voting accuracy, not a causal effect of communication"
EQUICORRELATED = "mean phi put into the equicorrelated formula"

_TIMES = (("0", 0), ("T", -1))
_METRICS = ("mean_phi", "rho_cov", "icc1", "n_eff_cov", "n_eff_phi")


def dependence_figures(panel: Panel, settings: Settings, *, blind_start: bool) -> list[Figure]:
    """Return phi, rho, ICC and effective agents at 0 and T, each with a question bootstrap."""
    figures: list[Figure] = []
    for at, t in _TIMES:
        reason = NOT_BLIND if at == "0" and not blind_start else _why_undefined(panel)
        if reason:
            figures += [Figure(m, by={"at": at}, reason=reason) for m in _METRICS]
        else:
            figures += _figures_at(panel, t, at, settings)
    return [replace(figure, source=settings.source) for figure in figures]


def _why_undefined(panel: Panel) -> str | None:
    if not panel.scored.any():
        return NO_CHECK_REASON
    if panel.roster is None:
        return "agents differ between questions"
    if len(panel.roster) < 2:
        return "fewer than two agents are configured"
    if len(np.unique(panel.question[panel.scored])) < 2:
        return "fewer than two questions"
    return None


def errors_at(panel: Panel, t: int) -> tuple[FloatArray, FloatArray]:
    """Return (X [scored runs, agents], weights): the runs of one question weigh one together."""
    scored = panel.scored
    runs = sums_by(panel.question, scored.astype(np.float64), len(panel.question_ids))
    return floats(1.0 - panel.correct[scored, t]), 1.0 / runs[panel.question[scored]]


def moments_at(panel: Panel, t: int) -> Moments:
    return dependence.moments(*errors_at(panel, t))


def _figures_at(panel: Panel, t: int, at: str, settings: Settings) -> list[Figure]:
    errors, weights = errors_at(panel, t)
    sample = dependence.moments(errors, weights)
    constant = dependence.constant_agents(sample)
    unit = panel.family[panel.question[panel.scored]]
    columns = dependence.moment_columns(errors, weights, unit, int(panel.family.max()) + 1)
    columns = columns[columns[:, 0] > 0]  # families without a scored question are not drawn
    sums = resampled_sums(columns, settings.resamples, settings.seed)
    replicates = dependence.unstacked(sums, sample.agents)
    questions = round(float(sample.n))
    notes = [CAPTION] + ([FEW_QUESTIONS_NOTE] if questions < FEW_QUESTIONS else [])
    names = [name for name, flat in zip(panel.roster or (), constant, strict=True) if flat]
    if names:
        notes.append("constant, left out of phi: " + ", ".join(names))
    figures = []
    for metric, statistic in _statistics(constant):
        base = Figure(
            metric, by={"at": at}, n_questions=questions, reason=_EMPTY[metric],
            n_clusters=len(columns), notes=tuple(notes),
        )  # fmt: skip
        figures.append(
            _with_interval(base, float(statistic(sample)), statistic(replicates), settings)
        )
    return figures


_EMPTY = {
    "mean_phi": "fewer than two agents vary",
    "rho_cov": "no agent varies",
    "icc1": "no variation",
    "n_eff_cov": "the errors' sum does not vary",
    "n_eff_phi": "undefined mean phi, or 1+(N-1)·phi is not positive",
}


def _statistics(constant: BoolArray) -> Iterator[tuple[str, Callable[[Moments], FloatArray]]]:
    yield "mean_phi", lambda m: dependence.mean_phi(m, constant)
    yield "rho_cov", dependence.rho_cov
    yield "icc1", dependence.icc1
    yield "n_eff_cov", dependence.n_eff_cov
    yield "n_eff_phi", lambda m: dependence.n_eff_phi(dependence.mean_phi(m, constant), m.agents)


def _with_interval(
    base: Figure, value: float, replicates: FloatArray, settings: Settings
) -> Figure:
    if np.isnan(value):
        return base
    found = percentile_interval(replicates, settings.alpha)
    notes = base.notes
    if base.metric == "n_eff_phi":
        notes = (*notes, EQUICORRELATED)
    if found.ci is None:
        notes = (*notes, f"no interval: {found.reason}")
    return replace(
        base,
        value=value,
        reason=None,
        ci=found.ci,
        ci_method=METHOD if found.ci else None,
        resamples=settings.resamples,
        seed=settings.seed,
        notes=notes,
    )


def dependence_ratios(panel: Panel, *, blind_start: bool) -> Iterator[Ratio]:
    """Yield the share of equal wrong answers, and the dependence left within a run."""
    for at, t in _TIMES:
        votes = (panel.answer[:, t] != NO_ANSWER) & ~panel.abstains[:, t]
        same, both = dependence.same_wrong_counts(
            panel.correct[:, t], panel.answer[:, t], votes, panel.configured
        )
        empty = "no two agents were wrong together"
        yield Ratio("same_wrong_given_both_wrong", same, both, empty, {"at": at})
    yield _within_run(panel, blind_start=blind_start)


def _within_run(panel: Panel, *, blind_start: bool) -> Ratio:
    metric, runs = "within_run_dependence", len(panel.runs)
    note = ("a hint: seeds, retrieval and drift move it too",)
    if not blind_start or panel.roster is None or len(panel.roster) < 2:
        empty = NOT_BLIND if not blind_start else "no common agents"
        return _unbounded(metric, np.zeros(runs), np.zeros(runs), empty, note)
    errors = floats(1.0 - panel.correct[:, 0])
    per_question = dependence.within_run_difference(errors, panel.question, len(panel.question_ids))
    values = per_question[panel.question]
    defined = ~np.isnan(values)
    empty = "every question has one run"
    return _unbounded(
        metric, np.where(defined, values, 0.0), defined.astype(np.float64), empty, note
    )


def _unbounded(
    metric: str, num: FloatArray, den: FloatArray, empty: str, notes: tuple[str, ...]
) -> Ratio:
    return Ratio(metric, num, den, empty, {"at": "0"}, aggs=(None,), bounded=False, notes=notes)

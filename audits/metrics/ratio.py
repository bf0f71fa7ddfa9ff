"""From per-run counts to figures: one place decides averaging, interval and labels.

Every rate of a report is a numerator and a denominator per run. Runs are averaged within their
question, then the question, or its family, is the unit of the interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from audits.metrics import bootstrap
from audits.metrics.arrays import BoolArray, FloatArray, IntArray, sums_by
from audits.metrics.figures import (
    FEW_QUESTIONS,
    FEW_QUESTIONS_NOTE,
    Agg,
    Check,
    Figure,
    Source,
)
from audits.metrics.intervals import Estimate, bonett_price, ratio_estimate, wilson
from audits.metrics.panel import Panel

#: From this many clusters on, the percentile bootstrap stands beside the analytic interval.
CHECK_FROM = 100
NO_CHECK_REASON = "no question has an objective check"


@dataclass(frozen=True, slots=True)
class Settings:
    """How a report's figures are made: error level, resamples and the seed of its inputs' hash."""

    alpha: float = 0.05
    resamples: int = bootstrap.REPORT_RESAMPLES
    seed: int = 0
    source: Source = "objective"


@dataclass(frozen=True, slots=True, eq=False)
class Ratio:
    """A rate to report. ``num`` and ``den`` are [runs]; ``empty`` is the reason when Σden = 0.

    ``applies`` masks the runs the rate asks at all (for one-step rates: those that opened the
    round). ``signed`` marks a difference of two outcomes, -1 to 1; ``bounded`` a share.
    """

    metric: str
    num: FloatArray
    den: FloatArray
    empty: str
    by: Mapping[str, str] = field(default_factory=dict)
    round: int | None = None
    applies: BoolArray | None = None
    aggs: tuple[Agg, ...] = ("pooled", "macro")
    signed: bool = False
    bounded: bool = True
    needs_check: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _PerQuestion:
    """A ratio after averaging runs: arrays over the questions it applies to."""

    num: FloatArray
    den: FloatArray
    family: IntArray
    single_rows: bool  # one run and one 0/1 row a question, no two questions of one family

    @property
    def defined(self) -> BoolArray:
        return self.den > 0


@dataclass(frozen=True, slots=True, eq=False)
class _Draft:
    figure: Figure
    columns: FloatArray | None  # [clusters, 2]: what the bootstrap check needs


def figures_from(panel: Panel, ratios: Sequence[Ratio], settings: Settings) -> list[Figure]:
    """Return the figures of ``ratios`` in their order, one for each of their aggregations."""
    drafts = [
        draft
        for ratio in ratios
        for draft in _drafts(panel, ratio, per_question(panel, ratio), settings)
    ]
    return _with_checks(drafts, settings)


def per_question(panel: Panel, ratio: Ratio) -> _PerQuestion:
    applies = _applies(panel, ratio)
    runs = sums_by(panel.question, applies.astype(np.float64), len(panel.question_ids))
    asked = runs > 0
    num, den = (
        sums_by(panel.question, np.where(applies, values, 0.0), len(panel.question_ids))[asked]
        / runs[asked]
        for values in (ratio.num, ratio.den)
    )
    family = panel.family[asked]
    whole = bool(np.isin(den, (0, 1)).all() and np.isin(num, (-1, 0, 1)).all())
    alone = len(np.unique(family)) == len(family) and bool((panel.runs_of_question == 1).all())
    return _PerQuestion(num, den, family, single_rows=whole and alone)


def _applies(panel: Panel, ratio: Ratio) -> BoolArray:
    applies = np.ones(len(panel.runs), dtype=np.bool_) if ratio.applies is None else ratio.applies
    return applies & panel.scored if ratio.needs_check else applies


def _drafts(panel: Panel, ratio: Ratio, rows: _PerQuestion, settings: Settings) -> list[_Draft]:
    return [_draft(panel, ratio, rows, agg, settings) for agg in ratio.aggs]


def _draft(panel: Panel, ratio: Ratio, rows: _PerQuestion, agg: Agg, settings: Settings) -> _Draft:
    own = rows.defined
    base = Figure(
        metric=ratio.metric,
        agg=agg,
        round=ratio.round,
        by=ratio.by,
        num=float(rows.num.sum()),
        den=float(rows.den.sum()),
        n_questions=int(own.sum()),
        n_undefined=int((~own).sum()),
        reason=_reason(panel, ratio),
        source=settings.source,
        notes=ratio.notes,
    )
    if not own.any():
        return _Draft(base, None)
    num, den = rows.num[own], rows.den[own]
    if agg == "macro":
        num, den = num / den, np.ones(len(den))
    estimate = _estimate(ratio, rows, num, den, settings.alpha)
    if ratio.bounded and estimate.ci is not None and not ratio.signed:
        low, high = estimate.ci
        estimate = replace(estimate, ci=(max(0.0, low), min(1.0, high)))
    figure = replace(
        _labelled(base, estimate, int(own.sum())),
        num=float(num.sum()),
        den=float(den.sum()),
        between_run_sd=None if agg == "macro" else _between_run_sd(panel, ratio),
        n_clusters=len(np.unique(rows.family[own])),
    )
    columns = np.stack(
        [sums_by(rows.family[own], values, int(panel.family.max()) + 1) for values in (num, den)],
        axis=1,
    )
    return _Draft(figure, columns if estimate.method == "cr1_t" else None)


def _reason(panel: Panel, ratio: Ratio) -> str:
    if ratio.needs_check and not panel.scored.any():
        return NO_CHECK_REASON if panel.runs else "no runs"
    return ratio.empty


def _estimate(
    ratio: Ratio, rows: _PerQuestion, num: FloatArray, den: FloatArray, alpha: float
) -> Estimate:
    if rows.single_rows and ratio.signed:
        gained, lost = int((num > 0).sum()), int((num < 0).sum())
        estimate = bonett_price(gained, lost, len(num), alpha)
    elif rows.single_rows and ratio.bounded:
        value = float(num.mean())
        ci = wilson(float(num.sum()), len(num), alpha)
        estimate = Estimate(value, None, None, ci, "wilson")
    else:
        estimate = ratio_estimate(num, den, rows.family[rows.defined], alpha)
    if estimate is None:
        raise AssertionError("an estimate of an empty denominator was asked for")
    return estimate


def _labelled(base: Figure, estimate: Estimate, questions: int) -> Figure:
    notes = list(base.notes)
    if questions < FEW_QUESTIONS:
        notes.append(FEW_QUESTIONS_NOTE)
    if estimate.ci is None:
        notes.append("no interval: " + ("one cluster" if estimate.df == 0 else "no variation"))
    return replace(
        base,
        value=estimate.value,
        reason=None,
        ci=estimate.ci,
        ci_method=estimate.method if estimate.ci else None,
        se_cluster=estimate.se,
        notes=tuple(notes),
    )


def _between_run_sd(panel: Panel, ratio: Ratio) -> float | None:
    """Return the SD of the rate over seeds, each over all its questions; None below two seeds."""
    applies = _applies(panel, ratio)
    seeds, index = np.unique(
        np.array([run.seed for run in panel.runs], dtype=object), return_inverse=True
    )
    if len(seeds) < 2:
        return None
    num, den = (
        sums_by(index.astype(np.int64), np.where(applies, values, 0.0), len(seeds))
        for values in (ratio.num, ratio.den)
    )
    used = den > 0
    return float(np.std(num[used] / den[used], ddof=1)) if used.sum() > 1 else None


def _with_checks(drafts: Sequence[_Draft], settings: Settings) -> list[Figure]:
    """Put the percentile interval beside every CR1-t one that has enough clusters."""
    wanted = [
        draft
        for draft in drafts
        if draft.columns is not None and (draft.figure.n_clusters or 0) >= CHECK_FROM
    ]
    if not wanted:
        return [draft.figure for draft in drafts]
    columns = np.concatenate([draft.columns for draft in wanted if draft.columns is not None], 1)
    sums = bootstrap.resampled_sums(columns, settings.resamples, settings.seed)
    checked = {
        id(draft): _checked(draft.figure, sums[:, 2 * i], sums[:, 2 * i + 1], settings)
        for i, draft in enumerate(wanted)
    }
    return [checked.get(id(draft), draft.figure) for draft in drafts]


def _checked(figure: Figure, num: FloatArray, den: FloatArray, settings: Settings) -> Figure:
    found = bootstrap.percentile_interval(bootstrap.ratio_replicates(num, den), settings.alpha)
    check = Check(found.ci, bootstrap.METHOD, found.undefined_share)
    return replace(figure, check=check, resamples=settings.resamples, seed=settings.seed)

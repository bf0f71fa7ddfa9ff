"""Questions as the unit of inference where the rows are judgments or labels, not runs of debates.

Whatever is counted (pairs, presentations, labels) is summed within its question. The figures then
come from the same place as those of debates: interval, check and labels are decided there.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from audits.metrics.arrays import FloatArray, IntArray, sums_by
from audits.metrics.bootstrap import METHOD, percentile_interval
from audits.metrics.figures import FEW_QUESTIONS, FEW_QUESTIONS_NOTE, Agg, Figure, Interval
from audits.metrics.intervals import t_quantile
from audits.metrics.panel import build_panel
from audits.metrics.ratio import Ratio, Settings, figures_from
from audits.metrics.records import RunRow, Usage

#: What one unit adds to its question: (question_id, numerator, denominator).
Cell = tuple[str, float, float]


class QuestionTable:
    """The questions of one judge or queue, with the family of each.

    ``families`` maps every question's id to its family, itself where it stands alone.
    """

    def __init__(self, families: Mapping[str, str]) -> None:
        # A question here is a run without states: one row that owns its counts.
        self._panel = build_panel(
            _row_of(question, family) for question, family in families.items()
        )
        self.question_ids = self._panel.question_ids
        self._position = {name: index for index, name in enumerate(self.question_ids)}

    def __len__(self) -> int:
        return len(self.question_ids)

    @property
    def family(self) -> IntArray:
        """Return the family index of every question, [questions]."""
        return self._panel.family

    @property
    def family_count(self) -> int:
        return int(self.family.max()) + 1 if len(self) else 0

    def index(self, question_ids: Iterable[str]) -> IntArray:
        return np.array([self._position[name] for name in question_ids], dtype=np.int64)

    def cluster_of(self, question_ids: Iterable[str]) -> IntArray:
        """Return the family index of each of ``question_ids``: what a resample draws."""
        return self.family[self.index(question_ids)]

    def ratio(
        self,
        metric: str,
        cells: Sequence[Cell],
        empty: str,
        *,
        by: Mapping[str, str] | None = None,
        signed: bool = False,
        bounded: bool = True,
        aggs: tuple[Agg, ...] = ("pooled", "macro"),
        notes: tuple[str, ...] = (),
    ) -> Ratio:
        """Return the rate Σnum/Σden of ``cells``; ``empty`` is the reason where Σden = 0.

        Only the questions named in ``cells`` were asked it. ``signed`` and ``bounded`` as in
        ``Ratio``.
        """
        index = self.index(question for question, _, _ in cells)
        num, den, asked = (
            sums_by(index, np.array(values, dtype=np.float64), len(self))
            for values in ([c[1] for c in cells], [c[2] for c in cells], [1.0] * len(cells))
        )
        return Ratio(
            metric, num, den, empty, by or {}, applies=asked > 0, aggs=aggs, signed=signed,
            bounded=bounded, needs_check=False, notes=notes,
        )  # fmt: skip

    def figures(self, ratios: Sequence[Ratio], settings: Settings) -> list[Figure]:
        return figures_from(self._panel, ratios, settings)


def _row_of(question: str, family: str) -> RunRow:
    return RunRow(question, "", question, family, None, 0, (), 1, (), (), "", Usage())


def with_sandwich(
    base: Figure,
    value: float,
    influence: FloatArray,
    clusters: IntArray,
    alpha: float,
    limits: Interval | None = None,
) -> Figure:
    """Return ``base`` with ``value`` and the cluster-robust interval of a smooth statistic.

    ``influence`` [rows] is each row's part in the statistic's error (its linearisation), so that
    SE² = G/(G-1)·Σ_g(Σ influence)². ``limits`` are the ends of the statistic's range.
    """
    groups, index = np.unique(clusters, return_inverse=True)
    sums = sums_by(index.astype(np.int64), influence, len(groups))
    scatter = float(sums @ sums)
    if len(groups) < 2 or scatter <= 1e-24:
        why = "one cluster" if len(groups) < 2 else "no variation"
        notes = (*labelled(base).notes, f"no interval: {why}")
        return replace(base, value=value, reason=None, n_clusters=len(groups), notes=notes)
    se = math.sqrt(len(groups) / (len(groups) - 1) * scatter)
    half = t_quantile(1 - alpha / 2, len(groups) - 1) * se
    low, high = limits or (-math.inf, math.inf)
    return replace(
        labelled(base),
        value=value,
        reason=None,
        ci=(max(low, value - half), min(high, value + half)),
        ci_method="cr1_t",
        se_cluster=se,
        n_clusters=len(groups),
    )


def with_replicates(
    base: Figure, value: float, replicates: FloatArray, settings: Settings
) -> Figure:
    """Return ``base`` with ``value`` and the percentile interval of its question bootstrap."""
    if math.isnan(value):
        return base
    found = percentile_interval(replicates, settings.alpha)
    notes = labelled(base).notes
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


def labelled(base: Figure) -> Figure:
    """Return ``base`` with the label that few questions call for."""
    if base.n_questions >= FEW_QUESTIONS or FEW_QUESTIONS_NOTE in base.notes:
        return base
    return replace(base, notes=(*base.notes, FEW_QUESTIONS_NOTE))

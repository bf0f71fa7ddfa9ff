"""The difference of two rates over unlike rows of the same questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from audits.metrics.arrays import FloatArray, IntArray
from audits.metrics.figures import Figure
from audits.metrics.question_table import Cell, QuestionTable, with_sandwich
from audits.metrics.ratio import Settings


@dataclass(frozen=True, slots=True, eq=False)
class RateDifference:
    """Σnum/Σden of ``plus`` less that of ``minus``; ``empty`` is the reason where either is 0/0."""

    metric: str
    plus: Sequence[Cell]
    minus: Sequence[Cell]
    empty: str
    by: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def rate_difference(table: QuestionTable, wanted: RateDifference, settings: Settings) -> Figure:
    """Return the pooled difference with a cluster-robust interval by linearisation.

    Questions that hold rows of both kinds count once in the variance, so the difference within
    them is paired as far as the data are.
    """
    sides = [_side(table, cells) for cells in (wanted.plus, wanted.minus)]
    questions = {question for cells in (wanted.plus, wanted.minus) for question, _, d in cells if d}
    base = Figure(
        wanted.metric,
        "pooled",
        by=wanted.by,
        n_questions=len(questions),
        reason=wanted.empty,
        source=settings.source,
        notes=wanted.notes,
    )
    (num_a, den_a, at_a), (num_b, den_b, at_b) = sides
    if not den_a.sum() or not den_b.sum():
        return base
    rate_a, rate_b = num_a.sum() / den_a.sum(), num_b.sum() / den_b.sum()
    influence = np.concatenate(
        [(num_a - rate_a * den_a) / den_a.sum(), -(num_b - rate_b * den_b) / den_b.sum()]
    )
    value = float(rate_a - rate_b)
    counted = Figure(
        wanted.metric, "pooled", by=wanted.by, num=value, den=1.0, n_questions=len(questions),
        reason=wanted.empty, source=settings.source,
        notes=(*wanted.notes, f"{_rate(num_a, den_a)} less {_rate(num_b, den_b)}"),
    )  # fmt: skip
    clusters = np.concatenate([at_a, at_b])
    return with_sandwich(counted, value, influence, clusters, settings.alpha, (-1.0, 1.0))


def _side(table: QuestionTable, cells: Sequence[Cell]) -> tuple[FloatArray, FloatArray, IntArray]:
    num, den = (np.array([cell[i] for cell in cells], dtype=np.float64) for i in (1, 2))
    return num, den, table.cluster_of(question for question, _, _ in cells)


def _rate(num: FloatArray, den: FloatArray) -> str:
    return f"{num.sum():g}/{den.sum():g}"

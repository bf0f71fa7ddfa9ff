"""May a judge stand in for a person? The alternative annotator test.

Each person in turn is left out; the judge and the person left out are both compared with the
others, item by item. The judge wins against a person if it is not worse by more than epsilon,
the price of a person's time. Source: Calderon, Reichart & Dror 2025 (arXiv 2501.10970).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from audits.metrics.arrays import BoolArray, FloatArray, IntArray, floats
from audits.metrics.figures import Figure
from audits.metrics.intervals import mean_estimate, t_upper_tail
from audits.metrics.labels import MISSING, LabelTable
from audits.metrics.question_table import labelled
from audits.metrics.ratio import Settings

#: What a trusted expert's labels are worth; .15 for skilled people and .1 for crowd workers.
EXPERT_EPSILON = 0.2
MIN_PEOPLE = 3
MIN_ITEMS = 30  # below this the t test of one person says little


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """One person against the judge, both compared with the others, [items compared]."""

    annotator: str
    items: IntArray
    judge: FloatArray  # alignment with the others
    person: FloatArray

    @property
    def advantage(self) -> float:
        """Return how often the judge is at least as close to the others as the person."""
        return float(np.mean(self.judge >= self.person))

    @property
    def losses(self) -> FloatArray:
        """Return [person at least as close] - [judge at least as close], per item."""
        return floats(self.person >= self.judge) - floats(self.judge >= self.person)


def leave_one_out(
    table: LabelTable, judge: IntArray, values: FloatArray | None = None
) -> list[LeftOut]:
    """Return each person's comparison on the items that the judge and another person labelled.

    ``judge`` holds codes [items]. Alignment is the share of the others with the same label, or,
    with the ``values`` of the categories, minus the root mean squared distance to them.
    """
    found = []
    for index, annotator in enumerate(table.annotators):
        others = np.delete(table.codes, index, axis=1)
        own = table.codes[:, index]
        compared = (own != MISSING) & (judge != MISSING) & (others != MISSING).any(axis=1)
        at = np.flatnonzero(compared)
        judged, personal = (_alignment(column[at], others[at], values) for column in (judge, own))
        found.append(LeftOut(annotator, at, judged, personal))
    return found


def _alignment(codes: IntArray, others: IntArray, values: FloatArray | None) -> FloatArray:
    present: BoolArray = others != MISSING
    number = present.sum(axis=1)
    if values is None:
        return floats(((codes[:, None] == others) & present).sum(axis=1) / number)
    squared = np.where(present, (values[codes][:, None] - values[others]) ** 2, 0.0)
    return floats(-np.sqrt(squared.sum(axis=1) / number))


def alt_test_figure(
    table: LabelTable,
    left_out: Sequence[LeftOut],
    settings: Settings,
    *,
    epsilon: float = EXPERT_EPSILON,
) -> Figure:
    """Return the winning rate ω: persons whom the judge may replace / persons tested.

    One-sided t tests clustered by question, corrected by Benjamini and Yekutieli at
    ``settings.alpha``. From ω ≥ .5 on the judge passes. It is a count of tests and has no
    interval.
    """
    tested = [each for each in left_out if len(each.items) >= MIN_ITEMS]
    questions = {table.item_questions[i] for each in tested for i in each.items.tolist()}
    base = Figure(
        "alt_test_winning_rate",
        by={"epsilon": f"{epsilon:g}"},
        n_questions=len(questions),
        reason=f"fewer than {MIN_PEOPLE} people with {MIN_ITEMS} items each",
        source=settings.source,
    )
    if len(tested) < MIN_PEOPLE:
        return base
    p_values = [_p_value(table, each, epsilon) for each in tested]
    wins = benjamini_yekutieli(p_values, settings.alpha)
    advantage = float(np.mean([each.advantage for each in tested]))
    notes = [f"the judge is at least as close to the others in {advantage:.3f} of comparisons"]
    if skipped := [each.annotator for each in left_out if len(each.items) < MIN_ITEMS]:
        notes.append(f"too few items: {', '.join(skipped)}")
    won, number = sum(wins), len(tested)
    return replace(
        labelled(base), num=float(won), den=float(number), value=won / number, reason=None,
        notes=(*labelled(base).notes, *notes),
    )  # fmt: skip


def _p_value(table: LabelTable, each: LeftOut, epsilon: float) -> float:
    """Return the p against the judge being worse than the person by ``epsilon`` or more."""
    estimate = mean_estimate(each.losses, table.cluster[each.items])
    if estimate is None:
        raise AssertionError("a person without items was tested")
    if estimate.se is None or not estimate.df:
        return 0.0 if estimate.value < epsilon else 1.0
    return t_upper_tail((epsilon - estimate.value) / estimate.se, estimate.df)


def benjamini_yekutieli(p_values: Sequence[float], level: float) -> list[bool]:
    """Return which hypotheses are rejected at this false discovery rate, under any dependence."""
    p = floats(p_values)
    order = np.argsort(p, kind="stable")
    ranks = np.arange(1, len(p) + 1)
    bounds = ranks / len(p) * level / np.sum(1 / ranks)
    passing = np.flatnonzero(p[order] <= bounds)
    rejected = np.zeros(len(p), dtype=np.bool_)
    if len(passing):
        rejected[order[: passing[-1] + 1]] = True
    return [bool(each) for each in rejected]

"""Does a judge like length? Wins regressed on the difference of lengths and on position.

The coefficient alone is association: a longer answer may be better. What is the judge's own is
``length_excess``, its coefficient less the people's on the same pairs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from audits.metrics.arrays import FloatArray, IntArray, floats
from audits.metrics.figures import Figure
from audits.metrics.intervals import t_quantile
from audits.metrics.judgments import TIE, JudgedItem
from audits.metrics.labels import SEALED, LabelRow
from audits.metrics.logistic import Fit, clustered_logistic, sigmoid
from audits.metrics.question_table import QuestionTable, labelled
from audits.metrics.ratio import Settings

ASSOCIATION = "association: a longer answer may be better"
NO_LENGTHS = "no pair with a verdict has known lengths"
SAME_LENGTHS = "the candidates of every pair are equally long"
UNNAMED = "the pairs are not of the same two systems: nobody's rate can be told"
ONE_ORDER = "shown in one order only: position is not told apart from preference"
NO_PEOPLE = "no pair that the judge decided has a person's verdict"


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """One row a verdict, from the view of one candidate of each pair.

    ``wins`` of that candidate (a tie is ½), ``length`` tanh(Δlength/sd), ``position`` +½ shown
    first, -½ last, 0 unknown; the rows of an item share a weight of one. ``items`` index the
    pair of a row. All [rows].
    """

    wins: FloatArray
    length: FloatArray
    position: FloatArray
    weights: FloatArray
    items: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """One pair, seen from ``own``."""

    item: JudgedItem
    own: str
    difference: float


class LengthModel:
    """The pairs of one judge that lengths are known of, and what is fitted to them."""

    def __init__(self, items: Sequence[JudgedItem], table: QuestionTable) -> None:
        pairs = [item for item in items if _has_lengths(item)]
        self.systems = two_systems(pairs)
        self.views = [_view(item, self.systems) for item in pairs]
        self.clusters = table.cluster_of(view.item.question_id for view in self.views)
        self.questions = [view.item.question_id for view in self.views]
        differences = np.array([view.difference for view in self.views])
        self.scaled = (
            np.tanh(differences / spread) if (spread := self._spread(differences)) else None
        )

    def _spread(self, differences: FloatArray) -> float:
        """Return the SD of the differences.

        Around zero where the pairs have no common direction, so that it does not matter which
        candidate stands first in the file.
        """
        if len(differences) < 2:
            return 0.0
        if self.systems:
            return float(np.std(differences, ddof=1))
        return float(np.sqrt(np.mean(differences**2)))

    def judged(self) -> Pairs:
        said = [
            [(row.verdict or "", row.order) for row in view.item.rows if row.decided]
            for view in self.views
        ]
        return self._pairs(said)

    def labelled_by(self, labels: Sequence[LabelRow]) -> Pairs:
        by_item: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for label in labels:
            by_item.setdefault(label.item_id, []).append((label.category, label.shown_order))
        said = []
        for view in self.views:
            words = {*view.item.given, TIE}
            mine = by_item.get(view.item.facts.item_id, [])
            said.append([(word, order) for word, order in mine if word in words])
        return self._pairs(said)

    def _pairs(self, said: Sequence[Sequence[tuple[str, tuple[str, ...]]]]) -> Pairs:
        rows = [
            (_win(verdict, view.own), _position(order, view.own), 1 / len(verdicts), index)
            for index, (view, verdicts) in enumerate(zip(self.views, said, strict=True))
            for verdict, order in verdicts
        ]
        wins, position, weights = (np.array([r[i] for r in rows], dtype=float) for i in range(3))
        items = np.array([row[3] for row in rows], dtype=np.int64)
        scaled = np.zeros(len(self.views)) if self.scaled is None else self.scaled
        return Pairs(wins, scaled[items], position, weights, items)

    def design(self, pairs: Pairs) -> tuple[FloatArray, tuple[str, ...]]:
        """Return the columns, length first, and what has to be said about them.

        An intercept only where the pairs have a direction; position only where it can be told
        from what is there already.
        """
        columns = [pairs.length]
        notes: tuple[str, ...] = ()
        if self.systems:
            columns.append(np.ones(len(pairs.wins)))
        if np.ptp(pairs.position) > 0 or (not self.systems and pairs.position.any()):
            columns.append(pairs.position)
        else:
            notes = (ONE_ORDER,)
        return np.stack(columns, axis=1), notes


def _has_lengths(item: JudgedItem) -> bool:
    known = item.facts.lengths.keys() >= set(item.given)
    return len(item.given) == 2 and known and bool(item.verdicts)


def two_systems(items: Sequence[JudgedItem]) -> tuple[str, str] | None:
    """Return the two models that every pair is of, in order of name, or None."""
    found = {
        tuple(sorted(item.facts.models.get(name, "") for name in item.given)) for item in items
    }
    if len(found) != 1:
        return None
    first, last = found.pop()
    return (first, last) if first and first != last else None


def _view(item: JudgedItem, systems: tuple[str, str] | None) -> _View:
    own, other = item.given
    if systems and item.facts.models[own] != systems[0]:
        own, other = other, own
    lengths: Mapping[str, float] = item.facts.lengths
    return _View(item, own, float(lengths[own]) - float(lengths[other]))


def _win(verdict: str, own: str) -> float:
    return 0.5 if verdict == TIE else float(verdict == own)


def _position(order: tuple[str, ...], own: str) -> float:
    if own not in order:
        return 0.0
    return 0.5 if order[0] == own else -0.5


def length_figures(
    items: Sequence[JudgedItem],
    table: QuestionTable,
    settings: Settings,
    labels: Sequence[LabelRow] = (),
) -> list[Figure]:
    """Return length_coefficient, length_controlled_rate by model, and length_excess.

    ``labels`` are people's pairwise verdicts on the same items. Null with the reason
    ``separated`` where length or position predicts every verdict.
    """
    model = LengthModel(items, table)
    base = Figure(
        "length_coefficient", n_questions=len(set(model.questions)), reason=NO_LENGTHS,
        source=settings.source,
    )  # fmt: skip
    if model.scaled is None:
        reason = SAME_LENGTHS if model.views else NO_LENGTHS
        names = ("length_coefficient", "length_controlled_rate", "length_excess")
        return [replace(base, metric=name, reason=reason) for name in names]
    pairs = model.judged()
    x, notes = model.design(pairs)
    fit = clustered_logistic(x, pairs.wins, pairs.weights, model.clusters[pairs.items])
    coefficient = replace(base, notes=(ASSOCIATION, *notes))
    length = np.eye(x.shape[1])[0]
    return [
        _coefficient(coefficient, fit, length, settings),
        *_controlled(
            replace(base, metric="length_controlled_rate", notes=notes), model, fit, settings
        ),
        _excess(replace(base, metric="length_excess"), model, pairs, labels, settings),
    ]


def _coefficient(base: Figure, fit: Fit | str, contrast: FloatArray, settings: Settings) -> Figure:
    if isinstance(fit, str):
        return replace(base, reason=fit)
    value = float(contrast @ fit.beta)
    se = fit.se(contrast)
    half = t_quantile(1 - settings.alpha / 2, fit.clusters - 1) * se
    return replace(
        labelled(base), value=value, reason=None, ci=(value - half, value + half),
        ci_method="cr1_t", se_cluster=se, n_clusters=fit.clusters,
    )  # fmt: skip


def _controlled(
    base: Figure, model: LengthModel, fit: Fit | str, settings: Settings
) -> list[Figure]:
    """Return each system's rate of wins at equal length, the average over positions."""
    if model.systems is None or isinstance(fit, str):
        return [replace(base, reason=UNNAMED if model.systems is None else str(fit))]
    intercept = np.eye(len(fit.beta))[1]
    figures = []
    for name, sign in zip(model.systems, (1.0, -1.0), strict=True):
        found = _coefficient(replace(base, by={"model": name}), fit, sign * intercept, settings)
        ends = floats([found.value, *(found.ci or ())])
        value, low, high = sigmoid(ends).tolist()
        figures.append(replace(found, value=value, ci=(low, high), se_cluster=None))
    return figures


def _excess(
    base: Figure,
    model: LengthModel,
    judged: Pairs,
    labels: Sequence[LabelRow],
    settings: Settings,
) -> Figure:
    """Return the judge's length coefficient less the people's, both fitted to the same pairs."""
    people = model.labelled_by(
        [label for label in labels if label.kind == "pairwise" and label.reveal_state == SEALED]
    )
    shared = np.intersect1d(judged.items, people.items)
    base = replace(base, n_questions=len({model.questions[i] for i in shared.tolist()}))
    if not len(shared):
        return replace(base, reason=NO_PEOPLE)
    sides = [_only(pairs, shared) for pairs in (judged, people)]
    designs = [model.design(pairs)[0] for pairs in sides]
    clusters = [model.clusters[pairs.items] for pairs in sides]
    for name, x, pairs, cluster in zip(("judge", "people"), designs, sides, clusters, strict=True):
        alone = clustered_logistic(x, pairs.wins, pairs.weights, cluster)
        if isinstance(alone, str):
            return replace(base, reason=f"{name}: {alone}")
    own, theirs = (x.shape[1] for x in designs)
    both = np.zeros((sum(len(x) for x in designs), own + theirs))
    both[: len(designs[0]), :own], both[len(designs[0]) :, own:] = designs
    fit = clustered_logistic(
        both,
        np.concatenate([pairs.wins for pairs in sides]),
        np.concatenate([pairs.weights for pairs in sides]),
        np.concatenate(clusters),
    )
    contrast = np.zeros(own + theirs)
    contrast[[0, own]] = 1.0, -1.0
    return _coefficient(base, fit, contrast, settings)


def _only(pairs: Pairs, items: IntArray) -> Pairs:
    kept = np.isin(pairs.items, items)
    return Pairs(*(getattr(pairs, name)[kept] for name in Pairs.__slots__))

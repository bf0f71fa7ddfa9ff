"""Strengths of several systems from pairs: Bradley-Terry, fitted to all pairs at once.

Not Elo, whose ratings depend on the order in which the pairs are read.
"""

from collections.abc import Sequence

import numpy as np

from audits.metrics.arrays import FloatArray, IntArray
from audits.metrics.figures import Figure
from audits.metrics.intervals import t_quantile
from audits.metrics.judgments import TIE, JudgedItem
from audits.metrics.logistic import COLLINEAR, clustered_logistic
from audits.metrics.question_table import QuestionTable, labelled
from audits.metrics.ratio import Settings

METRIC = "bradley_terry"
NO_SYSTEMS = "no pair of two named systems has a verdict"
NOT_CONNECTED = "the systems are not all connected by pairs"


def bradley_terry_figures(
    items: Sequence[JudgedItem], table: QuestionTable, settings: Settings
) -> list[Figure]:
    """Return each system's log strength, the mean of all being zero, by.model.

    A tie is half a win; the judgments of an item weigh one together; the interval is analytic
    and clustered by question. σ(difference of two) is the chance that one beats the other.
    """
    pairs = [item for item in items if _is_of_two_systems(item)]
    names = sorted({model for item in pairs for model in item.facts.models.values()})
    questions = len({item.question_id for item in pairs})
    base = Figure(METRIC, n_questions=questions, reason=NO_SYSTEMS, source=settings.source)
    if not pairs:
        return [base]
    x, wins, weights, owner = _rows(pairs, names)
    clusters = table.cluster_of(item.question_id for item in pairs)[owner]
    # The first system is the origin of the fit; strengths are then moved to mean zero.
    fit = clustered_logistic(x[:, 1:], wins, weights, clusters)
    if isinstance(fit, str):
        why = NOT_CONNECTED if fit == COLLINEAR else fit
        return [
            Figure(METRIC, by={"model": name}, n_questions=questions, reason=why,
                   source=settings.source)
            for name in names
        ]  # fmt: skip
    centre = (np.eye(len(names)) - 1 / len(names))[:, 1:]
    quantile = t_quantile(1 - settings.alpha / 2, fit.clusters - 1)
    figures = []
    for name, contrast in zip(names, centre, strict=True):
        value, se = float(contrast @ fit.beta), fit.se(contrast)
        figure = Figure(
            METRIC, by={"model": name}, value=value,
            ci=(value - quantile * se, value + quantile * se), ci_method="cr1_t",
            n_questions=questions, source=settings.source, se_cluster=se, n_clusters=fit.clusters,
        )  # fmt: skip
        figures.append(labelled(figure))
    return figures


def _is_of_two_systems(item: JudgedItem) -> bool:
    models = {item.facts.models.get(name) for name in item.given}
    return len(item.given) == 2 and len(models - {None}) == 2 and bool(item.verdicts)


def _rows(
    pairs: Sequence[JudgedItem], names: Sequence[str]
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Return (x [verdicts, systems] of +1 and -1, wins, weights, index of the pair)."""
    at = {name: index for index, name in enumerate(names)}
    x, wins, weights, owner = [], [], [], []
    for index, item in enumerate(pairs):
        own, other = item.given
        row = np.zeros(len(names))
        row[at[item.facts.models[own]]], row[at[item.facts.models[other]]] = 1.0, -1.0
        said = [verdict for verdicts in item.verdicts.values() for verdict in verdicts]
        for verdict in said:
            x.append(row)
            wins.append(0.5 if verdict == TIE else float(verdict == own))
            weights.append(1 / len(said))
            owner.append(index)
    return np.array(x), np.array(wins), np.array(weights), np.array(owner, dtype=np.int64)

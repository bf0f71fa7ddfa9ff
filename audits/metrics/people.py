"""The figures of a queue: how people agree, with each other and with themselves."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from audits.metrics.agreement import Level
from audits.metrics.agreement_figures import (
    agreement_ratio,
    annotator_pairs,
    coefficient_figures,
    group_agreement_ratio,
    group_coefficients,
    levels_of,
    pair_coefficients,
    prevalence_ratios,
)
from audits.metrics.figures import Figure
from audits.metrics.labels import LabelRow, LabelTable, category_name, first_labels, label_table
from audits.metrics.question_table import Cell, QuestionTable
from audits.metrics.ratio import Ratio, Settings
from audits.metrics.two_rates import RateDifference, rate_difference

NOT_SERVED_AGAIN = "nobody labelled a pair twice with its candidates swapped"
NO_CONTROL = "pairs were re-served swapped only, or unswapped only: differing is no order effect"


def people_figures(
    rows: Sequence[LabelRow],
    *,
    categories: Sequence[str] | None = None,
    levels: Sequence[Level] | None = None,
    settings: Settings | None = None,
) -> list[Figure]:
    """Return every figure of the labels of one kind and unit.

    ``categories`` are the rubric's, in order (AC1 counts them, used or not); ``levels`` the
    levels of measurement for alpha, by default those of the kind.
    Raises MetricsError for labels that no figure may be made of.
    """
    settings = replace(settings or Settings(), source="human")
    table = label_table(rows, categories)
    kind = rows[0].kind if rows else ""
    ratios = _agreement_ratios(table)
    coefficients = list(group_coefficients(table, levels or levels_of(table, kind)))
    for by, a, b in annotator_pairs(table):
        coefficients += pair_coefficients(a, b, table.weights, len(table.categories), by)
    return [
        *table.questions.figures(ratios, settings),
        *coefficient_figures(table, coefficients, settings),
        *self_agreement_figures(rows, settings),
        *gold_figures(rows, settings),
    ]


def people_ratios(
    rows: Sequence[LabelRow], categories: Sequence[str] | None = None
) -> tuple[QuestionTable, list[Ratio]]:
    """Return the rates among ``people_figures`` but gold accuracy, and their questions."""
    table = label_table(rows, categories)
    swapped, _ = _served_twice(rows)
    known = set(table.questions.question_ids)
    cells = [cell for cell in swapped if cell[0] in known]
    flips = table.questions.ratio("human_flip_rate", cells, NOT_SERVED_AGAIN)
    return table.questions, [*_agreement_ratios(table), flips]


def _agreement_ratios(table: LabelTable) -> list[Ratio]:
    return [group_agreement_ratio(table), *_pair_ratios(table), *prevalence_ratios(table)]


def _pair_ratios(table: LabelTable) -> Iterator[Ratio]:
    for by, a, b in annotator_pairs(table):
        yield agreement_ratio(table, a, b, by)


def self_agreement_figures(rows: Sequence[LabelRow], settings: Settings) -> list[Figure]:
    """Return human_flip_rate, and human_order_effect: differing when re-served swapped, less
    differing when re-served unswapped.

    A pair of servings to one person counts once; whether they were swapped is read from what was
    shown, not from a plan.
    """
    swapped, unswapped = _served_twice(rows)
    table = QuestionTable({row.question_id: row.family or row.question_id for row in rows})
    flips = table.ratio("human_flip_rate", swapped, NOT_SERVED_AGAIN)
    effect = RateDifference("human_order_effect", swapped, unswapped, NO_CONTROL)
    return [*table.figures([flips], settings), rate_difference(table, effect, settings)]


def _served_twice(rows: Iterable[LabelRow]) -> tuple[list[Cell], list[Cell]]:
    by_person: dict[tuple[str, str], list[LabelRow]] = {}
    for row in rows:
        if row.shown_order:
            by_person.setdefault((row.item_id, row.annotator), []).append(row)
    swapped: list[Cell] = []
    unswapped: list[Cell] = []
    for served in by_person.values():
        for one, other in combinations(served, 2):
            cell = (one.question_id, float(one.category != other.category), 1.0)
            (unswapped if one.shown_order == other.shown_order else swapped).append(cell)
    return swapped, unswapped


def gold_figures(rows: Sequence[LabelRow], settings: Settings) -> list[Figure]:
    """Return gold_accuracy over all people and by annotator, on their first label of gold items.

    A gate compares the lower end of the interval (``passes_gate``), not the value.
    """
    table, ratios = gold_ratios(rows)
    return table.figures(ratios, settings)


def gold_ratios(rows: Sequence[LabelRow]) -> tuple[QuestionTable, list[Ratio]]:
    """Return the rates of ``gold_figures``, and the questions that they are over."""
    first = [row for row in first_labels(rows) if row.gold is not None]
    table = QuestionTable({row.question_id: row.family or row.question_id for row in first})
    ratios = [table.ratio("gold_accuracy", _gold_cells(first), "no gold items", aggs=("pooled",))]
    for annotator in sorted({row.annotator for row in first}):
        own = _gold_cells(row for row in first if row.annotator == annotator)
        by = {"annotator": annotator}
        ratios.append(table.ratio("gold_accuracy", own, "no gold items", by=by, aggs=("pooled",)))
    return table, ratios


def _gold_cells(rows: Iterable[LabelRow]) -> list[Cell]:
    return [
        (row.question_id, float(row.category == category_name(row.gold)), 1.0)
        for row in rows
        if row.gold is not None
    ]


def passes_gate(figure: Figure, least: float) -> bool:
    """Return whether an annotator's gold accuracy is at least ``least`` with confidence."""
    return figure.ci is not None and figure.ci[0] >= least

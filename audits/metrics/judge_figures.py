"""All figures and tables of one judge, in the order in which a report shows them."""

from collections import Counter
from collections.abc import Sequence

from audits.metrics.alt_test import EXPERT_EPSILON
from audits.metrics.bradley_terry import NO_SYSTEMS, bradley_terry_figures
from audits.metrics.figures import Figure
from audits.metrics.judge_accuracy import accuracy_ratios, combined_verdict
from audits.metrics.judge_length import length_figures
from audits.metrics.judge_many import many_figures, many_ratios, order_matrix
from audits.metrics.judge_orders import order_ratios, reply_ratios, with_preference_test
from audits.metrics.judge_people import gold_agreement_figures, judge_people_figures
from audits.metrics.judge_preferences import score_totals, self_preference
from audits.metrics.judgments import (
    CONFLICT,
    SUCCEEDED,
    JudgedItem,
    JudgmentRow,
    families_of,
    judged_items,
)
from audits.metrics.labels import LabelRow
from audits.metrics.question_table import QuestionTable
from audits.metrics.ratio import Ratio, Settings


def judge_figures(
    rows: Sequence[JudgmentRow],
    *,
    labels: Sequence[LabelRow] = (),
    categories: Sequence[str] | None = None,
    epsilon: float = EXPERT_EPSILON,
    settings: Settings | None = None,
) -> list[Figure]:
    """Return every figure of one judge (one hash; the caller splits by group where there are any).

    ``labels`` are people's labels of the same items, of one kind; ``categories`` the rubric's.
    Raises MetricsError for rows that no figure may be made of.
    """
    settings = settings or Settings()
    items = judged_items(rows)
    table = QuestionTable(families_of(items))
    strengths = bradley_terry_figures(items, table, settings)
    # One call for all rates: they share one set of resamples.
    ratios = table.figures(_pair_ratios(items, table), settings)
    return [
        *with_preference_test(ratios, items, table, settings),
        *length_figures(items, table, settings, labels),
        self_preference(items, table, settings),
        *score_totals(items, settings),
        *(figure for figure in strengths if figure.reason != NO_SYSTEMS),
        *many_figures(items, table, settings),
        *gold_agreement_figures(items, settings),
        *judge_people_figures(
            items, labels, categories=categories, epsilon=epsilon, settings=settings
        ),
    ]


def judge_ratios(items: Sequence[JudgedItem], table: QuestionTable) -> list[Ratio]:
    """Return every rate among the figures of a judge: what adds up over its items."""
    return [*_pair_ratios(items, table), *many_ratios(items, table)]


def _pair_ratios(items: Sequence[JudgedItem], table: QuestionTable) -> list[Ratio]:
    return [
        *accuracy_ratios(items, table),
        *order_ratios(items, table),
        *reply_ratios(items, table),
    ]


def judge_tables(rows: Sequence[JudgmentRow]) -> dict[str, object]:
    """Return the tables of one judge: ``counts``, ``failures``, ``combined``, ``order_matrix``."""
    items = judged_items(rows)
    return {
        "counts": {
            "judgments": len(rows),
            "items": len(items),
            "questions": len({item.question_id for item in items}),
            "items_in_one_order_only": sum(len(item.by_order) == 1 for item in items),
            "items_with_gold": sum(item.facts.gold is not None for item in items),
        },
        "failures": _failures(rows),
        "combined": dict(sorted(Counter(map(_combined, items)).items())),
        "order_matrix": order_matrix(items),
    }


def _failures(rows: Sequence[JudgmentRow]) -> list[dict[str, object]]:
    """Count what has no verdict by status, cause and the order it happened under."""
    found = Counter(
        (row.status, row.cause, "given" if row.order == row.candidates else "other")
        for row in rows
        if row.status != SUCCEEDED
    )
    return [
        {"status": status, "cause": cause or None, "order": order, "n": n}
        for (status, cause, order), n in sorted(found.items())
    ]


def _combined(item: JudgedItem) -> str:
    """Return what became of an item over its orders: a word, never a candidate."""
    verdict = combined_verdict(item)
    if verdict is None:
        return "incomplete"
    if verdict in item.given:
        return "one_chosen"
    return CONFLICT if verdict == CONFLICT else verdict

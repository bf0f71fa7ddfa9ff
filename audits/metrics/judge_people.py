"""A judge against gold labels and against people, on the items that both have."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from audits.metrics.agreement_figures import (
    Coefficient,
    agreement_ratio,
    coefficient_figures,
    numeric_values,
    pair_coefficients,
)
from audits.metrics.alt_test import EXPERT_EPSILON, LeftOut, alt_test_figure, leave_one_out
from audits.metrics.arrays import FloatArray, IntArray
from audits.metrics.figures import Figure
from audits.metrics.judge_accuracy import ORDERS, combined_verdict
from audits.metrics.judgments import JudgedItem
from audits.metrics.labels import (
    MISSING,
    SCALE_KINDS,
    LabelRow,
    LabelTable,
    label_table,
    majority_labels,
)
from audits.metrics.question_table import QuestionTable
from audits.metrics.ratio import Ratio, Settings

JUDGE, GOLD, MAJORITY, OTHERS = "judge", "gold", "majority", "others"


def verdicts_by_item(items: Sequence[JudgedItem], order: str) -> dict[str, str]:
    """Return each item's verdict under ``given`` or ``swapped``, or the one all orders agree on.

    Of the repeats of an order the first verdict counts: a person, too, is asked once. Under
    ``all`` an item whose orders disagree has the verdict ``conflict``, which agrees with nobody;
    one with a failed order has none.
    """
    found: dict[str, str] = {}
    for item in items:
        if order == "all":
            verdict = combined_verdict(item)
        else:
            said = item.verdicts.get(item.given if order == "given" else item.swapped)
            verdict = said[0] if said else None
        if verdict is not None:
            found[item.facts.item_id] = verdict
    return found


class _Pairs:
    """What is to be said of several pairs of columns, so that all share one set of resamples.

    The tables that are added have the same items and differ in their categories alone.
    """

    def __init__(self) -> None:
        self.ratios: list[Ratio] = []
        self._coefficients: list[Coefficient] = []
        self._table: LabelTable | None = None

    def add(self, table: LabelTable, a: IntArray, b: IntArray, by: dict[str, str]) -> None:
        self._table = table
        self.ratios.append(agreement_ratio(table, a, b, by))
        k = len(table.categories)
        self._coefficients += pair_coefficients(a, b, table.weights, k, by)

    def figures(self, settings: Settings) -> list[Figure]:
        if self._table is None:
            return []
        return [
            *self._table.questions.figures(self.ratios, settings),
            *coefficient_figures(self._table, self._coefficients, settings),
        ]


def gold_agreement_figures(items: Sequence[JudgedItem], settings: Settings) -> list[Figure]:
    """Return agreement, kappa and AC1 of the judge with the gold labels, by order."""
    gold = [
        LabelRow(i.facts.item_id, GOLD, "gold", i.facts.gold, i.question_id, i.facts.family)
        for i in items
        if i.facts.gold is not None
    ]
    pairs = _Pairs()
    for order in ORDERS if gold else ():
        table, judge = _with_judge(gold, verdicts_by_item(items, order))
        pairs.add(table, judge, table.column(GOLD), {"pair": f"{JUDGE}|{GOLD}", "order": order})
    return pairs.figures(settings)


def judge_people_figures(
    items: Sequence[JudgedItem],
    labels: Sequence[LabelRow],
    *,
    categories: Sequence[str] | None = None,
    epsilon: float = EXPERT_EPSILON,
    settings: Settings | None = None,
) -> list[Figure]:
    """Return the judge against the people's majority, against each person, and as one of them.

    Per order: agreement, kappa and AC1 with ``majority`` (items whose majority is tied are left
    out) and with each person; then, on the same items and the same people left out, the judge
    and the people each against the ``others``, and the alternative annotator test. Agreement
    between people is no ceiling for a judge against their majority; the others are.
    """
    settings = replace(settings or Settings(), source="human")
    pairs = _people_pairs(items, labels, categories)
    alt_tests: list[Figure] = []
    for order in ORDERS if labels else ():
        table, judge = _with_judge(labels, verdicts_by_item(items, order), categories)
        left_out = leave_one_out(table, judge, _values(table, labels[0].kind))
        found = alt_test_figure(table, left_out, settings, epsilon=epsilon)
        alt_tests.append(replace(found, by={**found.by, "order": order}))
    return [*pairs.figures(settings), *alt_tests]


def judge_people_ratios(
    items: Sequence[JudgedItem],
    labels: Sequence[LabelRow],
    categories: Sequence[str] | None = None,
) -> tuple[QuestionTable, list[Ratio]]:
    """Return the rates among ``judge_people_figures``, and the questions that they are over."""
    table = label_table(labels, categories)
    return table.questions, _people_pairs(items, labels, categories).ratios


def _people_pairs(
    items: Sequence[JudgedItem], labels: Sequence[LabelRow], categories: Sequence[str] | None
) -> _Pairs:
    pairs = _Pairs()
    for order in ORDERS if labels else ():
        table, judge = _with_judge(labels, verdicts_by_item(items, order), categories)
        columns = {MAJORITY: majority_labels(table)} | {
            name: table.column(name) for name in table.annotators
        }
        for name, column in columns.items():
            pairs.add(table, judge, column, {"pair": f"{JUDGE}|{name}", "order": order})
        pairs.ratios += _against_others(table, leave_one_out(table, judge), order)
    return pairs


def _with_judge(
    labels: Sequence[LabelRow],
    verdicts: Mapping[str, str],
    categories: Sequence[str] | None = None,
) -> tuple[LabelTable, IntArray]:
    """Return the people's table with room for the judge's words, and the judge's codes."""
    plain = label_table(labels, categories)
    said = sorted({verdicts[name] for name in plain.item_ids if name in verdicts})
    extra = [name for name in said if name not in plain.categories]
    table = replace(plain, categories=(*plain.categories, *extra))
    code_of = {name: code for code, name in enumerate(table.categories)}
    codes = [code_of[verdicts[name]] if name in verdicts else MISSING for name in table.item_ids]
    return table, np.array(codes, dtype=np.int64)


def _values(table: LabelTable, kind: str) -> FloatArray | None:
    return numeric_values(table) if kind in SCALE_KINDS else None


def _against_others(table: LabelTable, left_out: Sequence[LeftOut], order: str) -> Iterator[Ratio]:
    """Yield plain agreement with the people not left out, of the judge and of those left out."""
    for who in (JUDGE, "people"):
        cells = []
        for each in left_out:
            shares = each.judge if who == JUDGE else each.person
            for i, share in zip(each.items.tolist(), shares.tolist(), strict=True):
                weight = float(table.weights[i])
                cells.append((table.item_questions[i], share * weight, weight))
        by = {"pair": f"{who}|{OTHERS}", "order": order}
        empty = "no item has the judge and two people"
        yield table.questions.ratio("percent_agreement", cells, empty, by=by)

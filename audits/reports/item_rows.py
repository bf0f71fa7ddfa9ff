"""The items behind the figures of judges and people, as they are stored beside a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from audits.metrics import MetricsError
from audits.metrics.judge_audited import audited_items, chosen_ratios
from audits.metrics.judge_figures import judge_ratios
from audits.metrics.judge_people import judge_people_ratios
from audits.metrics.judgments import JudgmentRow, families_of, judged_items
from audits.metrics.labels import SEALED, LabelRow
from audits.metrics.people import gold_ratios, people_ratios
from audits.metrics.people_right import right_ratio
from audits.metrics.question_table import QuestionTable
from audits.metrics.ratio import Ratio
from audits.models import Report, ReportItem
from audits.reports.judged import ConditionItems
from audits.rows.labelled import LabelSet

CHUNK = 2_000
Rate = dict[str, Any]
#: What an item adds to a rate: numerator and denominator, None where it was not asked.
Adds = tuple[float, float] | None


def store_items(report: Report, condition: ConditionItems) -> list[Rate]:
    """Append the items of a condition; return the rates that their ``counts`` are of."""
    alone = _as_questions(condition)
    rates = list(_rates(alone))
    drafts = _drafts(report, condition, [adds for _, adds in rates])
    while batch := list(islice(drafts, CHUNK)):
        ReportItem.objects.bulk_create(batch)
    return [rate for rate, _ in rates]


def _as_questions(condition: ConditionItems) -> ConditionItems:
    """Return the same with every item a question: what a question adds is then what it adds."""
    return ConditionItems(
        condition.name,
        [replace(row, question_id=row.item_id, family=None) for row in condition.judgments],
        [
            replace(labels, rows=_alone(labels.rows), calibration=_alone(labels.calibration))
            for labels in condition.labels
        ],
    )


def _alone(rows: Sequence[LabelRow]) -> list[LabelRow]:
    return [replace(row, question_id=row.item_id, family=None) for row in rows]


def _rates(condition: ConditionItems) -> Iterator[tuple[Rate, dict[str, Adds]]]:
    """Yield every rate of a condition with what each item adds to it.

    Where rows are refused, the report's own figures say why, and nothing adds up.
    """
    try:
        if condition.judgments:
            yield from _judge_rates(condition)
        else:
            for labels in condition.labels:
                yield from _people_rates(labels)
    except MetricsError:
        return


def _judge_rates(condition: ConditionItems) -> Iterator[tuple[Rate, dict[str, Adds]]]:
    items = judged_items(condition.judgments)
    table = QuestionTable(families_of(items))
    yield from _counted(judge_ratios(items, table), table)
    for place, labels in enumerate(condition.labels):
        by = {"labels": labels.source} if place else {}
        questions, ratios = judge_people_ratios(items, labels.rows, labels.categories)
        yield from _counted(ratios, questions, by)
    if condition.labels:
        first = condition.labels[0]
        audited = audited_items(items, first.rows, first.decided)
        yield from _counted(list(chosen_ratios(audited, table)), table)


def _people_rates(labels: LabelSet) -> Iterator[tuple[Rate, dict[str, Adds]]]:
    if labels.left:
        return
    questions, ratios = people_ratios(labels.rows, labels.categories)
    yield from _counted(ratios, questions)
    questions, ratios = gold_ratios([*labels.calibration, *labels.rows])
    yield from _counted(ratios, questions)
    if labels.right:
        questions, ratio = right_ratio(labels.rows, labels.right, labels.decided)
        yield from _counted([ratio], questions)


def _counted(
    ratios: Sequence[Ratio], table: QuestionTable, by: dict[str, str] | None = None
) -> Iterator[tuple[Rate, dict[str, Adds]]]:
    for ratio in ratios:
        asked = ratio.applies if ratio.applies is not None else ratio.den > 0
        adds: dict[str, Adds] = {
            name: (_short(num), _short(den)) if is_asked else None
            for name, is_asked, num, den in zip(
                table.question_ids, asked.tolist(), ratio.num.tolist(), ratio.den.tolist(),
                strict=True,
            )
        }  # fmt: skip
        rate = {"metric": ratio.metric, "round": ratio.round, "by": {**ratio.by, **(by or {})}}
        yield rate, adds


def _short(value: float) -> float:
    return int(value) if value.is_integer() else value


def _drafts(
    report: Report, condition: ConditionItems, counts: Sequence[dict[str, Adds]]
) -> Iterator[ReportItem]:
    judged: dict[str, list[JudgmentRow]] = {}
    for row in condition.judgments:
        judged.setdefault(row.item_id, []).append(row)
    labelled: dict[str, list[LabelRow]] = {}
    for labels in condition.labels:
        for label in (*labels.calibration, *labels.rows):
            labelled.setdefault(label.item_id, []).append(label)
    decided = {k: v for labels in condition.labels for k, v in labels.decided.items()}
    for item_id in judged or labelled:
        facts: JudgmentRow | LabelRow = (judged.get(item_id) or labelled[item_id])[0]
        group = facts.group if isinstance(facts, JudgmentRow) else facts.stratum
        yield ReportItem(
            report=report,
            condition=condition.name,
            item_id=item_id,
            question_id=facts.question_id,
            stratum=group or "",
            gold="" if facts.gold is None else str(facts.gold),
            decided=decided.get(item_id, ""),
            judgments=[_judgment(row) for row in judged.get(item_id, ())],
            labels=[_label(row) for row in labelled.get(item_id, ())],
            counts=[adds.get(item_id) for adds in counts],
        )


def _judgment(row: JudgmentRow) -> dict[str, Any]:
    return {
        "order": list(row.order),
        "repeat": row.repeat,
        "status": row.status,
        "cause": row.cause,
        "verdict": row.verdict,
    }


def _label(row: LabelRow) -> dict[str, Any]:
    return {
        "person": row.annotator,
        "label": row.label,
        "serving": row.serving,
        "shown_order": list(row.shown_order),
        "weight": row.weight,
        "sealed": row.reveal_state == SEALED,
    }

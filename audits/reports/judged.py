"""
Reports on judgments and on queues: a condition is a judge (with its group), or the people.

Three agreements stand on one page where there are labels: of people with each other, of the judge
with people, and of the judge with itself.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from audits.judgment_models import Judge, JudgmentSet
from audits.metrics import Figure, MetricsError, Settings
from audits.metrics.beliefs import BeliefRow, belief_figures, belief_tables
from audits.metrics.figures import FEW_QUESTIONS, FEW_QUESTIONS_NOTE
from audits.metrics.judge_audited import audited_items, audited_table, chosen_ratios
from audits.metrics.judge_figures import judge_figures, judge_tables
from audits.metrics.judge_matrices import order_flips, winners_by_place
from audits.metrics.judge_people import judge_people_figures
from audits.metrics.judgments import JudgmentRow, families_of, judged_items
from audits.metrics.labels import SEALED, first_labels
from audits.metrics.people import gold_figures, people_figures
from audits.metrics.people_right import right_ratio
from audits.metrics.question_table import QuestionTable
from audits.reports.figures import RowAddress
from audits.rows.judgments import believed, judgment_rows
from audits.rows.labelled import LabelSet

PAIRWISE = "pairwise"
PEOPLE = "people"
WHOLE = "all groups together"
GOLD = "gold_accuracy"
#: What is told a second time without the items that give away who wrote them, or when.
AGREEMENT = frozenset({"percent_agreement", "krippendorff_alpha", "gwet_ac1"})
NO_VERDICT = "no_verdict"

Json = dict[str, Any]


@dataclass(frozen=True)
class ConditionItems:
    """What the figures of a condition are made of, for the rows that are stored beside them."""

    name: str
    judgments: Sequence[JudgmentRow] = ()
    labels: Sequence[LabelSet] = ()


@dataclass(frozen=True)
class JudgeRows:
    """A judge, or one group of what it judged; ``group`` is None for all groups together."""

    name: str
    judge: Judge
    group: str | None
    rows: Sequence[JudgmentRow]
    labels: Sequence[str] = ()


def judges_of(judgment_set: JudgmentSet) -> list[JudgeRows]:
    """Return every judge by group, and over all groups after them where there are several."""
    by_judge = judgment_rows(judgment_set)
    twice = Counter(judge.name for judge in by_judge)
    found: list[JudgeRows] = []
    for judge, rows in by_judge.items():
        name = judge.name
        if twice[name] > 1:  # Another version, prompt or decoding is another judge.
            name = f"{name} ({judge.judge_hash[:8]})"
        groups = list(dict.fromkeys(row.group for row in rows))
        if len(groups) == 1:
            found.append(JudgeRows(name, judge, groups[0] or None, rows))
            continue
        for group in groups:
            own = [row for row in rows if row.group == group]
            found.append(JudgeRows(f"{name}, {group or 'no group'}", judge, group, own))
        found.append(JudgeRows(name, judge, None, rows, (WHOLE,)))
    return found


def results_hash(judges: Iterable[JudgeRows]) -> str:
    """Return a hash of all verdicts: no ids of rows and no times."""
    whole = hashlib.sha256()
    for one in judges:
        for row in one.rows:
            said = (one.judge.judge_hash, row.item_id, row.order, row.repeat, row.status, row.cause,
                    row.verdict, row.gold, sorted(row.scores.items()))  # fmt: skip
            whole.update(repr(said).encode() + b"\n")
    return whole.hexdigest()


def labels_hash(sets: Iterable[LabelSet]) -> str:
    """Return a hash of all labels that figures are made of."""
    whole = hashlib.sha256()
    for one in sets:
        for row in (*one.rows, *one.calibration):
            said = (one.source, row.item_id, row.annotator, row.kind, str(row.label), row.serving,
                    row.weight, row.shown_order, row.reveal_state)  # fmt: skip
            whole.update(repr(said).encode() + b"\n")
        whole.update(repr(sorted(one.decided.items())).encode() + b"\n")
    return whole.hexdigest()


def judge_condition(
    one: JudgeRows, sets: Sequence[LabelSet], address: RowAddress, settings: Settings
) -> tuple[Json, ConditionItems]:
    """Return the condition of a judge; figures that cannot be formed are null with the reason."""
    wanted = {row.item_id for row in one.rows}
    own = [of_items(labels, wanted) for labels in sets if labels.kind == PAIRWISE]
    own = [labels for labels in own if labels.rows and not labels.left]
    settings = replace(settings, source="judge")
    figures = [*_judge_figures(one.rows, own, settings)]
    tables: Json = {}
    try:
        tables = _judge_tables(one.rows) | _audited_tables(one.rows, own)
        figures += _audited_figures(one.rows, own, settings)
    except MetricsError as exc:
        figures.append(Figure("chosen_share", reason=str(exc), source="judge"))
    beliefs, of_beliefs = belief_parts(believed(one.rows), settings)
    figures, tables = [*figures, *beliefs], tables | of_beliefs
    judge = one.judge
    made = _condition(one.name, [*one.labels], figures, tables, address)
    return {
        "name": one.name,
        "judge": judge.name,
        "judge_hash": judge.judge_hash,
        "group": one.group,
        "identity": {
            "model": judge.model,
            "model_version": judge.model_version,
            "prompt_hash": judge.prompt_hash,
            "rubric_version": judge.rubric_version,
            "decoding": judge.decoding,
        },
        **made,
    }, ConditionItems(one.name, one.rows, own)


def _judge_figures(
    rows: Sequence[JudgmentRow], sets: Sequence[LabelSet], settings: Settings
) -> Iterator[Figure]:
    """Yield the judge's figures, those against people from each source of labels apart."""
    labels, categories = (sets[0].rows, sets[0].categories) if sets else ((), None)
    try:
        yield from judge_figures(rows, labels=labels, categories=categories, settings=settings)
    except MetricsError as exc:
        yield Figure("judge_accuracy", reason=str(exc), source=settings.source)
        return
    for other in sets[1:]:
        for figure in judge_people_figures(
            judged_items(rows), other.rows, categories=other.categories, settings=settings
        ):
            yield replace(figure, by={**figure.by, "labels": other.source})


def _audited_figures(
    rows: Sequence[JudgmentRow], sets: Sequence[LabelSet], settings: Settings
) -> list[Figure]:
    if not sets:
        return []
    items = judged_items(rows)
    audited = audited_items(items, sets[0].rows, sets[0].decided)
    table = QuestionTable(families_of(items))
    return table.figures(list(chosen_ratios(audited, table)), replace(settings, source="human"))


def _judge_tables(rows: Sequence[JudgmentRow]) -> Json:
    """Return the tables of a judge. Every order of every item is in the rows, not in a table."""
    items = judged_items(rows)
    tables = judge_tables(rows)
    del tables["order_matrix"]
    return tables | {"order_flips": order_flips(items), "winners_by_place": winners_by_place(items)}


def _audited_tables(rows: Sequence[JudgmentRow], sets: Sequence[LabelSet]) -> Json:
    if not sets:
        return {}
    audited = audited_items(judged_items(rows), sets[0].rows, sets[0].decided)
    return {"judged_and_audited": audited_table(audited)}


def belief_parts(
    beliefs: Sequence[BeliefRow], settings: Settings
) -> tuple[list[Figure], dict[str, object]]:
    """Return figures and tables of beliefs; nothing where there are none."""
    if not beliefs:
        return [], {}
    try:
        return belief_figures(beliefs, settings), belief_tables(beliefs)
    except MetricsError as exc:
        return [Figure("brier", agg="pooled", reason=str(exc), source=settings.source)], {}


def of_items(labels: LabelSet, wanted: set[str]) -> LabelSet:
    """Return the labels of some items."""
    return replace(labels, rows=[row for row in labels.rows if row.item_id in wanted])


def people_condition(
    labels: LabelSet, name: str, address: RowAddress, settings: Settings
) -> tuple[Json, ConditionItems]:
    """
    Return the condition of the people of one source.

    While labelling goes on there are counts alone: to look at agreement again and again, and to
    stop where it looks well, makes its interval a lie.
    """
    settings = replace(settings, source="human")
    notes = [labels.left] if labels.left else []
    figures = (
        [Figure("percent_agreement", agg="pooled", reason=labels.left, source="human")]
        if labels.left
        else list(_people_figures(labels, settings))
    )
    tables: Json = {"labels": _label_counts(labels)}
    if not labels.left:
        tables |= {"label_counts": _by_person(labels), "majority": _majority(labels)}
        beliefs, of_beliefs = belief_parts(labels.beliefs, settings)
        figures, tables = [*figures, *beliefs], tables | of_beliefs
    made = _condition(name, notes, figures, tables, address)
    body = {"name": name, "source": labels.source, "kind": labels.kind, **made}
    return body, ConditionItems(name, (), [] if labels.left else [labels])


def _people_figures(labels: LabelSet, settings: Settings) -> Iterator[Figure]:
    try:
        agreement = people_figures(labels.rows, categories=labels.categories, settings=settings)
        yield from (figure for figure in agreement if figure.metric != GOLD)
        yield from gold_figures([*labels.calibration, *labels.rows], settings)
        if labels.right:
            questions, ratio = right_ratio(labels.rows, labels.right, labels.decided)
            yield from questions.figures([ratio], settings)
        yield from _without_giveaways(labels, settings)
    except MetricsError as exc:
        yield Figure("percent_agreement", agg="pooled", reason=str(exc), source="human")


def _without_giveaways(labels: LabelSet, settings: Settings) -> Iterator[Figure]:
    """Yield agreement once more without the items whose texts gave identity or time away."""
    kept = [row for row in labels.rows if row.item_id not in labels.giving_away]
    if not labels.giving_away or not kept:
        return
    for figure in people_figures(kept, categories=labels.categories, settings=settings):
        if figure.metric in AGREEMENT and "pair" not in figure.by:
            yield replace(figure, by={**figure.by, "items": "without giveaways"})


def _label_counts(labels: LabelSet) -> Json:
    rows = labels.rows
    return {
        "labels": len(rows),
        "items": len({row.item_id for row in rows}),
        "questions": len({row.question_id for row in rows}),
        "people": len({row.annotator for row in rows}),
        "after_reveal": sum(row.reveal_state != "sealed" for row in rows),
        "in_calibration": len(labels.calibration),
        "decided_by_lead": len(labels.decided),
        "items_that_give_away": len(labels.giving_away),
        "voided": labels.voided,
        "skipped": labels.skipped,
    }


def _majority(labels: LabelSet) -> list[Json]:
    """Return how many items people decide which way, and on how many of those all agree."""
    votes: dict[str, Counter[str]] = {}
    for row in first_labels([row for row in labels.rows if row.reveal_state == SEALED]):
        votes.setdefault(row.item_id, Counter())[row.category] += 1
    leading = {item: found.most_common(2) for item, found in votes.items()}
    won = Counter(
        "no majority" if len(two) > 1 and two[0][1] == two[1][1] else two[0][0]
        for two in leading.values()
    )
    several = [found for found in votes.values() if found.total() > 1]
    return [
        *({"label": label, "items": n} for label, n in sorted(won.items())),
        {"label": "unanimous, of items with two labels or more",
         "items": sum(len(found) == 1 for found in several)},
    ]  # fmt: skip


def _by_person(labels: LabelSet) -> list[Json]:
    counts = Counter(row.annotator for row in labels.rows)
    again = Counter(row.annotator for row in labels.rows if row.serving)
    return [
        {"person": person, "labels": n, "of_items_served_again": again[person]}
        for person, n in sorted(counts.items())
    ]


def _condition(
    name: str, labels: list[str], figures: Iterable[Figure], tables: Json, address: RowAddress
) -> Json:
    made = list(figures)
    questions = max((figure.n_questions for figure in made), default=0)
    few = [FEW_QUESTIONS_NOTE] if questions < FEW_QUESTIONS else []
    return {
        "marked": None,
        "labels": [*labels, *few],
        "figures": [address.of(figure, condition=name).to_json() for figure in made],
        "tables": tables,
    }


def people_names(sets: Sequence[LabelSet]) -> list[str]:
    """Return a name for the people of each source: one source needs no other word."""
    if len(sets) == 1:
        return [PEOPLE]
    kinds = Counter(labels.source for labels in sets)
    return [
        f"{PEOPLE}: {one.source}" + (f", {one.kind}" if kinds[one.source] > 1 else "")
        for one in sets
    ]


def failures(conditions: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Say for every judge how many judgments have no verdict, by status and cause."""
    found = []
    for body in conditions:
        if WHOLE in body["labels"]:
            continue
        total = body["tables"].get("counts", {}).get("judgments", 0)
        for row in body["tables"].get("failures", ()):
            cause = f", {row['cause']}" if row["cause"] else ""
            what = f"{row['status']}{cause}, {row['order']} order"
            text = f"{row['n']} of {total} judgments have no verdict: {what}"
            found.append({"code": NO_VERDICT, "condition": body["name"], "count": row["n"],
                          "text": text} | {"status": row["status"]})  # fmt: skip
    return found

"""The report on a set of judgments: imported, or made by an audit of ours."""

from __future__ import annotations

from collections.abc import Sequence

from audits.judgment_models import JudgmentSet
from audits.metrics import Settings
from audits.queue_models import Queue
from audits.reports.figures import RowAddress
from audits.reports.judged import (
    ConditionItems,
    Json,
    JudgeRows,
    failures,
    judge_condition,
    judges_of,
    labels_hash,
    people_condition,
    people_names,
    results_hash,
)
from audits.reports.seeded import seeded
from audits.rows.labelled import LabelSet, imported_labels, judged_in, queue_labels, queues_on
from runs.models import Arm, ExperimentStatus, Run, RunStatus

SCHEMA_VERSION = 1


def judge_audit_report(
    judgment_set: JudgmentSet, *, resamples: int
) -> tuple[Json, list[ConditionItems]]:
    """
    Return the report on judgments, and what its conditions were made of.

    A judge is a condition by group, and over all groups; the people are one where there are
    labels, imported ones or those of queues on these judgments.
    """
    judges = judges_of(judgment_set)
    sets = [*imported_labels(judgment_set), *map(queue_labels, queues_on(judgment_set))]
    inputs = {
        "judgments": judgment_set.content_hash,
        "results": results_hash(judges),
        "labels": labels_hash(sets),
    }
    settings = seeded(inputs, resamples)
    address = RowAddress(judgment_set.workspace.name, "judgments", judgment_set.name)
    made = [
        *(judge_condition(one, sets, address, settings) for one in judges),
        *_people(sets, address, settings),
    ]
    bodies = [body for body, _ in made]
    marked = _marked(judgment_set)
    for body in bodies:
        if "judge" in body:
            body["marked"] = marked
            body["labels"] = [*([marked] if marked else []), *body["labels"]]
    report = {
        "schema_version": SCHEMA_VERSION,
        "kind": "judge_audit",
        "name": judgment_set.name,
        "inputs": inputs,
        "deviations": [*_of_the_audit(judgment_set), *failures(bodies)],
        "design": judgment_set.design or None,
        "conditions": bodies,
        "comparisons": [],
    }
    return report, [items for _, items in made]


def _people(
    sets: Sequence[LabelSet], address: RowAddress, settings: Settings
) -> list[tuple[Json, ConditionItems]]:
    return [
        people_condition(labels, name, address, settings)
        for labels, name in zip(sets, people_names(sets), strict=True)
    ]


def _marked(judgment_set: JudgmentSet) -> str | None:
    """Return what a judge was that is no model: simulated or recorded."""
    if judgment_set.experiment_id is None:
        return None
    arm = Arm.objects.filter(experiment=judgment_set.experiment_id).first()
    return arm.marked or None if arm is not None else None


def _of_the_audit(judgment_set: JudgmentSet) -> list[Json]:
    """Say what of an audit of ours is not done: its figures are of what is."""
    experiment = judgment_set.experiment
    if experiment is None or experiment.status == ExperimentStatus.FINISHED:
        return []
    runs = Run.objects.filter(experiment=experiment)
    done, designed = runs.filter(status=RunStatus.DONE).count(), runs.count()
    text = f"the audit is {experiment.status}: {done} of {designed} items are judged"
    return [{"code": "not_finished", "condition": None, "count": designed - done, "text": text}]


def queue_report(queue: Queue, *, resamples: int) -> tuple[Json, list[ConditionItems]]:
    """
    Return the report on a queue: its people, and beside them the judges whose verdicts they audit.

    A judge's figures are of the queue's items alone.
    """
    labels = queue_labels(queue)
    judges = _judges_in(queue)
    inputs = {
        "design": queue.design_hash,
        "source": queue.source,
        "labels": labels_hash([labels]),
        "results": results_hash(judges),
    }
    settings = seeded({key: value for key, value in inputs.items() if key != "source"}, resamples)
    address = RowAddress(queue.workspace.name, "queues", queue.name)
    (name,) = people_names([labels])
    made = [
        people_condition(labels, name, address, settings),
        *(judge_condition(one, [labels], address, settings) for one in judges),
    ]
    bodies = [body for body, _ in made]
    report = {
        "schema_version": SCHEMA_VERSION,
        "kind": "queue",
        "name": queue.name,
        "inputs": inputs,
        "deviations": [*_of_the_queue(labels), *failures(bodies)],
        "design": queue.design,
        "conditions": bodies,
        "comparisons": [],
    }
    return report, [items for _, items in made]


def _judges_in(queue: Queue) -> list[JudgeRows]:
    source = judged_in(queue)
    if source is None:
        return []
    wanted = set(queue.items.values_list("item_id", flat=True))
    found = []
    for one in judges_of(source):
        rows = [row for row in one.rows if row.item_id in wanted]
        if rows:
            found.append(JudgeRows(one.name, one.judge, one.group, rows, one.labels))
    return found


def _of_the_queue(labels: LabelSet) -> list[Json]:
    said = [
        (labels.left, "labelling_goes_on"),
        (f"{labels.voided} labels are void and left out" if labels.voided else "", "voided"),
        (f"{labels.skipped} items were skipped by somebody" if labels.skipped else "", "skipped"),
    ]
    return [
        {"code": code, "condition": None, "count": None, "text": text}
        for text, code in said
        if text
    ]

"""
The report: from the rows of an experiment or of imported debates to one JSON (docs/formats.md).

Page, file and table are made from this JSON, so they cannot differ. Equal records give equal
bytes but for ``wall_seconds``; the seed of the resampling comes from the hash of what went in.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audits.judgment_models import JudgmentSet
from audits.metrics import RunRow, Settings
from audits.metrics.bootstrap import REPORT_RESAMPLES
from audits.queries import ArmRows, ExperimentRows, LoggedRows, debate_set_rows, experiment_rows
from audits.queue_models import Queue
from audits.reports.comparisons import declared_comparisons, fronts, same_start_partner
from audits.reports.deviations import deviations, failed_replies
from audits.reports.figures import RowAddress, condition_json
from audits.reports.judge_audits import SCHEMA_VERSION, judge_audit_report, queue_report
from audits.reports.judged import ConditionItems, belief_parts
from audits.reports.seeded import seeded
from audits.rows.logged import SIMULATED
from debateweb.errors import InputError
from debateweb.models import Workspace
from runs.models import DebateSet, Experiment

#: How replies of imported debates are scored (docs/formats.md).
AS_LOGGED = "as_logged"

Report = dict[str, Any]


def build_report(
    *, workspace: Workspace, name: str, resamples: int | None = None, kind: str | None = None
) -> Report:
    """
    Return the report on whatever ``name`` stands for in a workspace.

    ``resamples`` are those of each bootstrap interval. ``kind`` asks of a judge audit for the
    report on the experiment that it is. Raises InputError where nothing that can be reported on
    has the name.
    """
    report, _ = build_with_rows(workspace=workspace, name=name, resamples=resamples, kind=kind)
    return report


@dataclass(frozen=True)
class ConditionRuns:
    """The runs of a condition, and what its figures are made with beside them."""

    name: str
    runs: Sequence[RunRow]
    same_start: Sequence[RunRow] = ()
    blind_start: bool = True


#: A report, and by condition what its figures were made of.
Built = tuple[Report, Sequence[ConditionRuns | ConditionItems]]


def build_with_rows(
    *, workspace: Workspace, name: str, resamples: int | None = None, kind: str | None = None
) -> Built:
    """Return the report as ``build_report``, and what each of its conditions is made of."""
    resamples = REPORT_RESAMPLES if resamples is None else resamples
    named: dict[str, Any] = {"workspace": workspace, "name": name}
    judgments = JudgmentSet.objects.filter(**named).first()
    if judgments is not None and kind != "experiment":
        return judge_audit_report(judgments, resamples=resamples)
    experiment = Experiment.objects.filter(**named).select_related("question_set").first()
    if experiment is not None:
        return _experiment_built(experiment, resamples)
    debate_set = DebateSet.objects.filter(**named).select_related("question_set").first()
    if debate_set is not None:
        return _debates_built(debate_set, resamples)
    queue = Queue.objects.filter(**named).first()
    if queue is not None:
        return queue_report(queue, resamples=resamples)
    raise InputError(f"there is no experiment, no set of imported debates or judgments and no "
                     f"queue {name!r}")  # fmt: skip


def _experiment_built(experiment: Experiment, resamples: int) -> Built:
    arms = experiment_rows(experiment)
    report = experiment_report(experiment, rows=arms, resamples=resamples)
    return report, [_runs_of(own, arms.arms) for own in arms.arms.values()]


def _debates_built(debate_set: DebateSet, resamples: int) -> Built:
    protocols = debate_set_rows(debate_set)
    report = debates_report(debate_set, protocols=protocols, resamples=resamples)
    return report, [
        ConditionRuns(key, own.runs, blind_start=own.blind_start) for key, own in protocols.items()
    ]


def _runs_of(own: ArmRows, arms: Mapping[str, ArmRows]) -> ConditionRuns:
    partner = same_start_partner(own, arms)
    return ConditionRuns(
        own.arm.name,
        own.runs,
        same_start=partner.runs if partner is not None else (),
        blind_start=own.protocol.initialisation == "blind",
    )


def experiment_report(
    experiment: Experiment,
    *,
    rows: ExperimentRows | None = None,
    resamples: int = REPORT_RESAMPLES,
) -> Report:
    """
    Return the report on an experiment; runs that are not done are counted and left out.

    ``rows`` are those of ``experiment_rows``, where they were read already.
    """
    rows = rows or experiment_rows(experiment)
    arms = rows.arms
    analysis = experiment.analysis["analysis"]
    inputs = {
        "questions": experiment.question_set.content_hash,
        "spec": experiment.spec_hash,
        "analysis": experiment.analysis_hash,
        "protocols": {name: own.arm.protocol.protocol_hash for name, own in arms.items()},
        "price_tables": {name: own.arm.price_table_version for name, own in arms.items()},
        "results": rows.results_hash,
    }
    settings = seeded(inputs, resamples, alpha=analysis["alpha"])
    address = RowAddress(experiment.workspace.name, "experiments", experiment.name)
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "experiment",
        "name": experiment.name,
        "inputs": inputs,
        "analysis": experiment.analysis,
        "deviations": deviations(experiment, rows),
        "conditions": [_arm_json(own, arms, address, settings) for own in arms.values()],
        "comparisons": declared_comparisons(arms, analysis, address=address, settings=settings),
        "cost_fronts": fronts(arms, settings),
    }


def _arm_json(
    own: ArmRows, arms: Mapping[str, ArmRows], address: RowAddress, settings: Settings
) -> dict[str, Any]:
    partner = same_start_partner(own, arms)
    runs = _runs_of(own, arms)
    made = condition_json(
        own.arm.name,
        own.runs,
        address=address,
        settings=settings,
        same_start=runs.same_start,
        blind_start=runs.blind_start,
    )
    marked, source = own.arm.marked or None, own.arm.branch_from
    labels = [marked] if marked else []
    if source is not None:
        labels.append(f"initial answers of {source.name}, which paid for them")
    return {
        "name": made["name"],
        "protocol": own.arm.protocol.name,
        "protocol_hash": own.arm.protocol.protocol_hash,
        "marked": marked,
        "labels": [*labels, *made["labels"]],
        "runs": {"done": len(own.runs), "designed": own.designed},
        "same_start": partner.arm.name if partner is not None else None,
        "figures": made["figures"],
        "tables": made["tables"],
    }


def debates_report(
    debate_set: DebateSet,
    *,
    protocols: Mapping[str, LoggedRows] | None = None,
    resamples: int = REPORT_RESAMPLES,
) -> Report:
    """Return the report on debates that ran elsewhere, imported as logged."""
    inputs = {
        "debates": debate_set.content_hash,
        "questions": debate_set.question_set.content_hash,
        "rules": debate_set.rules,
        "scoring": AS_LOGGED,
    }
    settings = seeded(inputs, resamples)
    address = RowAddress(debate_set.workspace.name, "debates", debate_set.name)
    protocols = debate_set_rows(debate_set) if protocols is None else protocols
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "debates",
        "name": debate_set.name,
        "inputs": inputs,
        "deviations": [
            one for key, own in protocols.items() for one in failed_replies(key, own.runs)
        ],
        "conditions": [
            _logged_json(name, own, debate_set, address, settings)
            for name, own in protocols.items()
        ],
        "comparisons": [],
    }


def _logged_json(
    name: str, own: LoggedRows, debate_set: DebateSet, address: RowAddress, settings: Settings
) -> dict[str, Any]:
    made = condition_json(
        name, own.runs, address=address, settings=settings, blind_start=own.blind_start
    )
    known = sorted(own.reads)
    reads = known[0] if len(known) == 1 else "mixed"
    figures, tables = belief_parts(own.beliefs, settings)
    marked = SIMULATED if own.simulated else None
    labels = [*([marked] if marked else []), "imported as logged", f"reads {reads}"]
    return {
        "name": name,
        "scoring": AS_LOGGED,
        "rules": debate_set.rules,
        "reads": reads,
        "marked": marked,
        "labels": [*labels, *made["labels"]],
        "figures": [
            *made["figures"],
            *(address.of(figure, condition=name).to_json() for figure in figures),
        ],
        "tables": made["tables"] | {"reads": dict(sorted(own.reads.items()))} | tables,
    }


def report_bytes(report: Report) -> bytes:
    """Return a report as the bytes of its file. Raises ValueError for what JSON cannot hold."""
    text = json.dumps(report, ensure_ascii=False, allow_nan=False, indent=1)
    return f"{text}\n".encode()

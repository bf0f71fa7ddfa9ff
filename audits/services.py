"""
Asking for reports and building them: asked for by people, built by a worker.

The broker is a doorbell here too: the sweep rings again for a report whose message was lost or
whose worker died.
"""

from __future__ import annotations

import hashlib
import logging
import time
from datetime import timedelta
from functools import partial
from typing import Any

from celery import current_app
from django.core.cache import cache
from django.db import IntegrityError, transaction
from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Now

from audits.judging.collecting import collect_judgments
from audits.judgment_models import JudgmentSet
from audits.models import Report, ReportStatus
from audits.queue_models import Adjudication, ImportedLabel, Label, LabelVoid, Queue, Skip
from audits.reports.build import build_with_rows, report_bytes
from audits.reports.judge_audits import SCHEMA_VERSION
from audits.reports.stored_rows import store_rows
from audits.rows.labelled import judged_in, queues_on
from debateweb.audit import record
from debateweb.celery import STALLED_AFTER_SECONDS, heartbeat_key
from debateweb.errors import DebatewebError
from debateweb.models import User, Workspace
from runs.engine.hashing import canonical_bytes
from runs.models import Aggregate, DebateSet, Experiment, Run, RunStatus

logger = logging.getLogger(__name__)

BUILD = "audits.reports.build"
SWEEP = "audits.reports.sweep"
OUR_FAULT = "Building it failed; the log of the worker says why."
#: The worker that has the queue of reports.
BUILDER = "small"
RING_AGAIN_AFTER = timedelta(seconds=30)
#: A report that ends its worker each time (it may need more memory than there is) is given up.
MOST_BEGINNINGS = 3
DIED = f"Its worker died {MOST_BEGINNINGS} times while building it: it may need more memory."
#: Rings of one sweep; the next one follows seconds later.
MOST_RINGS = 50


def state_of(workspace: Workspace, name: str) -> tuple[str, str] | None:
    """
    Return the kind of what a report would be on, and a hash of the state of its records.

    None where nothing that can be reported on has the name. A few counts: rows are append-only
    and runs that are done stay as they are, so that what a report reads cannot change without
    one of these. A judge audit is an experiment and is reported on as an audit.
    """
    named = Q(workspace=workspace, name=name, archived_at=None)
    judgments = JudgmentSet.objects.filter(named).select_related("experiment").first()
    if judgments is not None:
        return "judge_audit", _hash(_judgments_state(judgments))
    experiment = Experiment.objects.filter(named).select_related("account").first()
    if experiment is not None:
        return "experiment", _hash(_experiment_state(experiment))
    debates = DebateSet.objects.filter(named).first()
    if debates is not None:
        return "debates", _hash(["debates", debates.name, debates.content_hash, debates.rules])
    queue = Queue.objects.filter(named).first()
    return ("queue", _hash(_queue_state(queue))) if queue is not None else None


def collect(workspace: Workspace, name: str) -> None:
    """Read what a judge audit's runs came to, where the name is that of one (decision 0071)."""
    for judgments in JudgmentSet.objects.filter(workspace=workspace, name=name):
        collect_judgments(judgments)


def _judgments_state(judgments: JudgmentSet) -> list[Any]:
    experiment = judgments.experiment
    runs = Run.objects.filter(experiment=experiment, status=RunStatus.DONE)
    return [
        "judge_audit",
        judgments.name,
        judgments.content_hash,
        [experiment.status, runs.count()] if experiment is not None else None,
        ImportedLabel.objects.filter(judgment_set=judgments).count(),
        [[queue.name, *_labels_state(queue)] for queue in queues_on(judgments)],
    ]


def _queue_state(queue: Queue) -> list[Any]:
    source = judged_in(queue)
    judged = _judgments_state(source) if source is not None else None
    return ["queue", queue.name, queue.design_hash, *_labels_state(queue), judged]


def _labels_state(queue: Queue) -> list[Any]:
    """Return what changes with every act of labelling; all of it is appended."""
    return [
        queue.status,
        Label.objects.filter(item__queue=queue).count(),
        LabelVoid.objects.filter(label__item__queue=queue).count(),
        Adjudication.objects.filter(item__queue=queue).count(),
        Skip.objects.filter(item__queue=queue).count(),
    ]


def _experiment_state(experiment: Experiment) -> list[Any]:
    done = Run.objects.filter(experiment=experiment, status=RunStatus.DONE)
    counts = done.aggregate(n=Count("pk"))
    account = experiment.account
    return [
        "experiment",
        experiment.name,
        experiment.spec_hash,
        experiment.analysis_hash,
        experiment.status,
        counts["n"],
        Aggregate.objects.filter(run__experiment=experiment).count(),
        [account.settled_microusd, account.held_microusd, account.overrun_microusd],
    ]


def _hash(state: list[Any]) -> str:
    return hashlib.sha256(canonical_bytes([SCHEMA_VERSION, *state])).hexdigest()


def ask_for_report(*, workspace: Workspace, name: str, actor: User | None) -> Report | None:
    """
    Return the report on the records as they stand; ask a worker to build one that is not there.

    None where nothing has the name. Asking again while it is being built rings again. Raises
    kombu's OperationalError where the broker does not answer: the wish is noted by then.
    """
    state = state_of(workspace, name)
    if state is None:
        return None
    kind, inputs_hash = state
    report = _noted(workspace, name, kind, inputs_hash, actor)
    if report.status == ReportStatus.BUILDING:
        transaction.on_commit(partial(_ring, report.pk))
    return report


def _noted(
    workspace: Workspace, name: str, kind: str, inputs_hash: str, actor: User | None
) -> Report:
    there = Report.objects.filter(workspace=workspace, name=name, inputs_hash=inputs_hash).exclude(
        status=ReportStatus.FAILED
    )
    found = there.first()
    if found is not None:
        return found
    try:
        with transaction.atomic():
            made = Report.objects.create(
                workspace=workspace,
                kind=kind,
                name=name,
                inputs_hash=inputs_hash,
                created_by=actor,
            )
            record(act="report.ask", workspace=workspace, obj=made, actor=actor)
    except IntegrityError:  # Somebody else asked at the same moment.
        return there.get()
    return made


def _ring(report_id: int) -> None:
    current_app.send_task(BUILD, args=[report_id], queue="reports", ignore_result=True)


def builder_is_alive() -> bool:
    """Tell whether the worker that builds reports gave a sign of life a moment ago."""
    seen_at = cache.get(heartbeat_key(BUILDER))
    return seen_at is not None and time.time() - float(seen_at) < STALLED_AFTER_SECONDS


def sweep() -> int:
    """
    Ring again for reports that wait, and give up those that kill their workers (S33).

    A report that is being built is locked by its worker and passed over; a worker that died lets
    go of it. Returns the number of rings.
    """
    with transaction.atomic():
        silent = Report.objects.select_for_update(skip_locked=True).filter(
            status=ReportStatus.BUILDING, rung_at__lt=Now() - RING_AGAIN_AFTER
        )
        found = list(silent.order_by("pk").values_list("pk", "begun")[:MOST_RINGS])
        due = [pk for pk, begun in found if begun < MOST_BEGINNINGS]
        Report.objects.filter(pk__in=due).update(rung_at=Now())
        for pk, begun in found:
            if begun >= MOST_BEGINNINGS:
                logger.error("report %s: its worker died %s times", pk, begun)
                _give_up(pk, DIED)
    for pk in due:
        _ring(pk)
    return len(due)


def build_stored(report_id: int) -> None:
    """
    Build a report that was asked for. Does nothing where another worker builds it or has.

    The row's lock is held while it is built: a worker that dies lets go of it, and the next ring
    begins anew.
    """
    if not _begun(report_id):
        return
    try:
        with transaction.atomic():
            report = _waiting(report_id).select_related("workspace").first()
            if report is not None:
                _build(report)
    except DebatewebError as exc:
        _give_up(report_id, exc.message)
    except Exception:
        _give_up(report_id, OUR_FAULT)
        raise


def _begun(report_id: int) -> bool:
    """Note that a worker begins: outside the building itself, so that it outlives the worker."""
    with transaction.atomic():
        waiting = list(_waiting(report_id).values_list("pk", flat=True))
        noted = Report.objects.filter(pk__in=waiting).update(begun=F("begun") + 1, rung_at=Now())
    return bool(noted)


def _waiting(report_id: int) -> QuerySet[Report]:
    """Return the report, locked, if it waits and nobody holds it."""
    free = Report.objects.select_for_update(skip_locked=True, of=("self",))
    return free.filter(pk=report_id, status=ReportStatus.BUILDING)


def _build(report: Report) -> None:
    collect(report.workspace, report.name)
    body, conditions = build_with_rows(workspace=report.workspace, name=report.name)
    report.counted = store_rows(report, conditions)
    report.body = report_bytes(body).decode()
    report.status, report.ended_at = ReportStatus.BUILT, Now()
    report.save(update_fields=["body", "counted", "status", "ended_at"])


def _give_up(report_id: int, fault: str) -> None:
    Report.objects.filter(pk=report_id, status=ReportStatus.BUILDING).update(
        status=ReportStatus.FAILED, fault=fault, ended_at=Now()
    )

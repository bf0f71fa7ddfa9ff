"""A report whose message was lost or whose worker died is built all the same, and once."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from audits import services, tasks
from audits.models import Report, ReportRow, ReportStatus
from audits.reports.build import build_with_rows
from debateweb.celery import app
from runs.models import Experiment
from tests.audits.pages.conftest import Bell

LONG_AGO = Now() - timedelta(minutes=5)


@pytest.fixture
def waiting(ran: Experiment, bell: Bell) -> Report:
    """Return a report that was asked for while nobody heard the bell, a while ago."""
    report = services.ask_for_report(workspace=ran.workspace, name=ran.name, actor=None)
    assert report is not None
    Report.objects.update(rung_at=LONG_AGO)
    bell.rung.clear()
    return report


@pytest.mark.django_db
def test_a_lost_bell_is_rung_again_and_the_report_is_built(waiting: Report, bell: Bell) -> None:
    assert services.sweep() == 1
    assert bell.rung == [waiting.pk]

    bell.build_all()

    waiting.refresh_from_db()
    assert (waiting.status, waiting.begun) == (ReportStatus.BUILT, 1)


@pytest.mark.django_db
def test_a_bell_that_was_just_rung_is_left_to_be_heard(waiting: Report, bell: Bell) -> None:
    assert [services.sweep(), services.sweep()] == [1, 0]
    assert bell.rung == [waiting.pk]


@pytest.mark.django_db
def test_what_has_ended_is_not_swept(waiting: Report, bell: Bell) -> None:
    Report.objects.update(status=ReportStatus.FAILED, fault="no", ended_at=Now())
    assert services.sweep() == 0 and bell.rung == []


@pytest.mark.django_db
def test_a_worker_that_dies_in_mid_build_leaves_nothing_but_its_beginning(
    waiting: Report, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        """What no handler of the worker sees: the process is gone."""

    def killed(*_: Any, **__: Any) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(services, "report_bytes", killed)
        with pytest.raises(KilledError):
            services.build_stored(waiting.pk)
    waiting.refresh_from_db()
    assert (waiting.status, waiting.begun) == (ReportStatus.BUILDING, 1)
    assert not ReportRow.objects.exists()

    Report.objects.update(rung_at=LONG_AGO)
    assert services.sweep() == 1
    bell.build_all()
    waiting.refresh_from_db()
    assert (waiting.status, waiting.begun) == (ReportStatus.BUILT, 2)
    assert ReportRow.objects.exists()


@pytest.mark.django_db
def test_a_report_that_kills_its_worker_each_time_is_given_up_in_words(
    waiting: Report, bell: Bell
) -> None:
    Report.objects.update(begun=services.MOST_BEGINNINGS)

    assert services.sweep() == 0

    waiting.refresh_from_db()
    assert (waiting.status, waiting.fault) == (ReportStatus.FAILED, services.DIED)
    assert waiting.ended_at is not None and bell.rung == []


@pytest.mark.django_db(transaction=True)
def test_what_one_worker_builds_no_other_one_builds_and_no_sweep_rings_for(
    waiting: Report, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_end = threading.Event(), threading.Event()
    built: list[int] = []

    def slow(**asked: Any) -> Any:
        built.append(1)
        began.set()
        assert may_end.wait(60)
        return build_with_rows(**asked)

    monkeypatch.setattr(services, "build_with_rows", slow)

    def work() -> None:
        try:
            services.build_stored(waiting.pk)
        finally:
            connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert began.wait(60)
        # However long ago it was rung for: the lock says that somebody is at it.
        monkeypatch.setattr(services, "RING_AGAIN_AFTER", timedelta(0))
        assert services.sweep() == 0
        services.build_stored(waiting.pk)
    finally:
        may_end.set()
        worker.join(60)

    waiting.refresh_from_db()
    assert (waiting.status, built) == (ReportStatus.BUILT, [1])
    assert bell.rung == []


@pytest.mark.django_db(transaction=True)
def test_two_sweeps_at_once_ring_once(waiting: Report, bell: Bell) -> None:
    with transaction.atomic():
        list(Report.objects.select_for_update().filter(pk=waiting.pk))
        other: list[int] = []

        def sweep() -> None:
            try:
                other.append(services.sweep())
            finally:
                connection.close()

        second = threading.Thread(target=sweep)
        second.start()
        second.join(60)
    assert other == [0] and bell.rung == []


def test_beat_sweeps_reports_beside_the_workers_that_build_them() -> None:
    entry: Any = settings.CELERY_BEAT_SCHEDULE["sweep-reports"]

    assert entry["task"] == services.SWEEP == tasks.sweep.name
    assert entry["task"] in app.tasks
    assert entry["options"]["queue"] == "default"

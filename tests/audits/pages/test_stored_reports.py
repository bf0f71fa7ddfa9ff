"""Reports are asked for once, built by a worker, and stay as they were built."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import Error, connection, transaction

from audits import services
from audits.models import Report, ReportRow, ReportStatus
from audits.reports.build import build_report, report_bytes
from audits.services import ask_for_report
from runs.models import Experiment
from tests.audits.pages.conftest import Bell

pytestmark = pytest.mark.django_db


def test_the_stored_text_is_the_file_that_the_command_writes(built: Experiment) -> None:
    stored = Report.objects.get()

    expected = report_bytes(build_report(workspace=built.workspace, name=built.name))
    assert stored.status == ReportStatus.BUILT
    assert stored.body.encode() == expected


def test_asking_again_for_the_same_records_is_answered_with_the_report_that_is_there(
    built: Experiment, bell: Bell, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        again = ask_for_report(workspace=built.workspace, name=built.name, actor=None)

    assert again == Report.objects.get() and not bell.rung


def test_building_twice_leaves_one_set_of_rows(built: Experiment) -> None:
    before = ReportRow.objects.count()

    services.build_stored(Report.objects.get().pk)

    assert ReportRow.objects.count() == before > 0


def test_the_rows_of_a_rate_add_up_to_its_counts(built: Experiment) -> None:
    report = build_report(workspace=built.workspace, name=built.name)
    rows = ReportRow.objects.filter(condition="debate").exclude(agent_id="")
    damage = next(
        f
        for f in report["conditions"][0]["figures"]
        if f["metric"] == "damage_T" and f["agg"] == "pooled" and not f["by"]
    )

    right = [row for row in rows if row.correct[0]]
    assert len(right) == damage["den"]
    assert sum(not row.correct[-1] for row in right) == damage["num"]
    assert all(row.run_id for row in rows)


def test_a_name_that_stands_for_nothing_is_no_report(ran: Experiment) -> None:
    assert ask_for_report(workspace=ran.workspace, name="nothing", actor=None) is None


def test_a_report_that_breaks_says_so_and_can_be_asked_for_again(
    ran: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = ask_for_report(workspace=ran.workspace, name=ran.name, actor=None)
    assert report is not None

    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(services, "build_with_rows", broken)
        with pytest.raises(ZeroDivisionError):
            services.build_stored(report.pk)

    report.refresh_from_db()
    assert (report.status, report.fault) == (ReportStatus.FAILED, services.OUR_FAULT)
    again = ask_for_report(workspace=ran.workspace, name=ran.name, actor=None)
    assert again is not None and again.pk != report.pk
    services.build_stored(again.pk)
    again.refresh_from_db()
    assert again.status == ReportStatus.BUILT


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audits_report SET body = 'better'",
        "UPDATE audits_report SET name = 'other'",
        "DELETE FROM audits_report",
        "UPDATE audits_reportrow SET question_id = 'other'",
        "DELETE FROM audits_reportrow",
    ],
)
def test_what_was_built_is_never_changed(built: Experiment, statement: str) -> None:
    with pytest.raises(Error, match="refused"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)

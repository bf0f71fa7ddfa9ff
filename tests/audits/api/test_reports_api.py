"""Reports over the API, and the rows behind every figure at the address that it names."""

from __future__ import annotations

import csv
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from kombu.exceptions import OperationalError
from pytest_django import DjangoAssertNumQueries

from audits.models import Report, ReportStatus
from audits.reports.build import build_report
from audits.services import build_stored
from debateweb.access import ensure_default_workspace
from debateweb.models import Role
from runs.demo import LOG_FILE
from tests.audits.reports.conftest import Ran, deaf, ran
from tests.audits.reports.experiments import Deaf
from tests.debateweb.api_people import Program, program
from tests.debateweb.people import member, signed_in

__all__ = ["deaf", "ran"]
SUMS = "/workspaces/main/experiments/sums"
pytestmark = pytest.mark.django_db


@pytest.fixture
def asking(deaf_reports: None) -> Program:
    return program(ensure_default_workspace())


@pytest.fixture
def deaf_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the broker out of the test: it builds what is asked for itself."""
    monkeypatch.setattr("audits.services.current_app", Deaf())


def built(asking: Program, path: str) -> Any:
    """Ask for a report, build it as a worker would, and return the answer to asking again."""
    assert asking.get(path).status_code == 202
    build_stored(Report.objects.latest("pk").pk)
    answer = asking.get(path)
    assert answer.status_code == 200
    return answer


def figures(report: Any) -> list[dict[str, Any]]:
    parts = [*report["conditions"], *report["comparisons"]]
    return [figure for part in parts for figure in part["figures"]]


def test_the_report_is_the_one_that_the_command_writes(ran: Ran, asking: Program) -> None:
    experiment = ran("sums")
    told = built(asking, f"{SUMS}/report")
    assert figures(told.json()) == figures(
        build_report(workspace=experiment.workspace, name="sums")
    )
    table = asking.get(f"{SUMS}/report.csv")
    rows = list(csv.DictReader(table.content.decode().splitlines()))
    assert len(rows) == len(figures(told.json()))
    assert table["Content-Type"].startswith("text/csv")


def test_every_figure_names_an_address_that_has_its_rows(ran: Ran, asking: Program) -> None:
    ran("sums")
    report = built(asking, f"{SUMS}/report").json()
    seen = 0
    for figure in figures(report)[::7]:
        answer = asking.client.get(figure["rows"])
        assert answer.status_code == 200, figure["rows"]
        assert (answer.json()["total"] > 0) == (figure["den"] != 0), figure["rows"]
        seen += 1
    assert seen > 10


def test_the_rows_of_every_rate_add_up_to_its_counts(ran: Ran, asking: Program) -> None:
    """One seed: what runs of one question add is not averaged."""
    ran("sums")
    report = built(asking, f"{SUMS}/report").json()
    checked = set()
    for figure in (f for condition in report["conditions"] for f in condition["figures"]):
        if figure["agg"] == "macro" or not figure["den"]:
            continue
        rows = asking.client.get(f"{figure['rows']}&limit=200").json()["items"]
        if all(row["den"] is None for row in rows):
            continue  # No rate: a correlation, say.
        for part in ("num", "den"):
            total = sum(row[part] for row in rows)
            assert total == pytest.approx(figure[part]), figure["rows"]
        assert all(row["den"] > 0 for row in rows)
        checked.add(figure["metric"])
    assert {"accuracy_0", "accuracy_T", "repair_T", "damage_T", "excess_repair_T"} <= checked
    assert {"repair_t", "oscillators", "plurality_accuracy"} <= checked


def test_page_and_file_list_the_rows_that_the_api_lists(ran: Ran, asking: Program) -> None:
    experiment = ran("sums")
    report = built(asking, f"{SUMS}/report").json()
    reader = signed_in(member(experiment.workspace, Role.READER))
    for figure in figures(report)[::9]:
        query = figure["rows"].partition("?")[2]
        items = asking.client.get(f"{figure['rows']}&limit=200").json()["items"]
        answer = reader.get(f"/w/main/reports/sums/rows.csv?{query}")
        lines = list(csv.DictReader(b"".join(answer).decode().splitlines()))
        assert [line["run_key"] for line in lines] == [item["run_key"] for item in items]
        assert [line["num"] for line in lines] == [_written(item["num"]) for item in items]
        page = reader.get(f"/w/main/reports/sums/rows?{query}").content.decode()
        assert page.count('<tr><th scope="row"') == min(len(items), 50)


def _written(value: float | None) -> str:
    return "" if value is None else f"{value:.12g}"


def test_rows_are_asked_for_before_a_report_is_built(ran: Ran, asking: Program) -> None:
    ran("sums")
    answer = asking.get(f"{SUMS}/rows", metric="accuracy_T", condition="debate")
    assert (answer.status_code, answer.json()["status"]) == (202, "BUILDING")


def test_rows_need_a_fixed_number_of_queries(
    ran: Ran, asking: Program, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    ran("sums")
    built(asking, f"{SUMS}/report")
    asked = {"metric": "accuracy_T", "condition": "debate"}
    for limit in (2, 200):
        with CaptureQueriesContext(connection) as few:
            asking.get(f"{SUMS}/rows", **asked, limit=limit)
        assert len(few) < 12
        with django_assert_num_queries(len(few)):
            asking.get(f"{SUMS}/rows", **asked, limit=200)


def test_the_rows_of_a_difference_are_those_of_its_two_sides(ran: Ran, asking: Program) -> None:
    ran("sums")
    report = built(asking, f"{SUMS}/report").json()
    figure = report["comparisons"][0]["figures"][0]
    told = asking.client.get(figure["rows"]).json()
    assert {row["condition"] for row in told["items"]} == {"debate", "vote"}
    assert all(row["den"] == 1 for row in told["items"])


def test_rows_are_paged(ran: Ran, asking: Program) -> None:
    ran("sums")
    built(asking, f"{SUMS}/report")
    url = f"{SUMS}/rows"
    asked = {"metric": "accuracy_T", "condition": "debate", "limit": 5}
    first = asking.get(url, **asked).json()
    rest = asking.get(url, **asked, after=first["next"]).json()
    keys = [row["run_key"] for row in first["items"] + rest["items"]]
    assert len(set(keys)) == first["total"] == 8 and rest["next"] is None


def test_a_step_lists_what_was_held_before_and_after_it(ran: Ran, asking: Program) -> None:
    ran("sums")
    built(asking, f"{SUMS}/report")
    asked = {"metric": "damage_t", "condition": "debate", "round": 1}
    rows = asking.get(f"{SUMS}/rows", **asked).json()["items"]
    assert rows and all(row["correct"][0] and row["den"] == 1 for row in rows)
    assert all(row["num"] == (not row["correct"][1]) for row in rows)


def test_imported_debates_have_report_and_rows(asking: Program) -> None:
    body = LOG_FILE.read_bytes()
    asking.post("/workspaces/main/debates?name=log", body, "application/octet-stream")
    report = built(asking, "/workspaces/main/debates/log/report").json()
    assert report["kind"] == "debates"
    assert asking.get("/workspaces/main/debates/log/report.csv").status_code == 200
    for figure in figures(report)[::11]:
        answer = asking.client.get(figure["rows"]).json()
        assert (answer["total"] > 0) == (figure["den"] != 0), figure["rows"]


def test_a_condition_that_is_none_and_no_condition_are_told(ran: Ran, asking: Program) -> None:
    ran("sums")
    built(asking, f"{SUMS}/report")
    url = f"{SUMS}/rows"
    for asked in ({}, {"condition": "nobody"}, {"a": "debate", "b": "nobody"}):
        answer = asking.get(url, metric="accuracy_T", **asked)
        assert (answer.status_code, answer.json()["where"]) == (422, "condition")


def test_the_stage_says_what_the_rest_will_cost(ran: Ran, asking: Program) -> None:
    ran("sums")
    told = asking.get(f"{SUMS}/stage").json()
    assert told["runs_done"] == told["runs"] == 24
    assert next((c["a"], c["b"]) for c in told["contrasts"]) == ("debate", "vote")


def test_who_may_not_see_results_finds_no_report(ran: Ran) -> None:
    experiment = ran("sums")
    annotating = program(experiment.workspace, Role.ANNOTATOR)
    for path in ("report", "report.csv", "stage", "rows?metric=accuracy_T&condition=debate"):
        answer = annotating.get(f"{SUMS}/{path}")
        assert answer.status_code == 404


def test_a_report_is_asked_for_once_and_again_after_it_failed(ran: Ran, asking: Program) -> None:
    ran("sums")
    first = asking.get(f"{SUMS}/report")
    assert first.json() == {"status": "BUILDING", "name": "sums"} and first["Retry-After"]
    asking.get(f"{SUMS}/report.csv")
    report = Report.objects.get()
    assert report.created_by == asking.user
    Report.objects.update(status=ReportStatus.FAILED, fault="It broke.", ended_at=Now())
    failed = asking.get(f"{SUMS}/report")
    assert (failed.status_code, failed.json()["code"]) == (409, "report_failed")
    assert asking.post(f"{SUMS}/report").status_code == 202
    assert Report.objects.count() == 2


def test_a_broker_that_is_away_loses_no_wish_for_a_report(
    ran: Ran, asking: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran("sums")

    def away(**wish: Any) -> None:
        raise OperationalError("no broker")

    monkeypatch.setattr("audits.api.ask_for_report", away)
    assert asking.get(f"{SUMS}/report").status_code == 202

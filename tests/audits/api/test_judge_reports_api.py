"""Reports on judgments and queues over the API, and the items behind their figures."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from audits.judgment_models import JudgmentSet
from audits.models import Report
from audits.services import build_stored
from tests.audits.judging import making as judging
from tests.audits.queues import making as labelling
from tests.audits.reports.experiments import Deaf
from tests.debateweb.api_people import Program, program

pytestmark = pytest.mark.django_db
PLACE = "/workspaces/home"


@pytest.fixture(autouse=True)
def quick_and_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the broker out of the test, which builds what is asked for itself."""
    monkeypatch.setattr("audits.services.current_app", Deaf())
    monkeypatch.setattr("audits.reports.build.REPORT_RESAMPLES", 100)


@pytest.fixture
def made() -> JudgmentSet:
    return judging.judged(judging.audit(judging.pairs(5)), judging.first)


def built(asking: Program, path: str) -> Any:
    assert asking.get(path).status_code == 202
    build_stored(Report.objects.latest("pk").pk)
    answer = asking.get(path)
    assert answer.status_code == 200
    return answer


def test_a_judge_audit_is_reported_and_every_figure_leads_to_items(made: JudgmentSet) -> None:
    asking = program(made.workspace)
    report = built(asking, f"{PLACE}/judgments/audit/report").json()

    assert report["kind"] == "judge_audit"
    (condition,) = report["conditions"]
    assert (condition["judge"], condition["group"]) == ("scripted", None)
    for figure in condition["figures"]:
        answer = asking.get(figure["rows"].removeprefix("/api/v1"))
        assert answer.status_code == 200, figure["rows"]
    conflict = next(f for f in condition["figures"] if f["metric"] == "conflict_rate")
    items = asking.get(conflict["rows"].removeprefix("/api/v1")).json()
    assert items["total"] == 5
    assert sum(item["num"] for item in items["items"]) == conflict["num"] == 5
    assert {said["verdict"] for said in items["items"][0]["judgments"]} == {"one", "two"}


def test_items_come_by_pages(made: JudgmentSet) -> None:
    asking = program(made.workspace)
    built(asking, f"{PLACE}/judgments/audit/report")
    url = f"{PLACE}/judgments/audit/rows?metric=conflict_rate&condition=scripted&limit=2"
    seen: list[str] = []
    after = ""
    while True:
        page = asking.get(f"{url}{after}").json()
        seen += [item["item_id"] for item in page["items"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert sorted(seen) == [f"i{i}" for i in range(5)]


def test_the_table_has_a_row_a_figure(made: JudgmentSet) -> None:
    asking = program(made.workspace)
    report = built(asking, f"{PLACE}/judgments/audit/report").json()
    table = asking.get(f"{PLACE}/judgments/audit/report.csv").content.decode()
    rows = list(csv.DictReader(io.StringIO(table)))
    assert len(rows) == len(report["conditions"][0]["figures"])


def test_a_queue_is_reported(made: JudgmentSet) -> None:
    queue = labelling.queue_of(labelling.answers(2), overlap=2)
    for person in labelling.annotators(queue, 2):
        for _ in range(2):
            labelling.label_next(person)
    asking = program(queue.workspace)
    report = built(asking, f"{PLACE}/queues/queue/report").json()

    assert report["kind"] == "queue"
    (people,) = report["conditions"]
    agreement = next(f for f in people["figures"] if f["metric"] == "percent_agreement")
    items = asking.get(agreement["rows"].removeprefix("/api/v1")).json()
    assert [(item["num"], item["den"], len(item["labels"])) for item in items["items"]] == [
        (1, 1, 2),
        (1, 1, 2),
    ]


def test_one_kind_is_not_found_at_the_address_of_another(made: JudgmentSet) -> None:
    asking = program(made.workspace)
    assert asking.get(f"{PLACE}/queues/audit/report").status_code == 404
    assert asking.get(f"{PLACE}/judgments/nothing/report").status_code == 404


def test_an_audit_asked_as_an_experiment_says_where_its_rows_are(made: JudgmentSet) -> None:
    asking = program(made.workspace)
    built(asking, f"{PLACE}/experiments/audit/report")
    answer = asking.get(f"{PLACE}/experiments/audit/rows?metric=conflict_rate&condition=scripted")
    assert answer.status_code == 422
    assert "judgments/audit/rows" in answer.json()["message"]

"""Experiments and runs over the API: made once, steered, and every record of a run shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from debateweb.models import Role, Workspace
from runs.models import Experiment, ExperimentStatus, Run
from tests.debateweb.api_people import Program, program
from tests.runs import factories

pytestmark = pytest.mark.django_db
HOME = "/workspaces/home"
SPEC = f"""
name: first
questions: sums
seeds: [1, 2]
arms:
  - {{name: debate, protocol: du_2023, models: {{default: "{factories.SIMULATED}"}}}}
  - {{name: vote, protocol: self_consistency, models: {{default: "{factories.SIMULATED}"}}}}
analysis: {{contrasts: [[debate, vote]]}}
"""


@pytest.fixture
def home() -> Workspace:
    return Workspace.objects.create(name="home")


@pytest.fixture
def asking(home: Workspace) -> Program:
    made = program(home)
    rows = "".join(
        f'{{"id": "q{i}", "question": "What is {i} + {i}?", "reference": "{2 * i}", '
        '"answer_type": "number"}\n'
        for i in range(3)
    )
    assert made.post(f"{HOME}/questions?name=sums", rows).status_code == 201
    return made


def test_the_same_specification_makes_one_experiment(asking: Program) -> None:
    first, again = (asking.post(f"{HOME}/experiments", SPEC) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert first.json()["status"] == "READY" and first.json()["progress"]["runs"] == 12
    assert Experiment.objects.get().created_by == asking.user
    other = asking.post(f"{HOME}/experiments", SPEC.replace("[1, 2]", "[1]"))
    assert (other.status_code, other.json()["code"]) == (409, "name_taken")


def test_a_plan_stores_nothing(asking: Program) -> None:
    plan = asking.post(f"{HOME}/plan-experiment", SPEC)
    assert plan.status_code == 200 and plan.json()["runs"] == 12
    assert [arm["marked"] for arm in plan.json()["arms"]] == ["simulated", "simulated"]
    assert not Experiment.objects.exists()


def test_what_a_specification_lacks_is_told_by_place(asking: Program) -> None:
    answer = asking.post(f"{HOME}/experiments", SPEC.replace("seeds: [1, 2]", "seeds: none"))
    assert answer.status_code == 422
    assert any(fault["line"] == 4 for fault in answer.json()["faults"])
    unknown = asking.post(f"{HOME}/experiments", SPEC.replace("sums", "/etc/passwd"))
    assert unknown.status_code == 422 and not Experiment.objects.exists()


@pytest.mark.parametrize("file", ["/etc/hostname.yaml", "p.json"])
def test_no_file_of_the_server_is_read_as_a_protocol(asking: Program, file: str) -> None:
    answer = asking.post(f"{HOME}/experiments", SPEC.replace("du_2023", file))
    assert answer.status_code == 422 and "file" in answer.json()["message"]


def test_an_experiment_is_steered_from_start_to_end(asking: Program) -> None:
    asking.post(f"{HOME}/experiments", SPEC)
    acts = ("start", "pause", "resume", "cancel")
    seen = [asking.post(f"{HOME}/experiments/first/{act}").json()["status"] for act in acts]
    assert seen == ["RUNNING", "PAUSED", "RUNNING", "CANCELLED"]
    again = asking.post(f"{HOME}/experiments/first/start")
    assert (again.status_code, again.json()["code"]) == (409, "bad_state")


def test_a_stage_is_confirmed_once(asking: Program) -> None:
    asking.post(f"{HOME}/experiments", SPEC)
    waiting = ExperimentStatus.AWAITING_CONFIRMATION
    Experiment.objects.update(status=waiting)
    url = f"{HOME}/experiments/first/confirm"
    assert [asking.post(url).status_code for _ in range(2)] == [200, 409]


def test_a_reader_sees_experiments_and_steers_none(asking: Program, home: Workspace) -> None:
    asking.post(f"{HOME}/experiments", SPEC)
    reading = program(home, Role.READER)
    assert reading.get(f"{HOME}/experiments").json()["items"][0]["name"] == "first"
    assert reading.get(f"{HOME}/experiments/first").json()["questions"] == "sums"
    for act in ("start", "pause", "resume", "confirm", "cancel"):
        assert reading.post(f"{HOME}/experiments/first/{act}").status_code == 404
    assert Experiment.objects.get().status == ExperimentStatus.READY


def test_runs_are_filtered_and_paged_in_the_order_of_the_experiment(asking: Program) -> None:
    asking.post(f"{HOME}/experiments", SPEC)
    url = f"{HOME}/experiments/first/runs"
    votes = asking.get(url, arm="vote", limit=4).json()
    rest = asking.get(url, arm="vote", after=votes["next"]).json()
    shown = votes["items"] + rest["items"]
    assert [run["position"] for run in shown] == [1, 3, 5, 7, 9, 11]
    assert {run["arm"] for run in shown} == {"vote"}
    assert len(asking.get(url, question="q1", status="PENDING").json()["items"]) == 4
    assert asking.get(url, status="DONE").json()["items"] == []
    assert asking.get(url, status="x").status_code == 422


def test_a_run_shows_every_record_in_as_many_queries_whatever_its_size(
    asking: Program, home: Workspace, tmp_path: Path
) -> None:
    counts = []
    for rounds in (1, 3):
        made = factories.experiment(
            tmp_path, in_workspace=home, protocol={"revision_rounds": rounds}
        )
        run = factories.finish(made).runs.get()
        with CaptureQueriesContext(connection) as queries:
            told = asking.get(f"{HOME}/runs/{run.pk}").json()
        counts.append(len(queries))
        assert len(told["attempts"]) == 3 * (rounds + 1)
    assert counts[0] == counts[1]
    attempt = told["attempts"][-1]
    assert attempt["prompt"][-1]["content"] and attempt["read_set"]
    assert attempt["outcomes"][0]["reply"] and {e["kind"] for e in attempt["entries"]} >= {
        "reserve"
    }
    assert told["states"] and told["verdicts"] and told["aggregates"]
    assert told["balance"]["settled_microusd"] > 0
    assert told["question"]["id"] == told["question_id"]


def test_an_ended_run_is_recomputed_and_one_under_way_is_not(
    asking: Program, home: Workspace, tmp_path: Path
) -> None:
    run = factories.finish(factories.experiment(tmp_path, in_workspace=home)).runs.get()
    told = asking.get(f"{HOME}/runs/{run.pk}/verification").json()
    assert told == {"run_id": run.pk, "agrees": True, "disagreement": None}
    asking.post(f"{HOME}/experiments", SPEC)
    waiting = Run.objects.filter(status="PENDING").first()
    assert waiting is not None
    early = asking.get(f"{HOME}/runs/{waiting.pk}/verification")
    assert (early.status_code, early.json()["code"]) == (409, "run_not_ended")


def test_a_run_of_another_workspace_is_not_there(asking: Program, tmp_path: Path) -> None:
    run = factories.experiment(tmp_path).runs.get()
    for path in (f"/runs/{run.pk}", f"/runs/{run.pk}/verification", "/runs/999999999999"):
        assert asking.get(f"{HOME}{path}").status_code == 404

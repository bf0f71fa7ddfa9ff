"""The API against its own description: whatever is sent, it answers as described and never 5xx."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from audits.judging.importing import import_judgments
from debateweb import api_access
from debateweb.models import Role, Workspace
from debateweb.wsgi import application
from runs.demo import LOG_FILE
from runs.importers.judged_registry import read_judgments
from runs.models import Run
from tests.audits.queues.making import pairs, queue_of
from tests.audits.reports.experiments import Deaf
from tests.debateweb.api_people import Program, program
from tests.runs import factories

pytestmark = pytest.mark.django_db

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
#: Few and the same every time: this looks for promises that are not kept, not for rare inputs.
BOUNDED = settings(
    max_examples=4,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
JUDGMENT = {
    "item_id": "i1",
    "question": "Which?",
    "candidates": [
        {"candidate_id": "a", "text": "left"},
        {"candidate_id": "b", "text": "right"},
    ],
    "judge": "j",
    "order": ["a", "b"],
    "repeat": 1,
    "verdict": "a",
    "status": "SUCCEEDED",
}
schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", application)


@pytest.fixture
def stocked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Yield an owner's headers and the names of what a workspace holds one of each of."""
    monkeypatch.setattr(api_access, "REQUESTS_PER_MINUTE", 10**6)
    for module in ("runs.dispatch", "audits.services"):
        monkeypatch.setattr(f"{module}.current_app", Deaf())
    home = Workspace.objects.create(name="home")
    asking = program(home, Role.OWNER)
    made = factories.finish(factories.experiment(tmp_path, in_workspace=home))
    fill(asking)
    fill_audits(home, tmp_path)
    signals = (request_started, request_finished)
    for signal in signals:  # A request would close the test's own connection.
        signal.disconnect(close_old_connections)
    yield {
        "headers": {"Authorization": f"Bearer {asking.token}"},
        "questions": made.question_set.name,
        "debates": "log",
        "judgments": "judged",
        "queues": "queue",
        "experiments": made.name,
        "protocols": "test",
        "presets": "du_2023",
        "run_id": Run.objects.get().pk,
    }
    for signal in signals:
        signal.connect(close_old_connections)


def fill(asking: Program) -> None:
    log = LOG_FILE.read_bytes()
    sent = [
        asking.post("/workspaces/home/debates?name=log", log, "application/octet-stream"),
        asking.post("/workspaces/home/models", factories.MODELS),
    ]
    assert [answer.status_code for answer in sent] == [201, 200]


def fill_audits(home: Workspace, folder: Path) -> None:
    path = folder / "judged.jsonl"
    path.write_text(json.dumps(JUDGMENT) + "\n", encoding="utf-8")
    import_judgments(
        workspace=home, name="judged", format_name="jsonl", records=read_judgments(path, "jsonl")
    )
    queue_of(pairs(2))


@schema.parametrize()
@BOUNDED
def test_operations_keep_to_their_description(
    case: schemathesis.Case[Any], stocked: dict[str, Any]
) -> None:
    if "workspace" in case.path_parameters:
        case.path_parameters["workspace"] = "home"
    if "run_id" in case.path_parameters:
        case.path_parameters["run_id"] = stocked["run_id"]
    if "name" in case.path_parameters:
        case.path_parameters["name"] = stocked[case.path.split("/")[5]]
    case.call_and_validate(headers=stocked["headers"], checks=CHECKS)

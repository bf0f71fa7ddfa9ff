"""Imports over the API: a preview of what would be imported, and columns by other names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from debateweb.models import Role, Workspace
from runs.demo import LOG_FILE
from runs.models import Question, QuestionSet
from tests.debateweb.api_people import Program, program

pytestmark = pytest.mark.django_db
HOME = "/workspaces/home"
CSV = "prompt,gold,level\nWhat is 1 + 1?,2,easy\nWhat is 2 + 2?,4,hard\n"
MAPPED = "map.question=prompt&map.reference=gold&map.stratum=level&answer_type=number"


@pytest.fixture
def asking() -> Program:
    return program(Workspace.objects.create(name="home"))


def send(asking: Program, address: str, body: str | bytes) -> Any:
    return asking.post(f"{HOME}/{address}", body, "application/octet-stream")


def preview(asking: Program, body: str | bytes, query: str = "") -> dict[str, Any]:
    answer = send(asking, f"preview-questions?{query}", body)
    assert answer.status_code == 200, answer.content
    told: dict[str, Any] = json.loads(answer.content)
    return told


def test_a_preview_without_a_mapping_tells_the_faults_and_guesses_the_columns(
    asking: Program,
) -> None:
    told = preview(asking, CSV)
    assert told["format"] == told["guessed_format"] == "csv"
    assert told["columns"] == ["prompt", "gold", "level"]
    assert told["guess"] == {
        "columns": {"question": "prompt", "reference": "gold", "stratum": "level"},
        "answer_type": "number",
    }
    assert (told["total"], told["first"]) == (None, [])
    assert {fault["line"] for fault in told["faults"]} <= {1, 2, 3}
    assert told["fault_total"] >= len(told["faults"]) > 0
    assert not QuestionSet.objects.exists()


def test_the_guess_sent_back_reads_the_file_and_stores_nothing(asking: Program) -> None:
    guess = preview(asking, CSV)["guess"]
    query = "&".join(f"map.{field}={column}" for field, column in guess["columns"].items())
    told = preview(asking, CSV, f"{query}&answer_type={guess['answer_type']}")
    assert (told["total"], told["referenced"], told["faults"]) == (2, 2, [])
    first = told["first"][0]
    assert (first["id"], first["question"], first["stratum"]) == ("1", "What is 1 + 1?", "easy")
    assert not QuestionSet.objects.exists()


def test_faults_of_a_mapped_file_are_told_by_row(asking: Program) -> None:
    told = preview(asking, CSV + "What is 3 + 3?,many,hard\n", MAPPED)
    assert [(fault["line"], fault["field"]) for fault in told["faults"]] == [(4, "reference")]
    assert told["fault_total"] == 1


def test_an_import_with_a_mapping_stores_what_the_preview_showed(asking: Program) -> None:
    first = send(asking, f"questions?name=sums&{MAPPED}", CSV)
    again = send(asking, f"questions?name=sums&{MAPPED}", CSV)
    assert (first.status_code, again.status_code) == (201, 200)
    rows = Question.objects.order_by("position").values_list("text", "reference", "stratum")
    assert list(rows) == [("What is 1 + 1?", ["2"], "easy"), ("What is 2 + 2?", ["4"], "hard")]


def test_rows_of_json_are_mapped_too(asking: Program) -> None:
    body = "".join(json.dumps({"problem": f"What is {i}?", "target": i}) + "\n" for i in range(12))
    query = "map.question=problem&map.reference=target&answer_type=number"
    told = preview(asking, body, query)
    assert (told["total"], len(told["first"])) == (12, 8)
    assert send(asking, f"questions?name=json&{query}", body).status_code == 201


def test_an_answer_type_alone_leaves_the_names_as_they_are(asking: Program) -> None:
    body = '{"id": "x", "question": "Why?", "reference": null}\n'
    told = preview(asking, body, "answer_type=open")
    assert (told["total"], told["referenced"], told["first"][0]["id"]) == (1, 0, "x")


@pytest.mark.parametrize("address", ["preview-questions?", "questions?name=sums&"])
@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("map.question=title", "there is no column 'title'; there are 'prompt', 'gold', 'level'"),
        ("map.question=prompt&format=gsm8k", "'gsm8k' has names of its own"),
    ],
)
def test_a_mapping_that_cannot_be_used_is_one_line(
    asking: Program, address: str, query: str, line: str
) -> None:
    answer = send(asking, f"{address}{query}", CSV)
    told = json.loads(answer.content)
    assert (answer.status_code, told["where"]) == (422, "map")
    assert line in told["message"]
    assert not QuestionSet.objects.exists()


def test_an_unknown_answer_type_and_an_unknown_format_say_so(asking: Program) -> None:
    wrong = send(asking, "preview-questions?answer_type=colour", CSV)
    assert (wrong.status_code, json.loads(wrong.content)["where"]) == (422, "answer_type")
    unknown = send(asking, "preview-debates?format=gsm8k", CSV)
    assert (unknown.status_code, json.loads(unknown.content)["where"]) == (422, "format")


def test_debates_are_previewed_whole_and_by_their_faults(asking: Program) -> None:
    log = LOG_FILE.read_bytes()
    told = json.loads(send(asking, "preview-debates", log).content)
    assert told["total"] == len(log.splitlines())
    assert told["first"][0]["debate_id"] == json.loads(log.split(b"\n", 1)[0])["debate_id"]
    broken = json.loads(send(asking, "preview-debates", log + b"{}\n").content)
    assert {fault["line"] for fault in broken["faults"]} == {told["total"] + 1}
    assert not QuestionSet.objects.exists()


def test_who_may_not_import_gets_no_preview() -> None:
    reading = program(Workspace.objects.create(name="home"), Role.READER)
    assert send(reading, "preview-questions", CSV).status_code == 404
    assert send(reading, "preview-debates", CSV).status_code == 404

"""Questions and debates over the API: whole or not at all, faults by line, pages by key."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from debateweb.models import Role, Workspace
from runs.demo import LOG_FILE
from runs.models import QuestionSet
from tests.debateweb.api_people import Program, program

pytestmark = pytest.mark.django_db
HOME = "/workspaces/home"


@pytest.fixture
def asking() -> Program:
    return program(Workspace.objects.create(name="home"))


def questions(count: int, **changes: object) -> str:
    rows = [
        {
            "id": f"q{i}",
            "question": f"What is {i} + {i}?",
            "reference": str(2 * i),
            "answer_type": "number",
            "stratum": "even" if i % 2 == 0 else "odd",
            **changes,
        }
        for i in range(count)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_a_body_becomes_a_set_and_the_same_body_again_adds_nothing(asking: Program) -> None:
    first = asking.post(f"{HOME}/questions?name=sums", questions(4), "application/octet-stream")
    again = asking.post(f"{HOME}/questions?name=sums", questions(4), "application/octet-stream")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["added"] and not again.json()["added"]
    assert first.json()["size"] == 4 and first.json()["format"] == "jsonl"
    assert first.json()["content_hash"] == again.json()["content_hash"]


def test_a_form_with_a_file_becomes_a_set_of_who_sent_it(asking: Program) -> None:
    file = SimpleUploadedFile("sums.jsonl", questions(3).encode())
    url = f"/api/v1{HOME}/questions?name=sums&format=jsonl"
    answer = asking.client.post(url, {"file": file})
    assert answer.status_code == 201
    assert QuestionSet.objects.get(name="sums").created_by == asking.user


def test_faults_are_told_by_line_and_nothing_is_written(asking: Program) -> None:
    body = questions(1) + '{"id": "q1", "question": "Why?", "answer_type": "number"}\n{"id": 3}\n'
    answer = asking.post(f"{HOME}/questions?name=sums", body, "application/octet-stream")
    assert answer.status_code == 422
    told = answer.json()
    assert told["code"] == "import_faults"
    assert told["faults"] and {fault["line"] for fault in told["faults"]} <= {2, 3}
    assert told["total"] >= len(told["faults"])
    assert not QuestionSet.objects.exists()


def test_other_content_under_a_taken_name_is_refused(asking: Program) -> None:
    asking.post(f"{HOME}/questions?name=sums", questions(3), "application/octet-stream")
    answer = asking.post(f"{HOME}/questions?name=sums", questions(2), "application/octet-stream")
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")


def test_a_form_without_a_file_and_an_unknown_format_say_so(asking: Program) -> None:
    no_file = asking.client.post(f"/api/v1{HOME}/questions?name=sums", {"other": "x"})
    assert (no_file.status_code, no_file.json()["where"]) == (422, "file")
    unknown = asking.post(f"{HOME}/questions?name=s&format=x", questions(1), "text/plain")
    assert (unknown.status_code, unknown.json()["code"]) == (422, "import_faults")


def test_a_set_tells_what_can_be_scored_and_lists_its_questions_by_page(asking: Program) -> None:
    asking.post(f"{HOME}/questions?name=sums", questions(5), "application/octet-stream")
    told = asking.get(f"{HOME}/questions/sums").json()
    assert told["referenced"] == 5
    assert told["strata"] == {"even": 3, "odd": 2} and told["answer_types"] == {"number": 5}
    first = asking.get(f"{HOME}/questions/sums/items", limit=3).json()
    rest = asking.get(f"{HOME}/questions/sums/items", limit=3, after=first["next"]).json()
    assert [q["id"] for q in first["items"] + rest["items"]] == [f"q{i}" for i in range(5)]
    assert rest["next"] is None


def test_sets_are_listed_newest_first_by_key(asking: Program) -> None:
    for name in ("a", "b", "c"):
        asking.post(f"{HOME}/questions?name={name}", questions(1), "text/plain")
    first = asking.get(f"{HOME}/questions", limit=2).json()
    rest = asking.get(f"{HOME}/questions", limit=2, before=first["next"]).json()
    assert [s["name"] for s in first["items"] + rest["items"]] == ["c", "b", "a"]


def test_debates_are_imported_and_shown_as_recorded(asking: Program) -> None:
    body = LOG_FILE.read_bytes()
    answer = asking.post(f"{HOME}/debates?name=log", body, "application/octet-stream")
    assert answer.status_code == 201
    told = asking.get(f"{HOME}/debates/log").json()
    assert told["size"] == sum(told["protocols"].values()) == answer.json()["size"]
    shown = asking.get(f"{HOME}/debates/log/items", limit=1).json()["items"][0]
    assert shown["debate_id"] == json.loads(body.split(b"\n", 1)[0])["debate_id"]
    assert asking.get(f"{HOME}/debates").json()["items"][0]["name"] == "log"


def test_a_page_has_at_most_so_many_rows(asking: Program) -> None:
    answer = asking.get(f"{HOME}/questions", limit=201)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_parameter")
    assert answer.json()["where"] == "limit"


def test_a_reader_may_look_and_not_upload() -> None:
    reading = program(Workspace.objects.create(name="home"), Role.READER)
    assert reading.get(f"{HOME}/questions").status_code == 200
    assert reading.post(f"{HOME}/questions?name=s", questions(1)).status_code == 404

"""Questions by browser: lists, filters, pages by key, imports with preview, mapping and faults."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from debateweb.models import AuditEvent, Role, Workspace
from runs.importers.records import (
    AgentRecord,
    BeliefRecord,
    ClaimRecord,
    DebateRecord,
    FinalRecord,
    TurnRecord,
)
from runs.models import DebateSet, Question, QuestionSet
from runs.services import uploads
from runs.services.imports import import_debates, import_questions
from tests.debateweb.people import member, signed_in
from tests.runs import factories

pytestmark = pytest.mark.django_db
IMPORT = "/w/home/questions/import"


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_folder", lambda workspace: tmp_path / str(workspace.pk))


@pytest.fixture
def home() -> Workspace:
    return Workspace.objects.create(name="home")


@pytest.fixture
def client(home: Workspace) -> Client:
    return signed_in(member(home, Role.RESEARCHER))


def stored(workspace: Workspace, count: int, name: str = "sums") -> QuestionSet:
    records = factories.questions(count)
    import_questions(workspace=workspace, name=name, format_name="jsonl", records=records)
    return QuestionSet.objects.get(workspace=workspace, name=name)


def sent(client: Client, content: bytes, name: str = "rows.csv", **data: str) -> str:
    """Upload a file and return the address of its preview."""
    upload = SimpleUploadedFile(name, content)
    answer = client.post(IMPORT, {"kind": "questions", "file": upload, **data})
    assert answer.status_code == 302
    return str(answer["location"])


def test_a_csv_with_other_names_is_guessed_previewed_and_imported_only_when_confirmed(
    client: Client, home: Workspace
) -> None:
    url = sent(client, b"problem,gold,topic\nWhat is 1+1?,2,sums\nWhat is 2+2?,4,sums\n")
    page = client.get(url).content.decode()
    assert '<option value="problem" selected>' in page
    assert '<option value="gold" selected>' in page
    assert "What is 1+1?" in page
    assert not QuestionSet.objects.exists()
    corrected = (
        f"{url}&mapped=csv&map.question=problem&map.reference=gold&map.id=-&answer_type=number"
    )
    made = client.post(corrected, {"name": "mine"})
    found = QuestionSet.objects.get(workspace=home, name="mine")
    assert made["location"] == f"/w/home/questions/{found.pk}/"
    rows = list(found.questions.order_by("position"))
    assert [(r.external_id, r.reference, r.answer_type) for r in rows] == [
        ("1", ["2"], "number"),
        ("2", ["4"], "number"),
    ]
    assert rows[0].metadata == {"topic": "sums"}
    assert AuditEvent.objects.get(act="questions.import").actor is not None


def test_faults_are_shown_by_row_and_nothing_is_stored(client: Client) -> None:
    lines = [{"id": "a", "question": "?", "answer_type": "number", "reference": "two"}]
    url = sent(client, json.dumps(lines[0]).encode() + b"\n{oops\n", "rows.jsonl")
    page = client.get(url)
    assert page.status_code == 200
    text = page.content.decode()
    assert "2 faults" in text
    assert "is not a number" in text
    refused = client.post(url, {"name": "bad"})
    assert refused.status_code == 400
    assert not QuestionSet.objects.exists()


def test_pasted_rows_take_the_same_way_and_survive_a_lost_session(
    client: Client, home: Workspace
) -> None:
    row = '{"id": "x", "question": "Is it?", "answer_type": "yesno", "reference": "yes"}'
    answer = client.post(IMPORT, {"kind": "questions", "text": row})
    url = answer["location"]
    again = signed_in(member(home, Role.OWNER))
    assert "Is it?" in again.get(url).content.decode()
    assert again.post(url, {"name": "pasted"}).status_code == 302
    assert again.post(url, {"name": "pasted"}).status_code == 302  # The same twice is once.
    assert QuestionSet.objects.count() == 1


def test_a_taken_name_is_refused_beside_the_field_and_the_preview_stays(
    client: Client, home: Workspace
) -> None:
    stored(home, 2)
    url = sent(client, b"id,question,answer_type,reference\n1,Q?,text,A\n")
    refused = client.post(url, {"name": "sums"})
    assert refused.status_code == 400
    page = refused.content.decode()
    assert "is taken by other content" in page
    assert "Q?" in page


@pytest.mark.parametrize(
    ("data", "words"),
    [({}, "Choose a file or paste rows"), ({"text": " "}, "Choose a file or paste rows")],
)
def test_nothing_sent_is_said_in_words(client: Client, data: dict[str, str], words: str) -> None:
    answer = client.post(IMPORT, {"kind": "questions", **data})
    assert answer.status_code == 400
    assert words in answer.content.decode()


def test_a_file_beyond_the_cap_is_refused_and_leaves_nothing(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MAX_BYTES", 10)
    upload = SimpleUploadedFile("big.csv", b"x" * 11)
    answer = client.post(IMPORT, {"kind": "questions", "file": upload})
    assert answer.status_code == 400
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_an_upload_of_another_workspace_is_not_there(client: Client) -> None:
    url = sent(client, b"id,question,answer_type,reference\n1,Q?,text,A\n")
    other = Workspace.objects.create(name="other")
    stranger = signed_in(member(other, Role.OWNER))
    answer = stranger.get(url.replace("/w/home/", "/w/other/"))
    assert answer["location"] == "/w/other/questions/import"


def test_debates_are_previewed_and_imported(client: Client) -> None:
    line = {
        "question_id": "q",
        "question": "1+1?",
        "reference": "2",
        "answer_type": "number",
        "debate_id": "d",
        "protocol": "p",
        "agents": [{"agent_id": "a", "model": "m"}],
        "rounds": [[{"agent_id": "a", "answer": "2", "text": "It is 2."}]],
    }
    url = sent(client, json.dumps(line).encode(), "log.jsonl", kind="debates")
    page = client.get(url).content.decode()
    assert "What it becomes" in page, re.findall(r"<td.*?</td>", page)
    made = client.post(url, {"name": "log"})
    found = DebateSet.objects.get(name="log")
    assert made["location"] == f"/w/home/questions/debates/{found.pk}/"
    assert client.get(made["location"]).status_code == 200
    debate = client.get(f"{made['location']}{found.debates.get().pk}").content.decode()
    assert "It is 2." in debate


def test_pages_of_a_set_follow_each_other_and_filters_hold(client: Client, home: Workspace) -> None:
    found = stored(home, 120)
    url = f"/w/home/questions/{found.pk}/"
    seen: list[str] = []
    query: str | None = "?type=number"
    while query:
        page = client.get(url + query).content.decode()
        seen += re.findall(r'class="run-id">(q\d+)</a>', page)
        following = re.search(r'rel="next" href="(\?[^"]*)"', page)
        query = following[1].replace("&amp;", "&") if following else None
    assert seen == [f"q{i}" for i in range(1, 121)]
    assert "No question fits" in client.get(f"{url}?type=open").content.decode()


def test_hostile_text_is_shown_and_does_nothing(client: Client, home: Workspace) -> None:
    record = factories.questions(1)[0]
    hostile = "<img src=x onerror=alert(1)>\u202e" + "a" * 1_000_000
    changed: dict[str, Any] = {f: getattr(record, f) for f in record.__slots__}
    import_questions(
        workspace=home,
        name="bad",
        format_name="jsonl",
        records=[type(record)(**{**changed, "question": hostile})],
    )
    row = Question.objects.get()
    page = client.get(f"/w/home/questions/{row.question_set_id}/{row.pk}")
    text = page.content.decode()
    assert "<img src=x" not in text
    assert "\u202e" not in text
    assert "more characters" in text
    assert len(text) < 100_000
    assert (
        len(client.get(f"/w/home/questions/{row.question_set_id}/{row.pk}?all=1").content) > 10**6
    )


def test_archiving_asks_and_then_hides_the_set(client: Client, home: Workspace) -> None:
    found = stored(home, 1)
    url = f"/w/home/questions/{found.pk}/archive"
    assert client.get(url).status_code == 200
    assert client.post(url)["location"] == "/w/home/questions/"
    assert client.get(f"/w/home/questions/{found.pk}/").status_code == 404
    assert AuditEvent.objects.filter(act="questions.archive").count() == 1


def test_readers_see_and_import_nothing(home: Workspace) -> None:
    reader = signed_in(member(home, Role.READER))
    record = DebateRecord(
        "d",
        factories.questions(1)[0],
        "p",
        agents=(AgentRecord("a", "m"),),
        rounds=((TurnRecord("a", "2"),),),
    )
    import_debates(workspace=home, name="log", format_name="jsonl", records=[record])
    assert "Import debates" not in reader.get("/w/home/questions/debates/").content.decode()
    assert reader.get(IMPORT).status_code == 404


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("qa_sets/TruthfulQA.csv", "questions"),
        ("qa_sets/strategyqa_dev_noevidence.json", "questions"),
        ("du_format/gsm_3agents_3rounds.json", "debates"),
    ],
)
def test_published_files_are_recognised_and_imported_as_they_are(
    client: Client, real_data: Path, file: str, kind: str
) -> None:
    path = real_data / file
    url = sent(client, path.read_bytes(), path.name, kind=kind)
    page = client.get(url).content.decode()
    assert "What it becomes" in page
    made = client.post(url, {"name": "published"})
    assert made.status_code == 302
    assert client.get(made["location"]).status_code == 200


def test_long_choices_and_references_are_cut_with_the_way_to_all_of_them(
    client: Client, home: Workspace
) -> None:
    record = replace(factories.questions(1)[0], reference=("9" * 5_000,), answer_type="open")
    import_questions(workspace=home, name="long", format_name="jsonl", records=[record])
    row = Question.objects.get()
    url = f"/w/home/questions/{row.question_set_id}/{row.pk}"
    shown = client.get(url).content.decode()
    assert "9" * 1_001 not in shown and "4\u202f000 more characters" in shown.replace(
        "\xa0", "\u202f"
    )
    assert "9" * 5_000 in client.get(f"{url}?all=1").content.decode()


def test_a_debate_shows_claims_beliefs_and_final_answer_of_its_log(
    client: Client, home: Workspace
) -> None:
    turn = TurnRecord("a", "2", "It is 2.", claims=(ClaimRecord("c1", "Two is even"),))
    record = DebateRecord(
        "d",
        factories.questions(1)[0],
        "p",
        agents=(AgentRecord("a", "model-m"),),
        rounds=((turn,), (replace(turn, status="TIMEOUT", answer=None, text=None),)),
        beliefs=(BeliefRecord("judge-j", 1, {"2": 0.75, "3": 0.25}),),
        final=FinalRecord("2", "plurality"),
    )
    import_debates(workspace=home, name="log", format_name="jsonl", records=[record])
    found = DebateSet.objects.get(name="log")
    html = client.get(f"/w/home/questions/debates/{found.pk}/{found.debates.get().pk}")
    shown = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.content.decode()))
    for text in ("Two is even", "model-m", "judge-j", "75.0 %", "plurality", "TIMEOUT"):
        assert text.lower() in shown.lower(), text
    assert "The log keeps no text." in shown


def test_the_page_of_a_debate_stays_bounded_however_much_its_turns_say(
    client: Client, home: Workspace
) -> None:
    turns = (TurnRecord("a", "2", "word " * 20_000),)
    record = DebateRecord(
        "d",
        factories.questions(1)[0],
        "p",
        agents=(AgentRecord("a", "m"),),
        rounds=(turns,) * 60,
    )
    import_debates(workspace=home, name="log", format_name="jsonl", records=[record])
    found = DebateSet.objects.get(name="log")
    url = f"/w/home/questions/debates/{found.pk}/{found.debates.get().pk}"
    assert len(client.get(url).content) < 500_000
    assert len(client.get(f"{url}?all=1").content) > 60 * 100_000

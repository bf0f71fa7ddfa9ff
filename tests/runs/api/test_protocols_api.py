"""Protocols and models over the API: checked, stored in versions, compared; never a secret."""

from __future__ import annotations

import json

import pytest

from debateweb.models import Role, Workspace
from runs.models import ModelEntry, ProtocolVersion
from runs.protocols.digest import protocol_hash
from runs.protocols.presets import load_preset, preset_names
from tests.debateweb.api_people import Program, program
from tests.runs.factories import MODELS, protocol_text

pytestmark = pytest.mark.django_db
HOME = "/workspaces/home"


@pytest.fixture
def asking() -> Program:
    return program(Workspace.objects.create(name="home"))


def test_presets_are_listed_and_shown_with_their_yaml(asking: Program) -> None:
    listed = asking.get(f"{HOME}/presets").json()["items"]
    assert [row["name"] for row in listed] == list(preset_names())
    shown = asking.get(f"{HOME}/presets/du_2023").json()
    assert shown["protocol_hash"] == protocol_hash(load_preset("du_2023"))
    assert "du_2023" in shown["yaml"] and shown["version"] is None
    assert asking.get(f"{HOME}/presets/none").status_code == 404


def test_a_text_is_checked_with_hash_and_bound_and_nothing_is_stored(asking: Program) -> None:
    told = asking.post(f"{HOME}/check-protocol?question_bytes=100", protocol_text()).json()
    longer = asking.post(f"{HOME}/check-protocol?question_bytes=900", protocol_text()).json()
    assert told["unsupported"] == [] and told["bound"]["calls"] > 0
    assert longer["bound"]["input_tokens"] > told["bound"]["input_tokens"]
    assert len(told["protocol_hash"]) == 64
    assert not ProtocolVersion.objects.exists()


def test_what_is_wrong_with_a_protocol_is_told_by_line_and_field(asking: Program) -> None:
    text = "schema_version: 1\nname: x\nrevision_rounds: many\n"
    answer = asking.post(f"{HOME}/check-protocol", text)
    assert answer.status_code == 422
    faults = answer.json()["faults"]
    assert {"line": 3, "field": "revision_rounds"}.items() <= next(
        fault for fault in faults if fault["field"] == "revision_rounds"
    ).items()


@pytest.mark.parametrize("body", [b"\xff", b"", b"[1]", b"a: !!python/object:x {}", b"a: {"])
def test_a_body_that_is_no_protocol_is_refused_in_words(asking: Program, body: bytes) -> None:
    answer = asking.post(f"{HOME}/check-protocol", body)
    assert answer.status_code == 422 and answer.json()["message"]


def test_versions_are_numbered_and_the_same_content_is_one_version(asking: Program) -> None:
    save = f"{HOME}/protocols"
    first = asking.post(save, protocol_text())
    again = asking.post(save, protocol_text())
    second = asking.post(save, protocol_text(revision_rounds=1))
    assert [r.status_code for r in (first, again, second)] == [201, 200, 201]
    assert [r.json()["version"] for r in (first, again, second)] == [1, 1, 2]
    assert asking.get(f"{save}/test").json()["version"] == 2
    assert asking.get(f"{save}/test", version=1).json()["protocol"]["revision_rounds"] == 2
    assert [v["version"] for v in asking.get(save, name="test").json()["items"]] == [2, 1]
    assert asking.get(f"{save}/test", version=3).status_code == 404


def test_a_shipped_name_and_a_taken_name_are_refused(asking: Program) -> None:
    shipped = asking.post(f"{HOME}/protocols", protocol_text(name="du_2023"))
    assert (shipped.status_code, shipped.json()["where"]) == (422, "name")
    row = json.dumps({"id": "q", "question": "Why?", "answer_type": "open"})
    assert asking.post(f"{HOME}/questions?name=test", row).status_code == 201
    taken = asking.post(f"{HOME}/protocols", protocol_text())
    assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")


def test_two_protocols_are_compared_by_name_and_version(asking: Program) -> None:
    for rounds in (2, 1):
        asking.post(f"{HOME}/protocols", protocol_text(revision_rounds=rounds))
    told = asking.get(f"{HOME}/compare-protocols", a="test@1", b="test@2").json()
    assert not told["same_algorithm"]
    assert told["changes"] == [
        {"path": "revision_rounds", "descriptive": False, "before": 2, "after": 1}
    ]
    same = asking.get(f"{HOME}/compare-protocols", a="du_2023", b="du_2023").json()
    assert same["same_algorithm"] and same["changes"] == []


@pytest.mark.parametrize("name", ["/etc/passwd", "../x.yaml", "test@x", "nothing"])
def test_no_file_is_ever_read_for_a_name(asking: Program, name: str) -> None:
    answer = asking.get(f"{HOME}/compare-protocols", a=name, b="du_2023")
    assert answer.status_code == 404


def test_models_are_imported_by_owners_and_shown_without_any_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-very-secret")
    monkeypatch.setenv("DEBATEWEB_KEY_HOSTS", "MY_API_KEY=127.0.0.1")
    home = Workspace.objects.create(name="home")
    owner, researcher = program(home, Role.OWNER), program(home, Role.RESEARCHER)
    text = MODELS + "    api_key_env: MY_API_KEY\n"
    assert researcher.post(f"{HOME}/models", text).status_code == 404
    first, again = (owner.post(f"{HOME}/models", text).json() for _ in range(2))
    assert (first["changed"], again["changed"]) == (1, 0)
    listed = researcher.get(f"{HOME}/models")
    assert listed.json()["items"][0]["api_key_env"] == "MY_API_KEY"
    checked = researcher.get(f"{HOME}/check-model", model="scripted")
    assert checked.json()["lacks"] == []
    assert b"very-secret" not in listed.content + checked.content


@pytest.mark.parametrize("variable", ["DEBATEWEB_SECRET_KEY", "DATABASE_URL", "PATH"])
def test_no_secret_of_the_site_can_be_sent_away_as_a_model_key(variable: str) -> None:
    owner = program(Workspace.objects.create(name="home"), Role.OWNER)
    answer = owner.post(f"{HOME}/models", MODELS + f"    api_key_env: {variable}\n")
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_input")
    assert not ModelEntry.objects.exists()


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "GITHUB_TOKEN"])
def test_an_owner_brings_no_key_to_an_address_that_the_site_does_not_allow(variable: str) -> None:
    owner = program(Workspace.objects.create(name="home"), Role.OWNER)
    answer = owner.post(f"{HOME}/models", MODELS + f"    api_key_env: {variable}\n")
    assert (answer.status_code, answer.json()["where"]) == (422, "scripted.api_key_env")
    assert f"DEBATEWEB_KEY_HOSTS={variable}=127.0.0.1" in answer.json()["message"]
    assert not ModelEntry.objects.exists()


def test_a_log_that_nobody_imported_is_told_so(asking: Program) -> None:
    answer = asking.get(f"{HOME}/check-model", model="recorded:nope")
    assert (answer.status_code, answer.json()["where"]) == (422, "model")
    assert "there is no imported debate set 'nope'" in answer.json()["message"]


def test_a_model_nobody_knows_is_told_so(asking: Program) -> None:
    answer = asking.get(f"{HOME}/check-model", model="nonesuch/model")
    assert (answer.status_code, answer.json()["where"]) == (422, "model")

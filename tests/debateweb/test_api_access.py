"""Who may ask the API what, and how every refusal looks. Every operation has a line here."""

from __future__ import annotations

import json
import logging

import pytest
from django.test import Client
from django.urls import URLPattern, get_resolver
from redis.exceptions import ConnectionError as RedisConnectionError

from debateweb import api_access
from debateweb.api import api, fault_of
from debateweb.models import Role, User, Workspace
from debateweb.tokens import revoke_token
from tests.debateweb.api_people import program
from tests.debateweb.people import member, signed_in

pytestmark = pytest.mark.django_db

OWNERS = {"owner"}
RUNNERS = {"owner", "researcher"}
READERS = {"owner", "researcher", "reader"}
EVERYBODY = {*READERS, "annotator", "stranger"}
ROLES = [*(role.value for role in Role), "stranger"]

#: Operation → who is let in; the rest get 404. What is let in answers anything else, or says
#: that the thing named is not there.
OPERATIONS: dict[str, set[str]] = {
    "list_workspaces": EVERYBODY,
    "preview_questions": RUNNERS,
    "preview_debates": RUNNERS,
    "list_question_sets": READERS,
    "upload_questions": RUNNERS,
    "get_question_set": READERS,
    "list_questions": READERS,
    "list_debate_sets": READERS,
    "upload_debates": RUNNERS,
    "get_debate_set": READERS,
    "list_debates": READERS,
    "list_presets": READERS,
    "get_preset": READERS,
    "list_versions": READERS,
    "save_protocol": RUNNERS,
    "get_protocol": READERS,
    "check_protocol": READERS,
    "compare_protocols": READERS,
    "list_models": READERS,
    "upload_models": OWNERS,
    "check_model": READERS,
    "list_experiments": READERS,
    "create_experiment": RUNNERS,
    "plan_experiment": RUNNERS,
    "get_experiment": READERS,
    **dict.fromkeys(
        [f"{act}_experiment" for act in ("start", "pause", "resume", "confirm", "cancel")], RUNNERS
    ),
    "list_runs": READERS,
    "get_run": READERS,
    "verify_run": READERS,
    "get_stage": READERS,
    "get_experiment_report": READERS,
    "get_experiment_table": READERS,
    "build_experiment_report": READERS,
    "get_debates_report": READERS,
    "get_debates_table": READERS,
    "build_debates_report": READERS,
    "list_experiment_rows": READERS,
    "list_debate_rows": READERS,
    "get_judgments_report": READERS,
    "get_judgments_table": READERS,
    "build_judgments_report": READERS,
    "list_judgment_rows": READERS,
    "get_queue_report": READERS,
    "get_queue_table": READERS,
    "build_queue_report": READERS,
    "list_queue_rows": READERS,
}


def operations() -> dict[str, tuple[str, str]]:
    """Return method and path of every operation by its short name."""
    found = {}
    for path, methods in api.get_openapi_schema()["paths"].items():
        for method, operation in methods.items():
            name = operation["operationId"].split("_api_")[-1]
            for module in ("experiments_", "imports_", "models_", "protocols_", "sets_"):
                name = name.removeprefix(module)
            found[name.removeprefix("audits_").removeprefix("debateweb_")] = (method, path)
    return found


FOUND = operations()


def test_every_operation_has_a_line_and_every_line_an_operation() -> None:
    assert set(FOUND) == set(OPERATIONS)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_operations_let_in_whom_the_table_names(name: str) -> None:
    home, other = Workspace.objects.create(name="home"), Workspace.objects.create(name="other")
    method, path = FOUND[name]
    url = path.format(workspace="home", name="nonesuch", run_id=1).removeprefix("/api/v1")
    let_in = set()
    for role in ROLES:
        place, rank = (other, "owner") if role == "stranger" else (home, role)
        asking = program(place, rank, role)
        send = asking.get if method == "get" else asking.post
        query = "?metric=accuracy_T&model=x&a=du_2023&b=du_2023&name=n"
        answer = (
            send(f"{url}{query if method == 'post' else ''}")
            if method == "post"
            else (asking.client.get(f"/api/v1{url}{query}"))
        )
        if answer.status_code != 404 or "no workspace" not in answer.json()["message"]:
            let_in.add(role)
    assert let_in == OPERATIONS[name]


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_nobody_gets_in_without_a_token_or_a_session(name: str) -> None:
    method, path = FOUND[name]
    url = path.format(workspace="home", name="nonesuch", run_id=1)
    answer = getattr(Client(), method)(url)
    assert (answer.status_code, answer.json()["code"]) == (401, "not_signed_in")
    assert answer["WWW-Authenticate"] == "Bearer"


@pytest.fixture
def home() -> Workspace:
    return Workspace.objects.create(name="home")


def test_a_foreign_workspace_is_answered_like_one_that_is_not(home: Workspace) -> None:
    asking = program(Workspace.objects.create(name="other"))
    foreign, missing = (asking.get(f"/workspaces/{n}/experiments") for n in ("home", "none"))
    assert foreign.status_code == missing.status_code == 404
    assert foreign.json()["message"].replace("home", "none") == missing.json()["message"]


def test_the_workspaces_of_the_token_are_listed_with_the_role(home: Workspace) -> None:
    member(Workspace.objects.create(name="other"), Role.OWNER, "stranger")
    member(home, Role.OWNER)
    told = program(home, Role.READER).get("/workspaces").json()
    assert told == {"items": [{"name": "home", "role": "reader"}]}


@pytest.mark.parametrize("header", ["Bearer dw_wrong", "Bearer", "Basic dw_x", "dw_x"])
def test_a_token_that_is_none_is_no_token(header: str) -> None:
    answer = Client(headers={"Authorization": header}).get("/api/v1/workspaces")
    assert answer.status_code == 401


def test_a_revoked_token_and_one_of_somebody_who_left_open_nothing(home: Workspace) -> None:
    asking = program(home)
    token = asking.user.api_tokens.get()
    revoke_token(user=asking.user, token_id=token.pk)
    assert asking.get("/workspaces").status_code == 401
    gone = program(home, Role.READER)
    User.objects.filter(pk=gone.user.pk).update(is_active=False)
    assert gone.get("/workspaces").status_code == 401


def test_a_session_reads_and_changes_things_with_its_csrf_token_alone(home: Workspace) -> None:
    user = member(home, Role.RESEARCHER)
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    assert client.get("/api/v1/workspaces").status_code == 200
    url = "/api/v1/workspaces/home/questions?name=n"
    row = json.dumps({"id": "q", "question": "Why?", "answer_type": "open"})
    refused = client.post(url, row, content_type="application/octet-stream")
    assert (refused.status_code, refused.json()["code"]) == (403, "csrf_failed")
    client.get("/account")
    token = client.cookies["csrftoken"].value
    taken = client.post(
        url, row, content_type="application/octet-stream", headers={"X-CSRFToken": token}
    )
    assert taken.status_code == 201


def test_a_token_needs_no_csrf_token(home: Workspace) -> None:
    asking = program(home)
    asking.client.handler.enforce_csrf_checks = True
    assert asking.post("/workspaces/home/check-protocol", "{}").status_code == 422


def test_a_token_that_asks_too_often_waits_and_others_do_not(
    home: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_access, "REQUESTS_PER_MINUTE", 3)
    busy, calm = program(home), program(home, Role.READER)
    assert [busy.get("/workspaces").status_code for _ in range(4)] == [200, 200, 200, 429]
    assert busy.get("/workspaces").json()["code"] == "too_many_requests"
    assert busy.get("/workspaces")["Retry-After"] == "60"
    assert calm.get("/workspaces").status_code == 200


def test_without_the_cache_nobody_is_kept_out(
    home: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Away:
        def add(self, *words: object) -> None:
            raise RedisConnectionError("away")

    monkeypatch.setattr(api_access, "cache", Away())
    assert program(home).get("/workspaces").status_code == 200
    assert "not rate-limited" in caplog.text


@pytest.mark.parametrize("path", ["/", "/nonesuch", "/workspaces/home/nonesuch/x", "/workspaces/"])
def test_an_address_without_an_operation_is_told_as_json(path: str) -> None:
    answer = Client().get(f"/api/v1{path}")
    assert answer.status_code == 404
    assert answer.json() == {"code": "not_found", "message": "there is nothing here", "where": None}


def test_a_method_that_is_none_names_those_there_are(home: Workspace) -> None:
    answer = program(home).client.delete("/api/v1/workspaces/home/questions")
    assert answer.status_code == 405
    assert answer.json()["code"] == "method_not_allowed"
    assert set(answer["Allow"].split(", ")) == {"GET", "POST"}


@pytest.mark.parametrize(
    "path", ["/workspaces/home%00/questions", "/workspaces/home/questions?before=1&x=%00"]
)
def test_a_nul_character_never_reaches_the_database(home: Workspace, path: str) -> None:
    answer = program(home).client.get(f"/api/v1{path}")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


@pytest.mark.parametrize("value", ["-1", "x", str(2**63), "1e3"])
def test_a_key_that_is_none_is_told_by_its_name(home: Workspace, value: str) -> None:
    answer = program(home).get("/workspaces/home/questions", before=value)
    assert (answer.status_code, answer.json()["where"]) == (422, "before")


def test_a_broken_form_is_told_and_breaks_nothing(home: Workspace) -> None:
    url = "/workspaces/home/questions?name=n"
    for kind in ("multipart/form-data", "multipart/form-data; boundary=é"):
        answer = program(home, name=f"p{len(kind)}").post(url, b"--x", kind)
        assert answer.status_code in {400, 422} and answer.json()["code"]


def test_a_body_that_is_too_large_is_refused(
    home: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_access, "MAX_UPLOAD_BYTES", 10)
    asking = program(home)
    url = "/workspaces/home/questions?name=n"
    raw = asking.post(url, b"x" * 11, "application/octet-stream")
    spec = asking.post("/workspaces/home/experiments", b"x" * 3_000_000)
    assert (raw.status_code, spec.status_code) == (413, 413)
    assert raw.json()["code"] == spec.json()["code"] == "too_large"


def test_what_breaks_on_our_side_is_logged_and_says_nothing_of_itself(
    home: Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*words: object) -> None:
        raise RuntimeError("secret of ours")

    monkeypatch.setattr("debateweb.api.workspaces_of", breaks)
    with caplog.at_level(logging.ERROR):
        answer = program(home).get("/workspaces")
    assert (answer.status_code, answer.json()["code"]) == (500, "server_error")
    assert b"secret" not in answer.content and "secret of ours" in caplog.text


def test_the_description_is_there_for_everybody_and_no_page_runs_scripts() -> None:
    described = Client().get("/api/v1/openapi.json")
    assert described.json()["info"]["title"] == "debateweb"
    assert Client().get("/api/v1/docs").status_code == 404


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("body:3: arms[0].protocol: is missing", (3, "arms[0].protocol", "is missing")),
        ("body: is not UTF-8 at byte 3", (None, "body", "is not UTF-8 at byte 3")),
        ("there is no set 'a: b'", (None, None, "there is no set 'a: b'")),
        ("body:1: not YAML, see here", (1, None, "not YAML, see here")),
    ],
)
def test_a_line_of_a_fault_is_taken_apart(
    line: str, place: tuple[int | None, str | None, str]
) -> None:
    fault = fault_of(line)
    assert (fault.line, fault.field, fault.message) == place


def test_every_route_of_the_api_is_an_operation_or_tells_of_them() -> None:
    resolver = next(r for r in get_resolver().url_patterns if str(r.pattern) == "api/v1/")
    patterns = [p for p in resolver.url_patterns if isinstance(p, URLPattern)]  # type: ignore[union-attr]
    paths = {path for _, path in FOUND.values()}
    others = 3  # The description, the root and the rest.
    assert len({str(p.pattern) for p in patterns}) == len(paths) + others


def test_signed_in_strangers_find_nothing(home: Workspace) -> None:
    outside = Workspace.objects.create(name="other")
    client = signed_in(member(outside, Role.OWNER, "stranger"))
    assert client.get("/api/v1/workspaces/home/models").status_code == 404

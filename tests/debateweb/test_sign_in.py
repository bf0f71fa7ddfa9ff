"""Signing in and out: where it leads, how often one may try, and what an ended session loses."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.test import Client
from redis.exceptions import ConnectionError as BrokerAway

from debateweb import throttle
from debateweb.context import THEME_COOKIE
from debateweb.models import AuditEvent, Role, User, Workspace
from tests.debateweb.people import PASSWORD, member, person, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_tries_yet() -> None:
    cache.clear()


def sign_in(client: Client, name: str, password: str = PASSWORD, **data: str) -> int:
    return client.post("/login/", {"username": name, "password": password, **data}).status_code


def test_signing_in_leads_where_the_person_wanted_to_go(client: Client) -> None:
    member_of = Workspace.objects.create(name="home")
    alice = person("alice")
    member_of.members.create(user=alice, role=Role.READER)
    asked = client.get("/w/home/?tab=1")
    assert asked["location"] == "/login/?next=%2Fw%2Fhome%2F%3Ftab%3D1"
    page = client.get(asked["location"])
    assert b'value="/w/home/?tab=1"' in page.content
    reply = client.post(
        "/login/", {"username": "alice", "password": PASSWORD, "next": "/w/home/?tab=1"}
    )
    assert (reply.status_code, reply["location"]) == (302, "/w/home/?tab=1")


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "http:///x"]
)
def test_signing_in_leads_to_no_other_site(client: Client, elsewhere: str) -> None:
    person("alice")
    data = {"username": "alice", "password": PASSWORD, "next": elsewhere}
    assert client.post("/login/", data)["location"] == "/"
    assert client.post("/theme", {"theme": "dark", "next": elsewhere})["location"] == "/"


def test_a_wrong_password_says_so_and_keeps_the_name(client: Client) -> None:
    person("alice")
    reply = client.post("/login/", {"username": "alice", "password": "wrong"})
    assert reply.status_code == 400
    assert b'role="alert"' in reply.content
    assert b'value="alice"' in reply.content
    assert b"wrong" not in reply.content


def test_too_many_tries_are_refused_even_with_the_right_password(client: Client) -> None:
    person("alice")
    person("bob")
    for _ in range(throttle.TRIES_PER_ACCOUNT_AND_ADDRESS):
        assert sign_in(client, "alice", "wrong") == 400
    reply = client.post("/login/", {"username": "Alice", "password": PASSWORD})
    assert reply.status_code == 429
    assert b"Too many tries" in reply.content and b"15 minutes" in reply.content
    assert sign_in(Client(REMOTE_ADDR="192.0.2.7"), "alice") == 302, "another address"
    assert sign_in(client, "bob") == 302, "another account"


def test_one_address_cannot_try_account_after_account(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "TRIES_PER_ADDRESS", 3)
    person("alice")
    assert [sign_in(Client(), "alice") for _ in range(5)] == [302] * 5, "right ones do not count"
    assert [sign_in(client, f"somebody-{i}", "x") for i in range(4)] == [400, 400, 400, 429]


def test_a_right_password_starts_the_count_anew(client: Client) -> None:
    person("alice")
    for _ in range(3):
        for _ in range(throttle.TRIES_PER_ACCOUNT_AND_ADDRESS - 1):
            assert sign_in(Client(), "alice", "wrong") == 400
        assert sign_in(Client(), "alice") == 302


def test_without_the_cache_one_can_still_sign_in(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    person("alice")

    def away(*args: object) -> None:
        raise BrokerAway("gone")

    monkeypatch.setattr(cache, "add", away)
    monkeypatch.setattr(cache, "delete", away)
    assert sign_in(client, "alice") == 302


def test_who_is_signed_in_needs_no_sign_in_page() -> None:
    reply = signed_in(person("alice")).get("/login/?next=/account")
    assert reply["location"] == "/account"


def test_coming_and_going_is_on_the_trail(client: Client) -> None:
    person("alice")
    sign_in(client, "alice")
    client.post("/logout/")
    acts = list(AuditEvent.objects.order_by("pk").values_list("act", "actor_name"))
    assert acts == [("session.start", "alice"), ("session.end", "alice")]
    assert client.get("/account").status_code == 302


@pytest.mark.parametrize("method", ["get", "post"])
def test_htmx_without_a_session_moves_the_whole_page(client: Client, method: str) -> None:
    reply = getattr(client, method)(
        "/workspaces",
        headers={"HX-Request": "true", "HX-Current-URL": "http://testserver/w/home/?tab=2"},
    )
    assert reply.status_code == 401
    assert reply["HX-Redirect"] == "/login/?next=%2Fw%2Fhome%2F%3Ftab%3D2"
    assert reply.content == b""


def test_what_was_sent_without_a_session_comes_back_after_the_sign_in(client: Client) -> None:
    person("alice")
    long = "first line\n\n  second <b>line</b> " + "x" * 5_000
    sent = client.post("/workspaces?from=here", {"name": "kept", "notes": long, "password": "no"})
    draft = "/draft/" + sent["location"].partition("%2Fdraft%2F")[2]
    assert b"What you sent is kept" in client.get(sent["location"]).content
    assert client.get(draft).status_code == 302, "nobody sees it before"
    assert sign_in(client, "alice") == 302
    page = client.get(draft).content.decode()
    assert 'action="/workspaces?from=here"' in page
    assert 'name="name" value="kept"' in page
    assert "first line\n\n  second &lt;b&gt;line&lt;/b&gt; xxx" in page
    assert "no</" not in page and 'name="password"' not in page


def test_a_draft_is_seen_by_nobody_else(client: Client) -> None:
    person("alice")
    sent = client.post("/workspaces", {"name": "kept"})
    draft = "/draft/" + sent["location"].partition("%2Fdraft%2F")[2]
    assert signed_in(person("bob")).get(draft).status_code == 404
    sign_in(client, "alice")
    client.post("/logout/")
    sign_in(client, "alice")
    assert client.get(draft).status_code == 404, "signing out forgets it"


def test_only_the_last_drafts_are_kept_and_none_that_is_too_large(client: Client) -> None:
    for i in range(8):
        client.post("/workspaces", {"name": f"draft-{i}"})
    kept = client.session["drafts"]
    assert [draft["fields"] for draft in kept.values()] == [
        [["name", f"draft-{i}"]] for i in range(3, 8)
    ]
    reply = client.post("/workspaces", {"name": "x" * 2_000_001})
    draft = list(client.session["drafts"].values())[-1]
    assert (draft["fields"], draft["is_too_large"]) == ([], True)
    assert "/draft/" in reply["location"].replace("%2F", "/")


def test_a_stale_token_shows_what_was_sent_and_sends_it_again() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("alice"))
    here = {"Origin": "http://testserver"}
    reply = client.post("/workspaces", {"name": "kept"}, headers=here)
    assert reply.status_code == 403
    page = reply.content.decode()
    assert 'name="name" value="kept"' in page
    token = page.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
    data = {"name": "kept", "csrfmiddlewaretoken": token}
    assert client.post("/workspaces", data, headers=here)["location"] == "/w/kept/"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {},
        {"Sec-Fetch-Site": "cross-site", "Referer": "http://testserver/"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"},
    ],
)
def test_what_another_site_sent_is_not_offered_for_sending(headers: dict[str, str]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("alice"))
    reply = client.post("/workspaces", {"name": "theirs"}, headers=headers)
    assert reply.status_code == 403
    assert b"theirs" not in reply.content
    assert not Workspace.objects.exists()


def test_a_stale_token_under_htmx_loads_the_page_again() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("alice"))
    reply = client.post("/workspaces", {"name": "x"}, headers={"HX-Request": "true"})
    assert (reply.status_code, reply["HX-Refresh"], reply.content) == (403, "true", b"")


def test_a_password_form_that_was_too_old_leads_back_to_its_page() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("alice"))
    here = {"Origin": "http://testserver", "Referer": "http://testserver/account?x=1"}
    reply = client.post("/account/password", {"old_password": PASSWORD}, headers=here)
    page = reply.content.decode()
    assert reply.status_code == 403
    assert 'href="/account?x=1"' in page and "Passwords are not kept" in page
    assert PASSWORD not in page


def test_the_theme_is_a_cookie_that_the_server_reads(client: Client) -> None:
    assert b'data-theme="auto"' in client.get("/login/").content
    client.post("/theme", {"theme": "dark", "next": "/login/"})
    assert client.cookies[THEME_COOKIE].value == "dark"
    assert b'data-theme="dark"' in client.get("/login/").content
    client.post("/theme", {"theme": '"><script>'})
    assert client.cookies[THEME_COOKIE].value == "dark"
    client.cookies[THEME_COOKIE] = '"><script>'
    assert b'data-theme="auto"' in client.get("/login/").content


def test_a_person_who_was_switched_off_is_signed_out_at_once() -> None:
    alice = person("alice")
    client = signed_in(alice)
    assert client.get("/account").status_code == 200
    User.objects.update(is_active=False)
    assert client.get("/account").status_code == 302


def test_an_ended_membership_ends_at_the_next_request() -> None:
    home = Workspace.objects.create(name="home")
    reader = member(home, Role.READER)
    client = signed_in(reader)
    assert client.get("/w/home/").status_code == 200
    reader.memberships.update(archived_at="2026-01-01T00:00Z")
    assert client.get("/w/home/").status_code == 404

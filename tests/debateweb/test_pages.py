"""The site's own pages: health, and the one-time link."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client

from debateweb import access
from debateweb.celery import heartbeat_key, note_heartbeat
from debateweb.models import User

PASSWORD = "a long enough sentence"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


class Sender:
    def __init__(self, hostname: str) -> None:
        self.hostname = hostname


@pytest.fixture(autouse=True)
def _no_workers() -> None:
    cache.delete_many([heartbeat_key(name) for name in ("rounds", "small")])


@pytest.mark.django_db
def test_health_tells_a_missing_worker_from_a_live_and_a_stalled_one(client: Client) -> None:
    def states() -> dict[str, str]:
        return {part["name"]: part["state"] for part in client.get("/health.json").json()["parts"]}

    assert states()["worker rounds"] == "away"
    note_heartbeat(Sender("rounds-7@debateweb"))
    assert states() == {
        "database": "ok",
        "broker": "ok",
        "worker rounds": "ok",
        "worker small": "away",
    }
    cache.set(heartbeat_key("rounds"), 0.0, 60)
    assert states()["worker rounds"] == "stalled"


@pytest.mark.django_db
def test_health_is_503_when_the_database_is_away(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import OperationalError

    def refuse() -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(connection, "cursor", refuse)
    monkeypatch.setattr(connection, "close", lambda: None)
    for path in ("/health", "/health.json"):
        assert client.get(path).status_code == 503


@pytest.mark.django_db
def test_every_page_has_the_strict_policy(client: Client) -> None:
    reply = client.get("/health")
    assert set(reply["content-security-policy"].split("; ")) == set(POLICY.split("; "))
    assert b"<script>" not in reply.content
    assert b"style=" not in reply.content


@pytest.mark.django_db
def test_the_first_owner_sets_a_password_once_and_is_signed_in(client: Client) -> None:
    link = access.ensure_first_owner()
    assert link is not None
    assert client.get(link).status_code == 200
    assert client.get(link).status_code == 200  # Looking does not use it up.
    reply = client.post(link, {"password": PASSWORD, "again": PASSWORD})
    assert (reply.status_code, reply["location"]) == (302, "/")
    owner = User.objects.get()
    assert owner.check_password(PASSWORD)
    assert client.session["_auth_user_id"] == str(owner.pk)
    again = Client().post(link, {"password": PASSWORD + "!", "again": PASSWORD + "!"})
    assert again.status_code == 400
    owner.refresh_from_db()
    assert owner.check_password(PASSWORD)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("password", "again", "said"),
    [("short", "short", b"too short"), (PASSWORD, "another sentence", b"differ")],
)
def test_a_weak_or_mistyped_password_keeps_the_link_alive(
    client: Client, password: str, again: str, said: bytes
) -> None:
    link = access.ensure_first_owner()
    assert link is not None
    reply = client.post(link, {"password": password, "again": again})
    assert reply.status_code == 400
    assert said in reply.content
    assert client.post(link, {"password": PASSWORD, "again": PASSWORD}).status_code == 302


@pytest.mark.django_db
def test_an_unknown_link_is_refused_in_words(client: Client) -> None:
    reply = client.post("/welcome/unknown", {"password": PASSWORD, "again": PASSWORD})
    assert reply.status_code == 400
    assert b"used before, has expired or is mistyped" in reply.content


@pytest.mark.django_db
def test_signing_in_and_out_works_with_the_password(client: Client) -> None:
    link = access.ensure_first_owner()
    assert link is not None
    Client().post(link, {"password": PASSWORD, "again": PASSWORD})
    name = User.objects.get().get_username()
    assert client.get("/login/").status_code == 200
    assert client.post("/login/", {"username": name, "password": PASSWORD}).status_code == 302
    assert name.encode() in client.get("/health").content
    assert client.post("/logout/").status_code == 302

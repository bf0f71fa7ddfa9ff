"""One's own account: the password, and API tokens that are shown once."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db.models.functions import Now
from django.test import Client

from debateweb import throttle, tokens
from debateweb.errors import StateError
from debateweb.models import ApiToken, AuditEvent, User
from tests.debateweb.people import PASSWORD, person, signed_in

pytestmark = pytest.mark.django_db
NEW = "another long sentence"


@pytest.fixture(autouse=True)
def _no_tries_yet() -> None:
    cache.clear()


@pytest.fixture
def alice() -> User:
    return person("alice")


def change(client: Client, **data: str) -> int:
    filled = {"old_password": PASSWORD, "password": NEW, "again": NEW, **data}
    return client.post("/account/password", filled).status_code


def test_a_new_password_ends_the_other_sessions(alice: User) -> None:
    here, elsewhere = signed_in(alice), signed_in(alice)
    assert change(here) == 302
    assert here.get("/account").status_code == 200
    assert elsewhere.get("/account").status_code == 302
    alice.refresh_from_db()
    assert alice.check_password(NEW)
    assert AuditEvent.objects.filter(act="password.change", actor=alice).count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"old_password": "guess"},
        {"again": "a different sentence"},
        {"password": "short", "again": "short"},
        {"password": "password123", "again": "password123"},
        {"password": ""},
    ],
)
def test_a_password_that_will_not_do_changes_nothing(alice: User, wrong: dict[str, str]) -> None:
    assert change(signed_in(alice), **wrong) == 400
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)


def test_the_present_password_cannot_be_guessed_from_an_open_session(alice: User) -> None:
    client = signed_in(alice)
    for _ in range(throttle.TRIES_PER_ACCOUNT_AND_ADDRESS):
        assert change(client, old_password="guess") == 400
    assert change(client) == 400
    alice.refresh_from_db()
    assert alice.check_password(PASSWORD)


def test_a_token_is_shown_once_and_stored_as_a_hash(alice: User) -> None:
    client = signed_in(alice)
    reply = client.post("/account/tokens", {"name": "notebook"})
    assert reply.status_code == 201
    assert "no-store" in reply["Cache-Control"]
    found = re.search(r'value="(dw_[\w-]{40,})"', reply.content.decode())
    assert found is not None
    token = found[1]
    again = client.get("/account").content.decode()
    assert "notebook" in again and token not in again
    assert token not in str(ApiToken.objects.values().get())
    assert tokens.user_of_token(token) == alice


def test_a_use_is_noted_at_most_once_a_minute(alice: User) -> None:
    token = tokens.create_token(user=alice, name="t")
    assert ApiToken.objects.get().last_used_at is None
    tokens.user_of_token(token)
    first = ApiToken.objects.get().last_used_at
    tokens.user_of_token(token)
    assert ApiToken.objects.get().last_used_at == first is not None
    ApiToken.objects.update(last_used_at=Now() - timedelta(minutes=2))
    stale = ApiToken.objects.get().last_used_at
    tokens.user_of_token(token)
    assert ApiToken.objects.get().last_used_at != stale


def test_a_revoked_token_acts_for_nobody(alice: User) -> None:
    token = tokens.create_token(user=alice, name="t")
    row = ApiToken.objects.get()
    url = f"/account/tokens/{row.pk}/revoke"
    assert signed_in(person("bob")).post(url).status_code == 404
    assert tokens.user_of_token(token) == alice
    assert signed_in(alice).post(url).status_code == 302
    assert tokens.user_of_token(token) is None
    tokens.revoke_token(user=alice, token_id=row.pk)
    assert AuditEvent.objects.filter(act="token.revoke").count() == 1


@pytest.mark.parametrize("token", ["", "dw_", "x" * 100_000, "\x00", "\ud800"])
def test_a_token_that_never_was_acts_for_nobody(token: str) -> None:
    assert tokens.user_of_token(token) is None


def test_the_token_of_a_person_who_was_switched_off_acts_for_nobody(alice: User) -> None:
    token = tokens.create_token(user=alice, name="t")
    User.objects.update(is_active=False)
    assert tokens.user_of_token(token) is None


def test_there_are_only_so_many_tokens(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST_TOKENS", 1)
    tokens.create_token(user=alice, name="first")
    with pytest.raises(StateError, match="revoke one first"):
        tokens.create_token(user=alice, name="second")
    reply = signed_in(alice).post("/account/tokens", {"name": "second"})
    assert reply.status_code == 409
    assert b"revoke one first" in reply.content

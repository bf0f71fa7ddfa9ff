"""The client's address and TLS behind proxies: only who is trusted may speak for others."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from pytest_django.fixtures import Settings

from debateweb import proxies, throttle
from tests.debateweb.people import PASSWORD, person

TRUSTED = ("10.0.0.0/8", "2001:db8:1::/48")


@pytest.fixture(autouse=True)
def _no_tries_yet() -> None:
    cache.clear()


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "192.0.2.66, 198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "192.0.2.66, 198.51.100.1, 10.0.0.2,10.0.0.3", "198.51.100.1"),
        ("10.0.0.1", "10.9.9.9, 10.0.0.2", "10.9.9.9"),
        ("10.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
        ("10.0.0.1", "198.51.100.1, nonsense, 10.0.0.2", "10.0.0.2"),
        ("::ffff:10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"),
        ("2001:db8:1::5", "2001:db8:ffff::1, 2001:db8:1::6", "2001:db8:ffff::1"),
        ("2001:db8:1::5", "[2001:DB8:ffff:0::1]:4711", "2001:db8:ffff::1"),
        ("", "198.51.100.1", ""),
    ],
)
def test_the_client_is_the_nearest_that_is_no_trusted_proxy(
    peer: str, forwarded: str, client: str
) -> None:
    assert proxies.client_address(peer, forwarded, TRUSTED) == client


@given(st.text(), st.ip_addresses().map(str).filter(lambda ip: not proxies.is_trusted(ip, TRUSTED)))
def test_nothing_that_a_client_writes_hides_it(written: str, client: str) -> None:
    expected = proxies.client_address(client, "", TRUSTED)
    seen = proxies.client_address("10.0.0.1", f"{written}, {client}", TRUSTED)
    assert seen == proxies.client_address("10.0.0.1", client, TRUSTED)
    assert proxies.client_address(client, written, TRUSTED) == expected


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("proxy.example", "does not appear to be"),
        ("10.0.0.1/8", "has host bits set"),
        ("0.0.0.0/0", "trusts everybody"),
        ("10.0.0.1, ::/0", "trusts everybody"),
        ("::ffff:10.0.0.1", "as IPv4"),
    ],
)
def test_a_wrong_proxy_is_named(value: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(proxies.VARIABLE, value)
    with pytest.raises(ImproperlyConfigured, match=f"{proxies.VARIABLE}.*{said}"):
        proxies.trusted_networks()


def secure_request(settings: Settings, peer: str) -> bool:
    settings.TRUSTED_PROXIES = TRUSTED
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    request = HttpRequest()
    request.META = {"REMOTE_ADDR": peer, "HTTP_X_FORWARDED_PROTO": "https"}
    proxies.ProxyMiddleware(lambda _: HttpResponse())(request)
    return request.is_secure()


def test_only_a_trusted_proxy_can_say_that_a_request_came_over_tls(
    settings: Settings,
) -> None:
    assert secure_request(settings, "10.0.0.1")
    assert not secure_request(settings, "203.0.113.9")


def tries(peer: str, clients: list[str]) -> list[int]:
    data = {"username": "alice", "password": "wrong"}
    visitor = Client(REMOTE_ADDR=peer)
    return [
        visitor.post("/login/", data, headers={"X-Forwarded-For": client}).status_code
        for client in clients
    ]


@pytest.mark.django_db
def test_a_forged_header_does_not_evade_the_sign_in_limit(settings: Settings) -> None:
    settings.TRUSTED_PROXIES = TRUSTED
    person("alice")
    often = throttle.TRIES_PER_ACCOUNT_AND_ADDRESS
    forged = [f"192.0.2.{i}" for i in range(often + 1)]
    assert tries("203.0.113.9", forged) == [400] * often + [429]
    through_proxy = [f"{client}, 203.0.113.10" for client in forged]
    assert tries("10.0.0.1", through_proxy) == [400] * often + [429]


@pytest.mark.django_db
def test_people_behind_one_proxy_are_counted_apart(settings: Settings) -> None:
    settings.TRUSTED_PROXIES = TRUSTED
    person("alice")
    often = throttle.TRIES_PER_ACCOUNT_AND_ADDRESS + 1
    assert tries("10.0.0.1", ["198.51.100.1"] * often)[-1] == 429
    reply = Client(REMOTE_ADDR="10.0.0.1").post(
        "/login/",
        {"username": "alice", "password": PASSWORD},
        headers={"X-Forwarded-For": "198.51.100.2"},
    )
    assert reply.status_code == 302

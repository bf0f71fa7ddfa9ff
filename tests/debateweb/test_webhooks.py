"""Webhooks arrive signed and at least once, and never at an address inside."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.db.models.functions import Now
from hypothesis import given
from hypothesis import strategies as st
from kombu.exceptions import OperationalError

from debateweb import outside, webhooks
from debateweb.errors import InputError
from debateweb.models import (
    AuditEvent,
    DeliveryStatus,
    Role,
    User,
    WebhookDelivery,
    WebhookEndpoint,
    Workspace,
)
from debateweb.outside import OutsideError, Target, addresses_of, is_public, target_of
from tests.debateweb.people import member

URL = "https://hooks.example.org/in?x=1"


@dataclass
class Receiver:
    """A server that notes what it was sent and answers as it is told."""

    port: int = 0
    status: int = 204
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/in"


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.WEBHOOK_HOSTS = ["127.0.0.1"]
    told = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.got.append((dict(self.headers), body))
            self.send_response(told.status)
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # The base's name.
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    told.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield told
    server.shutdown()
    server.server_close()
    thread.join()


class Bell:
    """Stands for the broker: notes what was rung for."""

    def __init__(self) -> None:
        self.rung: list[int] = []

    def send_task(self, name: str, *, args: list[int], queue: str, **kwargs: Any) -> None:
        assert (name, queue) == (webhooks.DELIVER, "default")
        self.rung += args


@pytest.fixture
def bell(monkeypatch: pytest.MonkeyPatch) -> Bell:
    made = Bell()
    monkeypatch.setattr("debateweb.webhooks.current_app", made)
    return made


@pytest.fixture
def owner() -> User:
    return member(Workspace.objects.create(name="home"), Role.OWNER)


def endpoint_of(owner: User, url: str = URL) -> tuple[WebhookEndpoint, str]:
    return webhooks.add_endpoint(
        workspace=Workspace.objects.get(), url=url, events=webhooks.EVENTS, actor=owner
    )


def emitted(**body: Any) -> WebhookDelivery:
    webhooks.emit(Workspace.objects.get(), webhooks.LABEL_SUBMIT, body)
    return WebhookDelivery.objects.latest("pk")


def due_now(delivery: WebhookDelivery) -> None:
    past = Now() - timedelta(seconds=1)
    WebhookDelivery.objects.filter(pk=delivery.pk).update(next_at=past)


@pytest.mark.django_db
def test_a_delivery_is_signed_with_the_key_that_was_shown(
    receiver: Receiver, owner: User, bell: Bell
) -> None:
    _, key = endpoint_of(owner, receiver.url)
    delivery = emitted(item="é")
    webhooks.deliver(delivery.pk)
    ((headers, body),) = receiver.got
    parts = dict(part.split("=") for part in headers["Debateweb-Signature"].split(","))
    expected = hmac.new(key.encode(), f"{parts['t']}.".encode() + body, hashlib.sha256)
    assert parts["v1"] == expected.hexdigest()
    said = json.loads(body)
    assert said["data"] == {"item": "é"}
    assert said["event_id"] == headers["Debateweb-Event-Id"] == str(delivery.event_id)
    delivery.refresh_from_db()
    assert (delivery.status, delivery.response_status) == (DeliveryStatus.DELIVERED, 204)


@pytest.mark.django_db
def test_the_key_is_stored_nowhere_and_each_endpoint_has_its_own(owner: User) -> None:
    (one, first), (two, second) = endpoint_of(owner), endpoint_of(owner)
    assert first != second
    assert webhooks.key_of(one) == first
    stored = [str(list(table.objects.values())) for table in (WebhookEndpoint, AuditEvent)]
    assert not any(key.removeprefix("whsec_") in text for key in (first, second) for text in stored)
    assert first.removeprefix("whsec_") != one.nonce
    assert two.nonce != one.nonce
    names = AuditEvent.objects.filter(act="webhook.add").values_list("object_name", flat=True)
    assert set(names) == {"webhook to hooks.example.org"}  # Addresses have secrets of their own.


@pytest.mark.django_db
def test_what_fails_is_tried_again_later_and_given_up_at_last(
    receiver: Receiver, owner: User, bell: Bell
) -> None:
    endpoint_of(owner, receiver.url)
    delivery = emitted()
    receiver.status = 500
    for attempt in range(1, len(webhooks.DELAYS_SECONDS) + 2):
        webhooks.deliver(delivery.pk)
        webhooks.deliver(delivery.pk)  # Not due: nothing is sent.
        assert len(receiver.got) == attempt
        delivery.refresh_from_db()
        assert delivery.fault == "it answered 500"
        if delivery.status == DeliveryStatus.PENDING:
            due_now(delivery)
    assert delivery.status == DeliveryStatus.FAILED
    assert len({body for _, body in receiver.got}) == 1
    receiver.status = 200
    webhooks.deliver_again(delivery=delivery, actor=owner)
    webhooks.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert delivery.status == DeliveryStatus.DELIVERED


@pytest.mark.django_db
def test_a_redirect_is_a_failure_and_is_not_followed(
    receiver: Receiver, owner: User, bell: Bell
) -> None:
    endpoint_of(owner, receiver.url)
    receiver.status = 302
    delivery = emitted()
    webhooks.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert (len(receiver.got), delivery.fault) == (1, "it answered 302")


@pytest.mark.django_db
def test_the_sweep_rings_for_what_was_lost(owner: User, bell: Bell) -> None:
    endpoint_of(owner)
    delivery = emitted()
    assert (webhooks.sweep(), bell.rung) == (1, [delivery.pk])
    assert webhooks._begun(delivery.pk)  # A worker takes it, and dies.
    assert webhooks.sweep() == 0
    due_now(delivery)
    assert webhooks.sweep() == 1


@pytest.mark.django_db
def test_what_is_rolled_back_is_told_to_nobody(
    owner: User, bell: Bell, django_capture_on_commit_callbacks: Any
) -> None:
    endpoint_of(owner)
    with django_capture_on_commit_callbacks(execute=True):
        with transaction.atomic():
            emitted()
            transaction.set_rollback(True)
        assert not WebhookDelivery.objects.exists()
        kept = emitted()
        assert bell.rung == []
    assert bell.rung == [kept.pk]


@pytest.mark.django_db
def test_a_broker_that_is_down_fails_no_act(
    owner: User, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    def down(*args: Any, **kwargs: Any) -> None:
        raise OperationalError

    monkeypatch.setattr("debateweb.webhooks.current_app.send_task", down)
    endpoint_of(owner)
    with django_capture_on_commit_callbacks(execute=True):
        delivery = emitted()
    assert delivery.status == DeliveryStatus.PENDING


@pytest.mark.django_db
def test_a_revoked_endpoint_is_told_nothing_more(
    receiver: Receiver, owner: User, bell: Bell
) -> None:
    endpoint, _ = endpoint_of(owner, receiver.url)
    waiting = emitted()
    webhooks.revoke_endpoint(endpoint=endpoint, actor=owner)
    webhooks.emit(endpoint.workspace, webhooks.LABEL_SUBMIT, {})
    webhooks.deliver(waiting.pk)
    assert receiver.got == []
    waiting.refresh_from_db()
    assert waiting.status == DeliveryStatus.FAILED
    assert WebhookDelivery.objects.count() == 1


@pytest.mark.django_db
def test_an_endpoint_hears_of_what_it_asked_for_and_of_its_own_workspace(owner: User) -> None:
    home, other = Workspace.objects.get(), Workspace.objects.create(name="other")
    webhooks.add_endpoint(workspace=home, url=URL, events=[webhooks.ADJUDICATE], actor=owner)
    webhooks.emit(home, webhooks.LABEL_SUBMIT, {})
    webhooks.emit(other, webhooks.ADJUDICATE, {})
    assert not WebhookDelivery.objects.exists()


@pytest.mark.django_db
def test_what_was_sent_cannot_be_rewritten(owner: User) -> None:
    endpoint, _ = endpoint_of(owner)
    delivery = emitted()
    changes: list[tuple[Any, dict[str, Any]]] = [
        (endpoint, {"url": "https://example.org/"}),
        (delivery, {"body": "{}"}),
    ]
    for row, change in changes:
        with pytest.raises(DatabaseError, match="refused"), transaction.atomic():
            type(row).objects.filter(pk=row.pk).update(**change)
    with pytest.raises(DatabaseError, match="refused"), transaction.atomic():
        delivery.delete()


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "http://example.org/",
        "https:///in",
        "https://user:word@example.org/",
        "https://example.org/#x",
        "https://example.org:99999/",
        "https://example.org/a b",
        "https://example.org/\r\nHost: x",
        "https://exämple.org/",
        f"https://example.org/{'x' * 500}",
        "javascript:alert(1)",
        "",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(OutsideError, match="url:"):
        target_of(url, [])


INSIDE = (
    "127.0.0.1",
    "127.9.9.9",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",  # noqa: S104  # Refused, not bound.
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fc00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
)


@pytest.mark.parametrize("address", INSIDE)
def test_a_name_that_leads_inside_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolves(*args: Any, **kwargs: Any) -> list[Any]:
        return [(0, 0, 0, "", ("93.184.216.34", 443)), (0, 0, 0, "", (address, 443))]

    monkeypatch.setattr(socket, "getaddrinfo", resolves)
    with pytest.raises(OutsideError, match="open internet"):
        addresses_of(target_of(URL, []))


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "localhost", "[::1]"])
def test_other_spellings_of_this_machine_are_refused(host: str) -> None:
    with pytest.raises(OutsideError):
        addresses_of(target_of(f"https://{host}/", []))


@given(st.ip_addresses(v=4))
def test_an_address_behind_a_wrapping_is_what_it_wraps(address: ipaddress.IPv4Address) -> None:
    mapped = ipaddress.IPv6Address((0xFFFF << 32) | int(address))
    nat64 = ipaddress.IPv6Address((0x64FF9B << 96) | int(address))
    assert is_public(mapped) == is_public(nat64) == is_public(address)


def test_the_connection_goes_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name server that answers otherwise the second time changes nothing."""
    answers = iter(["93.184.216.34", "127.0.0.1"])
    went: list[str] = []

    def resolves(*args: Any, **kwargs: Any) -> list[Any]:
        return [(0, 0, 0, "", (next(answers), 443))]

    def connects(address: tuple[str, int], timeout: float) -> socket.socket:
        went.append(address[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "getaddrinfo", resolves)
    monkeypatch.setattr(socket, "create_connection", connects)
    with pytest.raises(OutsideError, match="no answer"):
        outside.post(target_of(URL, []), b"{}", {})
    assert went == ["93.184.216.34"]


@pytest.mark.django_db
def test_an_address_inside_is_noted_as_refused_and_not_asked(owner: User, bell: Bell) -> None:
    endpoint_of(owner, "https://127.0.0.1:1/")
    delivery = emitted()
    webhooks.deliver(delivery.pk)
    delivery.refresh_from_db()
    assert "open internet" in delivery.fault


@pytest.mark.django_db
def test_events_that_are_none_are_refused(owner: User) -> None:
    for events in ([], ["label.read"]):
        with pytest.raises(InputError, match="events:"):
            webhooks.add_endpoint(
                workspace=Workspace.objects.get(), url=URL, events=events, actor=owner
            )


def test_a_listed_host_may_be_private_and_plain() -> None:
    target = target_of("http://hooks.lab:8080/in", ["Hooks.lab"])
    assert target == Target(False, "hooks.lab", 8080, "/in", True)

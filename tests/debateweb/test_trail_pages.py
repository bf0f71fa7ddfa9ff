"""Pages of the trail and of webhooks: what they say is what is there."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from debateweb import webhooks
from debateweb.models import DeliveryStatus, Role, WebhookDelivery, WebhookEndpoint, Workspace
from debateweb.trail import trail_head
from tests.debateweb.people import member, signed_in
from tests.debateweb.test_trail import acts, home, link_now, tamper

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.org/in"


@pytest.fixture
def owner() -> Client:
    return signed_in(member(home(), Role.OWNER))


def at(name: str, *more: object) -> str:
    return reverse(name, args=[home().name, *more])


def test_the_trail_shows_its_head_and_says_whether_it_holds(owner: Client) -> None:
    acts(3, home())
    acts(1, Workspace.objects.create(name="other"), secret="elsewhere")
    link_now()
    head = trail_head(home())
    assert head is not None
    text = owner.get(at("trail")).content.decode()
    assert head.row_hash in text
    assert text.count("thing.do") == 3
    assert "All 3 rows" in owner.post(at("trail_verify")).content.decode()
    with transaction.atomic():
        tamper(f"UPDATE debateweb_auditevent SET act = 'x.y' WHERE workspace_id = {home().pk}")
        text = owner.post(at("trail_verify")).content.decode()
        transaction.set_rollback(True)
    assert "The chain is broken" in text
    assert "row 1 (event " in text


def test_an_act_that_stands_outside_the_chain_shows(owner: Client) -> None:
    acts(1, home())  # Not committed: no link yet.
    text = owner.get(at("trail")).content.decode()
    assert "outside the chain" in text
    assert "thing.do" in text


def test_the_trail_takes_the_same_queries_with_10_and_200_rows(
    owner: Client, django_assert_num_queries: Any
) -> None:
    acts(10, home())
    link_now()
    owner.get(at("trail"))
    with django_assert_num_queries(7):
        owner.get(at("trail"))
    acts(190, home())
    link_now()
    with django_assert_num_queries(7):
        assert "Older" in owner.get(at("trail")).content.decode()


def test_a_webhook_is_made_and_its_key_is_shown_once(owner: Client) -> None:
    sent = {"url": URL, "events": list(webhooks.EVENTS)}
    answer = owner.post(at("webhooks"), sent)
    key = webhooks.key_of(WebhookEndpoint.objects.get())
    assert answer.status_code == 201
    assert key in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    again = owner.get(at("webhooks")).content.decode()
    assert URL in again
    assert key not in again


def test_a_webhook_to_no_address_is_refused_and_what_was_typed_is_kept(owner: Client) -> None:
    sent = {"url": "http://127.0.0.1/x", "events": [webhooks.ADJUDICATE]}
    answer = owner.post(at("webhooks"), sent)
    assert answer.status_code == 400
    assert "has to begin with https://" in answer.content.decode()
    assert "http://127.0.0.1/x" in answer.content.decode()
    assert not WebhookEndpoint.objects.exists()


def test_a_ping_a_second_try_and_a_revocation_do_what_they_say(owner: Client) -> None:
    owner.post(at("webhooks"), {"url": URL, "events": [webhooks.ADJUDICATE]})
    endpoint = WebhookEndpoint.objects.get()
    owner.post(at("webhook_ping", endpoint.pk))
    delivery = WebhookDelivery.objects.get()
    assert delivery.event == "ping"
    WebhookDelivery.objects.update(status=DeliveryStatus.FAILED, fault="it answered 500")
    text = owner.get(at("webhooks")).content.decode()
    assert "it answered 500" in text
    owner.post(at("webhook_again", delivery.pk))
    delivery.refresh_from_db()
    assert delivery.status == DeliveryStatus.PENDING
    assert "Revoke this webhook?" in owner.get(at("webhook_revoke", endpoint.pk)).content.decode()
    owner.post(at("webhook_revoke", endpoint.pk))
    delivery.refresh_from_db()
    assert delivery.status == DeliveryStatus.FAILED
    owner.post(at("webhook_ping", endpoint.pk))
    assert WebhookDelivery.objects.count() == 1


def test_another_workspaces_webhook_is_not_there(owner: Client) -> None:
    other = Workspace.objects.create(name="other")
    actor = member(other, Role.OWNER, "other-owner")
    events = [webhooks.LABEL_SUBMIT]
    made, _ = webhooks.add_endpoint(workspace=other, url=URL, events=events, actor=actor)
    webhooks.ping(made)
    for name, pk in (
        ("webhook_ping", made.pk),
        ("webhook_revoke", made.pk),
        ("webhook_again", WebhookDelivery.objects.get().pk),
    ):
        assert owner.post(at(name, pk)).status_code == 404
    assert URL not in owner.get(at("webhooks")).content.decode()

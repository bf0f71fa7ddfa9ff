"""
Signed webhooks: what happened in a workspace, told to addresses that its owner named.

An outbox: ``emit`` writes one delivery an endpoint in the transaction of the act; a worker posts
it after the commit, and the sweep rings for what was lost or has to be tried again. So an event
arrives at least once, with one ``event_id`` however often. The body names things by their opaque
keys and people by pseudonym (docs/operations.md).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from celery import current_app
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from debateweb.audit import record
from debateweb.errors import InputError
from debateweb.models import DeliveryStatus, User, WebhookDelivery, WebhookEndpoint, Workspace
from debateweb.outside import OutsideError, post, target_of

logger = logging.getLogger(__name__)

DELIVER = "debateweb.webhooks.deliver"
SWEEP = "debateweb.webhooks.sweep"
QUEUE = "default"
LABEL_SUBMIT: Final = "label.submit"
ADJUDICATE: Final = "item.adjudicate"
PING: Final = "ping"
EVENTS: Final = (LABEL_SUBMIT, ADJUDICATE)
MOST_ENDPOINTS = 20
#: Seconds until the next attempt after the first, the second, …; then it is given up.
DELAYS_SECONDS = (10, 60, 300, 1_800, 7_200, 21_600, 86_400)
#: A worker that died in an attempt is waited for so long.
LEASE_SECONDS = 60
MOST_RINGS = 50
KEY_PREFIX = "whsec_"


def key_of(endpoint: WebhookEndpoint) -> str:
    """Return the key that signs for this endpoint, derived anew each time."""
    what = f"debateweb.webhook|{endpoint.pk}|{endpoint.nonce}".encode()
    return KEY_PREFIX + hmac.new(settings.SECRET_KEY.encode(), what, hashlib.sha256).hexdigest()


def signature(key: str, timestamp: int, body: bytes) -> str:
    """Return the header ``Debateweb-Signature``: HMAC-SHA-256 over ``timestamp.body``."""
    signed = hmac.new(key.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={signed}"


@transaction.atomic
def add_endpoint(
    *, workspace: Workspace, url: str, events: Sequence[str], actor: User
) -> tuple[WebhookEndpoint, str]:
    """Make an endpoint; return it with its key, to be shown this once. Raises InputError."""
    target_of(url, settings.WEBHOOK_HOSTS)
    unknown = [event for event in events if event not in EVENTS]
    if unknown or not events:
        raise InputError(f"events: one or more of {', '.join(EVENTS)}")
    Workspace.objects.select_for_update().get(pk=workspace.pk)
    if WebhookEndpoint.objects.filter(workspace=workspace, revoked_at=None).count() >= (
        MOST_ENDPOINTS
    ):
        raise InputError(f"at most {MOST_ENDPOINTS} webhooks a workspace: revoke one first")
    made = WebhookEndpoint.objects.create(
        workspace=workspace,
        url=url,
        events=sorted(set(events)),
        nonce=secrets.token_hex(32),
        created_by=actor,
    )
    detail = {"events": made.events}
    record(act="webhook.add", workspace=workspace, obj=made, actor=actor, detail=detail)
    return made, key_of(made)


@transaction.atomic
def revoke_endpoint(*, endpoint: WebhookEndpoint, actor: User) -> None:
    """Tell this endpoint nothing any more, not even what is waiting for it."""
    revoked = WebhookEndpoint.objects.filter(pk=endpoint.pk, revoked_at=None)
    if not revoked.update(revoked_at=Now()):
        return
    endpoint.deliveries.filter(status=DeliveryStatus.PENDING).update(
        status=DeliveryStatus.FAILED, fault="the webhook was revoked", ended_at=Now()
    )
    record(act="webhook.revoke", workspace=endpoint.workspace, obj=endpoint, actor=actor)


def emit(workspace: Workspace, event: str, body: Mapping[str, Any]) -> None:
    """
    Tell the workspace's endpoints of an event, once the transaction is committed.

    Call it inside the transaction of the act: what is rolled back is told to nobody.
    """
    listening = WebhookEndpoint.objects.filter(workspace=workspace, revoked_at=None)
    event_id = uuid.uuid4()
    for endpoint in listening:
        if event in endpoint.events:
            _put(endpoint, event, event_id, workspace.name, body)


def ping(endpoint: WebhookEndpoint) -> None:
    """Send an endpoint an event that means nothing, to try it."""
    with transaction.atomic():
        _put(endpoint, PING, uuid.uuid4(), endpoint.workspace.name, {})


def _put(
    endpoint: WebhookEndpoint,
    event: str,
    event_id: uuid.UUID,
    workspace: str,
    body: Mapping[str, Any],
) -> None:
    whole = {
        "event_id": str(event_id),
        "event": event,
        "workspace": workspace,
        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "data": dict(body),
    }
    delivery = WebhookDelivery.objects.create(
        endpoint=endpoint, event_id=event_id, event=event, body=json.dumps(whole)
    )
    transaction.on_commit(partial(_ring_if_heard, delivery.pk))


def _ring(delivery_id: int) -> None:
    current_app.send_task(DELIVER, args=[delivery_id], queue=QUEUE, ignore_result=True)


def _ring_if_heard(delivery_id: int) -> None:
    """Ring; a broker that does not answer fails no act, and the sweep rings again."""
    try:
        _ring(delivery_id)
    except OperationalError:
        logger.warning("webhook delivery %s waits for the sweep: no broker", delivery_id)


def deliver(delivery_id: int) -> None:
    """Try a delivery that is due; note how it went and when it is tried again."""
    if not _begun(delivery_id):
        return
    delivery = WebhookDelivery.objects.select_related("endpoint").get(pk=delivery_id)
    try:
        status = _posted(delivery)
    except OutsideError as exc:
        _note(delivery, None, exc.message)
    else:
        _note(delivery, status, "" if 200 <= status < 300 else f"it answered {status}")


def _begun(delivery_id: int) -> bool:
    """Take the next attempt for this worker: two that are rung for one post it once."""
    due = WebhookDelivery.objects.filter(
        pk=delivery_id,
        status=DeliveryStatus.PENDING,
        next_at__lte=Now(),
        endpoint__revoked_at=None,
    )
    again_at = Now() + timedelta(seconds=LEASE_SECONDS)
    return bool(due.update(attempts=F("attempts") + 1, next_at=again_at))


def _posted(delivery: WebhookDelivery) -> int:
    body = delivery.body.encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "debateweb-webhook/1",
        "Debateweb-Event": delivery.event,
        "Debateweb-Event-Id": str(delivery.event_id),
        "Debateweb-Signature": signature(key_of(delivery.endpoint), int(time.time()), body),
    }
    return post(target_of(delivery.endpoint.url, settings.WEBHOOK_HOSTS), body, headers)


def _note(delivery: WebhookDelivery, status: int | None, fault: str) -> None:
    changes: dict[str, Any] = {"response_status": status, "fault": fault[:200]}
    if not fault:
        changes |= {"status": DeliveryStatus.DELIVERED, "ended_at": Now()}
    elif delivery.attempts > len(DELAYS_SECONDS):
        changes |= {"status": DeliveryStatus.FAILED, "ended_at": Now()}
    else:
        changes["next_at"] = Now() + timedelta(seconds=DELAYS_SECONDS[delivery.attempts - 1])
    waiting = WebhookDelivery.objects.filter(pk=delivery.pk, status=DeliveryStatus.PENDING)
    waiting.update(**changes)


def sweep() -> int:
    """Ring for what is due: lost messages, dead workers, next attempts. Returns how many."""
    due = WebhookDelivery.objects.filter(
        status=DeliveryStatus.PENDING, next_at__lte=Now(), endpoint__revoked_at=None
    )
    found = list(due.order_by("next_at").values_list("pk", flat=True)[:MOST_RINGS])
    for delivery_id in found:
        _ring(delivery_id)
    return len(found)


@transaction.atomic
def deliver_again(*, delivery: WebhookDelivery, actor: User) -> None:
    """Begin anew with a delivery that was given up, with the same event id."""
    failed = WebhookDelivery.objects.filter(
        pk=delivery.pk, status=DeliveryStatus.FAILED, endpoint__revoked_at=None
    )
    if failed.update(status=DeliveryStatus.PENDING, attempts=0, next_at=Now(), ended_at=None):
        workspace = delivery.endpoint.workspace
        record(act="webhook.again", workspace=workspace, obj=delivery, actor=actor)
        transaction.on_commit(partial(_ring_if_heard, delivery.pk))

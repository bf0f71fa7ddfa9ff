"""
People, workspaces, their keys and the trail of their acts.

Nothing here is deleted: workspaces and members are archived, audit events cannot change (S37).
"""

from __future__ import annotations

import uuid
from urllib.parse import urlsplit

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models.functions import Now


class User(AbstractUser):
    """A person who signs in."""


class Role(models.TextChoices):
    """What a member may do in a workspace, from most to least."""

    OWNER = "owner"
    RESEARCHER = "researcher"
    ANNOTATOR = "annotator"
    READER = "reader"


class Workspace(models.Model):
    """The boundary of names, members and access."""

    name = models.SlugField(max_length=64, unique=True)
    created_at = models.DateTimeField(db_default=Now())
    archived_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class Member(models.Model):
    """A person's role in a workspace; leaving is an archived row, not a missing one."""

    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="members")
    user = models.ForeignKey(User, models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=16, choices=Role.choices)
    created_at = models.DateTimeField(db_default=Now())
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="member_once_per_workspace"),
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="member_role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} as {self.role} in {self.workspace}"


class OneTimeLink(models.Model):
    """A link that lets its holder set a password once. Only the token's hash is stored."""

    token_sha256 = models.CharField(max_length=64, unique=True)
    user = models.ForeignKey(User, models.PROTECT, related_name="one_time_links")
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"one-time link of {self.user}"


class Invitation(models.Model):
    """
    A link that makes its holder a member, once. Only the token's hash is stored.

    What it promises (workspace, role, expiry) cannot change; it is used, revoked or expires.
    """

    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="invitations")
    role = models.CharField(max_length=16, choices=Role.choices)
    note = models.CharField(max_length=200, blank=True)
    token_sha256 = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="invitations_made")
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)
    used_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="invitations_used")
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(role__in=Role.values), name="invitation_role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"invitation as {self.role} to {self.workspace}"


class ApiToken(models.Model):
    """A key for programs that act as its person. Shown once; only its hash is stored."""

    user = models.ForeignKey(User, models.PROTECT, related_name="api_tokens")
    name = models.CharField(max_length=80)
    token_sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(db_default=Now())
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"API token {self.name} of {self.user}"


class AuditEvent(models.Model):
    """
    One act: who did what to which object, when by the database's clock. Never changed.

    ``actor`` is empty for acts of the machine itself; ``actor_name`` says who they were then.
    """

    at = models.DateTimeField(db_default=Now())
    workspace = models.ForeignKey(Workspace, models.PROTECT, null=True, related_name="events")
    actor = models.ForeignKey(User, models.PROTECT, null=True, related_name="events")
    actor_name = models.CharField(max_length=150)
    act = models.CharField(max_length=64)
    object_kind = models.CharField(max_length=32)
    object_id = models.BigIntegerField(null=True)
    object_name = models.CharField(max_length=200)
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["workspace", "-id"], name="audit_by_workspace")]

    def __str__(self) -> str:
        return f"{self.actor_name} {self.act} {self.object_name}"


class TrailLink(models.Model):
    """
    Where an audit event stands in its workspace's hash chain; the database adds it at commit.

    Beside the event and not in it, so that the event itself is only ever inserted. ``workspace``
    None is the chain of what belongs to no workspace. ``row_hash`` is SHA-256 over the event and
    ``previous_hash`` (``debateweb.trail``).
    """

    event = models.OneToOneField(AuditEvent, models.PROTECT, related_name="link")
    workspace = models.ForeignKey(Workspace, models.PROTECT, null=True, related_name="links")
    position = models.PositiveBigIntegerField()
    previous_hash = models.CharField(max_length=64)
    row_hash = models.CharField(max_length=64)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "position"], name="trail_never_forks", nulls_distinct=False
            ),
        ]

    def __str__(self) -> str:
        return f"{self.position}: {self.row_hash}"


class WebhookEndpoint(models.Model):
    """
    An address outside that is told of acts. Its key is derived and nowhere stored.

    ``nonce`` goes into the key with the site's secret, so that a new endpoint has a new key.
    """

    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="webhooks")
    url = models.CharField(max_length=500)
    events = models.JSONField()  # Names of the events that it is told of.
    nonce = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(User, models.PROTECT, related_name="webhooks_made")
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        # The trail keeps this: an address often has a secret in its path.
        return f"webhook to {urlsplit(self.url).hostname}"


class DeliveryStatus(models.TextChoices):
    """PENDING → DELIVERED | FAILED; a failed one may be asked for again."""

    PENDING = "PENDING"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"


class WebhookDelivery(models.Model):
    """One event for one endpoint: an outbox row, written in the transaction of the act."""

    endpoint = models.ForeignKey(WebhookEndpoint, models.PROTECT, related_name="deliveries")
    event_id = models.UUIDField(default=uuid.uuid4)
    event = models.CharField(max_length=64)
    body = models.TextField()  # The bytes that are sent: the same at every attempt.
    created_at = models.DateTimeField(db_default=Now())
    status = models.CharField(
        max_length=16, choices=DeliveryStatus.choices, default=DeliveryStatus.PENDING
    )
    attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField(db_default=Now())
    response_status = models.PositiveIntegerField(null=True)
    fault = models.CharField(max_length=200, blank=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["endpoint", "event_id"], name="webhook_event_once_per_endpoint"
            ),
            models.CheckConstraint(
                condition=models.Q(status__in=DeliveryStatus.values), name="webhook_status_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_at"],
                name="webhook_due",
                condition=models.Q(status=DeliveryStatus.PENDING),
            ),
            models.Index(fields=["endpoint", "-id"], name="webhook_by_endpoint"),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.endpoint_id}"

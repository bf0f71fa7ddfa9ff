"""
Who may do what: one access function an object, and the first owner.

Every query that a person's request makes starts from one of these functions. What a person may
not see does not exist for them: the answer is "not found", never "forbidden".
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from debateweb.audit import record
from debateweb.errors import InputError
from debateweb.models import Member, OneTimeLink, Role, User, Workspace

#: Roles that may start, pause or cancel runs and change what a workspace holds.
RUNNERS = (Role.OWNER, Role.RESEARCHER)
#: How long a one-time link works.
LINK_LIFETIME = timedelta(days=7)
DEFAULT_WORKSPACE = "main"


class LinkError(InputError):
    """The one-time link was used, has expired or never was."""

    code = "link_not_valid"


class AccessError(InputError):
    """There is no such thing for this person."""

    code = "not_found"


def workspaces_of(user: User) -> QuerySet[Workspace]:
    """Return the workspaces that ``user`` is a member of, by name."""
    return Workspace.objects.filter(
        archived_at=None, members__user=user, members__archived_at=None
    ).order_by("name")


def role_in(user: User, workspace: Workspace) -> Role | None:
    """Return the role of ``user`` in ``workspace``, or None for a stranger."""
    role = (
        Member.objects.filter(user=user, workspace=workspace, archived_at=None)
        .values_list("role", flat=True)
        .first()
    )
    return Role(role) if role is not None else None


def membership(user: User, name: str) -> Member | None:
    """Return the membership of ``user`` in the workspace ``name``, or None for a stranger."""
    return (
        Member.objects.filter(
            user=user, workspace__name=name, archived_at=None, workspace__archived_at=None
        )
        .select_related("workspace")
        .first()
    )


def access_workspace(user: User, name: str, *, roles: tuple[Role, ...] = tuple(Role)) -> Workspace:
    """Return the workspace where ``user`` has one of ``roles``. Raises AccessError."""
    found = Workspace.objects.filter(
        name=name,
        archived_at=None,
        members__user=user,
        members__archived_at=None,
        members__role__in=[role.value for role in roles],
    ).first()
    if found is None:
        raise AccessError(f"no workspace {name!r}")
    return found


def command_workspace(name: str | None) -> Workspace:
    """
    Return the workspace that a command acts in: the named one, or the only one.

    Whoever runs a command on this machine holds the database; commands ask no role. Raises
    InputError where the name is unknown or needed and missing.
    """
    active = Workspace.objects.filter(archived_at=None).order_by("name")
    if name is not None:
        found = active.filter(name=name).first()
        if found is None:
            raise InputError(f"--workspace: no workspace {name!r}")
        return found
    some = list(active[:2])
    if len(some) == 1:
        return some[0]
    if not some:
        return ensure_default_workspace()
    raise InputError("--workspace: there are several; name one")


@transaction.atomic
def ensure_default_workspace() -> Workspace:
    """Return the workspace ``main``, made if it is missing."""
    workspace, created = Workspace.objects.get_or_create(name=DEFAULT_WORKSPACE)
    if created:
        record(act="workspace.create", workspace=workspace, obj=workspace)
    return workspace


@transaction.atomic
def ensure_first_owner() -> str | None:
    """
    Return the path of a one-time link for the first owner, or None where one has signed in.

    On an empty database the owner is made; an owner who never used the link gets a new one, and
    the old ones stop working.
    """
    with connection.cursor() as cursor:  # Two first starts at once make one owner.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('debateweb.first_owner'))")
    owner = User.objects.order_by("pk").first()
    if owner is not None and (User.objects.count() > 1 or owner.has_usable_password()):
        return None
    workspace = ensure_default_workspace()
    if owner is None:
        owner = User.objects.create_user(username="owner")
        Member.objects.create(workspace=workspace, user=owner, role=Role.OWNER)
        record(act="member.add", workspace=workspace, obj=owner, detail={"role": "owner"})
    OneTimeLink.objects.filter(user=owner, used_at=None).update(used_at=Now())
    return f"/welcome/{make_link(user=owner)}"


@transaction.atomic
def make_link(*, user: User) -> str:
    """Store a new one-time link for ``user`` and return its token, which is not stored."""
    token = secrets.token_urlsafe(24)
    OneTimeLink.objects.create(
        user=user, token_sha256=token_hash(token), expires_at=Now() + LINK_LIFETIME
    )
    record(act="link.make", workspace=None, obj=user)
    return token


@transaction.atomic
def redeem_link(token: str, password: str) -> User:
    """
    Set the password of the link's user and use the link up.

    Raises LinkError for a link that does not work (any more) and InputError for a password that
    is too weak; the link then stays usable.
    """
    link = (
        OneTimeLink.objects.filter(
            token_sha256=token_hash(token),
            used_at=None,
            expires_at__gt=Now(),
            user__is_active=True,
        )
        .select_related("user")
        .first()
    )
    if link is None:
        raise LinkError("this link was used before, has expired or is mistyped")
    try:
        validate_password(password, link.user)
    except ValidationError as exc:
        raise InputError("password: " + " ".join(exc.messages)) from exc
    # Two requests with one token: the conditional UPDATE lets one of them win.
    if OneTimeLink.objects.filter(pk=link.pk, used_at=None).update(used_at=Now()) != 1:
        raise LinkError("this link was used before")
    link.user.set_password(password)
    link.user.save(update_fields=["password"])
    record(act="link.redeem", workspace=None, obj=link.user, actor=link.user)
    return link.user


def token_hash(token: str) -> str:
    """Return what is stored of a token. Tokens are long and random: no salt is needed."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()

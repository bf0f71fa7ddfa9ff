"""Services on workspaces and their members: one transaction each, every act on the trail."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from debateweb.access import LinkError, token_hash
from debateweb.audit import record
from debateweb.errors import InputError, StateError
from debateweb.models import Invitation, Member, Role, User, Workspace

INVITATION_LIFETIME = timedelta(days=7)


class NameTakenError(InputError):
    """A workspace or a person of this name is there already."""

    code = "name_taken"


class LastOwnerError(StateError):
    """Nobody could manage the workspace any more. Make somebody else an owner first."""

    code = "last_owner"


@transaction.atomic
def create_workspace(*, name: str, owner: User) -> Workspace:
    """Make a workspace that ``owner`` owns. Raises NameTakenError."""
    workspace, is_new = Workspace.objects.get_or_create(name=name)
    if not is_new:
        raise NameTakenError(f"name: a workspace {name!r} exists or existed; choose another name")
    Member.objects.create(workspace=workspace, user=owner, role=Role.OWNER)
    record(act="workspace.create", workspace=workspace, obj=workspace, actor=owner)
    return workspace


@transaction.atomic
def rename_workspace(*, workspace: Workspace, name: str, actor: User) -> Workspace:
    """Give the workspace another name; its addresses change with it. Raises NameTakenError."""
    row = _locked(workspace)
    if Workspace.objects.filter(name=name).exclude(pk=row.pk).exists():
        raise NameTakenError(f"name: a workspace {name!r} exists or existed; choose another name")
    before, row.name = row.name, name
    row.save(update_fields=["name"])
    change = {"old": before, "new": name}
    record(act="workspace.rename", workspace=row, obj=row, actor=actor, detail=change)
    return row


@transaction.atomic
def archive_workspace(*, workspace: Workspace, actor: User) -> None:
    """Put the workspace away: nobody sees it any more, and nothing in it is deleted."""
    if Workspace.objects.filter(pk=workspace.pk, archived_at=None).update(archived_at=Now()) == 1:
        record(act="workspace.archive", workspace=workspace, obj=workspace, actor=actor)


def members_of(workspace: Workspace) -> QuerySet[Member]:
    """Return members and former members."""
    return Member.objects.filter(workspace=workspace).select_related("user")


@transaction.atomic
def change_role(*, workspace: Workspace, member_id: int, role: Role, actor: User) -> Member:
    """Give a member another role. Raises LastOwnerError, Member.DoesNotExist."""
    member = _member(workspace, member_id)
    if member.role == role:
        return member
    if member.role == Role.OWNER:
        _refuse_without_other_owner(member)
    change = {"old": member.role, "new": role.value}
    member.role = role
    member.save(update_fields=["role"])
    record(act="member.role", workspace=workspace, obj=member.user, actor=actor, detail=change)
    return member


@transaction.atomic
def archive_member(*, workspace: Workspace, member_id: int, actor: User) -> Member:
    """End a membership; what the person did stays. Raises LastOwnerError, Member.DoesNotExist."""
    member = _member(workspace, member_id)
    if member.role == Role.OWNER:
        _refuse_without_other_owner(member)
    Member.objects.filter(pk=member.pk).update(archived_at=Now())
    record(act="member.archive", workspace=workspace, obj=member.user, actor=actor)
    return member


@transaction.atomic
def invite(*, workspace: Workspace, role: Role, note: str, actor: User) -> str:
    """Store an invitation and return its token, which is not stored."""
    token = secrets.token_urlsafe(24)
    invitation = Invitation.objects.create(
        workspace=workspace,
        role=role,
        note=note,
        token_sha256=token_hash(token),
        created_by=actor,
        expires_at=Now() + INVITATION_LIFETIME,
    )
    detail = {"role": role.value, "note": note}
    record(act="invitation.make", workspace=workspace, obj=invitation, actor=actor, detail=detail)
    return token


def open_invitation(token: str) -> Invitation | None:
    """Return the invitation that ``token`` still opens, or None."""
    return (
        Invitation.objects.filter(
            token_sha256=token_hash(token),
            used_at=None,
            revoked_at=None,
            expires_at__gt=Now(),
            workspace__archived_at=None,
        )
        .select_related("workspace")
        .first()
    )


@transaction.atomic
def revoke_invitation(*, workspace: Workspace, invitation_id: int, actor: User) -> None:
    """Make an unused invitation useless. Raises Invitation.DoesNotExist."""
    invitation = Invitation.objects.get(pk=invitation_id, workspace=workspace)
    unused = Invitation.objects.filter(pk=invitation.pk, used_at=None, revoked_at=None)
    if unused.update(revoked_at=Now()) == 1:
        record(act="invitation.revoke", workspace=workspace, obj=invitation, actor=actor)


@transaction.atomic
def join_as_new_person(*, token: str, username: str, password: str) -> tuple[User, Workspace]:
    """
    Make an account and use the invitation up.

    Raises LinkError, NameTakenError, and InputError for a weak password; the invitation then
    stays usable.
    """
    invitation = _still_open(token)
    if User.objects.filter(username__iexact=username).exists():
        raise NameTakenError(f"username: {username!r} is taken; choose another or sign in")
    user = User(username=username)
    try:
        validate_password(password, user)
    except ValidationError as exc:
        raise InputError("password: " + " ".join(exc.messages)) from exc
    user.set_password(password)
    user.save()
    _use(invitation, user)
    return user, invitation.workspace


@transaction.atomic
def join(*, token: str, user: User) -> Workspace:
    """Make a person who has an account a member. Never lowers a role. Raises LinkError."""
    invitation = _still_open(token)
    _use(invitation, user)
    return invitation.workspace


def _still_open(token: str) -> Invitation:
    invitation = open_invitation(token)
    if invitation is None:
        raise LinkError("this invitation was used or revoked before, has expired or is mistyped")
    return invitation


def _use(invitation: Invitation, user: User) -> None:
    # Two requests with one token: the conditional UPDATE lets one of them win.
    unused = Invitation.objects.filter(pk=invitation.pk, used_at=None, revoked_at=None)
    if unused.update(used_at=Now(), used_by=user) != 1:
        raise LinkError("this invitation was used or revoked before")
    workspace, role = invitation.workspace, Role(invitation.role)
    member, is_new = Member.objects.get_or_create(
        workspace=workspace, user=user, defaults={"role": role}
    )
    ranks = list(Role)
    is_back = member.archived_at is not None
    if is_back or ranks.index(role) < ranks.index(Role(member.role)):
        member.role, member.archived_at = role, None
        member.save(update_fields=["role", "archived_at"])
    detail = {"role": member.role, "invitation": invitation.pk}
    act = "member.add" if is_new or is_back else "member.role"
    record(act=act, workspace=workspace, obj=user, actor=user, detail=detail)


def _locked(workspace: Workspace) -> Workspace:
    """Return the row, held: two who remove each other's ownership come one after the other."""
    return Workspace.objects.select_for_update().get(pk=workspace.pk)


def _member(workspace: Workspace, member_id: int) -> Member:
    _locked(workspace)
    return Member.objects.select_related("user").get(
        pk=member_id, workspace=workspace, archived_at=None
    )


def _refuse_without_other_owner(member: Member) -> None:
    others = Member.objects.filter(
        workspace=member.workspace_id, role=Role.OWNER, archived_at=None, user__is_active=True
    ).exclude(pk=member.pk)
    if not others.exists():
        raise LastOwnerError(f"{member.user} is the only owner; make somebody else an owner first")

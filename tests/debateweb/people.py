"""People and workspaces for tests of pages."""

from __future__ import annotations

from django.test import Client

from debateweb.models import Member, Role, User, Workspace

PASSWORD = "a long enough sentence"


def person(name: str) -> User:
    """Return a person who can sign in with ``PASSWORD``."""
    return User.objects.create_user(username=name, password=PASSWORD)


def member(workspace: Workspace, role: Role | str, name: str = "") -> User:
    """Return a new person without a password: a member, by default named like the role."""
    user = User.objects.create_user(username=name or str(role))
    Member.objects.create(workspace=workspace, user=user, role=role)
    return user


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client

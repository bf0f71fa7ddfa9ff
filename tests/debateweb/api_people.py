"""Programs that ask the API: clients with a token, and a workspace with somebody of each role."""

from __future__ import annotations

from typing import Any

from django.test import Client

from debateweb.models import Role, User, Workspace
from debateweb.tokens import create_token
from tests.debateweb.people import member


class Program:
    """A client that sends a token with every request, and JSON out."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.token = create_token(user=user, name="test")
        self.client = Client(headers={"Authorization": f"Bearer {self.token}"})

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(f"/api/v1{path}", query)

    def post(self, path: str, body: str | bytes = b"", kind: str = "application/yaml") -> Any:
        return self.client.post(f"/api/v1{path}", data=body, content_type=kind)


def program(workspace: Workspace, role: Role | str = Role.RESEARCHER, name: str = "") -> Program:
    return Program(member(workspace, role, name))

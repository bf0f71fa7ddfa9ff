"""What every page shows: where one is, where one can go, and the chosen theme."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import SimpleLazyObject

from debateweb import access
from debateweb.models import Role, User, Workspace

THEMES = ("auto", "light", "dark")
THEME_COOKIE = "theme"

EVERYBODY = frozenset(Role)
RESULTS = frozenset({Role.OWNER, Role.RESEARCHER, Role.READER})
MAKERS = frozenset({Role.OWNER, Role.RESEARCHER})
LABELLERS = frozenset({Role.OWNER, Role.RESEARCHER, Role.ANNOTATOR})

#: Label, name of the route, and who has it in the navigation.
SECTIONS: tuple[tuple[str, str, frozenset[Role]], ...] = (
    ("Questions", "runs:questions", RESULTS),
    ("Protocols", "runs:protocols", RESULTS),
    ("Experiments", "runs:experiments", RESULTS),
    ("Queues", "audits:queues", MAKERS),
    ("Label", "audits:label_queues", LABELLERS),
    ("Reports", "audits:reports", RESULTS),
    ("Settings", "workspace_settings", MAKERS),
)


@dataclass(frozen=True)
class Link:
    """One entry of a navigation or a row of tabs."""

    label: str
    url: str
    is_current: bool = False


def theme_of(request: HttpRequest) -> str:
    chosen = request.COOKIES.get(THEME_COOKIE, "auto")
    return chosen if chosen in THEMES else "auto"


def site(request: HttpRequest) -> dict[str, Any]:
    """Context processor. Lists of workspaces are read only by a template that shows them."""
    workspace: Workspace | None = getattr(request, "workspace", None)
    role: Role | None = getattr(request, "role", None)
    user = getattr(request, "user", None)
    return {
        "theme": theme_of(request),
        "themes": THEMES,
        "workspace": workspace,
        "role": role,
        "sections": _sections(request, workspace, role) if workspace and role else [],
        "workspaces": SimpleLazyObject(
            lambda: list(access.workspaces_of(user)) if isinstance(user, User) else []
        ),
    }


def _sections(request: HttpRequest, workspace: Workspace, role: Role) -> list[Link]:
    links = []
    for label, route, roles in SECTIONS:
        if role not in roles:
            continue
        try:
            url = reverse(route, args=[workspace.name])
        except NoReverseMatch:
            continue
        links.append(Link(label, url, request.path.startswith(url)))
    return links

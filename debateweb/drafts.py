"""
What a person sent and the site could not take: kept, shown again, sent again with one button.

A draft lives in the session, which signing in carries over. It works without JavaScript and needs
nothing from the view that it was meant for.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

SESSION_KEY = "drafts"
#: Oldest drafts leave first; more than this is not text that somebody typed.
MOST_DRAFTS = 5
MOST_CHARACTERS = 2_000_000
#: Never kept, never shown again.
SECRET_WORDS = ("password", "again", "csrfmiddlewaretoken", "secret", "token")


@dataclass(frozen=True)
class DraftField:
    """One value of a form; ``is_long`` asks for a text area."""

    name: str
    value: str

    @property
    def label(self) -> str:
        return self.name.replace("_", " ").replace("-", " ").strip().capitalize()

    @property
    def is_long(self) -> bool:
        return len(self.value) > 80 or "\n" in self.value


def fields_of(request: HttpRequest) -> list[DraftField]:
    """Return what was posted, in order, without secrets."""
    return [
        DraftField(name, str(value))
        for name, values in request.POST.lists()
        for value in values
        if not any(word in name.lower() for word in SECRET_WORDS)
    ]


def keep(request: HttpRequest) -> str:
    """Store what was posted and return the address of the page that shows it again."""
    fields = fields_of(request)
    if not fields or sum(len(field.value) for field in fields) > MOST_CHARACTERS:
        return request.get_full_path()
    key = secrets.token_urlsafe(8)
    kept: dict[str, Any] = request.session.get(SESSION_KEY, {})
    kept[key] = {
        "path": request.get_full_path(),
        "fields": [[field.name, field.value] for field in fields],
        "files": sorted(request.FILES),
    }
    while len(kept) > MOST_DRAFTS:
        kept.pop(next(iter(kept)))
    request.session[SESSION_KEY] = kept
    return reverse("draft", args=[key])


def stored(request: HttpRequest, key: str) -> dict[str, Any] | None:
    """Return a kept draft: ``path``, ``fields`` and the names of ``files`` that were not kept."""
    draft: dict[str, Any] | None = request.session.get(SESSION_KEY, {}).get(key)
    return draft


def show_again(
    request: HttpRequest,
    *,
    path: str,
    fields: list[DraftField],
    files: list[str],
    happened: str,
    status: int = 200,
) -> HttpResponse:
    """Render what was sent, with one button that sends it to ``path`` again."""
    if not url_has_allowed_host_and_scheme(path, allowed_hosts=None):
        path = "/"
    context = {"path": path, "fields": fields, "files": files, "happened": happened}
    return render(request, "debateweb/send_again.html", context, status=status)

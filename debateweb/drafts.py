"""
What a person sent and the site could not take: kept, shown again, sent again with one button.

A draft lives in the session, which signing in carries over. It works without JavaScript and needs
nothing from the view that it was meant for.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

SESSION_KEY = "drafts"
#: Oldest drafts leave first; more than this is not text that somebody typed.
MOST_DRAFTS = 5
MOST_CHARACTERS = 2_000_000
#: Never kept, never shown again.
CSRF_FIELD = "csrfmiddlewaretoken"
SECRET_WORDS = frozenset({"password", "again", CSRF_FIELD, "secret", "token"})


@dataclass(frozen=True)
class Draft:
    """A form that was sent: where to, from which page, and what of it cannot be sent again."""

    path: str
    page: str
    fields: list[list[str]]
    files: list[str]
    lacks_secrets: bool
    is_too_large: bool

    @property
    def shown_fields(self) -> list[DraftField]:
        return [DraftField(name, value) for name, value in self.fields]

    @property
    def can_be_sent(self) -> bool:
        """A button alone can be sent again; a form without its passwords cannot."""
        return bool(self.fields) or not (self.lacks_secrets or self.is_too_large or self.files)


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


def draft_of(request: HttpRequest) -> Draft:
    """Return what was posted, in order, without secrets and files."""
    sent = [(name, str(value)) for name, values in request.POST.lists() for value in values]
    fields = [[name, value] for name, value in sent if not _is_secret(name)]
    is_too_large = sum(len(value) for _, value in fields) > MOST_CHARACTERS
    return Draft(
        path=request.get_full_path(),
        page=_page_of_the_form(request),
        fields=[] if is_too_large else fields,
        files=sorted(request.FILES),
        lacks_secrets=any(_is_secret(name) and name != CSRF_FIELD for name, _ in sent),
        is_too_large=is_too_large,
    )


def keep(request: HttpRequest) -> str:
    """Store what was posted and return the address of the page that shows it again."""
    key = secrets.token_urlsafe(8)
    kept: dict[str, Any] = request.session.get(SESSION_KEY, {})
    kept[key] = asdict(draft_of(request))
    while len(kept) > MOST_DRAFTS:
        kept.pop(next(iter(kept)))
    request.session[SESSION_KEY] = kept
    return reverse("draft", args=[key])


def stored(request: HttpRequest, key: str) -> Draft | None:
    """Return the draft that this session keeps under ``key``, or None."""
    kept = request.session.get(SESSION_KEY, {}).get(key)
    return None if kept is None else Draft(**kept)


def show_again(
    request: HttpRequest, draft: Draft, *, happened: str, status: int = 200
) -> HttpResponse:
    """Render what was sent, with one button that sends it to the same address again."""
    context = {"draft": draft, "happened": happened}
    return render(request, "debateweb/send_again.html", context, status=status)


def _is_secret(name: str) -> bool:
    """Whole words: a field of ``output_tokens`` is a number that somebody typed."""
    return not SECRET_WORDS.isdisjoint(re.findall("[a-z]+", name.lower()))


def _page_of_the_form(request: HttpRequest) -> str:
    """Return the page that held the form, where the browser says so and it is ours."""
    source = urlsplit(request.headers.get("Referer", ""))
    if source.netloc != request.get_host():
        return "/"
    return urlunsplit(("", "", source.path or "/", source.query, ""))

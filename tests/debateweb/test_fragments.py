"""Fragments and pages are kept apart, and what goes wrong is said in words on a page."""

from __future__ import annotations

import logging

import pytest
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.test import Client, RequestFactory
from django_htmx.middleware import HtmxMiddleware

from debateweb import access
from debateweb.middleware import FragmentMiddleware
from debateweb.models import Role, Workspace
from tests.debateweb.people import member, person, signed_in

HTMX = {"HX-Request": "true"}
RESTORE = {"HX-Request": "true", "HX-History-Restore-Request": "true"}


def page_or_fragment(request: HttpRequest) -> HttpResponse:
    return HttpResponse("fragment" if request.htmx else "page")  # type: ignore[attr-defined]


def answer(view: object, headers: dict[str, str]) -> HttpResponse:
    assert callable(view)
    request = RequestFactory().get("/", headers=headers)
    assert request.headers is not None  # Somebody above has read the headers already.
    return FragmentMiddleware(HtmxMiddleware(view))(request)  # type: ignore[arg-type]


def test_a_restored_history_gets_the_whole_page() -> None:
    assert answer(page_or_fragment, {}).content == b"page"
    assert answer(page_or_fragment, HTMX).content == b"fragment"
    assert answer(page_or_fragment, RESTORE).content == b"page"


def test_caches_are_told_that_a_page_depends_on_who_asks() -> None:
    reply = answer(page_or_fragment, {})
    assert reply["Vary"] == "HX-Request, HX-History-Restore-Request"
    assert set(reply["Cache-Control"].split(", ")) == {"private", "no-cache"}


def test_a_redirect_moves_the_page_and_not_the_panel() -> None:
    def go(request: HttpRequest) -> HttpResponse:
        response = redirect("/there")
        response.set_cookie("kept", "1")
        return response

    assert answer(go, {})["Location"] == "/there"
    moved = answer(go, HTMX)
    assert (moved.status_code, moved["HX-Redirect"], moved.content) == (204, "/there", b"")
    assert moved.cookies["kept"].value == "1"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/health", "/design", "/w/home/", "/w/nonesuch/", "/workspaces"])
def test_every_page_varies_and_has_the_strict_policy(path: str) -> None:
    home = Workspace.objects.create(name="home")
    reply = signed_in(member(home, Role.OWNER)).get(path)
    assert "HX-Request" in reply["Vary"]
    assert "script-src 'self';" in reply["content-security-policy"]
    page = reply.content.decode()
    assert "<style" not in page and " style=" not in page and "onclick" not in page
    assert page.count("<script") == page.count("<script src=")
    assert page.count('aria-live="polite"') == 1


@pytest.mark.django_db
def test_a_missing_page_says_what_to_do_and_nothing_of_what_is_there() -> None:
    reply = signed_in(person("alice")).get("/w/nonesuch/secret?x=<script>")
    page = reply.content.decode()
    assert reply.status_code == 404
    assert "Nothing was changed" in page and 'href="/"' in page
    assert "secret" not in page.partition("<main")[2]


@pytest.mark.django_db
def test_a_page_that_breaks_shows_no_traceback_and_needs_no_database(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    home = Workspace.objects.create(name="home")
    client = signed_in(member(home, Role.OWNER))
    client.raise_request_exception = False

    def away(*args: object, **kwargs: object) -> None:
        raise OperationalError("password of the database")

    monkeypatch.setattr(access, "membership", away)
    with caplog.at_level(logging.CRITICAL, logger="django.request"):
        reply = client.get("/w/home/")
    page = reply.content.decode()
    assert reply.status_code == 500
    assert "Something broke on our side" in page and "Traceback" not in page
    assert "password of the database" not in page


@pytest.mark.django_db
def test_reloading_the_answer_to_a_form_is_answered_in_words(client: Client) -> None:
    reply = client.get("/account/tokens")
    assert (reply.status_code, reply["Allow"]) == (405, "POST")
    assert b"it is not sent again" in reply.content


@pytest.mark.django_db
def test_a_request_that_is_too_large_is_answered_in_words(client: Client) -> None:
    person("alice")
    reply = client.post("/login/", {f"field-{i}": "x" for i in range(1_100)})
    assert reply.status_code == 400
    assert b"too large" in reply.content

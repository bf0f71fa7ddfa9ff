"""
Real Chromium against a live server: nothing but loopback is reachable, and pages are looked at.

Screenshots go to the folder that ``DEBATEWEB_SCREENSHOTS`` names, by default ``screenshots``.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from debateweb.models import User
from tests.conftest import absent

CHROMIUM = os.environ.get("DEBATEWEB_CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PROJECT = Path(__file__).resolve().parents[2]
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
#: Two looks show what differs; ``test_every_page`` looks at each page in both themes as well.
LOOKS = pytest.mark.parametrize(
    ("phone", "dark"), [(False, False), (True, True)], ids=["desktop-light", "phone-dark"]
)
LOOPBACK = {"127.0.0.1", "localhost"}
PATIENCE_SECONDS = 30.0  # For a machine that does other things as well.

# Playwright's loop runs in this thread; Django would take it for an asynchronous caller.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if shutil.which(CHROMIUM) is None:
        absent("browser", f"{CHROMIUM} is not there; set DEBATEWEB_CHROMIUM")
    expect.set_options(timeout=PATIENCE_SECONDS * 1000)
    with sync_playwright() as play:
        made = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


NewContext = Callable[..., BrowserContext]


@pytest.fixture
def new_context(browser: Browser, live_server: LiveServer) -> Iterator[NewContext]:
    """Return a maker of contexts: ``new_context(user=…, phone=True, dark=True, scripts=False)``."""
    made: list[BrowserContext] = []

    def make(
        *,
        user: User | None = None,
        phone: bool = False,
        dark: bool = False,
        scripts: bool = True,
    ) -> BrowserContext:
        context = browser.new_context(
            base_url=live_server.url,
            viewport=PHONE if phone else DESKTOP,  # type: ignore[arg-type]  # A literal dict.
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            java_script_enabled=scripts,
        )
        context.set_default_timeout(PATIENCE_SECONDS * 1000)
        context.route("**/*", only_loopback)
        if user is not None:
            sign_in(context, user, live_server.url)
        made.append(context)
        return context

    yield make
    for context in made:
        context.close()


def only_loopback(route: Route) -> None:
    if urlsplit(route.request.url).hostname in LOOPBACK:
        route.continue_()
    else:
        route.abort()


def sign_in(context: BrowserContext, user: User, url: str) -> None:
    """Give the context a session of ``user`` without the sign-in page."""
    client = Client()
    client.force_login(user)
    value = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": value, "url": url}])


def end_session(context: BrowserContext) -> None:
    """End the context's session on the server, as time would."""
    for cookie in context.cookies():
        if cookie.get("name") == settings.SESSION_COOKIE_NAME:
            SessionStore(session_key=cookie.get("value")).delete()


def faults(page: Page) -> list[str]:
    """Return what axe finds wrong with the page, and whether it scrolls sideways."""
    found = Axe().run(page).response["violations"]
    said = [f"{fault['id']}: {fault['help']}: {_elements(fault)}" for fault in found]
    widths = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    if widths[0] > widths[1]:
        said.append(f"the page is {widths[0]} px wide in {widths[1]} px")
    return said


def _elements(fault: dict[str, Any]) -> list[str]:
    return [node["html"][:200] for node in fault["nodes"][:5]]


def until(page: Page, condition: str, timeout_seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until a script's expression holds; Playwright's own waiting needs eval in the page."""
    deadline = time.monotonic() + timeout_seconds
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, f"never came true: {condition}"
        page.wait_for_timeout(50)


def screenshot(page: Page, name: str) -> None:
    folder = Path(os.environ.get("DEBATEWEB_SCREENSHOTS", PROJECT / "screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=folder / f"{name}.png", full_page=True)

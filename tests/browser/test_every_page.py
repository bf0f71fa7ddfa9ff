"""Every page that the table of routes names is looked at: a new page without a look fails here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from django.urls import reverse
from playwright.sync_api import Page

from debateweb.models import Workspace
from tests.browser.conftest import NewContext, faults
from tests.debateweb.filled import Filled, filled, pages
from tests.debateweb.routes import ANONYMOUS, ROUTES

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

#: Not pages: they are read by programs.
DATA = {"health_json"}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Filled]:
    with (
        patch("runs.dispatch.current_app"),
        patch("audits.services.current_app"),
        patch("runs.services.uploads._folder", lambda workspace: tmp_path / str(workspace.pk)),
    ):
        yield filled(tmp_path, name="home", rows=3, runs=10)


def test_axe_finds_nothing_on_any_page(home: Filled, new_context: NewContext) -> None:
    page = new_context(user=home.owner).new_page()
    assert looked_at(page, dict(pages(home))) == {}


def test_axe_finds_nothing_before_the_sign_in(new_context: NewContext) -> None:
    urls = {
        name: reverse(name, kwargs=dict(route.arguments(Workspace())))
        for name, route in ROUTES.items()
        if route.method == "GET" and route.answers[ANONYMOUS] == 200 and name not in DATA
    }
    assert looked_at(new_context().new_page(), urls) == {}


def looked_at(page: Page, urls: dict[str, str]) -> dict[str, list[str]]:
    """Return what axe finds on pages, light and dark, by name and theme."""
    assert urls
    broken = {}
    for name, url in urls.items():
        page.goto(url)
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            broken[f"{name}, {theme}"] = faults(page)
    return {name: said for name, said in broken.items() if said}

"""Importing questions and editing a protocol in a real browser: typed, swapped, looked at."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from debateweb.models import Role, User, Workspace
from runs.services import uploads
from tests.browser.conftest import NewContext, faults, screenshot
from tests.debateweb.people import member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ROWS = "problem,gold,topic\nWhat is 1+1?,2,sums\nWhat is 2+2?,4,sums\n"
EDIT = "/w/home/protocols/edit?from=du_2023"


@pytest.fixture
def owner() -> User:
    return member(Workspace.objects.create(name="home"), Role.OWNER)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_folder", lambda workspace: tmp_path / str(workspace.pk))


def import_rows(page: Page) -> None:
    page.goto("/w/home/questions/import")
    page.get_by_label("Or paste rows").fill(ROWS)
    page.get_by_role("button", name="Look at it").click()
    expect(page.get_by_role("heading", name="Is this right?")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False])
def test_pasted_rows_are_corrected_confirmed_and_filtered(
    new_context: NewContext, owner: User, scripts: bool
) -> None:
    page = new_context(user=owner, scripts=scripts).new_page()
    import_rows(page)
    page.get_by_label("Answers are, where a row does not say").select_option("number")
    page.get_by_role("button", name="Read it like this").click()
    page.go_back()
    page.go_forward()
    page.get_by_label("Name of the set").fill("sums")
    page.get_by_role("button", name="Import 2 questions").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("sums")
    expect(page.get_by_role("cell", name="number", exact=True).first).to_be_visible()


def test_typing_in_the_form_changes_drawing_bound_and_yaml_and_keeps_the_focus(
    new_context: NewContext, owner: User
) -> None:
    page = new_context(user=owner).new_page()
    page.goto(EDIT)
    rounds = page.get_by_label("Rounds after the first answer")
    rounds.fill("3")
    expect(page.locator("#sketch")).to_contain_text("t = 3")
    expect(page.locator("#yaml")).to_have_value(re.compile("revision_rounds: 3"))
    expect(rounds).to_be_focused()
    rounds.fill("many")
    expect(page.locator("#in-revision_rounds-fault")).to_contain_text("has to be a whole number")
    rounds.fill("2")
    expect(page.locator("#in-revision_rounds-fault")).to_be_empty()


def test_typing_yaml_changes_the_form_and_keeps_the_focus(
    new_context: NewContext, owner: User
) -> None:
    page = new_context(user=owner).new_page()
    page.goto(EDIT)
    page.locator("#yaml-card > summary").click()
    yaml = page.locator("#yaml")
    yaml.fill(yaml.input_value().replace("revision_rounds: 1", "revision_rounds: 4"))
    expect(page.get_by_label("Rounds after the first answer")).to_have_value("4")
    expect(yaml).to_be_focused()
    page.get_by_role("button", name="Save a version").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("version 1")


@pytest.mark.parametrize(("phone", "dark"), [(False, False), (True, False), (False, True)])
def test_the_pages_are_readable_and_have_no_fault(
    new_context: NewContext, owner: User, phone: bool, dark: bool
) -> None:
    page = new_context(user=owner, phone=phone, dark=dark).new_page()
    kind = "dark" if dark else "phone" if phone else "desktop"
    import_rows(page)
    screenshot(page, f"import-preview-{kind}")
    broken = {"import-preview": faults(page)}
    for name, url in {
        "protocols": "/w/home/protocols/",
        "protocol": "/w/home/protocols/shipped/sparse_ring/?against=du_2023&price.in=1",
        "protocol-edit": EDIT,
        "questions": "/w/home/questions/",
    }.items():
        page.goto(url)
        screenshot(page, f"{name}-{kind}")
        broken[name] = faults(page)
    assert {name: said for name, said in broken.items() if said} == {}

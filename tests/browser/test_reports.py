"""Reports in a real browser: asked for, waited for, opened to the rows, and read from a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from audits import services
from audits.models import Report
from audits.reports.build import build_report
from audits.reports.render import links_of, page_bytes
from debateweb.models import Role, User
from runs.models import Experiment
from tests.audits.reports.experiments import THREE_ARMS, Deaf, executed, made, questions_file
from tests.browser.conftest import NewContext, faults, screenshot
from tests.debateweb.people import member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

OPEN_ALL = "document.querySelectorAll('details.fold').forEach(fold => { fold.open = true; })"
LOOKS = [(False, False), (True, True)]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    for place in ("runs.dispatch.current_app", "audits.services.current_app"):
        monkeypatch.setattr(place, Deaf())
    source = questions_file(tmp_path, 24)
    text = THREE_ARMS.replace("NAME", "sums").replace("QUESTIONS", source.name)
    return executed(made(text, tmp_path))


@pytest.fixture
def reader(ran: Experiment) -> User:
    return member(ran.workspace, Role.READER)


def test_a_report_is_asked_for_appears_by_itself_and_opens_to_its_rows(
    ran: Experiment, reader: User, new_context: NewContext
) -> None:
    page = new_context(user=reader).new_page()
    page.goto(f"/w/{ran.workspace.name}/reports/")
    page.get_by_role("link", name="sums").click()
    page.get_by_role("button", name="Build the report").click()
    expect(page.locator("#building")).to_be_visible()
    assert faults(page) == []

    services.build_stored(Report.objects.get().pk)
    expect(page.get_by_role("heading", name="In short")).to_be_visible()
    page.locator(".leads td a").first.click()

    expect(page.get_by_role("heading", level=1)).to_contain_text("Excess repair")
    expect(page.locator("tbody tr").first).to_be_visible()
    assert faults(page) == []
    screenshot(page, "report-rows-desktop-light")


@pytest.fixture
def built(ran: Experiment) -> Experiment:
    asked = services.ask_for_report(workspace=ran.workspace, name="sums", actor=None)
    assert asked is not None
    services.build_stored(asked.pk)
    return ran


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_definition_n_and_rows_are_one_key_away_and_links_open_folds(
    built: Experiment, reader: User, new_context: NewContext, scripts: bool
) -> None:
    page = new_context(user=reader, scripts=scripts).new_page()
    page.goto(f"/w/{built.workspace.name}/reports/sums/")
    keyboard_reads(page)
    page.goto(f"/w/{built.workspace.name}/reports/sums/#condition-2-agreement-and-minorities")
    section = page.locator("#condition-2-agreement-and-minorities")
    expect(section.get_by_role("table").first).to_be_visible()
    expect(section).to_be_in_viewport()

    page.goto(f"/w/{built.workspace.name}/reports/sums/")
    value = page.locator(".leads td a").first
    value.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Rows of")


def keyboard_reads(page: Page) -> None:
    """Open a definition and a fold by key, on the page or in the file."""
    cell = page.locator(".leads td").first
    expect(cell.get_by_text("Out of:")).not_to_be_visible()
    cell.locator("a").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(cell.get_by_text("Out of:")).to_be_visible()
    page.keyboard.press("Tab")
    expect(cell.get_by_role("link", name="Rows of Excess repair of debate")).to_be_focused()

    inputs = page.locator("#inputs")
    expect(inputs).not_to_be_visible()
    page.get_by_role("link", name="What this was made from").press("Enter")
    expect(inputs).to_be_visible()
    expect(inputs).to_be_in_viewport()


def test_on_paper_all_is_open(built: Experiment, reader: User, new_context: NewContext) -> None:
    page = new_context(user=reader).new_page()
    page.goto(f"/w/{built.workspace.name}/reports/sums/")
    last = page.locator(".fold table, .fold dl")
    expect(last.last).not_to_be_visible()

    page.emulate_media(media="print")

    for place in range(last.count()):
        expect(last.nth(place)).to_be_visible()
    expect(page.locator(".contents")).not_to_be_visible()
    screenshot(page, "report-print")


def test_no_page_of_a_report_has_a_fault(
    built: Experiment, reader: User, new_context: NewContext
) -> None:
    broken = {}
    for phone, dark in LOOKS:
        page = new_context(user=reader, phone=phone, dark=dark).new_page()
        look = f"{'phone' if phone else 'desktop'}-{'dark' if dark else 'light'}"
        for name, path in (
            ("reports", ""),
            ("report", "sums/"),
            ("rows", "sums/rows?metric=agent_accuracy_T&condition=debate"),
        ):
            page.goto(f"/w/{built.workspace.name}/reports/{path}")
            screenshot(page, f"{name}-{look}")
            broken[f"{name}-{look}"] = faults(page)
            if name == "report":
                page.evaluate(OPEN_ALL)
                broken[f"{name}-open-{look}"] = faults(page)
    assert {name: said for name, said in broken.items() if said} == {}


def test_the_file_opens_from_a_disk_without_a_network(
    ran: Experiment, new_context: NewContext, tmp_path: Path
) -> None:
    report = build_report(workspace=ran.workspace, name="sums")
    path = tmp_path / "sums.html"
    links = links_of(ran.workspace.name, "sums", site="https://debates.example.org")
    path.write_bytes(page_bytes(report, links))
    page = new_context(dark=True).new_page()
    asked: list[str] = []
    said: list[str] = []
    page.context.unroute("**/*")
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))

    page.goto(path.as_uri())

    keyboard_reads(page)
    assert [url.partition("#")[0] for url in asked] == [path.as_uri()] and said == []
    expect(page.get_by_role("heading", level=1)).to_have_text("sums")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background != "rgba(0, 0, 0, 0)"
    screenshot(page, "report-file-desktop-dark")

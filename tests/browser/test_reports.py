"""Reports in a real browser: asked for, waited for, opened to the rows, and read from a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from audits import services
from audits.models import Report
from audits.reports.build import build_report
from audits.reports.render import page_bytes
from debateweb.models import Role, User
from runs.models import Experiment
from tests.audits.reports.experiments import THREE_ARMS, Deaf, executed, made, questions_file
from tests.browser.conftest import NewContext, faults, screenshot
from tests.debateweb.people import member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LOOKS = [(False, False), (True, False), (False, True), (True, True)]


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


def test_no_page_of_a_report_has_a_fault(
    ran: Experiment, reader: User, new_context: NewContext
) -> None:
    asked = services.ask_for_report(workspace=ran.workspace, name="sums", actor=None)
    assert asked is not None
    services.build_stored(asked.pk)
    broken = {}
    for phone, dark in LOOKS:
        page = new_context(user=reader, phone=phone, dark=dark).new_page()
        look = f"{'phone' if phone else 'desktop'}-{'dark' if dark else 'light'}"
        for name, path in (
            ("reports", ""),
            ("report", "sums/"),
            ("rows", "sums/rows?metric=agent_accuracy_T&condition=debate"),
        ):
            page.goto(f"/w/{ran.workspace.name}/reports/{path}")
            screenshot(page, f"{name}-{look}")
            broken[f"{name}-{look}"] = faults(page)
    assert {name: said for name, said in broken.items() if said} == {}


def test_the_file_opens_from_a_disk_without_a_network(
    ran: Experiment, new_context: NewContext, tmp_path: Path
) -> None:
    report = build_report(workspace=ran.workspace, name="sums")
    path = tmp_path / "sums.html"
    path.write_bytes(page_bytes(report))
    page = new_context(dark=True).new_page()
    asked: list[str] = []
    said: list[str] = []
    page.context.unroute("**/*")
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))

    page.goto(path.as_uri())

    assert asked == [path.as_uri()] and said == []
    expect(page.get_by_role("heading", level=1)).to_have_text("sums")
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background != "rgba(0, 0, 0, 0)"
    screenshot(page, "report-file-desktop-dark")

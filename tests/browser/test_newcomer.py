"""
From a fresh site to a downloaded report, as somebody who has never seen it, by mouse or keyboard.

Looking at the pages (axe, screenshots) is no part of the newcomer's time and is taken off it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import (
    DESKTOP,
    PATIENCE_SECONDS,
    PHONE,
    faults,
    only_loopback,
    screenshot,
)
from tests.debateweb.sites import new_site

pytestmark = [pytest.mark.browser, pytest.mark.realdata]

MOST_CLICKS, MOST_SECONDS = 25, 180
QUESTIONS = 50
MOST_TABS = 250
SIMULATED = "simulated:accuracy=0.7,correlation=0.3,conformity=0.5,churn=0.1,seed=11"
IS_FOCUSED = "element => element === document.activeElement"


@dataclass
class Newcomer:
    """Somebody at a page, who counts what they press and how long it takes."""

    page: Page
    by_keyboard: bool
    clicks: int = 0
    looked_seconds: float = 0.0
    broken: dict[str, list[str]] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started - self.looked_seconds

    def press(self, wanted: Locator) -> None:
        self.clicks += 1
        if self.by_keyboard:
            self._tab_to(wanted)
            self.page.keyboard.press("Enter")
        else:
            wanted.click()

    def link(self, name: str | re.Pattern[str]) -> None:
        self.press(self.page.get_by_role("link", name=name, exact=True).first)

    def button(self, name: str) -> None:
        self.press(self.page.get_by_role("button", name=name, exact=True))

    def write(self, wanted: Locator, text: str) -> None:
        if self.by_keyboard:
            self._tab_to(wanted)
        else:
            self.clicks += 1
            wanted.click()
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)

    def choose_file(self, wanted: Locator, path: Path) -> None:
        with self.page.expect_file_chooser() as chooser:
            self.press(wanted)
        chooser.value.set_files(path)

    def arrive(self, heading: str | re.Pattern[str]) -> None:
        expect(self.page.get_by_role("heading", level=1)).to_have_text(heading)

    def look(self, name: str) -> None:
        """Keep pictures of the page and what axe says of it; by mouse alone, once is enough."""
        if self.by_keyboard:
            return
        began = time.monotonic()
        for theme in ("dark", "light"):
            self.page.emulate_media(color_scheme=theme)
            self.broken[f"{name}, {theme}"] = faults(self.page)
            screenshot(self.page, f"newcomer-{name}-{theme}")
        self.page.set_viewport_size(PHONE)  # type: ignore[arg-type]  # A literal dict.
        screenshot(self.page, f"newcomer-{name}-phone")
        self.page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]  # A literal dict.
        self.looked_seconds += time.monotonic() - began

    def _tab_to(self, wanted: Locator) -> None:
        expect(wanted).to_be_visible()
        for _ in range(MOST_TABS):
            if wanted.evaluate(IS_FOCUSED):
                return
            self.page.keyboard.press("Tab")
        pytest.fail(f"{wanted} is not reached with {MOST_TABS} tabs")


@pytest.fixture
def welcome() -> Iterator[str]:
    """Start a site on its defaults and yield the one-time link that it announces."""
    with new_site() as site:
        _, announced = site.up()
        assert announced["first_owner"] is not None
        yield announced["first_owner"]


@pytest.fixture
def gsm8k(real_data: Path, tmp_path: Path) -> Path:
    path = tmp_path / "test.jsonl"
    with (real_data / "gsm8k_4agents" / "test.jsonl").open(encoding="utf-8") as rows:
        path.write_text("".join(islice(rows, QUESTIONS)), encoding="utf-8")
    return path


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(
        viewport=DESKTOP,  # type: ignore[arg-type]  # A literal dict.
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE_SECONDS * 1000)
    context.route("**/*", only_loopback)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("by_keyboard", [False, True], ids=["mouse", "keyboard"])
def test_a_newcomer_gets_from_the_welcome_link_to_a_report_of_their_own(
    welcome: str, gsm8k: Path, page: Page, browser: Browser, tmp_path: Path, by_keyboard: bool
) -> None:
    newcomer = Newcomer(page, by_keyboard)
    page.goto(welcome)
    sign_up(newcomer)
    import_questions(newcomer, gsm8k)
    choose_protocol(newcomer)
    run_experiment(newcomer)
    open_damaged_answer(newcomer)
    report = download_report(newcomer, tmp_path)
    seconds = newcomer.seconds
    print(f"{newcomer.clicks} clicks, {seconds:.0f} s")  # What pytest -s shows.
    open_without_network(browser, report)
    assert newcomer.clicks <= MOST_CLICKS
    assert seconds <= MOST_SECONDS
    assert {name: said for name, said in newcomer.broken.items() if said} == {}


def sign_up(newcomer: Newcomer) -> None:
    newcomer.arrive("Welcome")
    newcomer.look("welcome")
    for label in ("New password", "The same again"):
        newcomer.write(newcomer.page.get_by_label(label), "a horse that counts to nine")
    newcomer.button("Set the password and sign in")
    expect(newcomer.page.get_by_role("navigation", name="Sections")).to_be_visible()
    newcomer.look("workspace")


def import_questions(newcomer: Newcomer, path: Path) -> None:
    page = newcomer.page
    newcomer.link("Questions")
    newcomer.arrive("Questions")
    newcomer.look("no-questions")
    newcomer.link("Import questions")
    newcomer.arrive("Import")
    newcomer.look("import")
    newcomer.choose_file(page.get_by_label("File", exact=False).first, path)
    newcomer.button("Look at it")
    newcomer.arrive("Is this right?")
    expect(page.get_by_label("Format", exact=True)).to_have_value("gsm8k")
    newcomer.look("preview")
    newcomer.button(f"Import {QUESTIONS} questions")
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Is this right?")
    newcomer.look("imported")


def choose_protocol(newcomer: Newcomer) -> None:
    newcomer.link("Protocols")
    newcomer.arrive("Protocols")
    newcomer.look("protocols")
    newcomer.link("du_2023")
    newcomer.arrive("du_2023")
    newcomer.look("preset")


def run_experiment(newcomer: Newcomer) -> None:
    page = newcomer.page
    newcomer.link("Use it in an experiment")
    newcomer.arrive("New experiment")
    newcomer.look("set-up")
    arm = page.get_by_role("group", name="Arm 1: du_2023")
    expect(arm.get_by_label("Protocol")).to_have_value("du_2023")
    newcomer.write(arm.get_by_label("Models"), SIMULATED)
    newcomer.button("Check and price it")
    expect(page.get_by_role("button", name="Create the experiment")).to_be_visible()
    newcomer.look("set-up-priced")
    newcomer.button("Create the experiment")
    newcomer.button("Start")
    progress = page.locator("#moving")
    expect(progress).to_have_attribute("data-announce", re.compile("is running|is finished"))
    newcomer.look("watch")
    finished = re.compile("is finished")
    expect(progress).to_have_attribute("data-announce", finished, timeout=MOST_SECONDS * 1000)
    newcomer.look("finished")


def open_damaged_answer(newcomer: Newcomer) -> None:
    page = newcomer.page
    newcomer.link("right → wrong")
    newcomer.arrive("Runs that went right → wrong")
    newcomer.look("turned")
    newcomer.press(page.locator("main tbody th a").first)
    newcomer.arrive(re.compile("^Run "))
    newcomer.look("run")
    damaged = page.locator(".run-matrix td").filter(has_text="right → wrong").first
    newcomer.press(damaged.get_by_role("link", name="Prompt and reply"))
    opened = page.locator("#cell-panel")
    expect(opened.get_by_role("heading", name="Prompt as sent").first).to_be_visible()
    expect(opened.get_by_role("table").first).to_contain_text("selected")
    newcomer.look("prompt")


def download_report(newcomer: Newcomer, folder: Path) -> Path:
    page = newcomer.page
    newcomer.link("Reports")
    newcomer.arrive("Reports")
    newcomer.press(page.locator("main tbody th a").first)
    newcomer.button("Build the report")
    link = page.get_by_role("link", name="Download HTML")
    expect(link).to_be_visible()
    newcomer.look("report")
    with page.expect_download() as download:
        newcomer.press(link)
    path = folder / "report.html"
    download.value.save_as(path)
    return path


def open_without_network(browser: Browser, report: Path) -> None:
    """Open the file as a mail attachment would be, and find the lead figures in it."""
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(report.as_uri())
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("body")).to_contain_text("simulated")
    assert faults(page) == []
    screenshot(page, "newcomer-report-file")
    context.close()

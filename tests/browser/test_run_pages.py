"""Run page and cell page in a real browser: no fault, hostile replies do nothing, panels open."""

from __future__ import annotations

import re
from pathlib import Path
from unittest.mock import patch

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from debateweb.models import Role, User, Workspace
from runs.models import Run
from runs.providers.base import ProviderReply
from runs.providers.endings import BAD_REQUEST, RATE_LIMITED, failed
from tests.browser.conftest import LOOKS, NewContext, faults, screenshot
from tests.browser.hostile import HOSTILE, MEGABYTE, watched
from tests.debateweb.people import member
from tests.runs import factories
from tests.runs.scripted import Call, ScriptedGateway, replied

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ANSWERS = {"a": "233", "b": "522", "c": "222"}


def replies(call: Call) -> ProviderReply:
    """
    Agent a goes right → wrong, b wrong → right; one call fails and one is tried again.

    Every reply is hostile, and the last of b is a line of a megabyte.
    """
    if (call.agent_id, call.t) == ("c", 1):
        return failed(BAD_REQUEST, "no such thing")
    if (call.agent_id, call.t, call.nth) == ("a", 1, 0):
        return failed(RATE_LIMITED, "slow down")
    reasons = "I add one and one and check the sum by counting. " * (2 + call.t)
    said = MEGABYTE if (call.agent_id, call.t) == ("b", 2) else HOSTILE
    return replied(f"{reasons}{said}\nFinal answer: {ANSWERS[call.agent_id][call.t]}")


@pytest.fixture
def home() -> Workspace:
    return Workspace.objects.create(name="home")


@pytest.fixture
def person(home: Workspace) -> User:
    return member(home, Role.RESEARCHER)


@pytest.fixture
def run(home: Workspace, tmp_path: Path) -> Run:
    caps = {"message_cap_chars": 200, "total_cap_chars": 250}
    with patch("runs.dispatch.current_app"):
        made = factories.experiment(tmp_path, in_workspace=home, protocol={"selection": caps})
        return factories.finish(made, ScriptedGateway(replies)).runs.get()


@LOOKS
def test_no_page_of_a_run_has_a_fault_or_acts_on_a_reply(
    run: Run, person: User, new_context: NewContext, dark: bool, phone: bool
) -> None:
    page = new_context(user=person, dark=dark, phone=phone).new_page()
    seen = watched(page)
    kind = f"{'phone' if phone else 'desktop'}-{'dark' if dark else 'light'}"
    page.goto(reverse("runs:run", args=["home", run.pk]))
    for summary in page.locator("#cell-1-0 summary, #cell-1-1 summary").all():
        summary.click()
    broken = {"run": [*faults(page), *seen.acted(page)]}
    screenshot(page, f"run-{kind}")
    pages = {
        "run-all": reverse("runs:run", args=["home", run.pk]) + "?all=1",
        "run-broke": reverse("runs:run", args=["home", run.pk]) + "?show=broke",
        "run-cell": reverse("runs:run_cell", args=["home", run.pk, 1, "a"]),
        "run-cell-failed": reverse("runs:run_cell", args=["home", run.pk, 1, "c"]),
        "run-cell-long": reverse("runs:run_cell", args=["home", run.pk, 2, "b"]),
        "run-turned": reverse("runs:experiment_turned", args=["home", run.experiment_id]),
    }
    for name, url in pages.items():
        page.goto(url)
        page.wait_for_load_state("networkidle")
        screenshot(page, f"{name}-{kind}")
        broken[name] = [*faults(page), *seen.acted(page)]
    assert {name: said for name, said in broken.items() if said} == {}


def test_a_reply_of_a_megabyte_is_cut_and_can_be_read_to_its_end(
    run: Run, person: User, new_context: NewContext
) -> None:
    page = new_context(user=person).new_page()
    seen = watched(page)
    page.goto(reverse("runs:run_cell", args=["home", run.pk, 2, "b"]))
    expect(page.locator("main")).not_to_contain_text("the-very-end")
    page.get_by_role("link", name="Show all of the long texts").click()
    expect(page.locator("main")).to_contain_text("the-very-end")
    assert seen.acted(page) == []


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_what_turned_is_filtered_and_jumped_to_by_keyboard(
    run: Run, person: User, new_context: NewContext, scripts: bool
) -> None:
    page = new_context(user=person, scripts=scripts).new_page()
    page.goto(reverse("runs:run", args=["home", run.pk]))
    page.get_by_role("link", name="b, round 1").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#cell-2-1$"))
    expect(page.locator("#cell-2-1")).to_be_in_viewport()
    page.keyboard.press("Tab")
    expect(page.locator("#cell-2-1 :focus")).to_have_count(1)
    page.get_by_role("link", name=re.compile(r"^right → wrong \(")).focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("show=broke"))
    expect(page.locator("#cell-1-1")).to_be_visible()
    expect(page.locator("#cell-3-1")).to_have_count(0)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_every_round_of_the_matrix_is_within_the_width_of_the_page(
    run: Run, person: User, new_context: NewContext, phone: bool
) -> None:
    page = new_context(user=person, phone=phone).new_page()
    page.goto(reverse("runs:run", args=["home", run.pk]))
    width = page.evaluate("document.documentElement.clientWidth")
    for cell in page.locator(".run-matrix td").all():
        box = cell.bounding_box()
        assert box is not None and box["x"] + box["width"] <= width
    expect(page.locator(".run-round").first).to_be_visible(visible=phone)


def test_a_cell_and_the_replay_open_in_the_page_itself(
    run: Run, person: User, new_context: NewContext
) -> None:
    page = new_context(user=person).new_page()
    url = reverse("runs:run", args=["home", run.pk])
    page.goto(url)
    page.locator("#cell-1-1 a", has_text="Prompt and reply").click()
    expect(page.locator("#cell-panel h2").first).to_be_visible()
    page.get_by_role("button", name="Verify this run").click()
    expect(page.locator("#verification .callout-ok")).to_be_visible()
    expect(page.locator("#live")).to_contain_text("agrees")
    assert page.url.endswith(url) and faults(page) == []


def test_without_scripts_a_cell_is_a_page_and_the_replay_is_told(
    run: Run, person: User, new_context: NewContext
) -> None:
    page = new_context(user=person, scripts=False).new_page()
    page.goto(reverse("runs:run", args=["home", run.pk]))
    page.get_by_role("button", name="Verify this run").click()
    expect(page.locator("#verification")).to_contain_text("Everything agrees")
    page.locator("#cell-1-1 a", has_text="Prompt and reply").click()
    expect(page.locator("h1")).to_have_text("Agent a, round 1")

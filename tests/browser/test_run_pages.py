"""Run page and cell page in a real browser: no fault, hostile replies do nothing, panels open."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from debateweb.models import Role, User, Workspace
from runs.models import Run
from runs.providers.base import ProviderReply
from runs.providers.endings import BAD_REQUEST, RATE_LIMITED, failed
from tests.browser.conftest import NewContext, faults, screenshot
from tests.debateweb.people import member
from tests.runs import factories
from tests.runs.scripted import Call, ScriptedGateway, replied

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOSTILE = (
    "<img src=x onerror=\"document.title='acted'\"> <iframe srcdoc='x'></iframe> "
    '<div hx-get="/logout" hx-trigger="load">x</div> \u202eevil ' + "z" * 300
)
ANSWERS = {"a": "233", "b": "552", "c": "222"}


def replies(call: Call) -> ProviderReply:
    """Agent a goes right → wrong, b wrong → right; one call fails and one is tried again."""
    if (call.agent_id, call.t) == ("c", 1):
        return failed(BAD_REQUEST, "no such thing")
    if (call.agent_id, call.t, call.nth) == ("a", 1, 0):
        return failed(RATE_LIMITED, "slow down")
    reasons = "I add one and one and check the sum by counting. " * (2 + call.t)
    return replied(f"{reasons}{HOSTILE}\nFinal answer: {ANSWERS[call.agent_id][call.t]}")


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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
def test_no_page_of_a_run_has_a_fault_or_acts_on_a_reply(
    run: Run, person: User, new_context: NewContext, dark: bool, phone: bool
) -> None:
    page = new_context(user=person, dark=dark, phone=phone).new_page()
    kind = f"{'phone' if phone else 'desktop'}-{'dark' if dark else 'light'}"
    page.goto(reverse("runs:run", args=["home", run.pk]))
    for summary in page.locator("#cell-1-0 summary, #cell-1-1 summary").all():
        summary.click()
    assert faults(page) == []
    screenshot(page, f"run-{kind}")
    page.goto(reverse("runs:run_cell", args=["home", run.pk, 1, "a"]))
    assert faults(page) == []
    screenshot(page, f"run-cell-{kind}")
    assert page.locator("main img, main iframe").count() == 0
    assert "acted" not in page.title()
    page.goto(reverse("runs:experiment_turned", args=["home", run.experiment_id]))
    assert faults(page) == []


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

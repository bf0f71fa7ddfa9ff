"""Setting an experiment up and watching it, in a real browser."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.core.cache import cache
from django.utils import timezone
from playwright.sync_api import expect

from debateweb.celery import heartbeat_key
from debateweb.models import Role, User, Workspace
from runs.models import Experiment, ExperimentStatus, Run, RunStatus
from runs.services.imports import import_questions
from tests.browser.conftest import LOOKS, NewContext, faults, screenshot, until
from tests.debateweb.people import member
from tests.runs import factories
from tests.runs.scripted import ScriptedGateway

SCRIPTED = ScriptedGateway()

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def home() -> Workspace:
    cache.delete(heartbeat_key("rounds"))
    made = Workspace.objects.create(name="home")
    import_questions(
        workspace=made, name="sums", format_name="jsonl", records=factories.questions(30)
    )
    return made


@pytest.fixture
def researcher(home: Workspace) -> User:
    return member(home, Role.RESEARCHER)


@pytest.fixture
def running(home: Workspace, tmp_path: Path) -> Experiment:
    arms = [
        {"name": name, "protocol": "p.json", "models": {"default": factories.SIMULATED}}
        for name in ("debate", "vote-of-independent-samples")
    ]
    made = factories.experiment(
        tmp_path,
        in_workspace=home,
        question_count=20,
        arms=arms,
        budget={"microusd_total": 5_000_000},
        analysis={"contrasts": [["debate", "vote-of-independent-samples"]]},
    )
    for run in factories.begin(made)[:12]:
        factories.execute(factories.execute(factories.execute(run, SCRIPTED), SCRIPTED), SCRIPTED)
    return made


@LOOKS
def test_no_page_of_experiments_has_a_fault(
    running: Experiment, researcher: User, new_context: NewContext, dark: bool, phone: bool
) -> None:
    page = new_context(user=researcher, dark=dark, phone=phone).new_page()
    kind = f"{'phone' if phone else 'desktop'}-{'dark' if dark else 'light'}"
    broken = {}
    for name, path in {
        "experiments": "/w/home/experiments/",
        "watch": f"/w/home/experiments/{running.pk}/",
        "cancel": f"/w/home/experiments/{running.pk}/cancel",
        "set-up": "/w/home/experiments/new",
    }.items():
        page.goto(path)
        screenshot(page, f"{name}-{kind}")
        broken[name] = faults(page)
    page.get_by_role("button", name="Check and price it").click()
    expect(page.get_by_role("button", name="Create the experiment")).to_be_visible()
    screenshot(page, f"set-up-priced-{kind}")
    broken["priced"] = faults(page)
    page.get_by_label("Only the first").fill("many")
    page.get_by_role("button", name="Check and price it").click()
    expect(page.locator("#faults")).to_contain_text("must be a whole number")
    screenshot(page, f"set-up-faults-{kind}")
    broken["faults"] = faults(page)
    assert {name: said for name, said in broken.items() if said} == {}


def test_from_the_list_to_a_started_experiment_without_scripts(
    researcher: User, new_context: NewContext
) -> None:
    page = new_context(user=researcher, scripts=False).new_page()
    page.goto("/w/home/experiments/")
    page.get_by_role("link", name="New experiment").first.click()
    page.get_by_role("button", name="Add an arm").click()
    page.get_by_role("button", name="Remove arm 4").click()
    page.get_by_role("button", name="Check and price it").click()
    page.get_by_role("button", name="Create the experiment").click()
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("It has started.")).to_be_visible()
    assert Experiment.objects.get().status == ExperimentStatus.RUNNING


def test_the_page_renews_itself_keeps_the_focus_and_stops(
    running: Experiment, researcher: User, new_context: NewContext
) -> None:
    page = new_context(user=researcher).new_page()
    page.goto(f"/w/home/experiments/{running.pk}/")
    page.locator("#do-pause").focus()
    Run.objects.filter(experiment=running, status=RunStatus.RUNNING).update(
        lease_expires_at=timezone.now() + timedelta(minutes=1)
    )
    until(page, "!document.body.innerText.includes('Stalled:')")
    expect(page.locator("#do-pause")).to_be_focused()
    Run.objects.filter(experiment=running, status=RunStatus.RUNNING).update(
        status=RunStatus.DONE, stop_reason="round_limit", ended_at=timezone.now()
    )
    Experiment.objects.filter(pk=running.pk).update(status=ExperimentStatus.FINISHED)
    until(page, "!document.querySelector('#moving').hasAttribute('hx-get')")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2_500)
    assert asked == []
    expect(page.locator("#live")).to_contain_text("is finished")


def test_a_page_that_ends_is_true_without_a_reload(
    running: Experiment, researcher: User, new_context: NewContext
) -> None:
    made = Experiment.objects.filter(pk=running.pk)
    page = new_context(user=researcher).new_page()
    page.goto(f"/w/home/experiments/{running.pk}/?arm=debate")
    rows = page.locator("#runs-list tbody tr")
    expect(rows.filter(has_text="running").first).to_be_visible()
    page.locator("#runs-list a").nth(1).focus()
    focused = page.evaluate("document.activeElement.id")
    Run.objects.filter(experiment=running).exclude(status=RunStatus.DONE).update(
        status=RunStatus.DONE, stop_reason="round_limit", ended_at=timezone.now()
    )
    made.update(status=ExperimentStatus.FINISHED)
    expect(page.locator("#live")).to_contain_text("is finished")
    expect(rows).to_have_count(20)
    expect(rows.filter(has_text="done")).to_have_count(20)
    expect(page.get_by_text("does not move under your hands")).to_have_count(0)
    expect(page.locator("#do-pause")).to_have_count(0)
    expect(page.locator(f"#{focused}")).to_be_focused()


def test_a_message_goes_and_the_focus_stays_when_its_button_has_gone(
    running: Experiment, researcher: User, new_context: NewContext
) -> None:
    made = Experiment.objects.filter(pk=running.pk)
    made.update(status=ExperimentStatus.PAUSED)
    page = new_context(user=researcher).new_page()
    page.goto(f"/w/home/experiments/{running.pk}/")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("It goes on.")).to_be_visible()
    page.locator("#do-pause").focus()
    made.update(status=ExperimentStatus.FINISHED)
    expect(page.get_by_text("It goes on.")).to_have_count(0)
    expect(page.locator("#moving")).to_be_focused()

"""
What is typed into a real form survives: going back, a closed tab, a lost session, a stale token.

The forms are those into which people type most. Nothing is saved twice, no panel shows a sign-in,
and no history shows a bare fragment.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from debateweb.models import Invitation, Role, User, Workspace
from runs.models import Experiment, ProtocolVersion
from runs.services import uploads
from runs.services.imports import import_questions
from tests.browser.conftest import NewContext, end_session
from tests.debateweb.people import PASSWORD, member
from tests.runs import factories
from tests.runs.scripted import ScriptedGateway

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LINES = "".join(f"# line {n}: why this, and not that — “ö”, <b>&amp;</b>\n" for n in range(300))
ROWS = "question,answer\n" + "".join(f"What is {n} + {n}?,{2 * n}\n" for n in range(2_000))
NOTE = "Ada from the lab, who reads what we wrote about rounds and votes " * 3
EXPERIMENT = f"""{LINES}name: typed-at-length
questions: sums
seeds: [1]
arms:
  - {{name: debate, protocol: du_2023, models: {{default: "{factories.SIMULATED}"}}}}
"""
SCRIPTS = pytest.mark.parametrize("scripts", [True, False], ids=["script", "no-script"])


@dataclass(frozen=True)
class Form:
    """A form of the site: where it is, what is typed, what sends it, and how many rows it made."""

    path: str
    field: str
    text: str
    button: str
    done: str | re.Pattern[str]  # The heading after it was taken.
    made: Callable[[], int]
    opens: str = ""  # What shows the field.

    def fill(self, page: Page) -> None:
        self.open(page)
        page.locator(self.field).fill(self.text)

    def open(self, page: Page) -> None:
        if self.opens and not page.locator(self.field).is_visible():
            page.locator(self.opens).click()

    def send(self, page: Page) -> None:
        page.get_by_role("button", name=self.button, exact=True).click()


def stored_uploads() -> int:
    folder = uploads._folder(Workspace.objects.get(name="home"))
    return len(list(folder.glob("*"))) if folder.is_dir() else 0


def protocol_text() -> str:
    preset = (Path(__file__).parents[2] / "runs/protocols/presets/du_2023.yaml").read_text()
    return LINES + re.sub(r"(?m)^name: du_2023$", "name: typed-at-length", preset)


FORMS = {
    "protocol": Form(
        path="/w/home/protocols/edit?from=du_2023",
        field="#yaml",
        text=protocol_text(),
        button="Save a version",
        done=re.compile("^typed-at-length version 1"),
        made=lambda: ProtocolVersion.objects.filter(name="typed-at-length").count(),
        opens="#yaml-card > summary",
    ),
    "experiment": Form(
        path="/w/home/experiments/new",
        field="#id_yaml",
        text=EXPERIMENT,
        button="Create without looking",
        done="typed-at-length",
        made=lambda: Experiment.objects.filter(name="typed-at-length").count(),
        opens="#as-yaml > summary",
    ),
    "questions": Form(
        path="/w/home/questions/import",
        field="#id_text",
        text=ROWS,
        button="Look at it",
        done="Is this right?",
        made=stored_uploads,
    ),
    "settings": Form(
        path="/w/home/settings",
        field="#id_note",
        text=NOTE.strip()[:200],
        button="Make an invitation link",
        done="Settings",
        made=Invitation.objects.count,
    ),
}
EACH_FORM = pytest.mark.parametrize("name", FORMS)


@pytest.fixture
def owner() -> User:
    home = Workspace.objects.create(name="home")
    import_questions(
        workspace=home, name="sums", format_name="jsonl", records=factories.questions(5)
    )
    made = member(home, Role.OWNER)
    made.set_password(PASSWORD)
    made.save()
    return made


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_folder", lambda workspace: tmp_path / str(workspace.pk))


def sign_in_again(page: Page) -> None:
    """Expect the sign-in as a page of its own, and sign in."""
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(page.locator("header.top")).to_have_count(1)
    page.get_by_label("Username").fill("owner")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def sent_again(page: Page, form: Form) -> None:
    """Expect what was sent on the page that keeps it, and send it again."""
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing was saved yet")
    expect(kept(page, form)).to_have_value(form.text)
    assert form.made() == 0
    page.get_by_role("button", name="Send it again").click()
    expect(heading(page, form)).to_be_visible()
    assert form.made() == 1


def kept(page: Page, form: Form) -> Locator:
    name = form.field.removeprefix("#").removeprefix("id_")
    return page.locator(f"[name={name}]")


def heading(page: Page, form: Form) -> Locator:
    return page.get_by_role("heading", name=form.done).first


@EACH_FORM
@SCRIPTS
def test_going_back_twice_brings_back_what_was_typed(
    owner: User, new_context: NewContext, name: str, scripts: bool
) -> None:
    form = FORMS[name]
    page = new_context(user=owner, scripts=scripts).new_page()
    page.goto(form.path)
    form.fill(page)
    page.get_by_role("link", name="Questions", exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Questions")
    page.get_by_role("link", name="Reports", exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Reports")
    page.go_back()
    page.go_back()
    expect(page.locator("header.top")).to_have_count(1)
    expect(page.locator(form.field)).to_have_value(form.text)


@EACH_FORM
def test_a_tab_that_was_closed_at_once_offers_what_was_typed(
    owner: User, new_context: NewContext, name: str
) -> None:
    form = FORMS[name]
    context = new_context(user=owner)
    page = context.new_page()
    page.goto(form.path)
    form.fill(page)
    page.close(run_before_unload=True)
    page = context.new_page()
    page.goto(form.path)
    expect(page.get_by_text("was put back")).to_be_visible()
    expect(page.locator(form.field)).to_have_value(form.text)
    page.get_by_role("button", name="Discard it").click()
    page.goto(form.path)
    expect(page.locator(form.field)).not_to_have_value(form.text)


@EACH_FORM
@SCRIPTS
def test_a_session_that_ended_loses_no_text_and_saves_nothing_twice(
    owner: User, new_context: NewContext, name: str, scripts: bool
) -> None:
    form = FORMS[name]
    context = new_context(user=owner, scripts=scripts)
    page = context.new_page()
    page.goto(form.path)
    form.fill(page)
    end_session(context)
    form.send(page)
    sign_in_again(page)
    sent_again(page, form)
    page.goto(form.path)
    expect(page.locator("header.top")).to_have_count(1)
    expect(page.get_by_text("was put back")).to_have_count(0)
    expect(page.locator(form.field)).not_to_have_value(form.text)


@EACH_FORM
@SCRIPTS
def test_a_token_that_went_stale_loses_no_text_and_saves_nothing_twice(
    owner: User, new_context: NewContext, name: str, scripts: bool
) -> None:
    form = FORMS[name]
    context = new_context(user=owner, scripts=scripts)
    page = context.new_page()
    page.goto(form.path)
    form.fill(page)
    rotate_token(context)
    form.send(page)
    sent_again(page, form)
    page.goto(form.path)
    expect(page.locator("header.top")).to_have_count(1)
    expect(page.get_by_text("was put back")).to_have_count(0)


def rotate_token(context: BrowserContext) -> None:
    """Give the browser another token than its pages have, as a sign-in in another tab does."""
    [old] = [cookie for cookie in context.cookies() if cookie.get("name") == "csrftoken"]
    context.add_cookies([{**old, "value": "y" * 32}])  # type: ignore[typeddict-item]  # As it came.


@EACH_FORM
def test_what_was_sent_to_a_site_that_is_away_is_offered_again(
    owner: User, new_context: NewContext, name: str
) -> None:
    form = FORMS[name]
    context = new_context(user=owner)
    page = context.new_page()
    page.goto(form.path)
    form.fill(page)
    page.route("**/*", lambda route: route.abort())
    form.send(page)
    expect(page).to_have_url(re.compile("chrome-error://"))
    page.unroute("**/*")
    page.goto(form.path)
    expect(page.get_by_text("was put back")).to_be_visible()
    expect(page.locator(form.field)).to_have_value(form.text)
    assert form.made() == 0


def test_what_was_checked_and_not_saved_is_offered_after_a_closed_tab(
    owner: User, new_context: NewContext
) -> None:
    """Checking sends a form and saves nothing; its answer, the form again, is the newest text."""
    context = new_context(user=owner)
    page = context.new_page()
    page.goto("/w/home/experiments/new")
    page.get_by_label("Name", exact=True).fill("checked-only")
    page.locator("[name$=output_tokens_per_run]").fill("123456")
    page.get_by_role("button", name="Check and price it").click()
    expect(page.get_by_role("button", name="Create the experiment")).to_be_visible()
    page.close()
    page = context.new_page()
    page.goto("/w/home/experiments/new")
    expect(page.get_by_text("was put back")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("checked-only")
    end_session(context)
    page.get_by_role("button", name="Create without looking").click()
    sign_in_again(page)
    page.get_by_role("button", name="Send it again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("checked-only")
    page.goto("/w/home/experiments/new")
    expect(page.get_by_label("Name", exact=True)).not_to_have_value("checked-only")
    expect(page.get_by_text("was put back")).to_have_count(0)
    budget = Experiment.objects.get(name="checked-only").spec["budget"]
    assert budget["output_tokens_per_run"] == 123456


@pytest.mark.parametrize("lost", ["session", "token"])
def test_typing_on_in_the_editor_without_session_or_token_loses_nothing(
    owner: User, new_context: NewContext, lost: str
) -> None:
    """The editor asks while one types: the answer must not land in one of its panels."""
    context = new_context(user=owner)
    page = context.new_page()
    form = FORMS["protocol"]
    page.goto(form.path)
    form.open(page)
    if lost == "session":
        end_session(context)
        form.fill(page)
        sign_in_again(page)
    else:
        rotate_token(context)
        form.fill(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Edit a protocol")
    expect(page.get_by_text("was put back")).to_be_visible()
    expect(page.locator(form.field)).to_have_value(form.text)
    expect(page.locator("main")).to_have_count(1)
    form.send(page)
    expect(heading(page, form)).to_be_visible()
    assert form.made() == 1


@pytest.fixture
def ran(owner: User, tmp_path: Path) -> Experiment:
    """Return an experiment of which one run has ended and others are under way."""
    made = factories.experiment(
        tmp_path, in_workspace=Workspace.objects.get(name="home"), question_count=3
    )
    with patch("runs.dispatch.current_app"):
        first = factories.begin(made)[0]
        for _ in range(3):
            factories.execute(first, ScriptedGateway())
    return made


def test_going_back_to_a_page_that_was_swapped_shows_a_whole_page(
    owner: User, ran: Experiment, new_context: NewContext
) -> None:
    """Watch page, editor and a run's panel: the browser must not take a fragment for the page."""
    page = new_context(user=owner).new_page()
    run = ran.runs.get(position=0)
    for path, change in (
        (f"/w/home/experiments/{ran.pk}/", renewed),
        (FORMS["protocol"].path, sketched),
        (f"/w/home/runs/{run.pk}/", opened),
    ):
        page.goto(path)
        title = page.get_by_role("heading", level=1).inner_text()
        change(page)
        page.get_by_role("link", name="Questions", exact=True).first.click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Questions")
        page.get_by_role("link", name="Reports", exact=True).first.click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Reports")
        page.go_back()
        page.go_back()
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        expect(page.locator("header.top")).to_have_count(1)
        page.reload()
        expect(page.locator("header.top")).to_have_count(1)


def renewed(page: Page) -> None:
    """Wait until the watch page has renewed itself."""
    page.locator("#moving").evaluate("element => { element.dataset.old = 'yes'; }")
    expect(page.locator("#moving:not([data-old])")).to_be_visible()


def sketched(page: Page) -> None:
    page.get_by_label("Rounds after the first answer").fill("3")
    expect(page.locator("#sketch")).to_contain_text("t = 3")


def opened(page: Page) -> None:
    page.get_by_role("link", name="Prompt and reply").first.click()
    expect(page.locator("#cell-panel h2").first).to_be_visible()


@pytest.mark.parametrize("lost", ["session", "token"])
def test_no_panel_of_a_run_or_of_a_watched_experiment_shows_a_sign_in(
    owner: User, ran: Experiment, new_context: NewContext, lost: str
) -> None:
    context = new_context(user=owner)
    page = context.new_page()
    run = ran.runs.get(position=0)
    page.goto(f"/w/home/runs/{run.pk}/")
    if lost == "token":  # A panel that posts: it comes back as a page that can post.
        rotate_token(context)
        with page.expect_navigation():
            page.get_by_role("button", name="Verify this run").click()
        page.get_by_role("button", name="Verify this run").click()
        expect(page.locator("#verification .callout-ok")).to_be_visible()
        return
    end_session(context)
    page.get_by_role("link", name="Prompt and reply").first.click()
    sign_in_again(page)
    expect(page).to_have_url(re.compile(f"/runs/{run.pk}/"))
    page.goto(f"/w/home/experiments/{ran.pk}/")
    end_session(context)
    sign_in_again(page)  # It asks by itself.
    expect(page.locator("#moving")).to_be_visible()

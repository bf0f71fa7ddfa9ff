"""The site's own pages in a real browser: looks, keyboard, and what is typed is never lost."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from debateweb import access, membership
from debateweb.models import Role, User, Workspace
from tests.browser.conftest import LOOKS, NewContext, end_session, faults, screenshot, until
from tests.debateweb.people import PASSWORD, member, person

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

DRAFT_IS_STORED = "Object.keys(localStorage).some((key) => key.startsWith('draft:'))"
PAGES = {
    "workspace": "/w/home/",
    "settings": "/w/home/settings",
    "archive": "/w/home/settings/archive",
    "account": "/account",
    "workspaces": "/workspaces",
    "design": "/design",
    "health": "/health",
    "missing": "/w/nonesuch/",
}


@pytest.fixture
def owner() -> User:
    home = Workspace.objects.create(name="home")
    made = member(home, Role.OWNER)
    for role in (Role.RESEARCHER, Role.ANNOTATOR, Role.READER):
        member(home, role)
    membership.invite(workspace=home, role=Role.READER, note="Ada, from the lab", actor=made)
    return made


@LOOKS
def test_no_page_of_the_site_has_a_fault(
    owner: User, new_context: NewContext, dark: bool, phone: bool
) -> None:
    page = new_context(user=owner, dark=dark, phone=phone).new_page()
    broken = {}
    for name, path in PAGES.items():
        page.goto(path)
        screenshot(page, f"{name}-{'phone' if phone else 'desktop'}-{'dark' if dark else 'light'}")
        broken[name] = faults(page)
    assert {name: said for name, said in broken.items() if said} == {}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_page_before_the_sign_in_has_a_fault(
    owner: User, new_context: NewContext, dark: bool
) -> None:
    page = new_context(dark=dark, phone=dark).new_page()
    home = Workspace.objects.get()
    token = membership.invite(workspace=home, role=Role.ANNOTATOR, note="", actor=owner)
    welcome = f"/welcome/{access.make_link(user=owner)}"
    for name, path in {"login": "/login/", "join": f"/join/{token}", "welcome": welcome}.items():
        page.goto(path)
        screenshot(page, f"{name}-{'phone-dark' if dark else 'desktop-light'}")
        assert faults(page) == [], name


def complaints(page: Page) -> list[str]:
    """Collect what the browser's console complains about, the policy's refusals included."""
    said: list[str] = []
    page.on(
        "console", lambda message: said.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: said.append(str(error)))
    return said


def test_the_policy_refuses_nothing_that_a_page_needs(owner: User, new_context: NewContext) -> None:
    page = new_context(user=owner).new_page()
    said = complaints(page)
    for name, path in PAGES.items():
        if name not in {"missing", "health"}:  # Their statuses are errors to the console.
            page.goto(path)
            page.wait_for_load_state("networkidle")
    assert said == []


def test_a_newcomer_comes_in_by_a_link_with_the_keyboard_alone(
    live_server: LiveServer, new_context: NewContext
) -> None:
    link = access.ensure_first_owner()
    page = new_context().new_page()
    page.goto(link or "")
    for text in (PASSWORD, PASSWORD):
        _tab_to(page, "input[type=password]")
        page.keyboard.type(text)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("main")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def _tab_to(page: Page, selector: str) -> None:
    for _ in range(30):
        page.keyboard.press("Tab")
        empty = f"document.activeElement.matches('{selector}') && !document.activeElement.value"
        if page.evaluate(empty):
            return
    raise AssertionError(f"{selector} cannot be reached with Tab")


@pytest.mark.parametrize("width", [320, 640], ids=["400-per-cent", "200-per-cent"])
def test_no_page_scrolls_sideways_when_it_is_enlarged(
    owner: User, new_context: NewContext, width: int
) -> None:
    page = new_context(user=owner).new_page()
    page.set_viewport_size({"width": width, "height": 400})
    for name, path in PAGES.items():
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name


def test_a_menu_opens_and_closes_with_the_keyboard(owner: User, new_context: NewContext) -> None:
    page = new_context(user=owner).new_page()
    page.goto("/w/home/")
    menu = page.locator("details.menu-end")
    menu.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(menu.get_by_role("link", name="Account and tokens")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(menu.get_by_role("link", name="Account and tokens")).not_to_be_visible()
    expect(menu.locator("summary")).to_be_focused()


PANEL = """<section id="panel"><button id="again" hx-get="/fragment" hx-target="#panel"
 hx-swap="outerHTML">Again</button></section>"""


def test_a_swap_keeps_the_focus_and_says_what_changed(owner: User, new_context: NewContext) -> None:
    page = new_context(user=owner).new_page()
    page.goto("/design")
    said = PANEL.replace('id="panel"', 'id="panel" data-announce="Round 3 of 4"')
    page.route("**/fragment", lambda route: route.fulfill(body=said, content_type="text/html"))
    page.evaluate(
        "html => { const main = document.querySelector('main');"
        " main.insertAdjacentHTML('afterbegin', html); htmx.process(main); }",
        PANEL,
    )
    page.locator("#again").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#live")).to_have_text("Round 3 of 4")
    expect(page.locator("#again")).to_be_focused()
    page.locator("#again").evaluate("button => button.removeAttribute('id')")
    page.evaluate("document.querySelector('#panel button').focus()")
    page.keyboard.press("Enter")
    until(page, "document.activeElement.id === 'panel'")


def test_a_page_can_be_printed(owner: User, new_context: NewContext) -> None:
    page = new_context(user=owner, dark=True).new_page()
    page.goto("/design")
    page.emulate_media(media="print")
    screenshot(page, "design-print")
    expect(page.locator("header.top")).not_to_be_visible()
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"


def test_the_theme_is_chosen_without_a_script_and_stays(
    owner: User, new_context: NewContext
) -> None:
    page = new_context(user=owner, scripts=False).new_page()
    page.goto("/account")
    page.get_by_text("Account: owner").click()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page).to_have_url(re.compile("/account$"))
    page.goto("/workspaces")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize("scripts", [True, False], ids=["script", "no-script"])
def test_a_form_that_outlived_its_session_comes_back_and_is_sent_again(
    new_context: NewContext, scripts: bool
) -> None:
    user = person("alice")
    context = new_context(user=user, scripts=scripts)
    page = context.new_page()
    page.goto("/workspaces")
    page.get_by_label("Name of the workspace").fill("from-before")
    end_session(context)
    page.get_by_role("button", name="Make the workspace").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(page.get_by_text("What you sent is kept")).to_be_visible()
    page.get_by_label("Username").fill("alice")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing was saved yet")
    expect(page.get_by_label("Name", exact=True)).to_have_value("from-before")
    assert faults(page) == [] if scripts else True
    page.get_by_role("button", name="Send it again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("from-before")


@pytest.mark.parametrize("scripts", [True, False], ids=["script", "no-script"])
def test_a_form_with_a_token_that_is_out_of_date_is_sent_again(
    owner: User, new_context: NewContext, scripts: bool
) -> None:
    context = new_context(user=owner, scripts=scripts)
    page = context.new_page()
    page.goto("/workspaces")
    page.get_by_label("Name of the workspace").fill("kept")
    context.clear_cookies(name="csrftoken")
    page.get_by_role("button", name="Make the workspace").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Nothing was saved yet")
    expect(page.get_by_label("Name", exact=True)).to_have_value("kept")
    page.get_by_role("button", name="Send it again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("kept")


def test_what_was_typed_survives_a_closed_tab_and_going_back(
    owner: User, new_context: NewContext
) -> None:
    context = new_context(user=owner)
    page = context.new_page()
    page.goto("/workspaces")
    page.get_by_label("Name of the workspace").fill("half-typed")
    until(page, DRAFT_IS_STORED)
    page.close()
    page = context.new_page()
    page.goto("/workspaces")
    expect(page.get_by_label("Name of the workspace")).to_have_value("half-typed")
    expect(page.get_by_text("was put back")).to_be_visible()
    page.goto("/account")
    page.goto("/design")
    page.go_back()
    page.go_back()
    expect(page.get_by_label("Name of the workspace")).to_have_value("half-typed")
    page.get_by_role("button", name="Discard it").click()
    page.reload()
    expect(page.get_by_label("Name of the workspace")).to_have_value("")


SEND_BY_HTMX = """form => {
  form.setAttribute("hx-post", form.getAttribute("action") || location.pathname);
  form.setAttribute("hx-target", "#main");
  htmx.process(form);
}"""


@pytest.mark.parametrize("lost", ["sessionid", "csrftoken"])
def test_a_panel_never_shows_the_sign_in_and_the_text_is_put_back(
    new_context: NewContext, lost: str
) -> None:
    context = new_context(user=person("alice"))
    page = context.new_page()
    page.goto("/workspaces")
    page.get_by_label("Name of the workspace").fill("by-htmx")
    page.locator("main form").evaluate(SEND_BY_HTMX)
    context.clear_cookies(name=lost)
    page.get_by_role("button", name="Make the workspace").click()
    if lost == "sessionid":
        expect(page).to_have_url(re.compile(r"/login/\?next=%2Fworkspaces"))
        expect(page.get_by_role("heading", name="Sign in")).to_have_count(1)
        page.get_by_label("Username").fill("alice")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("was put back")).to_be_visible()
    expect(page.get_by_label("Name of the workspace")).to_have_value("by-htmx")
    page.get_by_role("button", name="Make the workspace").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("by-htmx")


def test_signing_out_forgets_the_drafts(owner: User, new_context: NewContext) -> None:
    page = new_context(user=owner).new_page()
    page.goto("/workspaces")
    page.get_by_label("Name of the workspace").fill("secret-plan")
    until(page, DRAFT_IS_STORED)
    page.get_by_text("Account: owner").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/login/"))
    until(page, "Object.keys(localStorage).length === 0")


def test_hostile_text_stands_on_the_page_and_does_nothing(
    owner: User, new_context: NewContext
) -> None:
    page = new_context(user=owner).new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    page.goto("/design")
    text = page.get_by_label("A hostile reply")
    expect(text).to_contain_text("<img src=x onerror=alert(1)>")
    expect(text).to_contain_text("⟨U+202E⟩drawkcab")
    assert text.locator("*").count() == 0
    assert not [url for url in asked if "logout" in url]

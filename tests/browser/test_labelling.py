"""Labelling in Chromium: by keyboard alone, offline while typing, narrow, without a script."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect

from audits.queue_models import Annotator, Label, LabelDraft, Queue, Slot
from audits.queues.creating import add_annotator
from debateweb.models import Role
from tests.audits.pages.labelling import DECISIONS, every_kind
from tests.audits.queues.making import answers, claimed, home, queue_of
from tests.browser.conftest import NewContext, end_session, faults, screenshot, sign_in
from tests.debateweb.people import member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ITEMS = 10
#: Keys that say what there is to say of an item of each kind.
KEYS = {
    "correctness": ["1", "Enter"],
    "scale": ["4", "Enter"],
    "claims": ["1", "2", "Enter"],
    "pair": ["ArrowRight", "Enter"],
    "judge": ["2", "Enter"],
    "debate": ["1", "7", "0", "Enter"] * 3,
    "merge": ["2", "Enter"],
}


def person(queue: Queue) -> Annotator:
    user = member(home(), Role.ANNOTATOR, f"labels-{queue.name}")
    return add_annotator(queue=queue, user=user, actor=None)


def opened(context: BrowserContext, queue: Queue) -> Page:
    page = context.new_page()
    page.goto(f"/w/home/label/{queue.name}/")
    expect(page.locator("#save-state")).to_have_text("Nothing typed yet.")  # The script runs.
    return page


def of(new_context: NewContext, annotator: Annotator, **how: bool) -> BrowserContext:
    assert annotator.user is not None
    return new_context(user=annotator.user, **how)


@pytest.mark.parametrize("kind", sorted(KEYS))
def test_ten_items_by_keyboard_alone_with_the_focus_never_lost(
    kind: str, new_context: NewContext
) -> None:
    queue = every_kind(ITEMS)[kind]
    page = opened(of(new_context, person(queue)), queue)
    for number in range(ITEMS):
        if number:
            expect(page.locator("#item-heading")).to_be_focused()
        key = page.locator("input[name=key]").first.input_value()
        for pressed in KEYS[kind]:
            page.keyboard.press(pressed)
            if pressed == "Enter":
                expect(page.locator("#item-heading")).to_be_focused()
        if number < ITEMS - 1:
            expect(page.locator("input[name=key]").first).not_to_have_value(key)
            expect(page.locator("#live")).to_contain_text(f"{number + 1} of 50")
    expect(page.locator("#item-heading")).to_have_text("All done")
    expect(page.locator("#item-heading")).to_be_focused()
    assert Label.objects.filter(value__isnull=False).count() == ITEMS
    assert not Label.objects.filter(active_milliseconds=None).exists()


def test_keys_do_nothing_while_typing_in_dialogs_composing_or_with_a_modifier(
    new_context: NewContext,
) -> None:
    queue = queue_of(answers(3))
    page = opened(of(new_context, person(queue)), queue)
    page.locator("#comment").click()
    page.keyboard.type("1ab?sfug")
    page.keyboard.press("Enter")
    expect(page.locator("#comment")).to_have_value("1ab?sfug\n")
    page.locator("#item-heading").focus()
    for combined in ("Control+1", "Alt+1", "Meta+1", "Shift+S"):
        page.keyboard.press(combined)
    page.keyboard.press("g")
    expect(page.locator("#guideline-dialog")).to_be_visible()
    expect(page.locator("#guideline-body")).to_contain_text("Be fair.")
    page.keyboard.press("1")
    page.keyboard.press("s")
    page.keyboard.press("Escape")
    expect(page.locator("#guideline-dialog")).to_be_hidden()
    page.evaluate(
        "() => { for (const how of [{ isComposing: true }, { keyCode: 229 }])"
        " document.getElementById('item-heading').dispatchEvent(new KeyboardEvent('keydown',"
        " { key: '1', bubbles: true, ...how })); }"
    )
    expect(page.locator("input[name=choice]:checked")).to_have_count(0)
    expect(page.locator("#save-state")).to_have_text("Your draft is saved.")
    assert not Label.objects.exists()


def test_offline_in_the_middle_of_typing_loses_nothing(new_context: NewContext) -> None:
    queue = queue_of(answers(2))
    context = of(new_context, person(queue))
    page = opened(context, queue)
    page.locator("#comment").click()
    page.keyboard.type("before, ")
    expect(page.locator("#save-state")).to_have_text("Your draft is saved.")
    context.set_offline(True)
    page.keyboard.type("while there is no network, ")
    expect(page.locator("#save-state")).to_contain_text("Not saved at the server")
    page.wait_for_timeout(5_000)
    page.keyboard.type("and still")
    context.set_offline(False)
    expect(page.locator("#save-state")).to_have_text("Your draft is saved.")
    whole = "before, while there is no network, and still"
    assert LabelDraft.objects.get().body["comment"] == whole
    page.reload()
    expect(page.locator("#comment")).to_have_value(whole)


def test_a_tab_closed_offline_has_its_text_when_it_opens_again(new_context: NewContext) -> None:
    queue = queue_of(answers(2))
    context = of(new_context, person(queue))
    page = opened(context, queue)
    context.set_offline(True)
    page.locator("#choice-2").check()
    page.locator("#comment").fill("never sent")
    expect(page.locator("#save-state")).to_contain_text("Not saved at the server")
    page.close()
    context.set_offline(False)
    again = context.new_page()
    again.goto(f"/w/home/label/{queue.name}/")
    expect(again.locator("#comment")).to_have_value("never sent")
    expect(again.locator("#choice-2")).to_be_checked()
    expect(again.locator("#save-state")).to_have_text("Your draft is saved.")
    assert LabelDraft.objects.get().body["comment"] == "never sent"


def test_skip_undo_flag_and_clear_by_key_and_keys_that_a_person_changed(
    new_context: NewContext,
) -> None:
    queue = queue_of(answers(3))
    context = of(new_context, person(queue))
    page = context.new_page()
    page.goto(f"/w/home/label/{queue.name}/keys")
    page.get_by_label("Skip").press("x")
    expect(page.locator("#keys-said")).to_have_text("X is set.")
    page.get_by_label("A digit submits by itself").check()
    page.goto(f"/w/home/label/{queue.name}/")
    expect(page.locator("#save-state")).to_have_text("Nothing typed yet.")
    key = page.locator("input[name=key]").first
    first = key.input_value()
    page.keyboard.press("x")
    expect(key).not_to_have_value(first)
    second = key.input_value()
    page.keyboard.press("1")  # Submits by itself.
    expect(page.locator("#work .flash")).to_have_text("Saved.")
    expect(key).not_to_have_value(second)
    page.keyboard.press("u")
    expect(key).to_have_value(second)
    expect(page.locator("#choice-1")).to_be_checked()
    page.locator("#clear").click()
    expect(page.locator("input[name=choice]:checked")).to_have_count(0)
    page.keyboard.press("f")
    expect(page.locator("#note")).to_be_focused()
    page.keyboard.type("s is typed here")
    page.locator("#flag").click()
    expect(page.locator("#work .flash")).to_contain_text("went to the lead")
    expect(page.locator(".label-thread")).to_contain_text("s is typed here")
    expect(page.locator("input[name=choice]:checked")).to_have_count(0)


def test_a_lost_lease_is_told_in_the_page_with_the_text_kept(new_context: NewContext) -> None:
    queue = queue_of(answers(1))
    me = person(queue)
    page = opened(of(new_context, me), queue)
    page.locator("#comment").fill("my text")
    other = add_annotator(queue=queue, user=member(home(), Role.ANNOTATOR, "other"), actor=None)
    Slot.objects.filter(holder=me).update(leased_until=timezone.now() - timedelta(days=1))
    claimed(other)
    page.locator("#choice-1").check()
    page.keyboard.press("Enter")
    expect(page.locator("#item-heading")).to_have_text("This item is no longer yours")
    expect(page.locator("#item-heading")).to_be_focused()
    expect(page.locator("#work")).to_contain_text("my text")
    expect(page.get_by_role("button", name="Take it up again")).to_be_visible()
    assert faults(page) == []


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_on_a_phone(dark: bool, new_context: NewContext) -> None:
    queues = every_kind(2)
    me = member(home(), Role.ANNOTATOR, "me")
    context = new_context(user=me, phone=True, dark=dark)
    page = context.new_page()
    broken = {}
    for kind, queue in queues.items():
        add_annotator(queue=queue, user=me, actor=None)
        page.goto(f"/w/home/label/{queue.name}/")
        broken[kind] = faults(page)
        screenshot(page, f"label-{kind}-390{'-dark' if dark else ''}")
    base = f"/w/home/label/{queues['pair'].name}"
    page.goto(f"{base}/")
    page.locator("#choice-1").check()
    page.locator("#submit").click()
    expect(page.locator("#work .flash")).to_have_text("Saved.")
    for path in ("history", "guideline", "keys", "revealed"):
        page.goto(f"{base}/{path}")
        broken[path] = faults(page)
    page.goto("/w/home/label/")
    broken["queues"] = faults(page)
    assert {name: said for name, said in broken.items() if said} == {}


def test_every_kind_fits_320_pixels_and_is_labelled_without_a_script(
    new_context: NewContext,
) -> None:
    queues = every_kind(1)
    me = member(home(), Role.ANNOTATOR, "me")
    context = new_context(user=me, scripts=False)
    page = context.new_page()
    page.set_viewport_size({"width": 320, "height": 640})
    for kind, queue in queues.items():
        add_annotator(queue=queue, user=me, actor=None)
        page.goto(f"/w/home/label/{queue.name}/")
        for _ in range(3 if kind == "debate" else 1):
            for name, value in DECISIONS[kind].items():
                field = page.locator(f"[name='{name}']")
                if name.startswith("belief"):
                    field.fill(value)
                else:
                    page.locator(f"[name='{name}'][value='{value}']").check()
            body = page.locator("body").bounding_box()
            assert body is not None and body["width"] <= 320, kind
            page.locator("#submit").click()
            expect(page.locator("#said")).not_to_be_empty()
        expect(page.locator("#item-heading")).to_have_text("All done")
    assert Label.objects.count() == len(queues)


def test_a_session_that_ends_while_typing_keeps_the_text(new_context: NewContext) -> None:
    queue = queue_of(answers(2))
    me = person(queue)
    context = of(new_context, me)
    page = opened(context, queue)
    end_session(context)
    page.locator("#comment").fill("typed after the session had ended")
    expect(page.locator("#save-state")).to_contain_text("Your session has ended")
    page.locator("#choice-1").check()
    page.locator("#submit").click()
    expect(page).to_have_url(re.compile("/login/"))
    assert me.user is not None
    sign_in(context, me.user, page.url.split("/login/")[0])
    page.goto(f"/w/home/label/{queue.name}/")
    expect(page.locator("#comment")).to_have_value("typed after the session had ended")
    expect(page.locator("#choice-1")).to_be_checked()


def test_a_submit_without_network_says_so_and_is_sent_again_once(new_context: NewContext) -> None:
    queue = queue_of(answers(2))
    context = of(new_context, person(queue))
    page = opened(context, queue)
    key = page.locator("input[name=key]").first
    first = key.input_value()
    context.set_offline(True)
    page.keyboard.press("1")
    page.keyboard.press("Enter")
    expect(page.locator("#save-state")).to_contain_text("there is no connection")
    expect(page.locator("#choice-1")).to_be_checked()
    context.set_offline(False)
    page.locator("#submit").click()
    expect(key).not_to_have_value(first)
    assert Label.objects.count() == 1


def test_a_refusal_is_shown_in_place_with_the_focus_on_what_is_missing(
    new_context: NewContext,
) -> None:
    queue = queue_of(answers(2))
    page = opened(of(new_context, person(queue)), queue)
    page.keyboard.press("Enter")
    expect(page.locator("#work [role=alert] a")).to_be_focused()
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    expect(page.locator("#work .flash")).to_have_text("Saved.")

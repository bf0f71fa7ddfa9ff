"""The lead's desk in real Chromium: decided by keyboard, told of what changed, and looked at."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from audits.labelling.design import CORRECTNESS, Ask, LabelSchema
from audits.queue_models import Adjudication, Annotator, Guideline, Item, Queue
from audits.queues.batches import close_queue
from audits.queues.submitting import submit
from debateweb.models import Role, User
from debateweb.webhooks import LABEL_SUBMIT, add_endpoint
from tests.audits.queues.making import annotators, answers, claimed, pairs, queue_of, said
from tests.browser.conftest import LOOKS, NewContext, faults, screenshot
from tests.browser.hostile import HOSTILE
from tests.debateweb.people import member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SURE = LabelSchema(
    ask=Ask(kind="correctness", title="Is it right?", options=CORRECTNESS), confidence=True
)


@pytest.fixture
def desk() -> tuple[Queue, User, list[Annotator]]:
    queue = queue_of(answers(3), overlap=2, label=SURE)
    people = annotators(queue, 2)
    for label, other in (("correct", "incorrect"), ("incorrect", "correct"), ("correct",) * 2):
        for person, one in zip(people, (label, other), strict=True):
            mine = claimed(person)
            what = said(one, comment=HOSTILE, confidence=0.8, active_milliseconds=41_000)
            submit(annotator=person, slot_id=mine.slot.pk, fence=mine.slot.fence, said=what)
    return queue, member(queue.workspace, Role.OWNER, "lead"), people


def address(page: str, queue: Queue, *more: str) -> str:
    return reverse(f"audits:{page}", args=[queue.workspace.name, queue.name, *more])


def test_two_items_are_decided_by_keyboard_alone(
    desk: tuple[Queue, User, list[Annotator]], new_context: NewContext
) -> None:
    queue, lead, _ = desk
    page = new_context(user=lead).new_page()
    page.goto(address("desk", queue))
    page.get_by_role("table").get_by_role("link").first.focus()
    page.keyboard.press("Enter")
    for number in (1, 2):
        expect(page.get_by_role("heading", name="Decide", exact=True)).to_be_visible()
        page.get_by_role("radio").first.focus()
        page.keyboard.press("Space")
        page.keyboard.press("ArrowDown")
        page.get_by_label("Reason").focus()
        page.keyboard.type(f"Reason {number}.")
        page.get_by_role("button", name="Decide").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_text("The decision is stored.")).to_be_visible()
    made = Adjudication.objects.order_by("pk").values_list("value__label", "reason")
    assert list(made) == [("incorrect", "Reason 1."), ("incorrect", "Reason 2.")]


@LOOKS
def test_every_page_of_the_desk_is_fit_to_be_seen(
    desk: tuple[Queue, User, list[Annotator]], new_context: NewContext, phone: bool, dark: bool
) -> None:
    queue, lead, people = desk
    Guideline.objects.create(queue=queue, version=2, body="Mind the units.")
    item = Item.objects.filter(queue=queue).earliest("position")
    events = [LABEL_SUBMIT]
    url = "https://hooks.lab.example/debates?channel=labels"
    add_endpoint(workspace=queue.workspace, url=url, events=events, actor=lead)
    page = new_context(user=lead, phone=phone, dark=dark).new_page()
    where = [queue.workspace.name]
    look = f"{'phone' if phone else 'desktop'}-{'dark' if dark else 'light'}"
    for name, to in {
        "desk": address("desk", queue),
        "desk-item": address("desk_item", queue, item.key),
        "desk-item-hidden": address("desk_item", queue, item.key) + "?names=hidden",
        "desk-people": address("desk_people", queue),
        "desk-person": address("desk_person", queue, people[0].pseudonym),
        "desk-plan": address("desk_plan", queue) + "?half_width=4",
        "desk-key": address("desk_key", queue),
        "trail": reverse("trail", args=where),
        "webhooks": reverse("webhooks", args=where),
    }.items():
        page.goto(to)
        screenshot(page, f"{name}-{look}")
        assert faults(page) == [], name


def test_a_pair_is_decided_and_a_key_destroyed_without_a_script(new_context: NewContext) -> None:
    queue = queue_of(pairs(1), overlap=2)
    for person, label in zip(annotators(queue, 2), ("x", "y"), strict=True):
        mine = claimed(person)
        submit(annotator=person, slot_id=mine.slot.pk, fence=mine.slot.fence, said=said(label))
    lead = member(queue.workspace, Role.OWNER, "lead")
    page: Page = new_context(user=lead, scripts=False).new_page()
    page.goto(address("desk_item", queue, Item.objects.get(queue=queue).key))
    page.get_by_label("A is better").check()
    page.get_by_label("Reason").fill("It is.")
    page.get_by_role("button", name="Decide").click()
    expect(page.get_by_text("The decision is stored.")).to_be_visible()
    close_queue(queue=queue, actor=lead)
    page.goto(address("desk_key", queue))
    page.get_by_label("Type the queue's name").fill(queue.name)
    page.get_by_role("button", name="Destroy the key").click()
    expect(page.get_by_text("The key is destroyed: 2 people are severed.")).to_be_visible()

"""Queues for leads in real Chromium: one made by keyboard, and pages in which axe finds nothing."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from audits.queue_models import Queue
from debateweb.models import Role
from tests.audits.queues.making import home
from tests.audits.queues.test_sources import DOCUMENT, debates
from tests.browser.conftest import NewContext, faults, screenshot
from tests.debateweb.people import member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_queue_is_made_by_keyboard(new_context: NewContext) -> None:
    debates(home(), n=10)
    page = new_context(user=member(home(), Role.RESEARCHER, "lead")).new_page()
    page.goto("/w/home/queues/new")
    box = page.get_by_label("Queue, as YAML or JSON")
    box.focus()
    page.keyboard.insert_text(DOCUMENT)
    page.get_by_role("button", name="Preview").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("4 servings would be drawn")).to_be_visible()
    expect(box).to_have_value(DOCUMENT.lstrip("\n"))
    assert faults(page) == []
    screenshot(page, "queue-new")
    page.get_by_role("button", name="Create queue").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("beliefs")
    assert faults(page) == []
    screenshot(page, "queue")
    assert Queue.objects.get().size == 4

"""Pages of queues for leads: list, new out of a document, people, pause and close."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audits.queue_models import Queue, Reveal
from debateweb.models import Role
from tests.audits.queues.making import annotators, answers, home, queue_of
from tests.audits.queues.test_sources import DOCUMENT, debates
from tests.debateweb.people import member, signed_in

pytestmark = pytest.mark.django_db
BASE = "/w/home/queues/"


@pytest.fixture
def lead() -> Client:
    return signed_in(member(home(), Role.RESEARCHER))


def test_a_queue_is_previewed_and_then_made(lead: Client) -> None:
    debates(home(), n=10)
    seen = lead.post(BASE + "new", {"document": DOCUMENT, "preview": ""})
    assert b"4 servings would be drawn" in seen.content and not Queue.objects.exists()
    made = lead.post(BASE + "new", {"document": DOCUMENT, "create": ""})
    assert made.status_code == 302 and Queue.objects.get().name == "beliefs"
    assert b"beliefs" in lead.get(BASE).content


def test_a_fault_keeps_what_was_typed(lead: Client) -> None:
    said = lead.post(BASE + "new", {"document": "name: <b>", "create": ""})
    assert said.status_code == 400
    assert b"name: &lt;b&gt;" in said.content and b"guideline: " in said.content


def test_people_are_added_and_the_queue_pauses_and_closes(lead: Client) -> None:
    queue = queue_of(answers(2))
    person = member(home(), Role.ANNOTATOR, "ann")
    lead.post(BASE + "queue/add", {"username": person.username, "capacity": "5"})
    assert queue.annotators.get().capacity == 5
    lead.post(BASE + "queue/pause")
    queue.refresh_from_db()
    assert queue.status == "PAUSED"
    assert b"Open again" in lead.get(BASE + "queue/").content
    lead.get(BASE + "queue/close")
    assert not Reveal.objects.exists()
    lead.post(BASE + "queue/close")
    lead.post(BASE + "queue/close")
    queue.refresh_from_db()
    assert queue.status == "CLOSED" and Reveal.objects.count() == 1


def test_more_people_take_no_more_queries(lead: Client) -> None:
    queue = queue_of(answers(2))
    lead.get(BASE + "queue/")
    annotators(queue, 2)
    with CaptureQueriesContext(connection) as few:
        lead.get(BASE + "queue/")
    annotators(queue, 20)
    with CaptureQueriesContext(connection) as many:
        lead.get(BASE + "queue/")
    assert len(few) == len(many)

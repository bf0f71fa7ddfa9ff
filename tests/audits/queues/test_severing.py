"""The key leaves as a file that runs nowhere, and can be destroyed for good."""

from __future__ import annotations

import csv
import io

import pytest

from audits.queue_models import Annotator, Queue
from audits.queues.batches import close_queue
from audits.queues.claiming import Nothing, next_item
from audits.queues.creating import add_annotator
from audits.queues.errors import LabelError, NotCorrectableError
from audits.queues.severing import export_key, sever
from audits.rows.labels import label_records_of
from debateweb.models import AuditEvent, Role, User
from tests.audits.queues.making import answers, label_next, queue_of
from tests.debateweb.people import member

pytestmark = pytest.mark.django_db


def finished() -> tuple[Queue, User]:
    queue = queue_of(answers(2), overlap=2)
    for name in ("alice", "=cmd@x"):
        user = member(queue.workspace, Role.ANNOTATOR, name)
        person = add_annotator(queue=queue, user=user, actor=None)
        label_next(person)
    lead = member(queue.workspace, Role.OWNER, "lead")
    close_queue(queue=queue, actor=lead)
    return queue, lead


def test_the_key_says_who_is_who_and_no_cell_is_a_formula() -> None:
    queue, lead = finished()
    rows = list(csv.DictReader(io.StringIO(export_key(queue=queue, actor=lead).decode())))
    known = {person.pseudonym: person.name for person in Annotator.objects.all()}
    assert {row["pseudonym"]: row["name"].removeprefix("'") for row in rows} == known
    assert not any(cell.startswith(tuple("=+-@")) for row in rows for cell in row.values())
    assert AuditEvent.objects.filter(act="key.export", actor=lead).count() == 1


def test_a_severed_queue_exports_what_it_did_and_leads_to_nobody() -> None:
    queue, lead = finished()
    before = list(label_records_of(queue.workspace, queue.name))
    assert sever(queue=queue, typed=f" {queue.name} ", actor=lead) == 2
    assert list(label_records_of(queue.workspace, queue.name)) == before
    for person in Annotator.objects.all():
        assert (person.user, person.name) == (None, person.pseudonym)
    assert export_key(queue=queue, actor=lead).decode().splitlines() == ["queue,pseudonym,name"]
    event = AuditEvent.objects.get(act="key.sever")
    assert event.detail == {"people": 2}


def test_a_key_is_destroyed_once_when_its_queue_is_closed_and_its_name_is_typed() -> None:
    queue, lead = finished()
    with pytest.raises(LabelError, match="type the queue's name"):
        sever(queue=queue, typed="quue", actor=lead)
    sever(queue=queue, typed=queue.name, actor=lead)
    with pytest.raises(NotCorrectableError, match="severed already"):
        sever(queue=queue, typed=queue.name, actor=lead)
    still_open = queue_of(answers(1), name="open")
    with pytest.raises(NotCorrectableError, match="close the queue"):
        sever(queue=still_open, typed="open", actor=lead)


def test_who_is_severed_is_no_annotator_any_more() -> None:
    queue, lead = finished()
    person = Annotator.objects.order_by("pk").first()
    assert person is not None
    sever(queue=queue, typed=queue.name, actor=lead)
    assert next_item(person) is Nothing.REMOVED

"""Blindness ends at the close of a batch or of the queue, and not a label earlier."""

from __future__ import annotations

import pytest

from audits.queue_models import Item, Reveal
from audits.queues import claiming
from audits.queues.admission import admit_if_calibrated, calibration_of
from audits.queues.batches import close_batch, close_queue, revealed_items
from audits.queues.claiming import Nothing, next_item
from audits.queues.errors import NotCorrectableError
from audits.queues.submitting import undo_last
from debateweb.models import AuditEvent, Role
from tests.audits.queues.making import annotators, answers, claimed, home, label_next, queue_of
from tests.debateweb.people import member

pytestmark = pytest.mark.django_db


def test_a_full_batch_has_to_be_closed_and_reveals_what_it_holds() -> None:
    (person,) = annotators(queue_of(answers(5), batch_items=2), 1)
    done = [label_next(person).item.pk for _ in range(2)]
    assert next_item(person) == Nothing.BATCH_FULL
    assert not revealed_items(person).exists()
    close_batch(annotator=person)
    assert set(revealed_items(person).values_list("pk", flat=True)) == set(done)
    label_next(person)
    assert revealed_items(person).count() == 2
    claimed(person)
    with pytest.raises(NotCorrectableError, match="open in front of you"):
        close_batch(annotator=person)


def test_an_item_that_was_undone_is_not_revealed_with_the_batch() -> None:
    (person,) = annotators(queue_of(answers(4), batch_items=3), 1)
    kept = label_next(person).item.pk
    label_next(person)
    slot = undo_last(annotator=person, request_key="undo-undo-1")
    claiming.skip(annotator=person, slot_id=slot.pk, fence=slot.fence)
    close_batch(annotator=person)
    assert list(revealed_items(person).values_list("pk", flat=True)) == [kept]
    with pytest.raises(NotCorrectableError, match="nothing to close"):
        close_batch(annotator=person)


def test_with_the_policy_queue_nothing_is_revealed_before_the_lead_closes() -> None:
    queue = queue_of(answers(3), reveal="queue")
    one, other = annotators(queue, 2)
    label_next(one)
    with pytest.raises(NotCorrectableError, match="revealed as a whole"):
        close_batch(annotator=one)
    assert not revealed_items(one).exists()
    close_queue(queue=queue, actor=member(home(), Role.RESEARCHER))
    assert revealed_items(other).count() == Item.objects.filter(queue=queue).count()
    assert next_item(one) == Nothing.CLOSED


def test_the_calibration_round_comes_first_and_decides_who_is_admitted() -> None:
    calibration = {"items": 4, "min_accuracy": 0.75}
    queue = queue_of(answers(3, gold=4), calibration=calibration)
    good, bad = annotators(queue, 2)
    for person, labels in ((good, "cccw"), (bad, "ccww")):
        for letter in labels:
            mine = label_next(person, "correct" if letter == "c" else "incorrect")
            assert mine.item.phase == "calibration"
    assert (calibration_of(good).agreed, calibration_of(bad).agreed) == (3, 2)
    assert admit_if_calibrated(good) and not admit_if_calibrated(bad)
    assert label_next(good).item.phase == "main"
    assert next_item(bad) == Nothing.NOT_ADMITTED


def test_a_queue_that_two_close_is_closed_and_revealed_once() -> None:
    queue = queue_of(answers(1))
    lead = member(home(), Role.RESEARCHER)
    close_queue(queue=queue, actor=lead)
    close_queue(queue=queue, actor=lead)
    assert Reveal.objects.filter(queue=queue).count() == 1
    assert AuditEvent.objects.filter(act="queue.close").count() == 1

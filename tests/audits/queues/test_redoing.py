"""What the lead takes out stays on record, counts nowhere, and is asked for again."""

from __future__ import annotations

from typing import Any

import pytest

from audits.queue_models import (
    Annotator,
    Guideline,
    Item,
    Label,
    LabelVoid,
    Queue,
    Slot,
    SlotState,
)
from audits.queues.batches import close_batch
from audits.queues.claiming import Claimed, Nothing, next_item
from audits.queues.errors import LabelError, NotCorrectableError
from audits.queues.redoing import (
    batches_of,
    guideline_counts,
    requeue_guideline,
    void_batch,
    void_person,
)
from audits.queues.submitting import correct
from audits.rows.labels import current_labels
from debateweb.models import AuditEvent, Role, User
from tests.audits.queues.making import annotators, answers, claimed, label_next, queue_of, said
from tests.debateweb.people import member

pytestmark = pytest.mark.django_db
WHY = "They clicked the first answer each time."


def lead(queue: Queue) -> User:
    found = User.objects.filter(username="lead").first()
    return found or member(queue.workspace, Role.OWNER, "lead")


def labelled(n: int = 4, **fields: Any) -> tuple[Queue, Annotator]:
    queue = queue_of(answers(n), **fields)
    (person,) = annotators(queue, 1)
    for _ in range(n):
        label_next(person)
    return queue, person


def test_what_is_voided_stays_counts_nowhere_and_is_free_for_others() -> None:
    queue, person = labelled()
    stored = list(Label.objects.order_by("pk").values())
    done = void_person(annotator=person, reason=WHY, actor=lead(queue))
    assert (done.labels, done.slots) == (4, 4)
    assert list(Label.objects.order_by("pk").values()) == stored
    assert current_labels(queue) == []
    assert set(LabelVoid.objects.values_list("reason", flat=True)) == {WHY}
    assert Slot.objects.filter(state=SlotState.FREE, holder=None).count() == 4
    (other,) = annotators(queue, 1)
    label_next(other, "incorrect")
    assert [label.annotator_id for label in current_labels(queue)] == [other.pk]
    (event,) = AuditEvent.objects.filter(act="label.void")
    assert event.detail["labels"] == 4


def test_an_older_version_does_not_count_again_when_a_correction_is_voided() -> None:
    queue, person = labelled(1)
    correct(
        annotator=person, item=Item.objects.get(), said=said("incorrect"), reason="I misread it."
    )
    void_person(annotator=person, reason=WHY, actor=lead(queue))
    assert LabelVoid.objects.count() == 2
    assert current_labels(queue) == []


def test_one_batch_is_voided_and_the_others_stand() -> None:
    queue = queue_of(answers(5), batch_items=2)
    (person,) = annotators(queue, 1)
    for _ in range(2):
        label_next(person)
        label_next(person, "incorrect")
        close_batch(annotator=person)
    label_next(person)
    batches = batches_of(person)
    assert [(b.number, b.labels, b.is_open) for b in batches] == [
        (1, 2, False),
        (2, 2, False),
        (3, 1, True),
    ]
    done = void_batch(annotator=person, batch=batches[1], reason=WHY, actor=lead(queue))
    assert (done.labels, done.slots) == (2, 2)
    assert len(current_labels(queue)) == 3
    assert [batch.labels for batch in batches_of(person)] == [2, 0, 1]


def test_a_person_who_is_removed_gives_back_what_they_hold_and_gets_no_more() -> None:
    queue = queue_of(answers(3))
    (person,) = annotators(queue, 1)
    label_next(person)
    claimed(person)
    void_person(annotator=person, reason=WHY, actor=lead(queue), remove=True)
    assert set(Slot.objects.values_list("state", flat=True)) == {SlotState.FREE}
    assert next_item(person) is Nothing.REMOVED


def test_labels_under_an_old_guideline_are_asked_for_again_also_of_the_same_person() -> None:
    queue, person = labelled(3, batch_items=9)
    Guideline.objects.create(queue=queue, version=2, body="Be fair, and look at the units.")
    (other,) = annotators(queue, 1)
    assert guideline_counts(queue) == {1: 3}
    requeue_guideline(queue=queue, version=1, reason="Units were not said.", actor=lead(queue))
    assert guideline_counts(queue) == {}
    again = next_item(person)
    assert isinstance(again, Claimed)
    label_next(person, "incorrect")
    newest = Label.objects.latest("pk")
    assert (newest.version, newest.guideline_version) == (2, 2)
    label_next(other)
    assert guideline_counts(queue) == {2: 2}
    assert {label.pk for label in current_labels(queue)} == set(
        Label.objects.filter(guideline_version=2).values_list("pk", flat=True)
    )


def test_the_newest_guideline_is_not_asked_for_again() -> None:
    queue, _ = labelled(1)
    with pytest.raises(NotCorrectableError, match="v1 is the newest"):
        requeue_guideline(queue=queue, version=1, reason=WHY, actor=lead(queue))


def test_nothing_is_voided_without_a_reason_or_twice() -> None:
    queue, person = labelled(1)
    with pytest.raises(LabelError, match="reason"):
        void_person(annotator=person, reason="  ", actor=lead(queue))
    void_person(annotator=person, reason=WHY, actor=lead(queue))
    with pytest.raises(NotCorrectableError, match="nothing to take out"):
        void_person(annotator=person, reason=WHY, actor=lead(queue))
    assert LabelVoid.objects.count() == 1


def test_only_the_slot_of_the_person_is_freed() -> None:
    queue = queue_of(answers(2), overlap=2)
    one, two = annotators(queue, 2)
    for person in (one, two):
        label_next(person)
        label_next(person)
    void_person(annotator=one, reason=WHY, actor=lead(queue))
    assert Slot.objects.filter(holder=two, state=SlotState.DONE).count() == 2
    assert Slot.objects.filter(state=SlotState.FREE).count() == 2
    assert {label.annotator_id for label in current_labels(queue)} == {two.pk}


@pytest.mark.parametrize("reveal", ["batch", "item"])
def test_who_saw_what_was_hidden_and_labels_again_does_so_after_the_reveal(reveal: str) -> None:
    queue, person = labelled(1, reveal=reveal)
    if reveal == "batch":
        close_batch(annotator=person)
    void_person(annotator=person, reason=WHY, actor=lead(queue))
    label_next(person, "incorrect")
    assert Label.objects.get(version=2).reveal_state == "after_reveal"


def test_who_saw_nothing_labels_again_sealed() -> None:
    queue, person = labelled(1, reveal="batch")
    void_person(annotator=person, reason=WHY, actor=lead(queue))
    label_next(person, "incorrect")
    assert Label.objects.get(version=2).reveal_state == "sealed"

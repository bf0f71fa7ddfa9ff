"""Next, skip, release and leases: exact overlap, no ping-pong, and an end that is told apart."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from audits.queue_models import Annotator, Queue, QueueStatus, Slot, SlotState
from audits.queues import claiming
from audits.queues.claiming import Claimed, Nothing, next_item
from audits.queues.errors import LeaseLostError
from tests.audits.queues.making import (
    annotators,
    answers,
    claimed,
    label_next,
    pairs,
    queue_of,
)

pytestmark = pytest.mark.django_db


def expire(slot: Slot) -> None:
    Slot.objects.filter(pk=slot.pk).update(leased_until=timezone.now() - timedelta(days=1))


def skip(annotator: Annotator) -> str:
    mine = claimed(annotator)
    claiming.skip(annotator=annotator, slot_id=mine.slot.pk, fence=mine.slot.fence)
    return mine.item.item_id


def test_each_item_is_labelled_by_exactly_as_many_different_people_as_the_overlap_says() -> None:
    queue = queue_of(answers(6), overlap=2)
    people = annotators(queue, 3)
    seen: list[tuple[str, int]] = []
    going = list(people)
    while going:
        for person in list(going):
            found = next_item(person)
            if isinstance(found, Nothing):
                going.remove(person)
                continue
            seen.append((found.item.item_id, person.pk))
            label_next(person)
    assert len(seen) == len(set(seen)) == 12
    assert set(Counter(item for item, _ in seen).values()) == {2}
    assert {next_item(person) for person in people} == {Nothing.ALL_DONE}


def test_an_overlap_share_gives_the_rest_one_label_each() -> None:
    queue = queue_of(answers(10), overlap=3, overlap_share=0.4)
    per_item = Counter(Slot.objects.filter(queue=queue).values_list("item", flat=True))
    assert Counter(per_item.values()) == {3: 4, 1: 6}


def test_what_a_person_holds_comes_first_with_the_same_display() -> None:
    queue = queue_of(pairs(5))
    (person,) = annotators(queue, 1)
    first, again = claimed(person), claimed(person)
    assert (first.slot.pk, first.slot.fence) == (again.slot.pk, again.slot.fence)
    assert first.serving.pk == again.serving.pk


def test_held_by_others_is_not_all_done() -> None:
    queue = queue_of(answers(1))
    one, other = annotators(queue, 2)
    mine = claimed(one)
    assert next_item(other) == Nothing.HELD_BY_OTHERS
    claiming.release(annotator=one, slot_id=mine.slot.pk, fence=mine.slot.fence)
    assert claimed(other).item.pk == mine.item.pk
    assert next_item(one) == Nothing.HELD_BY_OTHERS
    label_next(other)
    assert next_item(one) == Nothing.ALL_DONE


def test_done_by_you_is_told_where_others_still_have_to_label() -> None:
    queue = queue_of(answers(1), overlap=2)
    one, other = annotators(queue, 2)
    label_next(one)
    assert next_item(one) == Nothing.DONE_BY_YOU
    label_next(other)
    assert next_item(one) == Nothing.ALL_DONE


def test_skipped_items_come_at_the_end_once_and_then_are_set_aside() -> None:
    queue = queue_of(answers(4))
    (person,) = annotators(queue, 1)
    skipped = [skip(person), skip(person)]
    label_next(person)
    label_next(person)
    assert [skip(person), skip(person)] == skipped
    assert next_item(person) == Nothing.SET_ASIDE
    (other,) = annotators(queue, 1)
    assert [label_next(other).item.item_id for _ in skipped] == sorted(
        skipped, key=lambda item_id: Slot.objects.get(item__item_id=item_id).position
    )
    assert next_item(person) == Nothing.ALL_DONE


def test_a_lease_that_ran_out_goes_to_somebody_else_and_the_first_holder_is_told() -> None:
    queue = queue_of(answers(1))
    one, other = annotators(queue, 2)
    mine = claimed(one)
    expire(mine.slot)
    taken = claimed(other)
    assert taken.slot.pk == mine.slot.pk and taken.slot.fence == mine.slot.fence + 1
    for act in (claiming.heartbeat, claiming.release, claiming.skip):
        with pytest.raises(LeaseLostError):
            act(annotator=one, slot_id=mine.slot.pk, fence=mine.slot.fence)


def test_a_lease_that_ran_out_unnoticed_is_still_theirs() -> None:
    queue = queue_of(answers(2))
    (person,) = annotators(queue, 1)
    mine = claimed(person)
    expire(mine.slot)
    claiming.heartbeat(annotator=person, slot_id=mine.slot.pk, fence=mine.slot.fence)
    expire(mine.slot)
    assert claimed(person).slot.pk == mine.slot.pk


def test_an_item_keeps_its_display_for_the_person_who_lost_and_takes_it_again() -> None:
    queue = queue_of(pairs(1))
    one, other = annotators(queue, 2)
    before = claimed(one)
    expire(before.slot)
    theirs = claimed(other)
    assert claiming.take_again(annotator=one, item=before.item) is None
    claiming.release(annotator=other, slot_id=theirs.slot.pk, fence=theirs.slot.fence)
    after = claiming.take_again(annotator=one, item=before.item)
    assert after is not None and after.serving.shown_order == before.serving.shown_order


@pytest.mark.parametrize("people", [1, 3])
def test_the_order_is_balanced_within_each_person(people: int) -> None:
    queue = queue_of(pairs(20), overlap=people)
    for person in annotators(queue, people):
        orders = Counter(tuple(label_next(person, "x").serving.shown_order) for _ in range(20))
        assert orders == {("x", "y"): 10, ("y", "x"): 10}


def test_second_servings_go_to_the_same_person_swapped_or_as_before() -> None:
    queue = queue_of(pairs(20), overlap=2, swapped_share=0.2, unswapped_share=0.1)
    people = annotators(queue, 2)
    for person in people:
        first: dict[str, list[str]] = {}
        kinds: Counter[str] = Counter()
        while isinstance(next_item(person), Claimed):
            mine = label_next(person, "x")
            if mine.item.served_as == "first":
                first[mine.item.item_id] = mine.serving.shown_order
            else:
                before = first[mine.item.item_id]
                wanted = before[::-1] if mine.item.served_as == "swapped" else before
                assert mine.serving.shown_order == wanted
            kinds[mine.item.served_as] += 1
        assert kinds == {"first": 20, "swapped": 4, "unswapped": 2}


def test_a_paused_queue_a_capacity_and_a_removed_person_each_have_their_own_answer() -> None:
    queue = queue_of(answers(5))
    (person,) = annotators(queue, 1, capacity=1)
    label_next(person)
    assert next_item(person) == Nothing.CAPACITY_REACHED
    Queue.objects.filter(pk=queue.pk).update(status=QueueStatus.PAUSED)
    assert next_item(person) == Nothing.PAUSED
    Queue.objects.filter(pk=queue.pk).update(status=QueueStatus.CLOSED)
    assert next_item(person) == Nothing.CLOSED
    Annotator.objects.filter(pk=person.pk).update(removed_at=timezone.now())
    assert next_item(person) == Nothing.REMOVED


def test_the_schema_itself_refuses_a_second_slot_of_an_item_to_one_person() -> None:
    queue = queue_of(answers(1), overlap=2)
    (person,) = annotators(queue, 1)
    claimed(person)
    free = Slot.objects.get(queue=queue, state=SlotState.FREE)
    with pytest.raises(IntegrityError), transaction.atomic():
        Slot.objects.filter(pk=free.pk).update(
            holder=person, state=SlotState.HELD, leased_until=timezone.now()
        )

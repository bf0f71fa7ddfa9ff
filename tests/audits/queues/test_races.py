"""People who press at once, on real PostgreSQL with the interleaving forced."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import pytest
from django.db import transaction

from audits.queue_models import Annotator, Label, LabelDraft, Queue, Slot, SlotState
from audits.queues.claiming import Claimed, Nothing, next_item
from audits.queues.drafts import save_draft
from audits.queues.errors import AlreadySubmittedError
from audits.queues.submitting import submit
from tests.audits.queues.making import annotators, answers, claimed, queue_of, said
from tests.races import in_own_session, wait_for_blocked_session

pytestmark = pytest.mark.django_db(transaction=True)

PEOPLE, ROUNDS = 20, 100


def test_twenty_people_who_press_next_at_once_get_twenty_items_a_hundred_times() -> None:
    queue = queue_of(answers(PEOPLE))
    people = annotators(queue, PEOPLE)
    together = Barrier(PEOPLE)

    def press(person: Annotator) -> Claimed | Nothing:
        together.wait()
        return next_item(person)

    def session(person: Annotator) -> list[Claimed | Nothing]:
        """One connection for all rounds; between rounds everybody gives everything back."""
        found = []
        for _ in range(ROUNDS):
            found.append(press(person))
            together.wait()
            if person is people[0]:
                Slot.objects.filter(queue=queue).update(
                    state=SlotState.FREE, holder=None, leased_until=None
                )
            together.wait()
        return found

    with ThreadPoolExecutor(PEOPLE) as pool:
        sessions = [pool.submit(in_own_session(partial(session, p))) for p in people]
        rounds = list(zip(*(s.result(timeout=300) for s in sessions), strict=True))
    assert len(rounds) == ROUNDS
    for taken in rounds:
        items = [one.item.pk for one in taken if isinstance(one, Claimed)]
        assert len(set(items)) == PEOPLE


def test_next_pressed_while_another_transaction_takes_an_item_gets_another_one() -> None:
    queue = queue_of(answers(2))
    one, other = annotators(queue, 2)
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        mine = claimed(one)  # Taken, and not yet committed.
        theirs = pool.submit(in_own_session(lambda: claimed(other))).result(timeout=30)
    assert theirs.item.pk != mine.item.pk


def test_two_tabs_of_one_person_get_one_item() -> None:
    queue = queue_of(answers(5))
    (person,) = annotators(queue, 1)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            mine = claimed(person)
            second = pool.submit(in_own_session(lambda: claimed(person)))
            wait_for_blocked_session()
        assert second.result(timeout=30).slot.pk == mine.slot.pk
    assert Slot.objects.filter(queue=queue, state=SlotState.HELD).count() == 1


def test_three_simultaneous_submits_on_an_overlap_of_two_count_exactly_two() -> None:
    queue = queue_of(answers(1), overlap=2)
    one, two, three = annotators(queue, 3)
    held = {person: claimed(person) for person in (one, two)}
    stolen = held[two]  # The third sends the second's form.

    def send(person: Annotator, mine: Claimed) -> str:
        try:
            submit(annotator=person, slot_id=mine.slot.pk, fence=mine.slot.fence, said=said())
        except Exception as exc:  # noqa: BLE001  # Whatever it is, it is the result.
            return type(exc).__name__
        return "stored"

    sends = [(one, held[one]), (two, held[two]), (three, stolen)]
    with ThreadPoolExecutor(3) as pool:
        with transaction.atomic():
            list(Slot.objects.select_for_update().filter(queue=queue))
            waiting = [pool.submit(in_own_session(partial(send, p, m))) for p, m in sends]
            wait_for_blocked_session(3)
        results = Counter(one.result(timeout=30) for one in waiting)
    assert results == {"stored": 2, "LeaseLostError": 1}
    assert Label.objects.filter(item__queue=queue).count() == 2
    assert Slot.objects.filter(queue=queue, state=SlotState.DONE).count() == 2


def test_one_click_that_arrives_twice_at_once_is_one_label() -> None:
    queue: Queue = queue_of(answers(1))
    (person,) = annotators(queue, 1)
    mine = claimed(person)
    what = said()

    def send() -> int:
        return submit(annotator=person, slot_id=mine.slot.pk, fence=mine.slot.fence, said=what).pk

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            first = send()
            second = pool.submit(in_own_session(send))
            wait_for_blocked_session()
        assert second.result(timeout=30) == first
    with pytest.raises(AlreadySubmittedError):
        submit(annotator=person, slot_id=mine.slot.pk, fence=mine.slot.fence, said=said())
    assert Label.objects.count() == 1


def test_drafts_that_are_saved_while_a_label_is_submitted_wait_and_never_lock_one_another() -> None:
    (person,) = annotators(queue_of(answers(1)), 1)
    mine = claimed(person)
    save_draft(annotator=person, slot_id=mine.slot.pk, sequence=1, body={"comment": "typed"})

    def save() -> bool:
        body = {"comment": "typed on"}
        return save_draft(annotator=person, slot_id=mine.slot.pk, sequence=2, body=body)

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            submit(annotator=person, slot_id=mine.slot.pk, fence=mine.slot.fence, said=said())
            saving = pool.submit(in_own_session(save))
            wait_for_blocked_session()
        assert saving.result(timeout=30) is False
    assert Label.objects.count() == 1 and not LabelDraft.objects.exists()


def test_a_submit_that_meets_a_save_half_done_waits_for_it() -> None:
    (person,) = annotators(queue_of(answers(1)), 1)
    mine = claimed(person)
    send = partial(
        submit, annotator=person, slot_id=mine.slot.pk, fence=mine.slot.fence, said=said()
    )
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            save_draft(annotator=person, slot_id=mine.slot.pk, sequence=1, body={"comment": "x"})
            sending = pool.submit(in_own_session(send))
            wait_for_blocked_session()
        assert sending.result(timeout=30).version == 1
    assert not LabelDraft.objects.exists()

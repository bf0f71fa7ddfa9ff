"""What is typed is kept, what is submitted is stored once, and every change is a version."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from audits.queue_models import Annotator, Label, LabelDraft, Queue, QueueStatus, Slot, SlotState
from audits.queues import batches, claiming
from audits.queues.drafts import draft_of, save_draft
from audits.queues.errors import (
    AlreadySubmittedError,
    LabelError,
    LeaseLostError,
    NotCorrectableError,
    QueueNotOpenError,
)
from audits.queues.submitting import Said, correct, submit, undo_last
from tests.audits.queues.making import annotators, answers, claimed, label_next, queue_of, said

pytestmark = pytest.mark.django_db


def hand_in(person: Annotator, mine: claiming.Claimed, what: Said) -> Label:
    return submit(annotator=person, slot_id=mine.slot.pk, fence=mine.slot.fence, said=what)


def lose(person: Annotator, mine: claiming.Claimed, other: Annotator) -> None:
    Slot.objects.filter(pk=mine.slot.pk).update(leased_until=timezone.now() - timedelta(days=1))
    assert claimed(other).slot.pk == mine.slot.pk


def test_a_label_is_stored_with_what_was_displayed_and_sent_twice_it_is_one() -> None:
    (person,) = annotators(queue_of(answers(2)), 1)
    mine = claimed(person)
    what = said(comment="because", active_milliseconds=900)
    label = hand_in(person, mine, what)
    assert hand_in(person, mine, what).pk == label.pk
    assert (label.value, label.version, label.reveal_state, label.guideline_version) == (
        {"label": "correct", "reasons": []},
        1,
        "sealed",
        1,
    )
    assert label.serving == mine.serving and label.active_milliseconds == 900
    assert Slot.objects.get(pk=mine.slot.pk).state == SlotState.DONE
    with pytest.raises(AlreadySubmittedError):
        hand_in(person, mine, said())


def test_a_late_submit_is_refused_with_the_text_kept_and_can_be_taken_up_again() -> None:
    one, other = annotators(queue_of(answers(1), overlap=1), 2)
    mine = claimed(one)
    save_draft(annotator=one, slot_id=mine.slot.pk, sequence=8, body={"comment": "half"})
    lose(one, mine, other)
    with pytest.raises(LeaseLostError):
        hand_in(one, mine, said("incorrect", comment="my whole text"))
    kept = draft_of(annotator=one, item=mine.item)
    assert kept is not None and kept.body["comment"] == "my whole text" and kept.sequence == 9
    theirs = claimed(other)
    claiming.release(annotator=other, slot_id=theirs.slot.pk, fence=theirs.slot.fence)
    again = claimed(one)  # What was typed on comes first.
    assert again.item.pk == mine.item.pk
    hand_in(one, again, said("incorrect", comment="my whole text"))
    assert draft_of(annotator=one, item=mine.item) is None


def test_a_label_that_does_not_fit_is_refused_and_the_item_stays_held() -> None:
    (person,) = annotators(queue_of(answers(1)), 1)
    mine = claimed(person)
    for what in (said("maybe"), said(confidence=0.5), said(request_key="short")):
        with pytest.raises(LabelError):
            hand_in(person, mine, what)
    assert Slot.objects.get(pk=mine.slot.pk).state == SlotState.HELD and not Label.objects.exists()


def test_the_last_keystroke_wins_whichever_save_arrives_last() -> None:
    (person,) = annotators(queue_of(answers(1)), 1)
    mine = claimed(person)
    for sequence in (1, 3, 2):
        body = {"comment": f"key {sequence}"}
        assert save_draft(annotator=person, slot_id=mine.slot.pk, sequence=sequence, body=body)
    kept = draft_of(annotator=person, item=mine.item)
    assert kept is not None and kept.body == {"comment": "key 3"}


def test_who_was_never_served_an_item_can_store_no_draft_on_it() -> None:
    one, other = annotators(queue_of(answers(1)), 2)
    mine = claimed(one)
    assert not save_draft(annotator=other, slot_id=mine.slot.pk, sequence=1, body={"x": 1})
    assert not LabelDraft.objects.exists()


def test_undo_holds_the_item_again_with_the_label_as_a_draft() -> None:
    (person,) = annotators(queue_of(answers(2)), 1)
    mine = label_next(person, "incorrect")
    slot = undo_last(annotator=person, request_key="undo-undo-1")
    again = claimed(person)
    assert again.slot.pk == slot.pk == mine.slot.pk and slot.fence == mine.slot.fence + 1
    kept = draft_of(annotator=person, item=mine.item)
    assert kept is not None and kept.body["value"] == {"label": "incorrect", "reasons": []}
    with pytest.raises(NotCorrectableError):
        undo_last(annotator=person, request_key="undo-undo-2")
    hand_in(person, again, said("correct"))
    versions = Label.objects.filter(item=mine.item).order_by("version")
    assert [(v.version, v.value and v.value["label"]) for v in versions] == [
        (1, "incorrect"),
        (2, None),
        (3, "correct"),
    ]
    assert [v.reason for v in versions] == ["", "undone by the person", "labelled again"]


def test_a_correction_is_a_version_with_a_reason_and_says_whether_it_came_after_a_reveal() -> None:
    (person,) = annotators(queue_of(answers(2), batch_items=1), 1)
    mine = label_next(person, "correct")
    with pytest.raises(LabelError, match="reason"):
        correct(annotator=person, item=mine.item, said=said("incorrect"), reason=" ")
    before = correct(annotator=person, item=mine.item, said=said("incorrect"), reason="misread")
    batches.close_batch(annotator=person)
    after = correct(annotator=person, item=mine.item, said=said("correct"), reason="saw the model")
    assert (before.version, before.reveal_state) == (2, "sealed")
    assert (after.version, after.reveal_state) == (3, "after_reveal")
    with pytest.raises(NotCorrectableError):
        undo_last(annotator=person, request_key="undo-undo-1")


def test_a_paused_queue_takes_no_label_and_keeps_the_draft() -> None:
    queue = queue_of(answers(1))
    (person,) = annotators(queue, 1)
    mine = claimed(person)
    save_draft(annotator=person, slot_id=mine.slot.pk, sequence=1, body={"comment": "kept"})
    Queue.objects.filter(pk=queue.pk).update(status=QueueStatus.PAUSED)
    with pytest.raises(QueueNotOpenError):
        hand_in(person, mine, said())
    assert LabelDraft.objects.get().body == {"comment": "kept"}


@pytest.mark.parametrize(
    "change", ["UPDATE audits_label SET comment = 'x'", "DELETE FROM audits_label"]
)
def test_a_label_cannot_be_changed_by_anybody(change: str) -> None:
    from django.db import connection

    (person,) = annotators(queue_of(answers(1)), 1)
    label_next(person)
    with (
        pytest.raises(DatabaseError, match="never changed"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(change)


class AnyOrderOfSaves(TestCase):
    """Drafts under any order of arrival."""

    @given(st.permutations(range(1, 8)), st.data())
    def test_the_highest_sequence_is_what_is_kept(
        self, order: list[int], data: st.DataObject
    ) -> None:
        (person,) = annotators(queue_of(answers(1), name=f"q{Queue.objects.count()}"), 1)
        mine = claimed(person)
        for sequence in order:
            for _ in range(data.draw(st.integers(1, 2))):
                save_draft(
                    annotator=person, slot_id=mine.slot.pk, sequence=sequence, body={"n": sequence}
                )
        kept = draft_of(annotator=person, item=mine.item)
        assert kept is not None and kept.body == {"n": 7}

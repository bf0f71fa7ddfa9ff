"""Decisions are appended, on what their maker saw; labels are never touched."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, transaction

from audits.queue_models import Adjudication, Annotator, Item, Label, Queue
from audits.queues.adjudicating import (
    Decision,
    TableChangedError,
    decide,
    is_settled,
    precedents_of,
    standing_labels,
    table_of,
)
from audits.queues.claiming import Claimed
from audits.queues.errors import LabelError
from audits.queues.precedents import beside_guideline
from audits.queues.redoing import void_person
from audits.queues.submitting import correct, submit, undo_last
from debateweb.models import AuditEvent, Role, User, WebhookDelivery
from debateweb.webhooks import EVENTS, add_endpoint
from tests.audits.queues.making import annotators, answers, claimed, label_next, queue_of, said
from tests.debateweb.people import member
from tests.races import in_own_session, wait_for_blocked_session


def lead(queue: Queue) -> User:
    found = User.objects.filter(username="lead").first()
    return found or member(queue.workspace, Role.OWNER, "lead")


def disputed(**fields: Any) -> tuple[Item, list[Annotator]]:
    """An item of which two people say different things."""
    queue = queue_of(answers(1), **({"overlap": 2} | fields))
    people = annotators(queue, 2)
    for person, label in zip(people, ("correct", "incorrect"), strict=True):
        label_next(person, label)
    return Item.objects.get(queue=queue), people


def made(item: Item, label: object = "incorrect", **fields: Any) -> Adjudication:
    by = fields.pop("actor", None) or lead(item.queue)
    value = {"label": label, "reasons": []}
    if "seen" not in fields:
        fields["seen"] = table_of(item)
    fields.setdefault("reason", "The units are wrong.")
    return decide(item=item, decision=Decision(value=value, **fields), actor=by)


@pytest.mark.django_db
def test_a_decision_keeps_all_labels_and_notes_what_was_on_the_table() -> None:
    item, _ = disputed()
    before = list(Label.objects.order_by("pk").values())
    decision = made(item, names_hidden=True)
    assert list(Label.objects.order_by("pk").values()) == before
    assert decision.labels_seen == sorted(label["id"] for label in before)
    assert (decision.ordinal, decision.names_hidden) == (1, True)
    assert AuditEvent.objects.filter(act="item.adjudicate").count() == 1


@pytest.mark.django_db
def test_a_later_decision_is_the_next_one_and_the_first_stays() -> None:
    item, _ = disputed()
    made(item)
    made(item, "correct", reason="I read it again.")
    found = Adjudication.objects.order_by("ordinal").values_list("ordinal", "value__label")
    assert list(found) == [(1, "incorrect"), (2, "correct")]


@pytest.mark.django_db
@pytest.mark.parametrize("what", ["label", "correction", "void", "decision", "undo"])
def test_nothing_is_decided_on_a_table_that_changed(what: str) -> None:
    item, people = disputed(overlap=3)
    seen = table_of(item)
    if what == "label":
        (third,) = annotators(item.queue, 1)
        label_next(third)
    elif what == "correction":
        correct(annotator=people[0], item=item, said=said("incorrect"), reason="I misread it.")
    elif what == "void":
        void_person(annotator=people[0], reason="Guessed.", actor=lead(item.queue))
    elif what == "undo":
        undo_last(annotator=people[1], request_key="undo-request-1")
    else:
        made(item)
    count = Adjudication.objects.count()
    with pytest.raises(TableChangedError, match="nothing was decided") as caught:
        made(item, seen=seen)
    assert Adjudication.objects.count() == count
    exc = caught.value
    found = (len(exc.new_labels), len(exc.gone_labels), exc.new_decisions)
    expected = {
        "label": (1, 0, 0),
        "correction": (1, 1, 0),
        "void": (0, 1, 0),
        "undo": (0, 1, 0),
        "decision": (0, 0, 1),
    }
    assert found == expected[what]


@pytest.mark.django_db
def test_a_decision_needs_a_reason_and_fits_what_was_asked() -> None:
    item, _ = disputed()
    for label, reason, match in (
        ("correct", " ", "reason"),
        ("splendid", "x", "label"),
        ("correct", "x" * 5_001, "5,000"),
    ):
        with pytest.raises(LabelError, match=match):
            made(item, label, reason=reason)
    assert not Adjudication.objects.exists()


@pytest.mark.django_db
def test_a_cleared_label_and_an_older_version_are_not_on_the_table() -> None:
    item, people = disputed()
    newest = correct(annotator=people[0], item=item, said=said("incorrect"), reason="Misread.")
    standing = standing_labels([item.pk])
    assert newest.pk in {label.pk for label in standing}
    assert len(standing) == 2


@pytest.mark.django_db
def test_with_two_people_a_decision_stands_once_another_one_says_the_same() -> None:
    item, _ = disputed(two_people=True)
    second = member(item.queue.workspace, Role.RESEARCHER, "second")
    decisions = []
    for actor, label, settled in (
        (lead(item.queue), "incorrect", False),
        (lead(item.queue), "incorrect", False),  # The same person twice is one person.
        (second, "correct", False),
        (lead(item.queue), "correct", True),
    ):
        decisions.append(made(item, label, actor=actor))
        assert is_settled(decisions, two_people=True) is settled
        assert is_settled(decisions, two_people=False)
    assert not is_settled([], two_people=False)


@pytest.mark.django_db
def test_a_precedent_is_shown_once_nobody_is_to_label_its_item_any_more() -> None:
    item, _ = disputed(overlap=3)
    made(item, is_precedent=True)
    assert list(precedents_of(item.queue)) == []  # A third person is still to be asked.
    (third,) = annotators(item.queue, 1)
    label_next(third)
    (precedent,) = precedents_of(item.queue)
    assert precedent.item_id == item.pk
    made(item, is_precedent=False)
    assert list(precedents_of(item.queue)) == []  # The newest decision is none.


@pytest.mark.django_db
def test_a_precedent_says_the_item_the_decision_and_why_and_nothing_sealed() -> None:
    item, _ = disputed()
    made(item, is_precedent=True)
    (precedent,) = beside_guideline(item.queue)
    assert (precedent.words, precedent.reason) == ("Incorrect", "The units are wrong.")
    texts = " ".join(text.text for text in precedent.texts)
    assert item.shown["question"] in texts
    assert "secret-model" not in texts


@pytest.mark.django_db
def test_webhooks_hear_of_decisions_and_labels_without_what_is_sealed() -> None:
    queue = queue_of(answers(1), overlap=1)
    add_endpoint(
        workspace=queue.workspace, url="https://x.example/", events=EVENTS, actor=lead(queue)
    )
    (person,) = annotators(queue, 1)
    mine = claimed(person)
    what = said(comment="alice told me")
    submit(annotator=person, slot_id=mine.slot.pk, fence=mine.slot.fence, said=what)
    made(mine.item, reason="bob told me")
    bodies = list(WebhookDelivery.objects.order_by("pk").values_list("body", flat=True))
    assert [json.loads(body)["event"] for body in bodies] == ["label.submit", "item.adjudicate"]
    assert json.loads(bodies[0])["data"]["annotator"] == person.pseudonym
    sealed = (
        person.name, "acme/secret-model", "debate\"", '"round"', "gold", '"i0"', "told me",
    )  # fmt: skip
    for body in bodies:
        assert not [word for word in sealed if word in body]


@pytest.mark.django_db(transaction=True)
def test_a_label_that_is_just_being_stored_is_waited_for_and_found_new() -> None:
    queue = queue_of(answers(1), overlap=2)
    one, two = annotators(queue, 2)
    label_next(one)
    item = Item.objects.get(queue=queue)
    seen, by = table_of(item), lead(queue)
    mine: Claimed = claimed(two)

    def act() -> str:
        try:
            made(item, seen=seen, actor=by)
        except TableChangedError as exc:
            return f"{len(exc.new_labels)} new"
        return "decided"

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            submit(annotator=two, slot_id=mine.slot.pk, fence=mine.slot.fence, said=said())
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # In the middle of its commit.
            waiting = pool.submit(in_own_session(act))
            wait_for_blocked_session()
        assert waiting.result(timeout=30) == "1 new"


@pytest.mark.django_db(transaction=True)
def test_a_label_waits_with_its_commit_for_a_decision_under_way() -> None:
    queue = queue_of(answers(1), overlap=2)
    one, two = annotators(queue, 2)
    label_next(one)
    item, by = Item.objects.get(queue=queue), lead(queue)
    mine: Claimed = claimed(two)

    def act() -> None:
        submit(annotator=two, slot_id=mine.slot.pk, fence=mine.slot.fence, said=said())

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            decision = made(item, actor=by)
            waiting = pool.submit(in_own_session(act))
            wait_for_blocked_session()
        waiting.result(timeout=30)
    assert len(decision.labels_seen) == 1
    assert len(standing_labels([item.pk])) == 2


@pytest.mark.django_db(transaction=True)
def test_of_two_decisions_at_once_the_second_is_told_of_the_first() -> None:
    item, _ = disputed()
    seen, by = table_of(item), lead(item.queue)

    def act() -> str:
        try:
            made(item, seen=seen, actor=by)
        except TableChangedError as exc:
            return f"{exc.new_decisions} new"
        return "decided"

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            made(item, seen=seen, actor=by)
            waiting = pool.submit(in_own_session(act))
            wait_for_blocked_session()
        assert waiting.result(timeout=30) == "1 new"
    assert Adjudication.objects.count() == 1

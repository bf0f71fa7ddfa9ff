"""The desk on people: figures that are right, voids, the plan, and the key."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from audits.metrics.intervals import wilson
from audits.queries_people import Person, people_of, plan_of, precision_of
from audits.queue_models import Annotator, Guideline, Item, ItemSecret, Label, LabelVoid, Queue
from audits.queues.batches import close_queue
from audits.queues.claiming import Claimed, next_item
from audits.queues.submitting import submit
from debateweb.models import Role, User
from tests.audits.queues.making import annotators, answers, label_next, pairs, queue_of, said
from tests.debateweb.people import member, signed_in

pytestmark = pytest.mark.django_db


def lead(queue: Queue, role: Role = Role.OWNER) -> Client:
    return signed_in(member(queue.workspace, role, f"the-{role}"))


def address(page: str, queue: Queue, *more: str) -> str:
    return reverse(f"audits:{page}", args=[queue.workspace.name, queue.name, *more])


def all_of(person: Annotator, says: dict[str, str], milliseconds: int = 2_000) -> None:
    """Label everything: ``says`` by the item's id, "correct" for the rest."""
    while isinstance(mine := next_item(person), Claimed):
        label = says.get(mine.item.item_id, "correct")
        what = said(label, active_milliseconds=milliseconds)
        submit(annotator=person, slot_id=mine.slot.pk, fence=mine.slot.fence, said=what)


def found(queue: Queue, annotator: Annotator) -> Person:
    return next(one for one in people_of(queue) if one.annotator.pk == annotator.pk)


def test_gold_time_and_rate_of_a_person_are_right() -> None:
    queue = queue_of(answers(6, gold=4), overlap=1, gold_share=0.3, batch_items=99)
    (person,) = annotators(queue, 1)
    gold = ItemSecret.objects.filter(item__queue=queue, is_gold=True).select_related("item")
    wrong = gold[0].item.item_id
    all_of(person, {wrong: "incorrect"}, milliseconds=3_000)
    one = found(queue, person)
    n = gold.count()
    assert n > 1
    assert (one.gold.num, one.gold.den) == (n - 1, n)
    assert one.gold.interval == wilson(n - 1, n)
    assert one.median_seconds == 3.0
    assert one.per_hour == pytest.approx(1200)
    assert one.items == Item.objects.filter(queue=queue).count()


def test_agreement_is_over_pairs_on_shared_items() -> None:
    queue = queue_of(answers(4), overlap=3, batch_items=99)
    one, two, three = annotators(queue, 3)
    all_of(one, {})
    all_of(two, {})
    all_of(three, {"i0": "incorrect"})
    shares = {p.annotator.pk: (p.agreed.num, p.agreed.den) for p in people_of(queue)}
    assert shares == {one.pk: (7, 8), two.pk: (7, 8), three.pk: (6, 8)}


def test_flips_are_counted_apart_for_swapped_and_unswapped_servings() -> None:
    queue = queue_of(pairs(8), overlap=1, swapped_share=0.25, unswapped_share=0.25, batch_items=99)
    (person,) = annotators(queue, 1)
    while isinstance(mine := next_item(person), Claimed):
        # Always the left one: a flip exactly where the candidates are turned.
        what = said(mine.serving.shown_order[0])
        submit(annotator=person, slot_id=mine.slot.pk, fence=mine.slot.fence, said=what)
    one = found(queue, person)
    swapped = Item.objects.filter(queue=queue, served_as="swapped").count()
    unswapped = Item.objects.filter(queue=queue, served_as="unswapped").count()
    assert swapped and unswapped
    assert (one.swapped.num, one.swapped.den) == (swapped, swapped)
    assert (one.unswapped.num, one.unswapped.den) == (0, unswapped)


def test_agreement_is_told_at_the_planned_number_only() -> None:
    queue = queue_of(answers(2), overlap=2)
    one, two = annotators(queue, 2)
    all_of(one, {})
    label_next(two)
    client = lead(queue)
    text = client.get(address("desk_people", queue)).content.decode()
    assert "3 of 4 planned labels" in text
    assert "1 pairs so far" in text
    assert "100.0 % of 1" not in text
    label_next(two)
    assert plan_of(queue).is_reached
    assert "100.0 % of 2" in client.get(address("desk_people", queue)).content.decode()


def test_the_table_of_people_takes_the_same_queries_for_10_and_200_items(
    django_assert_num_queries: Any,
) -> None:
    for name, n in (("small", 10), ("large", 200)):
        queue = queue_of(answers(n), name=name, overlap=1, batch_items=999)
        for person in annotators(queue, 2):
            label_next(person)
        with django_assert_num_queries(6):
            assert len(people_of(queue)) == 2


def test_a_batch_is_taken_out_with_a_reason() -> None:
    queue = queue_of(answers(3), overlap=1)
    (person,) = annotators(queue, 1)
    all_of(person, {})
    client = lead(queue, Role.RESEARCHER)
    url = address("desk_person", queue, person.pseudonym)
    refused = client.post(url, {"scope": "1", "reason": " "})
    assert refused.status_code == 400
    assert "say why" in refused.content.decode()
    assert client.post(url, {"scope": "7", "reason": "x"}).status_code == 404
    assert client.post(url, {"scope": "1", "reason": "Guessed."}).status_code == 302
    assert LabelVoid.objects.count() == 3
    after = found(queue, person)
    assert (after.items, after.voided) == (0, 3)


def test_all_is_taken_out_and_the_person_removed() -> None:
    queue = queue_of(answers(2), overlap=1)
    (person,) = annotators(queue, 1)
    all_of(person, {})
    sent = {"scope": "all", "reason": "A robot.", "remove": "1"}
    lead(queue).post(address("desk_person", queue, person.pseudonym), sent)
    person.refresh_from_db()
    assert person.removed_at is not None


def test_labels_needed_follow_the_population_and_the_planned_number() -> None:
    queue = queue_of(answers(40), overlap=1, batch_items=99)
    (person,) = annotators(queue, 1)
    label_next(person)
    before = precision_of(queue, 0.2, plan_of(queue))
    assert (before.labelled, before.population, before.share) == (1, 40, None)
    assert [row.half_width for row in before.rows] == [0.2, 0.1, 0.05, 0.03, 0.02]
    assert before.rows[0].safe == 15 and before.rows[0].expected is None  # 24.01 / (1 + 23.01/40)
    all_of(person, {"i0": "incorrect"})
    after = precision_of(queue, None, plan_of(queue))
    assert after.share == pytest.approx(39 / 40)
    assert all(row.safe == 0 or row.safe < 40 for row in after.rows)


@pytest.mark.parametrize("asked", ["0", "-3", "nan", "51", "x"])
def test_a_width_that_is_none_is_said(asked: str) -> None:
    queue = queue_of(answers(2))
    page = lead(queue).get(address("desk_plan", queue), {"half_width": asked})
    assert page.status_code == 200
    assert "A number from 0.1 to 50" in page.content.decode()


def test_labels_under_an_old_guideline_are_asked_for_again() -> None:
    queue = queue_of(answers(2), overlap=1)
    (person,) = annotators(queue, 1)
    all_of(person, {})
    client = lead(queue)
    url = address("desk_plan", queue)
    refused = client.post(url, {"version": "1", "reason": "x"})
    assert refused.status_code == 400
    Guideline.objects.create(queue=queue, version=2, body="Mind the units.")
    assert "Take 2 out and ask again" in client.get(url).content.decode()
    assert client.post(url, {"version": "x", "reason": "x"}).status_code == 404
    assert client.post(url, {"version": "1", "reason": "Units."}).status_code == 302
    assert plan_of(queue).done == 0
    all_of(person, {})
    assert set(Label.objects.filter(version=2).values_list("guideline_version", flat=True)) == {2}


def test_the_key_is_the_owners_is_a_file_and_can_be_destroyed() -> None:
    queue = queue_of(answers(1), overlap=1)
    (person,) = annotators(queue, 1)
    client = lead(queue)
    got = client.post(address("desk_key_file", queue))
    assert person.name in got.content.decode()
    assert "attachment" in got["Content-Disposition"]
    assert "no-store" in got["Cache-Control"]
    url = address("desk_key", queue)
    assert client.post(url, {"typed": queue.name}).status_code == 400  # Still open.
    close_queue(queue=queue, actor=User.objects.get(username="the-owner"))
    assert client.post(url, {"typed": "x"}).status_code == 400
    assert client.post(url, {"typed": queue.name}).status_code == 302
    text = client.get(address("desk_people", queue)).content.decode()
    assert person.pseudonym in text
    assert person.name not in text

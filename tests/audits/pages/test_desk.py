"""The desk: items where people differ, side by side, and a decision on what was seen."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from audits.labelling.design import CORRECTNESS, Ask, LabelSchema
from audits.queries_desk import Show, desk_rows
from audits.queue_models import Adjudication, Annotator, Item, ItemSecret, Label, Queue
from audits.queues.claiming import Claimed
from audits.queues.submitting import submit
from debateweb.models import Role
from tests.audits.queues.making import (
    annotators,
    answers,
    claimed,
    label_next,
    pairs,
    queue_of,
    said,
)
from tests.debateweb.people import member, signed_in

pytestmark = pytest.mark.django_db
WORDS = LabelSchema(ask=Ask(kind="correctness", title="Right?", options=CORRECTNESS))
SURE = WORDS.model_copy(update={"confidence": True})
HOSTILE = "<script>alert(1)</script>\u202eexe"


def lead(queue: Queue) -> Client:
    return signed_in(member(queue.workspace, Role.OWNER, "the-lead"))


def labelled(people: list[Annotator], says: list[list[str]], **fields: Any) -> None:
    """Each person labels the items in order: ``says`` by item, then by person."""
    for row in says:
        for person, label in zip(people, row, strict=True):
            mine: Claimed = claimed(person)
            what = said(label, **fields)
            submit(annotator=person, slot_id=mine.slot.pk, fence=mine.slot.fence, said=what)


def two(says: list[list[str]], **fields: Any) -> tuple[Queue, list[Annotator]]:
    queue = queue_of(answers(len(says)), overlap=2, label=SURE)
    people = annotators(queue, 2)
    labelled(people, says, **fields)
    return queue, people


def address(queue: Queue, item: Item, query: str = "") -> str:
    return reverse("audits:desk_item", args=[queue.workspace.name, queue.name, item.key]) + query


def form_in(page: str) -> dict[str, str]:
    """Return the hidden fields of the decision form."""
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page)
    return {name: value for name, value in found if name != "csrfmiddlewaretoken"}


def test_the_desk_lists_items_where_people_differ_in_the_queues_order() -> None:
    queue, _ = two([["correct", "correct"], ["correct", "incorrect"], ["incorrect", "correct"]])
    items = list(Item.objects.filter(queue=queue).order_by("position"))
    assert [row.item for row in desk_rows(queue, Show.DIFFER)] == items[1:]
    assert [row.item for row in desk_rows(queue, Show.DIFFER, items[1].position)] == items[2:]
    page = lead(queue).get(reverse("audits:desk", args=[queue.workspace.name, queue.name]))
    text = page.content.decode()
    assert items[1].key in text
    assert items[0].key not in text


def test_the_desk_lists_labels_against_gold_or_the_judge() -> None:
    queue = queue_of(answers(1, gold=1), overlap=1, gold_share=0.5)
    (person,) = annotators(queue, 1)
    for _ in range(2):
        label_next(person, "incorrect")
    (row,) = desk_rows(queue, Show.AGAINST)
    assert ItemSecret.objects.get(item=row.item).is_gold
    judged = queue_of(pairs(2), name="judged", overlap=1)  # The judge said x, x.
    (person,) = annotators(judged, 1)
    label_next(person, "y")
    label_next(person, "x")
    (row,) = desk_rows(judged, Show.AGAINST)
    assert Label.objects.get(item=row.item).value == {"label": "y", "reasons": []}


def test_a_page_of_the_desk_takes_the_same_queries_with_10_and_200_items(
    django_assert_num_queries: Any,
) -> None:
    for name, n in (("small", 10), ("large", 200)):
        queue = queue_of(answers(n), name=name, overlap=1)
        with django_assert_num_queries(2):
            rows = desk_rows(queue, Show.ALL)
        assert len(rows) == min(n, 26)


def test_labels_stand_side_by_side_with_all_that_was_noted() -> None:
    fields = {"comment": f"units {HOSTILE}", "confidence": 0.75, "active_milliseconds": 4200}
    queue, people = two([["correct", "incorrect"]], **fields)
    text = lead(queue).get(address(queue, Item.objects.get(queue=queue))).content.decode()
    for word in (*(person.name for person in people), "75.0 %", "4 s", "v1", "Correct", "units"):
        assert word in text
    assert "<script>alert(1)" not in text
    assert "\u202e" not in text


def test_names_that_are_hidden_are_not_in_the_page() -> None:
    queue, people = two([["correct", "incorrect"]])
    item = Item.objects.get(queue=queue)
    client = lead(queue)
    text = client.get(address(queue, item, "?names=hidden")).content.decode()
    assert "Person 1" in text
    assert "Person 2" in text
    for person in people:
        assert person.name not in text
        assert person.pseudonym not in text
    again = client.get(address(queue, item, "?names=hidden")).content.decode()
    order = re.compile(r"Person \d|is correct|Correct|Incorrect")
    assert order.findall(text) == order.findall(again)


def test_a_decision_is_stored_with_what_was_seen_and_leads_to_the_next_item() -> None:
    queue, _ = two([["correct", "incorrect"], ["incorrect", "correct"]])
    first, second = Item.objects.filter(queue=queue).order_by("position")
    client = lead(queue)
    form = form_in(client.get(address(queue, first, "?names=hidden")).content.decode())
    sent = form | {"choice": "2", "why": "Look at the units.", "precedent": "1"}
    answer = client.post(address(queue, first), sent)
    assert answer.status_code == 302
    assert answer["Location"] == address(queue, second, "?show=differ&names=hidden")
    decision = Adjudication.objects.get()
    assert decision.value == {"label": "incorrect", "reasons": []}
    assert (decision.is_precedent, decision.names_hidden) == (True, True)
    assert len(decision.labels_seen) == 2
    text = client.get(address(queue, first)).content.decode()
    assert "Look at the units." in text


def test_a_decision_without_a_reason_or_choice_is_refused_and_kept() -> None:
    queue, _ = two([["correct", "incorrect"]])
    item = Item.objects.get(queue=queue)
    client = lead(queue)
    form = form_in(client.get(address(queue, item)).content.decode())
    answer = client.post(address(queue, item), form | {"choice": "2", "why": " "})
    assert answer.status_code == 400
    assert "Say why it is decided so." in answer.content.decode()
    assert 'value="2" checked' in answer.content.decode()
    answer = client.post(address(queue, item), form | {"why": "Because of this."})
    assert answer.status_code == 400
    assert "Because of this." in answer.content.decode()
    assert not Adjudication.objects.exists()


def test_a_table_that_changed_answers_409_with_what_is_new_and_the_text_kept() -> None:
    queue = queue_of(answers(1), overlap=3)
    people = annotators(queue, 3)
    label_next(people[0], "correct")
    label_next(people[1], "incorrect")
    item = Item.objects.get(queue=queue)
    client = lead(queue)
    form = form_in(client.get(address(queue, item)).content.decode())
    label_next(people[2], "incorrect")
    sent = form | {"choice": "1", "why": "My long reason.", "precedent": "1"}
    answer = client.post(address(queue, item), sent)
    text = answer.content.decode()
    assert answer.status_code == 409
    assert not Adjudication.objects.exists()
    for words in ("1 new label,", "My long reason.", 'value="1" checked', "new</span>"):
        assert words in text
    assert re.search(r'id="precedent"[^>]* checked', text)
    again = client.post(address(queue, item), form_in(text) | {"choice": "1", "why": "Still."})
    assert again.status_code == 302
    assert Adjudication.objects.get().reason == "Still."


@pytest.mark.parametrize("seen", ["", "x,,9" * 50, "-1", "9" * 400])
def test_a_form_that_was_tampered_with_decides_nothing(seen: str) -> None:
    queue, _ = two([["correct", "incorrect"]])
    item = Item.objects.get(queue=queue)
    sent = {"seen": seen, "decisions": "0", "choice": "1", "why": "x"}
    assert lead(queue).post(address(queue, item), sent).status_code == 409


def test_an_item_of_a_second_serving_is_read_with_its_first() -> None:
    queue = queue_of(pairs(2), overlap=1, swapped_share=1.0)
    (person,) = annotators(queue, 1)
    for _ in range(3):  # One of two is served again.
        label_next(person, "x")
    item = Item.objects.get(queue=queue, again_of=None, served_again__isnull=False)
    client = lead(queue)
    text = client.get(address(queue, item)).content.decode()
    assert text.count("Order shown") == 2
    assert "second, swapped" in text
    again = Item.objects.filter(again_of=item).get()
    assert client.get(address(queue, again)).status_code == 404


def test_an_item_page_takes_the_same_queries_with_2_and_12_people(
    django_assert_max_num_queries: Any,
) -> None:
    for name, n in (("few", 2), ("many", 12)):
        queue = queue_of(answers(1), name=name, overlap=n)
        for i, person in enumerate(annotators(queue, n)):
            label_next(person, "correct" if i % 2 else "incorrect")
        client = signed_in(member(queue.workspace, Role.OWNER, f"lead-{name}"))
        item = Item.objects.get(queue=queue)
        with django_assert_max_num_queries(12):
            assert client.get(address(queue, item)).status_code == 200


def test_a_precedent_stands_beside_the_guideline_of_annotators() -> None:
    queue, people = two([["correct", "incorrect"]])
    item = Item.objects.get(queue=queue)
    client = lead(queue)
    form = form_in(client.get(address(queue, item)).content.decode())
    client.post(address(queue, item), form | {"choice": "2", "why": "Units.", "precedent": "1"})
    assert people[0].user is not None
    url = reverse("audits:label_guideline", args=[queue.workspace.name, queue.name])
    text = signed_in(people[0].user).get(url).content.decode()
    assert text.count("Precedents") == 1
    assert "Units." in text
    assert "the-lead" not in text
    assert people[1].name not in text

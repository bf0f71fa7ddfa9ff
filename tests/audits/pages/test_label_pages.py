"""The annotator's pages as forms: every kind, every end, and nothing that was typed is lost."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from audits.label_words import ENDINGS
from audits.queue_models import (
    Annotator,
    ItemNote,
    Label,
    LabelDraft,
    Queue,
    QueueStatus,
    Reveal,
    Slot,
)
from audits.queues.claiming import Nothing
from audits.queues.creating import NewItem
from debateweb.models import Role
from tests.audits.pages.labelling import DECISIONS, Labeller, every_kind, labeller
from tests.audits.queues.making import annotators, answers, claimed, home, pairs, queue_of
from tests.debateweb.people import member, signed_in

pytestmark = pytest.mark.django_db


def expire(annotator: Annotator) -> None:
    Slot.objects.filter(holder=annotator).update(leased_until=timezone.now() - timedelta(days=1))


def comment(page: str) -> str:
    return page.split('id="comment"')[1].split(">")[1].split("<", maxsplit=1)[0]


def lost_to_another(me: Labeller) -> Annotator:
    """Let the lease of what is in front run out and somebody else take the item."""
    (other,) = annotators(me.annotator.queue, 1)
    expire(me.annotator)
    claimed(other)
    return other


@pytest.mark.parametrize("kind", sorted(DECISIONS))
def test_each_kind_is_labelled_without_a_script(kind: str) -> None:
    me = labeller(every_kind(2)[kind])
    for _ in range(2):
        for _ in range(3 if kind == "debate" else 1):
            answer = me.send(**DECISIONS[kind], comment="because" if kind != "debate" else "")
            assert answer.status_code == 200, me.text
    assert ENDINGS[Nothing.ALL_DONE].title in me.text
    labels = list(Label.objects.all())
    assert len(labels) == 2 and all(label.value for label in labels)
    stored = labels[0].value["label"]  # type: ignore[index]
    order = labels[0].shown_order
    expected = {
        "correctness": "correct",
        "scale": 4,
        "claims": {"c-one": "pass", "c-two": "fail"},
        "pair": order[0] if order else None,
        "judge": order[1] if order else None,
        "debate": dict(zip(order, (70.0, 30.0), strict=False)),
        "merge": "other",
    }
    assert stored == expected[kind]


def test_a_debate_comes_turn_by_turn_and_keeps_the_belief_after_each() -> None:
    me = labeller(every_kind(1)["debate"])
    for turn, share in enumerate((50, 70, 90), 1):
        me.get()
        assert f"Speech {turn - 1} of" in me.text and f"Speech {turn} of" not in me.text
        assert "role-0" not in me.text and "yes-side" not in me.text
        said = {"comment": "of the first turn"} if turn == 1 else {"comment": comment(me.text)}
        me.send(
            belief__1=str(share), belief__2=str(100 - share), active_milliseconds="1000", **said
        )
    label = Label.objects.get()
    first = label.shown_order[0]
    given = label.metadata["beliefs"]
    assert [one["belief"][first] for one in given] == [50, 70, 90]
    assert label.active_milliseconds == 3000 and label.comment == "of the first turn"


def test_a_corrected_belief_keeps_those_of_the_turns_before() -> None:
    me = labeller(every_kind(1)["debate"])
    for share in ("50", "70", "90"):
        me.send(belief__1=share, belief__2=str(100 - int(share)))
    label = Label.objects.get()
    me.get(f"correct/{label.item.key}")
    changed = {"belief-1": "20", "belief-2": "80", "why": "misread"}
    me.post(f"correct/{label.item.key}", {**me.hidden(), **changed})
    given = Label.objects.latest("version").metadata["beliefs"]
    assert [one["belief"][label.shown_order[0]] for one in given] == [50, 70, 20]


def test_beliefs_that_do_not_sum_to_100_are_refused_with_what_was_typed() -> None:
    me = labeller(every_kind(1)["debate"])
    answer = me.send(belief__1="50", belief__2="60")
    assert answer.status_code == 400 and "They sum to 110" in me.text
    assert 'value="60"' in me.text and not Label.objects.exists()


def test_a_belief_sent_twice_counts_once() -> None:
    me = labeller(every_kind(1)["debate"])
    me.get()
    fields = {**me.hidden(), "belief-1": "50", "belief-2": "50"}
    me.post("submit", fields)
    me.post("submit", fields)
    assert "turn 2 of 3" in me.text and "kept before" in me.text


def test_an_item_in_front_is_the_same_however_often_it_is_asked_for() -> None:
    me = labeller(queue_of(answers(3)))
    me.get()
    first = me.hidden()
    me.get()
    assert {k: me.hidden()[k] for k in ("key", "fence")} == {k: first[k] for k in ("key", "fence")}


def test_a_submit_sent_twice_is_one_label() -> None:
    me = labeller(queue_of(answers(3)))
    me.get()
    fields = {**me.hidden(), "choice": "1"}
    me.post("submit", fields)
    me.post("submit", fields)
    assert Label.objects.count() == 1 and "Saved." in me.text


def test_another_text_for_a_submitted_item_is_shown_with_the_way_to_correct() -> None:
    me = labeller(queue_of(answers(3)))
    me.get()
    fields = {**me.hidden(), "choice": "1"}
    me.post("submit", fields)
    answer = me.post(
        "submit", {**fields, "choice": "2", "comment": "second", "request_key": "another-one"}
    )
    assert answer.status_code == 409 and "second" in me.text and "/correct/" in me.text
    assert Label.objects.count() == 1


def test_an_answer_is_missing_and_the_rest_is_kept() -> None:
    me = labeller(queue_of(answers(3)))
    answer = me.send(comment="half a thought")
    assert answer.status_code == 400 and "half a thought" in me.text
    assert "Choose an answer first" in me.text
    me.get()
    assert "half a thought" in me.text


def test_a_late_submit_keeps_the_text_and_offers_three_ways() -> None:
    me = labeller(queue_of(answers(1)))
    me.get()
    lost_to_another(me)
    answer = me.send(choice="2", comment="my whole text")
    assert answer.status_code == 409 and "my whole text" in me.text and "Incorrect" in me.text
    assert all(f'value="{way}"' in me.text for way in ("again", "remark", "discard"))
    assert not Label.objects.exists()


def test_what_was_lost_can_be_taken_up_again_once_it_is_free() -> None:
    me = labeller(queue_of(answers(1)))
    me.get()
    other = lost_to_another(me)
    me.send(choice="2", comment="my whole text")
    answer = me.post("kept", {**me.hidden(), "way": "again"})
    assert answer.status_code == 409 and "Somebody else has it open" in me.text
    expire(other)
    me.post("kept", {**me.hidden(), "way": "again"})
    assert "my whole text" in me.text and 'value="2" checked' in me.text
    me.send(choice="2", comment="my whole text")
    assert Label.objects.get().annotator == me.annotator


@pytest.mark.parametrize("way", ["remark", "discard"])
def test_what_was_lost_can_be_sent_to_the_lead_or_discarded(way: str) -> None:
    me = labeller(queue_of(answers(1)))
    me.get()
    lost_to_another(me)
    me.send(choice="2", comment="my whole text")
    me.post("kept", {**me.hidden(), "way": way})
    assert not LabelDraft.objects.exists()
    notes = [note.text for note in ItemNote.objects.all()]
    assert len(notes) == (way == "remark") and all("my whole text" in text for text in notes)


def test_a_changed_mind_leaves_exactly_what_is_shown() -> None:
    me = labeller(queue_of(pairs(1)))
    for number in ("1", "2", "3"):
        me.send("draft", choice=number)
        assert f'value="{number}" checked' in me.text and me.text.count("checked") == 1
    me.send("draft", choice="3", act="clear")
    assert "checked" not in me.text
    assert me.send().status_code == 400 and not Label.objects.exists()


def test_saves_in_any_order_keep_the_last_keystroke() -> None:
    me = labeller(queue_of(answers(1)))
    me.get()
    fields = me.hidden()
    for sequence in ("5", "7", "6"):
        answer = me.post(
            "draft",
            {**fields, "sequence": sequence, "comment": f"key {sequence}"},
            Accept="application/json",
        )
        assert answer.status_code == 200
    me.get()
    assert "key 7" in me.text and "key 6" not in me.text


def test_skipping_with_something_typed_does_not_bring_the_item_back_at_once() -> None:
    me = labeller(queue_of(answers(3)))
    me.get()
    first = me.hidden()["key"]
    me.send("skip", comment="not sure")
    assert me.hidden()["key"] != first
    me.send(choice="1")
    me.send(choice="1")
    assert me.hidden()["key"] == first and "not sure" in me.text


def test_a_question_and_a_flag_go_to_the_lead_and_the_item_stays_with_what_was_typed() -> None:
    me = labeller(queue_of(answers(2)))
    me.get()
    first = me.hidden()["key"]
    me.send("ask", note="Does rounding count?", comment="my thought", choice="1")
    me.send("flag", note="The question is cut off.", comment="my thought", choice="1")
    assert me.hidden()["key"] == first and "my thought" in me.text
    assert "Does rounding count?" in me.text and 'value="1" checked' in me.text
    kinds = ItemNote.objects.order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == ["question", "flag"]
    assert me.send("ask", note=" ").status_code == 400


def test_the_leads_answer_stands_in_the_thread_and_other_peoples_threads_do_not() -> None:
    queue = queue_of(answers(1), overlap=2)
    me, other = labeller(queue), labeller(queue)
    me.send("ask", note="Does rounding count?")
    other.send("ask", note="A secret question")
    lead = member(home(), Role.OWNER, "the-lead")
    ItemNote.objects.create(
        item=queue.items.get(), annotator=me.annotator, author=lead, kind="answer", text="It does."
    )
    me.get()
    assert "It does." in me.text and "A secret question" not in me.text
    assert "the-lead" not in me.text


def test_releasing_leads_to_the_list_of_queues_and_holds_nothing() -> None:
    me = labeller(queue_of(answers(2)))
    answer = me.send("release", comment="kept for me")
    assert answer.redirect_chain[-1][0].endswith("/label/")  # type: ignore[attr-defined]
    assert not Slot.objects.filter(holder=me.annotator).exists()
    me.get()
    assert "kept for me" in me.text


def test_undo_brings_the_last_item_back_and_keeps_what_is_typed_on_the_next() -> None:
    me = labeller(queue_of(answers(3)))
    me.get()
    first = me.hidden()["key"]
    me.send(choice="2", comment="first thought")
    second = me.hidden()["key"]
    me.send("undo", comment="on the second")
    assert me.hidden()["key"] == first
    assert "first thought" in me.text and 'value="2" checked' in me.text
    me.send(choice="1")
    assert me.hidden()["key"] == second and "on the second" in me.text


def test_undoing_the_last_belief_of_a_debate_asks_for_it_again() -> None:
    me = labeller(every_kind(1)["debate"])
    for _ in range(3):
        me.send(belief__1="60", belief__2="40")
    me.post("undo", me.hidden())
    assert "turn 3 of 3" in me.text and 'value="60"' in me.text


def test_every_reason_for_nothing_has_words_of_its_own() -> None:
    assert set(ENDINGS) == set(Nothing)
    texts = [ending.text for ending in ENDINGS.values()]
    assert len(set(texts)) == len(texts) and all(len(text) > 60 for text in texts)


def test_held_by_others_is_not_all_done_on_the_page() -> None:
    queue = queue_of(answers(1))
    claimed(annotators(queue, 1)[0])
    me = labeller(queue)
    me.get()
    assert ENDINGS[Nothing.HELD_BY_OTHERS].title in me.text and "not finished" in me.text
    assert "All done" not in me.text


@pytest.mark.parametrize("status", [QueueStatus.PAUSED, QueueStatus.CLOSED])
def test_a_queue_that_stops_while_somebody_types_keeps_the_text(status: str) -> None:
    queue = queue_of(answers(1))
    me = labeller(queue)
    me.get()
    Queue.objects.filter(pk=queue.pk).update(status=status)
    me.send(choice="1", comment="too late")
    assert "what you typed is kept" in me.text and not Label.objects.exists()
    assert LabelDraft.objects.get().body["comment"] == "too late"


def test_a_full_batch_is_closed_and_shows_what_was_hidden() -> None:
    me = labeller(queue_of(answers(3), batch_items=2))
    me.send(choice="1")
    me.send(choice="1")
    assert ENDINGS[Nothing.BATCH_FULL].title in me.text and "secret-model" not in me.text
    me.get("revealed")
    assert "secret-model" not in me.text and "Nothing is revealed yet" in me.text
    me.post("close-batch", {})
    assert me.text.count("acme/secret-model") == 2 and "debate" in me.text
    key = Label.objects.earliest("pk").item.key
    me.get(f"correct/{key}")
    me.post(f"correct/{key}", {**me.hidden(), "choice": "2", "why": "saw the model"})
    assert "after the reveal" in me.text and "saw the model" in me.text
    me.get()
    assert 'name="fence"' in me.text


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        ([("x", "SUCCEEDED"), ("x", "SUCCEEDED")], "consistent"),
        ([("x", "SUCCEEDED"), ("y", "SUCCEEDED")], "flipped"),
        ([("x", "SUCCEEDED"), ("", "TIMEOUT")], "one side failed"),
    ],
)
def test_the_twin_card_tells_a_flip_from_a_failure(
    verdicts: list[tuple[str, str]], outcome: str
) -> None:
    (item,) = pairs(1)
    orders = (["x", "y"], ["y", "x"])
    secret = {
        "known": "y",
        "names": ["of-a-model"],
        "verdicts": [
            {"judge": "j", "order_shown": order, "verdict": verdict, "status": status}
            for order, (verdict, status) in zip(orders, verdicts, strict=True)
        ],
    }
    made = NewItem(item.item_id, item.unit_id, item.question_id, item.shown, secret)
    me = labeller(queue_of([made]))
    me.send(choice="1")
    assert outcome not in me.text
    me.post("close-batch", {})
    assert outcome in me.text and "of-a-model" not in me.text
    known = "B" if Label.objects.get().shown_order == ["x", "y"] else "A"
    assert f"<dt>Known</dt><dd>{known}</dd>" in me.text
    assert ("TIMEOUT" in me.text) == (outcome == "one side failed")


def test_a_correction_needs_a_reason_and_is_a_version() -> None:
    me = labeller(queue_of(answers(2)))
    me.send(choice="1")
    key = Label.objects.get().item.key
    me.get(f"correct/{key}")
    fields = me.hidden()
    assert me.post(f"correct/{key}", {**fields, "choice": "2"}).status_code == 400
    me.post(f"correct/{key}", {**fields, "choice": "2", "why": "misread it"})
    assert "misread it" in me.text and Label.objects.count() == 2
    other = labeller(me.annotator.queue)
    assert other.get(f"correct/{key}").status_code == 404


def test_masked_texts_hide_names_and_the_label_counts_them() -> None:
    item = NewItem(
        item_id="i",
        unit_id="u",
        question_id="q",
        shown={"question": "Why?", "answer": "As secret-model, after reading Agent 2, I say no."},
        secret={"model": "acme/secret-model"},
    )
    me = labeller(queue_of([item], mask_giveaways=True))
    me.get()
    assert "[identity hidden]" in me.text and "[time hidden]" in me.text
    assert "secret-model" not in me.text and "Agent 2" not in me.text
    me.send(choice="1")
    assert Label.objects.get().metadata["giveaways"] == {"identity": 1, "time": 1}


def test_unmasked_texts_are_shown_as_they_are_and_counted_all_the_same() -> None:
    item = NewItem("i", "u", "q", {"question": "Why?", "answer": "I am ChatGPT."})
    me = labeller(queue_of([item]))
    me.get()
    assert "I am ChatGPT." in me.text
    me.send(choice="1")
    assert Label.objects.get().metadata["giveaways"] == {"identity": 1}


def test_the_calibration_round_ends_by_itself_and_admits_who_agreed() -> None:
    queue = queue_of(answers(3, gold=2), calibration={"items": 2, "min_accuracy": 0.5})
    good, bad = labeller(queue), labeller(queue)
    good.send(choice="1")
    good.send(choice="1")
    assert 'name="fence"' in good.text and good.annotator.slots.filter(phase="main").exists()
    bad.send(choice="2")
    bad.send(choice="2")
    assert ENDINGS[Nothing.NOT_ADMITTED].title in bad.text


def test_joining_is_for_those_who_may_label_and_once() -> None:
    queue = queue_of(answers(2))
    client = signed_in(member(home(), Role.ANNOTATOR, "new"))
    base = f"/w/home/label/{queue.name}/"
    assert "Join and begin" in client.get(base).content.decode()
    for _ in range(2):
        client.post(f"{base}join")
    assert Annotator.objects.filter(queue=queue).count() == 1
    reader = signed_in(member(home(), Role.READER, "reads"))
    assert reader.get(base).status_code == reader.post(f"{base}join").status_code == 404


def test_htmx_gets_the_next_item_in_the_answer_to_the_submit() -> None:
    me = labeller(queue_of(answers(3)))
    me.get()
    first = me.hidden()["key"]
    answer = me.post("submit", {**me.hidden(), "choice": "1"}, HX_Request="true", follow=False)
    assert answer.status_code == 200 and me.text.lstrip().startswith('<div id="work"')
    assert me.hidden()["key"] != first and "data-announce" in me.text


def test_ids_of_candidates_never_leave_the_server() -> None:
    made = [
        NewItem(
            item_id="file-gpt-9-vs-claude-9",
            unit_id="u",
            question_id="q",
            shown={
                "question": "Which?",
                "candidates": [
                    {"candidate_id": "gpt-9-turbo", "text": "left"},
                    {"candidate_id": "claude-9", "text": "right"},
                ],
            },
        )
    ]
    me = labeller(queue_of(made))
    seen = []
    for path, fields in (("draft", {"choice": "2"}), ("submit", {}), ("submit", {"choice": "9"})):
        me.send(path, **fields)
        seen.append(me.text)
    me.send(choice="2")
    for path in ("history", "revealed", f"correct/{Label.objects.get().item.key}"):
        me.get(path)
        seen.append(me.text)
    assert not [text for text in seen if "gpt-9" in text or "claude-9" in text]


@pytest.mark.parametrize("path", ["", "history", "guideline"])
def test_a_page_costs_as_many_queries_with_many_rows_as_with_few(path: str) -> None:
    counts = []
    for rows in (3, 30):
        queue = queue_of(answers(rows + 2), name=f"q{rows}")
        me = labeller(queue)
        for _ in range(rows):
            me.send(choice="1")
        me.get()
        with CaptureQueriesContext(
            connection,
        ) as captured:
            me.get(path)
        counts.append(len(captured))
    assert counts[0] == counts[1]


def test_my_queues_lists_mine_with_progress_and_those_that_i_may_join() -> None:
    mine, other = queue_of(answers(4), name="mine"), queue_of(answers(2), name="other")
    me = labeller(mine)
    me.send(choice="1")
    page = me.client.get("/w/home/label/").content.decode()
    assert "1 of 4" in page and f"/w/home/label/{other.name}/join" in page
    assert f"/w/home/label/{mine.name}/join" not in page


def test_a_form_that_names_no_item_of_mine_is_not_found() -> None:
    queue = queue_of(answers(2))
    me, other = labeller(queue), labeller(queue)
    me.get()
    fields = {**me.hidden(), "choice": "1"}
    assert other.post("submit", fields).status_code == 404
    for fence in ("", "x", "9" * 30, "\x00"):
        assert me.post("submit", {**fields, "fence": fence}).status_code == 404
    assert me.post("submit", {**fields, "key": "\x00"}).status_code == 404
    assert me.post("submit", {**fields, "comment": "a\x00b"}).status_code == 200
    assert Client().post(f"{me.base}submit", fields).status_code == 302


def test_a_sign_of_life_extends_the_lease_until_somebody_else_has_the_item() -> None:
    me = labeller(queue_of(answers(1)))
    me.get()
    fields = me.hidden()
    expire(me.annotator)
    assert me.post("beat", fields).status_code == 200
    assert Slot.objects.get(holder=me.annotator).leased_until > timezone.now()  # type: ignore[operator]
    lost_to_another(me)
    assert me.post("beat", fields).status_code == 409
    saved = me.post("draft", {**fields, "comment": "late"}, Accept="application/json")
    assert saved.json() == {"held": False}  # type: ignore[attr-defined]
    assert LabelDraft.objects.get().body["comment"] == "late"


def test_a_save_that_arrives_after_the_submit_leaves_no_draft() -> None:
    me = labeller(queue_of(answers(2)))
    me.get()
    fields = {**me.hidden(), "choice": "1", "comment": "typed"}
    me.post("submit", fields)
    me.post("draft", {**fields, "sequence": "9" * 18}, Accept="application/json")
    assert not LabelDraft.objects.exists()
    me.get()
    me.post("undo", {})
    assert "typed" in me.text


def test_a_second_serving_of_a_revealed_item_is_marked_as_seen() -> None:
    queue = queue_of(answers(4), unswapped_share=0.5, batch_items=4)
    me = labeller(queue)
    while ENDINGS[Nothing.ALL_DONE].title not in me.text:
        me.get()
        if ENDINGS[Nothing.BATCH_FULL].title in me.text:
            me.post("close-batch", {})
            me.get()
        if 'name="fence"' in me.text:
            me.send(choice="1")
    seen = [
        (label.reveal_state, is_early)
        for label in Label.objects.filter(item__again_of__isnull=False)
        for is_early in [label.pk <= Reveal.objects.earliest("pk").through_label]
    ]
    assert ("after_reveal", False) in seen
    assert all((state == "sealed") == is_early for state, is_early in seen)

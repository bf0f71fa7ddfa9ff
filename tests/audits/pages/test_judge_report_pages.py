"""Pages of reports on judgments and queues: first screen, matrices, items behind figures."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from audits import services
from audits.judging.items import AuditItem, Candidate
from audits.judgment_models import JudgmentSet
from audits.labelling.design import Ask, LabelSchema, QueueDesign
from audits.models import Report, ReportItem
from audits.queue_models import Queue, QueueKind, QueueStatus
from audits.queues.creating import NewItem, NewQueue, create_queue
from audits.queues.submitting import submit
from audits.reports.build import build_report
from audits.reports.definitions import DEFINITIONS
from audits.reports.render import page_bytes
from debateweb.models import Role, Workspace
from debateweb.trail import Head
from tests.audits.judging import making as judging
from tests.audits.pages.conftest import Bell
from tests.audits.queues import making as labelling
from tests.audits.reports.commands import command
from tests.audits.reports.experiments import Deaf
from tests.debateweb.people import member, signed_in
from tests.runs.scripted import Call

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("audits.reports.build.REPORT_RESAMPLES", 100)


@pytest.fixture
def bell(monkeypatch: pytest.MonkeyPatch) -> Bell:
    made = Bell()
    monkeypatch.setattr("audits.services.current_app", made)
    monkeypatch.setattr("runs.dispatch.current_app", Deaf())
    return made


def built(workspace: Workspace, name: str) -> Report:
    """Ask for a report and build it as a worker would."""
    asked = services.ask_for_report(workspace=workspace, name=name, actor=None)
    assert asked is not None
    services.build_stored(asked.pk)
    asked.refresh_from_db()
    assert asked.status == "BUILT", asked.fault
    return asked


def labels_file(made: JudgmentSet, folder: Path) -> Path:
    """Three people label every item; the third sees it otherwise on every third one."""
    path = folder / "labels.jsonl"
    lines = [
        {
            "item_id": item.item_id,
            "annotator": person,
            "kind": "pairwise",
            "label": "two" if person == "c" and item.position % 3 == 0 else "one",
        }
        for item in made.items.order_by("position")
        for person in "abc"
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def audited(bell: Bell, tmp_path: Path) -> JudgmentSet:
    """Return an audit of a judge that always says the first, with labels of three people."""
    made = judging.judged(judging.audit(judging.pairs(6)), judging.first)
    words = ("labels", "import", str(labels_file(made, tmp_path)), "--into", made.name)
    assert command("audits", *words)[0] == 0
    return made


def figures(report: Report, condition: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(report.body)["conditions"][condition]["figures"]
    return found


def one(report: Report, metric: str, **by: str) -> dict[str, Any]:
    found = [
        figure
        for figure in figures(report)
        if figure["metric"] == metric and figure["agg"] != "macro" and figure["by"] == by
    ]
    assert len(found) == 1
    return found[0]


def test_a_judge_that_always_says_the_first_is_seen_through(audited: JudgmentSet) -> None:
    report = built(audited.workspace, audited.name)

    assert report.kind == "judge_audit"
    assert one(report, "position_consistency")["value"] == 0
    assert one(report, "preference_fairness")["value"] == -1
    assert one(report, "conflict_rate")["value"] == 1
    assert one(report, "excess_flip")["value"] == 1
    assert one(report, "repetition_stability")["value"] == 1


def test_every_rate_adds_up_over_its_items(audited: JudgmentSet) -> None:
    report = built(audited.workspace, audited.name)
    names = [condition["name"] for condition in json.loads(report.body)["conditions"]]
    assert names == ["scripted", "people"]

    checked = 0
    for place, name in enumerate(names):
        items = list(ReportItem.objects.filter(report=report, condition=name))
        rates = report.counted[name]
        for at, rate in enumerate(rates):
            adds = [item.counts[at] for item in items if item.counts[at] is not None]
            told = [
                figure
                for figure in figures(report, place)
                if (figure["metric"], figure["by"], figure["agg"])
                == (rate["metric"], rate["by"], "pooled")
            ]
            for figure in told:
                if figure["value"] is not None:
                    assert sum(num for num, _ in adds) == pytest.approx(figure["num"]), rate
                    assert sum(den for _, den in adds) == pytest.approx(figure["den"]), rate
                    checked += 1
    assert checked > 40


def test_the_first_screen_shows_orders_causes_and_three_agreements(
    audited: JudgmentSet, bell: Bell
) -> None:
    built(audited.workspace, audited.name)
    reader = signed_in(member(audited.workspace, Role.READER))
    page = reader.get(f"/w/home/reports/{audited.name}/").content.decode()

    heads = re.findall(r'role="columnheader">(.*?)</th>', page)
    assert heads[:8] == [
        "Condition", "Position consistency", "Conflict", "Preference fairness",
        "Order effect beyond noise", "Right, given order", "Right, swapped order", "No verdict",
    ]  # fmt: skip
    assert "24 judgments of 6 items, 6 questions" in page
    for words in (
        "People with each other",
        "The judge with the people&#x27;s majority",
        "The judge with itself, turned",
        "The judge with itself, asked again",
        "association, not cause",
        "As judged beside as audited",
        "Every judgment has a verdict.",
    ):
        assert words in page, words
    assert 'aria-label="Verdicts under both orders: Of 6 pairs shown in both orders, 0 came' in page


def test_a_difference_between_judge_and_people_leads_to_its_labels(audited: JudgmentSet) -> None:
    report = built(audited.workspace, audited.name)
    figure = one(report, "percent_agreement", pair="judge|majority", order="swapped")
    reader = signed_in(member(audited.workspace, Role.READER))
    query = figure["rows"].partition("?")[2]
    page = unescape(reader.get(f"/w/home/reports/audit/rows?{query}").content.decode())

    assert figure["num"] == 0 and page.count("0 / 1</td>") == 6
    assert page.count('<span class="quiet small">c:</span> two') == 2
    assert page.count("one, two:") == page.count("two, one:") == 6

    answer = reader.get(f"/w/home/reports/audit/rows.csv?{query}")
    told = list(csv.DictReader(io.StringIO(b"".join(answer).decode())))
    assert len(told) == 6
    assert [said["verdict"] for said in json.loads(told[0]["judgments"])] == ["one"] * 2 + [
        "two"
    ] * 2
    assert {label["person"] for label in json.loads(told[0]["labels"])} == set("abc")


def test_a_new_label_makes_the_report_old(audited: JudgmentSet, tmp_path: Path) -> None:
    report = built(audited.workspace, audited.name)
    state = services.state_of(audited.workspace, audited.name)
    assert state is not None and state[1] == report.inputs_hash

    late = tmp_path / "late.jsonl"
    late.write_text('{"item_id":"i0","annotator":"d","kind":"pairwise","label":"one"}\n')
    assert command("audits", "labels", "import", str(late), "--into", audited.name)[0] == 0

    assert services.state_of(audited.workspace, audited.name) != state


def test_an_audit_can_still_be_read_as_the_experiment_that_it_is(
    audited: JudgmentSet, tmp_path: Path
) -> None:
    target = tmp_path / "as.json"
    words = ("report", audited.name, "--as", "experiment", "-o", str(target))
    assert command("audits", *words)[0] == 0
    assert json.loads(target.read_text())["kind"] == "experiment"


def test_what_failed_stands_apart_with_its_cause(bell: Bell) -> None:
    def mumbling(call: Call, shown: list[str]) -> str:
        return "A" if call.agent_id.startswith("o1-2") else "perhaps"

    made = judging.judged(judging.audit(judging.pairs(4)), mumbling)
    report = built(made.workspace, made.name)

    assert one(report, "invalid_rate")["num"] == 8
    assert one(report, "position_consistency")["value"] is None
    body = json.loads(report.body)
    assert body["deviations"][0]["code"] == "no_verdict"
    assert body["deviations"][0]["count"] == 8
    reader = signed_in(member(made.workspace, Role.READER))
    page = reader.get("/w/home/reports/audit/").content.decode()
    assert "8 judgments INVALID in another order, no option" in page


def three_candidates() -> list[Any]:
    return [
        AuditItem(
            item_id=f"i{i}",
            question_id=f"q{i}",
            question="Which?",
            candidates=tuple(Candidate(name, f"text {name} {i}") for name in ("x", "y", "z")),
        )
        for i in range(3)
    ]


def test_three_candidates_have_a_matrix_of_places(bell: Bell) -> None:
    items = three_candidates()
    made = judging.judged(judging.audit(items, mode="listwise", repeats=1), judging.first)
    report = built(made.workspace, made.name)

    rows = json.loads(report.body)["conditions"][0]["tables"]["winners_by_place"]
    assert {(row["place"], row["won"], row["shown"]) for row in rows} == {
        (1, 6, 6), (2, 0, 6), (3, 0, 6),
    }  # fmt: skip
    assert one(report, "winner_differs")["value"] == pytest.approx(0.8)
    reader = signed_in(member(made.workspace, Role.READER))
    page = reader.get("/w/home/reports/audit/").content.decode()
    assert 'aria-label="Wins by candidate and place: x at place 1: 6 of 6' in page


def labelled_queue(n: int = 4) -> tuple[Queue, list[Any]]:
    queue = labelling.queue_of(labelling.answers(n, gold=1), overlap=2, gold_share=0.2)
    people = labelling.annotators(queue, 2)
    for person in people:
        for _ in range(queue.items.count()):
            labelling.label_next(person, "correct")
    return queue, people


def test_a_queue_is_told_under_pseudonyms(bell: Bell) -> None:
    queue, people = labelled_queue()
    report = built(queue.workspace, queue.name)

    assert report.kind == "queue"
    assert one(report, "percent_agreement")["value"] == 1
    assert one(report, "gold_accuracy")["value"] == 1
    right = one(report, "labelled_right")
    assert (right["num"], right["den"]) == (5, 5)
    assert one(report, "krippendorff_alpha", level="nominal")["value"] is None
    names = {person.user.get_username() for person in people}
    said = report.body + "".join(
        str(item.labels) for item in ReportItem.objects.filter(report=report)
    )
    assert not any(name in said for name in names)
    assert all(person.pseudonym in said for person in people)
    reader = signed_in(member(queue.workspace, Role.READER))
    page = reader.get(f"/w/home/reports/{queue.name}/").content.decode()
    assert "Do the people who labelled agree" in page and "by 2 people" in page


def test_while_labelling_goes_on_there_are_counts_alone(bell: Bell) -> None:
    queue = labelling.queue_of(labelling.answers(3), overlap=2)
    (person,) = labelling.annotators(queue, 1)
    labelling.label_next(person)
    report = built(queue.workspace, queue.name)

    (told,) = figures(report)
    assert told["value"] is None and told["reason"].startswith("labelling goes on: 1 of 6 labels")
    assert not ReportItem.objects.filter(report=report).exists()

    Queue.objects.filter(pk=queue.pk).update(status=QueueStatus.CLOSED)
    closed = built(queue.workspace, queue.name)
    assert closed != report and len(figures(closed)) > 1


@pytest.mark.parametrize("role", [Role.ANNOTATOR, None])
def test_who_may_not_read_results_finds_nothing(audited: JudgmentSet, role: Role | None) -> None:
    built(audited.workspace, audited.name)
    away = Workspace.objects.get_or_create(name="away")[0]
    home = audited.workspace if role else away
    client: Client = signed_in(member(home, role or Role.OWNER))
    for page in ("", "rows?metric=conflict_rate&condition=scripted", "report.json"):
        assert client.get(f"/w/home/reports/audit/{page}").status_code == 404


def test_every_metric_of_judges_and_people_has_its_words(audited: JudgmentSet) -> None:
    report = build_report(workspace=audited.workspace, name=audited.name)
    used = {figure["metric"] for body in report["conditions"] for figure in body["figures"]}
    assert used <= set(DEFINITIONS)
    assert b"No such figure" not in page_bytes(report)


def test_beliefs_of_a_queue_are_told_turn_by_turn(bell: Bell) -> None:
    ask = Ask(kind="belief", title="Which is right?")
    items = [
        NewItem(
            item_id=f"d{i}",
            unit_id=f"d{i}",
            question_id=f"q{i}",
            shown={
                "question": f"Question {i}",
                "candidates": [{"candidate_id": name, "text": name} for name in ("x", "y")],
            },
            secret={"correct": "x"},
        )
        for i in range(2)
    ]
    queue = labelling.queue_of(items, label=LabelSchema(ask=ask))
    (person,) = labelling.annotators(queue, 1)
    for _ in items:
        mine = labelling.claimed(person)
        turns = [
            {"turn": 1, "belief": {"x": 50, "y": 50}},
            {"turn": 2, "belief": {"x": 80, "y": 20}},
        ]
        said = labelling.said({"x": 80, "y": 20}, beliefs=turns)
        submit(annotator=person, slot_id=mine.slot.pk, fence=mine.slot.fence, said=said)
    report = built(queue.workspace, queue.name)

    assert one(report, "judge_accuracy")["num"] == 2
    assert one(report, "brier")["value"] == pytest.approx(0.04)
    by_turn = json.loads(report.body)["conditions"][0]["tables"]["beliefs_by_turn"]
    assert [(row["after"], row["n"], row["mean_on_correct"]) for row in by_turn] == [
        (1, 2, 0.5),
        (2, 2, 0.8),
    ]


def test_agreement_stands_also_without_items_that_give_themselves_away(bell: Bell) -> None:
    items = labelling.answers(4)
    told = dict(items[0].shown) | {"answer": "I am ChatGPT, made by OpenAI: it is 1."}
    queue = labelling.queue_of([replace(items[0], shown=told), *items[1:]], overlap=2)
    for person in labelling.annotators(queue, 2):
        for _ in items:
            labelling.label_next(person)
    report = built(queue.workspace, queue.name)

    counts = json.loads(report.body)["conditions"][0]["tables"]["labels"]
    assert counts["items_that_give_away"] == 1
    assert one(report, "percent_agreement")["den"] == 4
    assert one(report, "percent_agreement", items="without giveaways")["den"] == 3


def test_the_pages_print_the_head_of_the_trail(audited: JudgmentSet) -> None:
    report = build_report(workspace=audited.workspace, name=audited.name)
    page = page_bytes(report, head=Head(7, "f" * 64)).decode()
    assert "act 7" in page and "f" * 64 in page


def test_a_queue_on_judgments_has_the_judge_beside_the_people(audited: JudgmentSet) -> None:
    """People who label the judge's items here are one more source beside the imported labels."""
    items = [
        NewItem(
            item_id=item.item_id,
            unit_id=item.item_id,
            question_id=item.question_id,
            shown={"question": item.question, "candidates": item.candidates},
        )
        for item in audited.items.order_by("position")[:4]
    ]
    new = NewQueue(
        name="second-look",
        kind=QueueKind.PAIR,
        design=QueueDesign(label=labelling.PAIR, overlap=1),
        items=items,
        source={"kind": "judgments", "name": audited.name},
        seed=3,
        guideline="Be fair.",
    )
    queue = create_queue(workspace=audited.workspace, new=new, actor=None)
    (person,) = labelling.annotators(queue, 1)
    for _ in items:
        labelling.label_next(person, "one")

    report = built(queue.workspace, queue.name)
    people, judge = json.loads(report.body)["conditions"]
    assert (people["name"], judge["judge"]) == ("people", "scripted")
    with_person = {"pair": f"judge|{person.pseudonym}", "order": "given"}
    (agreed,) = (
        figure
        for figure in figures(report, 1)
        if figure["metric"] == "percent_agreement"
        and figure["agg"] == "pooled"
        and figure["by"] == with_person
    )
    assert (agreed["num"], agreed["den"]) == (4, 4)

    whole = built(audited.workspace, audited.name)
    names = [condition["name"] for condition in json.loads(whole.body)["conditions"]]
    assert names == ["scripted", "people: imported labels", "people: second-look"]
    second = {"pair": "judge|majority", "order": "swapped", "labels": "second-look"}
    assert one(whole, "percent_agreement", **second)["value"] == 0

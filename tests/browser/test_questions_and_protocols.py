"""Importing questions and editing a protocol in a real browser: typed, swapped, looked at."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from debateweb.models import Role, User, Workspace
from runs.engine.types import Evidence
from runs.importers.records import (
    AgentRecord,
    BeliefRecord,
    ClaimRecord,
    DebateRecord,
    FinalRecord,
    QuestionRecord,
    TurnRecord,
)
from runs.models import Debate, DebateSet, Question, QuestionSet
from runs.protocols.spec import Protocol
from runs.services import uploads
from runs.services.archiving import archive_set
from runs.services.imports import import_debates, import_questions
from runs.services.protocol_versions import save_version
from tests.browser.conftest import LOOKS, NewContext, faults, screenshot
from tests.browser.hostile import ACTS, HOSTILE, HOSTILE_NAME, MEGABYTE, watched
from tests.debateweb.people import member
from tests.runs import factories

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
ROWS = "problem,gold,topic\nWhat is 1+1?,2,sums\nWhat is 2+2?,4,sums\n"
EDIT = "/w/home/protocols/edit?from=du_2023"


@pytest.fixture
def owner() -> User:
    return member(Workspace.objects.create(name="home"), Role.OWNER)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_folder", lambda workspace: tmp_path / str(workspace.pk))


def import_rows(page: Page) -> None:
    page.goto("/w/home/questions/import")
    page.get_by_label("Or paste rows").fill(ROWS)
    page.get_by_role("button", name="Look at it").click()
    expect(page.get_by_role("heading", name="Is this right?")).to_be_visible()


@pytest.mark.parametrize("scripts", [True, False])
def test_pasted_rows_are_corrected_confirmed_and_filtered(
    new_context: NewContext, owner: User, scripts: bool
) -> None:
    page = new_context(user=owner, scripts=scripts).new_page()
    import_rows(page)
    page.get_by_label("Answers are, where a row does not say").select_option("number")
    page.get_by_role("button", name="Read it like this").click()
    page.go_back()
    page.go_forward()
    page.get_by_label("Name of the set").fill("sums")
    page.get_by_role("button", name="Import 2 questions").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("sums")
    expect(page.get_by_role("cell", name="number", exact=True).first).to_be_visible()


def test_typing_in_the_form_changes_drawing_bound_and_yaml_and_keeps_the_focus(
    new_context: NewContext, owner: User
) -> None:
    page = new_context(user=owner).new_page()
    page.goto(EDIT)
    rounds = page.get_by_label("Rounds after the first answer")
    rounds.fill("3")
    expect(page.locator("#sketch")).to_contain_text("t = 3")
    expect(page.locator("#yaml")).to_have_value(re.compile("revision_rounds: 3"))
    expect(rounds).to_be_focused()
    rounds.fill("many")
    expect(page.locator("#in-revision_rounds-fault")).to_contain_text("has to be a whole number")
    rounds.fill("2")
    expect(page.locator("#in-revision_rounds-fault")).to_be_empty()


def test_typing_yaml_changes_the_form_and_keeps_the_focus(
    new_context: NewContext, owner: User
) -> None:
    page = new_context(user=owner).new_page()
    page.goto(EDIT)
    page.locator("#yaml-card > summary").click()
    yaml = page.locator("#yaml")
    yaml.fill(yaml.input_value().replace("revision_rounds: 1", "revision_rounds: 4"))
    expect(page.get_by_label("Rounds after the first answer")).to_have_value("4")
    expect(yaml).to_be_focused()
    page.get_by_role("button", name="Save a version").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("version 1")


@LOOKS
def test_the_pages_are_readable_and_have_no_fault(
    new_context: NewContext, owner: User, phone: bool, dark: bool
) -> None:
    page = new_context(user=owner, phone=phone, dark=dark).new_page()
    kind = "dark" if dark else "phone" if phone else "desktop"
    import_rows(page)
    screenshot(page, f"import-preview-{kind}")
    broken = {"import-preview": faults(page)}
    for name, url in {
        "protocols": "/w/home/protocols/",
        "protocol": "/w/home/protocols/shipped/sparse_ring/?against=du_2023&price.in=1",
        "protocol-edit": EDIT,
        "questions": "/w/home/questions/",
    }.items():
        page.goto(url)
        screenshot(page, f"{name}-{kind}")
        broken[name] = faults(page)
    assert {name: said for name, said in broken.items() if said} == {}


def hostile_question() -> QuestionRecord:
    return QuestionRecord(
        id=HOSTILE_NAME,
        question=MEGABYTE,
        reference=(HOSTILE, MEGABYTE),
        answer_type="choice",
        choices=(HOSTILE, MEGABYTE),
        stratum=HOSTILE_NAME,
        family=HOSTILE_NAME,
        evidence=(Evidence(HOSTILE_NAME, MEGABYTE, HOSTILE), Evidence("e2", HOSTILE)),
        metadata={HOSTILE: HOSTILE, "long": MEGABYTE},
    )


def filled_sets(owner: User) -> dict[str, str]:
    """Store sets of 60 questions in five strata, a hostile debate, archived sets: the pages."""
    home = Workspace.objects.get(name="home")
    rows = [replace(q, stratum=f"level {i % 5}") for i, q in enumerate(factories.questions(60))]
    import_questions(
        workspace=home, name="sums", format_name="jsonl", records=[*rows, hostile_question()]
    )
    turn = TurnRecord(
        HOSTILE_NAME, HOSTILE, MEGABYTE, claims=(ClaimRecord("c1", HOSTILE),), confidence=0.5
    )
    debate = DebateRecord(
        HOSTILE_NAME,
        hostile_question(),
        HOSTILE_NAME,
        agents=(AgentRecord(HOSTILE_NAME, HOSTILE_NAME), AgentRecord("b", "m")),
        rounds=((turn, TurnRecord("b", None, None, status="TIMEOUT")), (turn,)),
        beliefs=(BeliefRecord(HOSTILE_NAME, 1, {HOSTILE: 0.75, "other": 0.25}),),
        final=FinalRecord(HOSTILE, HOSTILE_NAME),
    )
    import_debates(workspace=home, name="log", format_name="jsonl", records=[debate])
    import_questions(
        workspace=home, name="gone", format_name="jsonl", records=factories.questions(2)
    )
    gone = QuestionSet.objects.get(name="gone")
    archive_set(workspace=home, archived=gone, actor=owner)
    prompts = {"initial": f"{ACTS}\n{{{{question}}}}", "revision": "{{question}} {{peers}}"}
    text = factories.protocol_text(name="hostile", prompts={**prompts, "peer": "{{text}}"})
    protocol = Protocol.model_validate_json(text.replace("{{ 7|add:7 }}", ""))
    version, _ = save_version(workspace=home, protocol=protocol, actor=owner)
    questions, log = QuestionSet.objects.get(name="sums"), DebateSet.objects.get(name="log")
    hostile = Question.objects.get(question_set=questions, external_id=HOSTILE_NAME)
    return {
        "questions-filled": "/w/home/questions/",
        "question-set": f"/w/home/questions/{questions.pk}/",
        "question-set-end": f"/w/home/questions/{questions.pk}/?after=49",
        "question-stratum": f"/w/home/questions/{questions.pk}/?stratum=level+1",
        "question": f"/w/home/questions/{questions.pk}/{hostile.pk}",
        "question-set-archive": f"/w/home/questions/{questions.pk}/archive",
        "protocol-version": f"/w/home/protocols/{version.pk}/",
        "debates": "/w/home/questions/debates/",
        "debate-set": f"/w/home/questions/debates/{log.pk}/",
        "debate": f"/w/home/questions/debates/{log.pk}/{Debate.objects.get(debate_set=log).pk}",
    }


@LOOKS
def test_filled_sets_have_no_fault_and_their_text_does_nothing(
    new_context: NewContext, owner: User, phone: bool, dark: bool
) -> None:
    pages = filled_sets(owner)
    page = new_context(user=owner, phone=phone, dark=dark).new_page()
    seen = watched(page)
    broken = {}
    for name, url in pages.items():
        page.goto(url)
        page.wait_for_load_state("networkidle")
        screenshot(page, f"{name}-{'phone' if phone else 'desktop'}-{'dark' if dark else 'light'}")
        broken[name] = [*faults(page), *seen.acted(page)]
    assert {name: said for name, said in broken.items() if said} == {}


def test_a_line_of_a_megabyte_is_cut_and_can_be_read_to_its_end(
    new_context: NewContext, owner: User
) -> None:
    pages = filled_sets(owner)
    page = new_context(user=owner).new_page()
    seen = watched(page)
    for name in ("question", "debate"):
        page.goto(pages[name])
        expect(page.locator("main")).not_to_contain_text("the-very-end")
        page.get_by_role("link", name=re.compile("all of it", re.IGNORECASE)).first.click()
        expect(page.locator("main")).to_contain_text("the-very-end")
        assert seen.acted(page) == []


def test_an_archived_set_is_in_no_list_and_its_pages_are_gone(
    new_context: NewContext, owner: User
) -> None:
    filled_sets(owner)
    page = new_context(user=owner).new_page()
    page.goto("/w/home/questions/")
    expect(page.get_by_role("link", name="sums")).to_be_visible()
    expect(page.get_by_role("link", name="gone")).to_have_count(0)
    answer = page.goto(f"/w/home/questions/{QuestionSet.objects.get(name='gone').pk}/")
    assert answer is not None and answer.status == 404
    assert faults(page) == []

"""Reports on judgments in real Chromium: readable, clean for axe, opened by keyboard."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from audits import services
from audits.judging.items import AuditItem, Candidate
from audits.judgment_models import JudgmentSet
from debateweb.models import Role
from tests.audits.judging import making as judging
from tests.audits.reports.commands import command
from tests.audits.reports.experiments import Deaf
from tests.browser.conftest import LOOKS, NewContext, faults, screenshot
from tests.debateweb.people import member

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> JudgmentSet:
    """Return an audit with labels of three people, and its report built."""
    monkeypatch.setattr("audits.services.current_app", Deaf())
    monkeypatch.setattr("audits.reports.build.REPORT_RESAMPLES", 100)
    made = judging.judged(judging.audit(judging.pairs(6)), judging.longer)
    labels = tmp_path / "labels.jsonl"
    lines = [
        {"item_id": f"i{i}", "annotator": who, "kind": "pairwise", "label": label}
        for i in range(6)
        for who, label in (("a", "one"), ("b", "one"), ("c", "two" if i % 2 else "one"))
    ]
    labels.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert command("audits", "labels", "import", str(labels), "--into", made.name)[0] == 0
    built(made)
    return made


def built(made: JudgmentSet) -> None:
    asked = services.ask_for_report(workspace=made.workspace, name=made.name, actor=None)
    assert asked is not None
    services.build_stored(asked.pk)


@LOOKS
def test_a_judge_report_is_clean_and_leads_to_its_items(
    audited: JudgmentSet, new_context: NewContext, phone: bool, dark: bool
) -> None:
    reader = member(audited.workspace, Role.READER)
    page = new_context(user=reader, phone=phone, dark=dark).new_page()
    look = f"{'phone' if phone else 'desktop'}-{'dark' if dark else 'light'}"

    page.goto("/w/home/reports/audit/")
    expect(page.get_by_role("heading", name="Three agreements")).to_be_visible()
    screenshot(page, f"judge-report-{look}")
    assert not faults(page)
    page.get_by_role("link", name="scripted", exact=True).first.press("Enter")
    expect(page.get_by_role("img", name="Verdicts under both orders")).to_be_visible()
    screenshot(page, f"judge-report-open-{look}")
    assert not faults(page)

    page.goto("/w/home/reports/audit/rows?metric=percent_agreement&condition=people")
    expect(page.get_by_role("table")).to_contain_text("c:")
    screenshot(page, f"judge-items-{look}")
    assert not faults(page)


def test_many_candidates_have_their_matrix(
    new_context: NewContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("audits.services.current_app", Deaf())
    monkeypatch.setattr("audits.reports.build.REPORT_RESAMPLES", 100)
    items = [
        AuditItem(
            item_id=f"i{i}",
            question_id=f"q{i}",
            question="Which?",
            candidates=tuple(Candidate(name, f"text {name} {i}") for name in ("x", "y", "z")),
        )
        for i in range(3)
    ]
    made = judging.judged(judging.audit(items, mode="listwise", repeats=1), judging.first)
    built(made)
    reader = member(made.workspace, Role.READER)
    page = new_context(user=reader).new_page()

    page.goto("/w/home/reports/audit/#condition-1")
    drawn = page.get_by_role("img", name="Wins by candidate and place")
    expect(drawn).to_contain_text("6/6")
    screenshot(page, "judge-report-places")
    assert not faults(page)

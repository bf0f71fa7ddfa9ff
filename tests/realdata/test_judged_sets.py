"""Published judgments by command, as rows of the database: counts of data/README.md."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from audits.judgment_models import Judgment, JudgmentSet
from audits.queue_models import ImportedLabel
from audits.rows.judgments import judgment_rows
from debateweb.access import ensure_default_workspace
from tests.audits.reports.commands import command

pytestmark = [pytest.mark.realdata, pytest.mark.django_db]


def imported(path: Path, name: str) -> JudgmentSet:
    ensure_default_workspace()
    words = ("judgments", "import", str(path), "--name", name, "--format", name)
    assert command("audits", *words)[0] == 0
    return JudgmentSet.objects.get(name=name)


def test_llmbar_natural_by_gpt_4_agrees_with_itself_on_97_of_100(real_data: Path) -> None:
    made = imported(real_data / "llmbar", "llmbar")
    rows = [
        row
        for judge, its in judgment_rows(made).items()
        if judge.name == "GPT-4/Vanilla_NoRules"
        for row in its
        if row.group == "LLMBar/Natural"
    ]
    by_item: dict[str, dict[tuple[str, ...], str | None]] = {}
    for row in rows:
        by_item.setdefault(row.item_id, {})[row.order] = row.verdict
    same = sum(len(set(v.values())) == 1 and None not in v.values() for v in by_item.values())
    given = Counter(row.verdict == row.gold for row in rows if row.order == row.candidates)
    turned = Counter(row.verdict == row.gold for row in rows if row.order != row.candidates)
    assert (len(by_item), same, given[True], turned[True]) == (100, 97, 92, 95)


def test_pandalm_comes_with_what_three_people_said_of_999_pairs(real_data: Path) -> None:
    made = imported(real_data / "pandalm", "pandalm")
    assert made.size == 999
    labels = ImportedLabel.objects.filter(judgment_set=made)
    assert labels.count() == 999 * 3
    assert labels.values("annotator").distinct().count() == 3


@pytest.mark.parametrize("name", ["vicuna_blog", "chateval"])
def test_the_other_published_sets_are_stored_whole(real_data: Path, name: str) -> None:
    made = imported(real_data / name, name)
    assert made.size > 0 and Judgment.objects.filter(item__judgment_set=made).count() >= made.size


def test_beliefs_of_the_debate_judges_go_with_the_debates(real_data: Path) -> None:
    ensure_default_workspace()
    folder = real_data / "nyu_debate"
    path = next(path for path in sorted(folder.iterdir()) if path.suffix in {".json", ".jsonl"})
    words = ("debates", "import", str(path), "--name", "nyu", "--format", "nyu")
    assert command("runs", *words)[0] == 0
    words = ("labels", "import", str(path), "--into", "nyu", "--format", "nyu")
    assert command("audits", *words)[0] == 0
    assert ImportedLabel.objects.filter(debate_set__name="nyu", kind="belief").count() >= 163

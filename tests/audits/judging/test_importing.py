"""Judgments and labels by command: whole or not at all, twice adds nothing, out and in again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from audits.judgment_models import JudgmentSet
from audits.queue_models import ImportedLabel, Label
from audits.rows.judgments import judgment_rows
from audits.rows.labels import label_records_of
from debateweb.access import ensure_default_workspace
from debateweb.models import AuditEvent
from tests.audits.queues.making import annotators, home, label_next, pairs, queue_of
from tests.audits.reports.commands import command

pytestmark = pytest.mark.django_db


def judgment(item: str, order: str, verdict: str | None, **fields: Any) -> dict[str, Any]:
    return {
        "item_id": item,
        "question": "Which?",
        "candidates": [
            {"candidate_id": "a", "text": "left", "model": "m1"},
            {"candidate_id": "b", "text": "right"},
        ],
        "judge": {"name": "j", "model": "m1"},
        "order": list(order),
        "repeat": 1,
        "verdict": verdict,
        "status": "SUCCEEDED" if verdict else "INVALID",
        "gold": "a",
    } | fields


def written(folder: Path, rows: list[dict[str, Any]], name: str = "f.jsonl") -> str:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def stored(tmp_path: Path) -> JudgmentSet:
    ensure_default_workspace()
    rows = [judgment("i1", "ab", "a"), judgment("i1", "ba", "b"), judgment("i2", "ab", None)]
    assert command("audits", "judgments", "import", written(tmp_path, rows), "--name", "js")[0] == 0
    return JudgmentSet.objects.get()


def test_judgments_become_rows_and_the_same_file_twice_adds_nothing(
    stored: JudgmentSet, tmp_path: Path
) -> None:
    (judge, rows), *others = judgment_rows(stored).items()
    assert not others and judge.name == "j"
    assert [(r.item_id, r.order, r.verdict, r.gold, r.own) for r in rows] == [
        (r.item_id, r.order, verdict, "a", "a")
        for r, verdict in zip(rows, (r.verdict for r in rows), strict=True)
    ]
    assert {(r.item_id, "".join(r.order), r.verdict) for r in rows} == {
        ("i1", "ab", "a"),
        ("i1", "ba", "b"),
        ("i2", "ab", None),
    }
    path = str(tmp_path / "f.jsonl")
    code, said = command("audits", "judgments", "import", path, "--name", "js")
    assert code == 0 and "nothing added" in said
    assert JudgmentSet.objects.count() == 1
    assert AuditEvent.objects.filter(act="judgments.import").count() == 1


def test_a_fault_is_told_by_line_and_nothing_is_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ensure_default_workspace()
    path = written(tmp_path, [judgment("i1", "ab", "a"), judgment("i2", "ab", "zebra")])
    code, _ = command("audits", "judgments", "import", path, "--name", "js")
    assert code == 2 and "f.jsonl:2: verdict" in capsys.readouterr().err
    assert not JudgmentSet.objects.exists()


def label(item: str, who: str, said: str, **fields: Any) -> dict[str, Any]:
    return {"item_id": item, "annotator": who, "kind": "pairwise", "label": said} | fields


def test_labels_of_people_are_added_once_and_come_out_as_they_went_in(
    stored: JudgmentSet, tmp_path: Path
) -> None:
    rows = [
        label("i1", "ann", "a", comment="=1+1", weight=2.5, shown_order=["b", "a"]),
        label("i1", "bob", "tie", at="2026-01-01T00:00:00Z", metadata={"x": [1]}),
        label("i2", "ann", "b", guideline_version="v2", reveal_state="after_reveal"),
    ]
    path = written(tmp_path, rows, "labels.jsonl")
    for added in (3, 0):
        code, said = command("audits", "labels", "import", path, "--into", "js")
        assert code == 0 and ("nothing added" in said) == (added == 0)
    assert ImportedLabel.objects.count() == 3
    out = tmp_path / "out.jsonl"
    assert command("audits", "labels", "export", "js", "-o", str(out))[0] == 0
    given = sorted(rows, key=lambda row: (row["item_id"], row["annotator"]))
    assert [json.loads(line) for line in out.read_text().splitlines()] == given
    csv = tmp_path / "out.csv"
    assert command("audits", "labels", "export", "js", "--format", "csv", "-o", str(csv))[0] == 0
    assert ",=1+1" not in csv.read_text() and "=1+1" in csv.read_text()


def test_a_label_of_an_unknown_item_is_refused_whole(
    stored: JudgmentSet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, [label("i1", "ann", "a"), label("i9", "ann", "a")])
    assert command("audits", "labels", "import", path, "--into", "js")[0] == 2
    assert "item_id: 'i9': no such item in 'js'" in capsys.readouterr().err
    assert command("audits", "labels", "import", path, "--into", "nope")[0] == 2
    assert not ImportedLabel.objects.exists()


def test_labels_of_a_queue_come_out_under_pseudonyms_and_go_into_another_queue(
    tmp_path: Path,
) -> None:
    queue = queue_of(pairs(3), overlap=2)
    people = annotators(queue, 2)
    for person, said in zip(people, ("x", "tie"), strict=True):
        for _ in range(3):
            label_next(person, said)
    out = tmp_path / "labels.jsonl"
    assert command("audits", "labels", "export", "queue", "-o", str(out))[0] == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert {line["annotator"] for line in lines} == {person.pseudonym for person in people}
    assert all(person.name not in out.read_text() for person in people)
    other = queue_of(pairs(3), name="other")
    assert command("audits", "labels", "import", str(out), "--into", "other")[0] == 0
    assert Label.objects.filter(item__queue=other).count() == 6
    again = list(label_records_of(home(), "other"))
    wanted = sorted((line["item_id"], line["label"], tuple(line["shown_order"])) for line in lines)
    assert sorted((r.item_id, r.label, r.shown_order) for r in again) == wanted

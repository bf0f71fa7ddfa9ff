"""Labels through an annotation tool's file by command: out, in, out again, without loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from audits.queue_models import ImportedLabel
from debateweb.access import ensure_default_workspace
from tests.audits.reports.commands import command

pytestmark = pytest.mark.django_db
PEOPLE = ("ada", "ben", "çelik")


def ok(*words: str) -> str:
    code, said = command("audits", *words)
    assert code == 0, said
    return said


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return path


def judged(tmp_path: Path, count: int) -> Path:
    """Return a file of so many judged pairs."""
    ensure_default_workspace()
    return lines(
        tmp_path / "judgments.jsonl",
        [
            {
                "item_id": f"i{i:03}",
                "question": f"Which is better, {i}?",
                "candidates": [
                    {"candidate_id": "one", "text": f"first {i}"},
                    {"candidate_id": "two", "text": f"second {i}"},
                ],
                "judge": "somebody",
                "order": ["one", "two"],
                "repeat": 1,
                "verdict": "one",
                "status": "SUCCEEDED",
            }
            for i in range(count)
        ],
    )


def label(i: int, person: str) -> dict[str, Any]:
    choices = ("one", "two", "tie")
    return {
        "item_id": f"i{i:03}",
        "annotator": person,
        "kind": "pairwise",
        "label": choices[(i + len(person) * PEOPLE.index(person)) % 3],
        "unit": "item",
        "weight": 2.5,
        "shown_order": ["two", "one"] if i % 2 else ["one", "two"],
        "shown_reference": i % 5 == 0,
        "guideline_version": "3",
        "active_seconds": i + 0.25,
        "reveal_state": "after_reveal" if i % 50 == 0 else "sealed",
        "confidence": 0.5,
        "comment": f"“{i}” = said,\nin two lines 🙂",
        "at": f"2026-03-{i % 28 + 1:02}T10:00:00+00:00",
        "metadata": {"version": 1 + i % 2, "note": [1, None, {"deep": True}]},
    }


@pytest.mark.parametrize(
    ("tool", "count"), [("label_studio", 200), ("argilla", 20), ("langfuse", 20)]
)
def test_labels_of_3_people_go_out_and_in_again_without_loss(
    tmp_path: Path, tool: str, count: int
) -> None:
    for name in ("here", "there"):
        ok("judgments", "import", str(judged(tmp_path, count)), "--name", name)
    labels = [label(i, person) for i in range(count) for person in PEOPLE]
    said = lines(tmp_path / "labels.jsonl", labels)
    ok("labels", "import", str(said), "--into", "here", "--format", "jsonl")
    out = {
        (name, form): tmp_path / f"{name}.{form}"
        for name in ("here", "there")
        for form in (tool, "jsonl")
    }

    ok("labels", "export", "here", "--format", tool, "-o", str(out["here", tool]))
    ok("labels", "import", str(out["here", tool]), "--into", "there", "--format", tool)
    for (name, form), path in out.items():
        ok("labels", "export", name, "--format", form, "-o", str(path))

    assert out["here", tool].read_bytes() == out["there", tool].read_bytes()
    assert out["here", "jsonl"].read_bytes() == out["there", "jsonl"].read_bytes()
    told = [json.loads(line) for line in out["there", "jsonl"].read_text().splitlines()]
    assert sorted(map(key, told)) == sorted(map(key, labels))

    ok("labels", "import", str(out["there", tool]), "--into", "here", "--format", tool)
    assert ImportedLabel.objects.filter(judgment_set__name="here").count() == 3 * count


def key(said: dict[str, Any]) -> str:
    return json.dumps(said, sort_keys=True)

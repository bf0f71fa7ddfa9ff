"""`report`: where it writes, what it refuses, and two files compared."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audits.reports.diff import differences
from audits.reports.table import table_bytes
from runs.demo import LOG_FILE
from tests.audits.reports.commands import command

pytestmark = pytest.mark.django_db

DEBATE = {
    "debate_id": "d1",
    "question_id": "q1",
    "question": "1 + 1?",
    "reference": "2",
    "answer_type": "number",
    "protocol": "=SUM(A1)",
    "agents": [{"agent_id": "a", "model": "m"}, {"agent_id": "b", "model": "m"}],
    "rounds": [[{"agent_id": "a", "answer": "2"}, {"agent_id": "b", "answer": "3"}]],
}


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(DEBATE) + "\n", encoding="utf-8")
    assert command("runs", "debates", "import", str(path), "--name", "log")[0] == 0
    return "log"


def test_standard_output_is_the_report_itself(log: str) -> None:
    code, said = command("audits", "report", log)
    report = json.loads(said)
    assert (code, report["kind"], report["name"]) == (0, "debates", "log")
    (condition,) = report["conditions"]
    assert condition["reads"] == "recorded"
    assert condition["marked"] is None
    assert "reads recorded" in condition["labels"]


def test_a_simulated_log_says_so(tmp_path: Path) -> None:
    assert command("runs", "debates", "import", str(LOG_FILE), "--name", "demo")[0] == 0
    (condition,) = json.loads(command("audits", "report", "demo")[1])["conditions"]
    assert condition["marked"] == "simulated"
    assert condition["labels"][0] == "simulated"


def test_a_file_is_replaced_whole_and_nothing_else_is_left(log: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "report.json"
    target.write_text("old")
    code, said = command("audits", "report", log, "-o", str(target), "--json")
    assert code == 0
    summary = json.loads(said)
    assert (summary["name"], summary["kind"]) == ("log", "debates")
    assert json.loads(target.read_text())["inputs"] == summary["inputs"]
    assert list(folder.iterdir()) == [target]


def test_a_link_keeps_pointing_at_its_file(log: str, tmp_path: Path) -> None:
    target, link = tmp_path / "real.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(target)
    assert command("audits", "report", log, "-o", str(link))[0] == 0
    assert link.is_symlink()
    assert json.loads(target.read_text())["name"] == "log"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["nothing"],
            "no set of imported debates or judgments and no queue 'nothing'",
        ),
        (["log", "--format", "pdf"], "--format pdf is not there yet"),
        (["log", "--format", "xls"], "invalid choice: 'xls'"),
        (["log", "-o", "no/such/folder/r.json"], "there is no folder"),
        (["log", "-o", "."], "-o: "),
        (["log", "--site", "javascript:alert(1)"], "is no address such as https://"),
        (["one", "two"], "give one NAME, or: diff A B"),
        (["diff", "no-a.json", "no-b.json"], "no-a.json: No such file or directory"),
    ],
)
def test_what_is_wrong_is_one_line_and_code_2(
    log: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("audits", "report", *words)[0] == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert len(errors.splitlines()) == 1


def test_the_table_has_a_row_a_figure_and_no_formula(log: str, tmp_path: Path) -> None:
    code, said = command("audits", "report", log, "--format", "csv")
    assert code == 0
    rows = list(csv.DictReader(said.splitlines()))
    report = json.loads(command("audits", "report", log)[1])
    assert len(rows) == len(report["conditions"][0]["figures"])
    assert {row["condition"] for row in rows} == {"'=SUM(A1)"}
    first = report["conditions"][0]["figures"][0]
    assert rows[0]["metric"] == first["metric"]
    assert float(rows[0]["value"]) == first["value"]


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_begins_as_a_formula_does(start: str) -> None:
    figure: dict[str, Any] = {
        "metric": "m", "by": {}, "ci": None, "notes": [f"{start}1"], "value": -0.5,
        "reason": f"{start}cmd", "agg": None,
    }  # fmt: skip
    report = {
        "conditions": [{"name": f"{start}x", "marked": None, "figures": [figure]}],
        "comparisons": [{"a": f"{start}a", "b": "b", "figures": [figure]}],
    }
    rows = list(csv.DictReader(table_bytes(report).decode().splitlines(keepends=True)))
    assert [row["condition"][:2] for row in rows] == [f"'{start}"] * 2
    assert all(row["reason"].startswith("'") and row["notes"].startswith("'") for row in rows)
    assert [row["value"] for row in rows] == ["-0.5", "-0.5"]


def test_equal_reports_have_no_difference(log: str, tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for path in paths:
        assert command("audits", "report", log, "-o", path)[0] == 0
    assert Path(paths[0]).read_bytes() == Path(paths[1]).read_bytes()
    code, said = command("audits", "report", "diff", *paths)
    assert (code, said.strip()) == (0, "no difference")


def test_a_difference_is_named_by_its_figure_and_is_code_1(log: str, tmp_path: Path) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    assert command("audits", "report", log, "-o", str(a))[0] == 0
    report = json.loads(a.read_text())
    changed = next(f for f in report["conditions"][0]["figures"] if f["metric"] == "oracle_any")
    changed["num"] = 7
    b.write_text(json.dumps(report))
    code, said = command("audits", "report", "diff", str(a), str(b))
    assert code == 1
    (line,) = said.strip().splitlines()
    assert "oracle_any" in line
    assert line.endswith("num: 1 → 7")


def test_two_files_are_compared_without_a_database(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"schema_version": 1, "kind": "debates", "conditions": []}))
    with CaptureQueriesContext(connection) as queries:
        assert command("audits", "report", "diff", str(path), str(path))[0] == 0
    assert len(queries) == 0


@pytest.mark.parametrize("text", ["{", "[]", '{"kind": "debates"}', "[" * 100_000])
def test_a_file_that_is_no_report_is_one_line(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    assert command("audits", "report", "diff", str(path), str(path))[0] == 2
    errors = capsys.readouterr().err
    assert str(path) in errors
    assert len(errors.splitlines()) == 1


def test_one_figure_more_does_not_shift_the_others() -> None:
    one = [{"metric": "x", "value": 1}, {"metric": "y", "value": 2}]
    assert list(differences(one, one[1:])) == ['[x]: {"metric": "x", "value": 1} → absent']


def test_a_figure_does_not_differ_by_the_address_of_its_rows() -> None:
    first, other = (
        [{"metric": "x", "value": 1, "rows": f"/api/{name}/rows"}] for name in ("a", "b")
    )
    assert list(differences(first, other)) == []
    assert list(differences({"rows": 1}, {"rows": 2})) == ["rows: 1 → 2"]


def test_true_is_not_one() -> None:
    assert list(differences({"a": True}, {"a": 1})) == ["a: true → 1"]


def test_a_report_is_written_as_one_page_that_needs_nothing_else(log: str, tmp_path: Path) -> None:
    target = tmp_path / "report.html"

    assert command("audits", "report", log, "--format", "html", "-o", str(target))[0] == 0

    page = target.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "imported as logged" in page
    assert "<script" not in page and "<link" not in page


def test_the_figures_of_the_page_lead_to_their_rows_on_the_site(log: str, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    words = ("--format", "html", "--site", "https://debates.example.org/", "-o", str(target))

    assert command("audits", "report", log, *words)[0] == 0

    page = target.read_text(encoding="utf-8")
    assert 'href="https://debates.example.org/w/main/reports/log/rows?condition=' in page

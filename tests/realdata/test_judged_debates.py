"""Judges' two stages and judged sessions through the commands, as debates that ran elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.audits.reports.commands import command, figure, report_json

pytestmark = [pytest.mark.realdata, pytest.mark.django_db]


def reported(source: Path, folder: Path, format_name: str) -> dict[str, dict[str, Any]]:
    """Import a log by command, report on it by command, return its conditions by name."""
    words = ("--name", "log", "--format", format_name)
    code, said = command("runs", "debates", "import", str(source), *words)
    assert code == 0, said
    return {one["name"]: one for one in report_json("log", folder)["conditions"]}


def share(condition: dict[str, Any], metric: str) -> tuple[int, int]:
    found = figure(condition, metric, agg="pooled", by={})
    return found["num"], found["den"]


def test_the_second_stage_of_llmbar_repairs_and_damages_the_first(
    real_data: Path, tmp_path: Path
) -> None:
    found = reported(real_data / "llmbar/verdicts.csv", tmp_path, "llmbar_swap")
    assert share(found["GPT-4/Swap"], "repair_T") == (31, 161)
    assert share(found["GPT-4/Swap"], "damage_T") == (5, 677)
    assert share(found["ChatGPT/Swap"], "repair_T") == (72, 497)
    assert share(found["ChatGPT/Swap"], "damage_T") == (63, 341)


def test_sessions_of_nyu_are_a_condition_for_each_setting(real_data: Path, tmp_path: Path) -> None:
    found = reported(real_data / "nyu_debate/ai_sessions.jsonl", tmp_path, "nyu")
    assert set(found) == {"ai_debate", "ai_consultancy"}
    settings = {
        name: (one["num"], one["den"])
        for name, condition in found.items()
        for one in [figure(condition, "accuracy_T", by={"aggregator": "logged"})]
    }
    assert settings == {"ai_debate": (68, 87), "ai_consultancy": (61, 76)}

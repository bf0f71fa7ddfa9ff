"""Published logs through the commands: import, report, and the right values in its JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.audits.reports.commands import command, figure, report_json
from tests.audits.reports.experiments import Deaf, executed, made

pytestmark = [pytest.mark.realdata, pytest.mark.django_db]

SOLUTIONS = "gsm8k_4agents/example_model_solutions.jsonl"
MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


def reported(source: Path, folder: Path, *words: str) -> dict[str, Any]:
    """Import a log by command, report on it by command, return its only condition."""
    code, said = command("runs", "debates", "import", str(source), "--name", "log", *words)
    assert code == 0, said
    report = report_json("log", folder)
    assert report["kind"] == "debates"
    (condition,) = report["conditions"]
    assert "imported as logged" in condition["labels"]
    return dict(condition)


def by_round(condition: dict[str, Any], metric: str) -> list[int]:
    return [figure(condition, metric, round=t)["num"] for t in range(3)]


def share(condition: dict[str, Any], metric: str) -> tuple[int, int]:
    found = figure(condition, metric, agg="pooled", by={})
    return found["num"], found["den"]


def statuses(condition: dict[str, Any], status: str) -> list[int]:
    rows = condition["tables"]["status_by_round"]
    found = {row["round"]: row["n"] for row in rows if row["status"] == status}
    return [found.get(t, 0) for t in range(3)]


def test_the_gsm_debates_as_logged(real_data: Path, tmp_path: Path) -> None:
    log = reported(real_data / "du_format/gsm_3agents_3rounds.json", tmp_path)
    assert (log["name"], log["rules"], log["reads"]) == ("du", "du_replay", "assumed")
    assert by_round(log, "plurality_accuracy") == [16, 16, 17]
    values = [figure(log, "plurality_accuracy", round=t)["value"] for t in range(3)]
    assert values == [0.8, 0.8, 0.85]
    assert by_round(log, "plurality_tied") == [2, 0, 0]
    assert share(log, "repair_T") == (4, 12)
    assert share(log, "damage_T") == (1, 48)
    assert statuses(log, "SUCCEEDED") == [60, 60, 60]


def test_the_mmlu_debates_as_logged(real_data: Path, tmp_path: Path) -> None:
    log = reported(real_data / "du_format/mmlu_3agents_3rounds.json", tmp_path)
    assert by_round(log, "plurality_accuracy") == [8, 9, 10]
    assert by_round(log, "plurality_tied") == [3, 3, 0]
    assert share(log, "repair_T") == (4, 36)
    assert share(log, "damage_T") == (4, 24)
    assert statuses(log, "INVALID") == [17, 16, 22]


def test_four_models_on_gsm8k(real_data: Path, tmp_path: Path) -> None:
    log = reported(real_data / SOLUTIONS, tmp_path, "--format", "gsm8k_solutions")
    right = [figure(log, "agent_accuracy_T", by={"agent": model})["num"] for model in MODELS]
    assert right == [286, 515, 458, 742]
    histogram = [row["n"] for row in log["tables"]["right_at_start"]]
    assert histogram == [432, 290, 236, 205, 156]
    any_right = figure(log, "oracle_any", by={"at": "T"})["value"]
    assert any_right == pytest.approx(0.67247915, abs=1e-8)
    assert figure(log, "plurality_accuracy", round=0)["num"] == 565
    ties = figure(log, "plurality_tied", round=0)
    assert (ties["num"], ties["den"] - ties["num"]) == (528, 791)
    for metric, value in {
        "mean_phi": 0.3957646,
        "n_eff_phi": 1.8287439,
        "rho_cov": 0.3954503,
        "n_eff_cov": 1.8295325,
    }.items():
        found = figure(log, metric, by={"at": "0"})
        assert found["value"] == pytest.approx(value, abs=1e-6), metric
        assert found["ci"][0] < value < found["ci"][1], metric


def test_two_models_as_two_steps(real_data: Path, tmp_path: Path) -> None:
    log = reported(real_data / SOLUTIONS, tmp_path, "--format", "gsm8k_steps")
    assert share(log, "repair_T") == (360, 861)
    assert share(log, "damage_T") == (76, 458)


REPLAY = """
name: replayed
questions: log
arms:
  - {name: replay, protocol: du_replay, models: {default: "recorded:log"}}
"""


def replayed(source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Import a log, send it through the engine reply by reply, return its condition."""
    monkeypatch.setattr("runs.dispatch.current_app", Deaf())
    assert command("runs", "debates", "import", str(source), "--name", "log")[0] == 0
    executed(made(REPLAY, folder))
    (condition,) = report_json("replayed", folder)["conditions"]
    assert condition["marked"] == "recorded"
    return dict(condition)


def through_the_engine(condition: dict[str, Any]) -> dict[str, Any]:
    return {
        "opened": [row["opened"] for row in condition["tables"]["rounds"]],
        "stops": condition["tables"]["stop_reasons"],
        "plurality": by_round(condition, "plurality_accuracy"),
        "ties": by_round(condition, "plurality_tied"),
        "repair": share(condition, "repair_T"),
        "damage": share(condition, "damage_T"),
        "inactive": share(condition, "inactive")[0],
        "retained": share(condition, "retained")[0],
    }


def test_the_mmlu_debates_through_the_engine(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = replayed(real_data / "du_format/mmlu_3agents_3rounds.json", tmp_path, monkeypatch)
    assert through_the_engine(log) == {
        "opened": [20, 19, 16],
        "stops": {"round_limit": 16, "no_admitted_updates": 3, "no_admitted_initial_states": 1},
        "plurality": [8, 8, 9],
        "ties": [3, 4, 1],
        "repair": (2, 36),
        "damage": (3, 24),
        "inactive": 17,
        "retained": 12,
    }


def test_the_gsm_debates_through_the_engine(
    real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = replayed(real_data / "du_format/gsm_3agents_3rounds.json", tmp_path, monkeypatch)
    assert through_the_engine(log) == {
        "opened": [20, 20, 20],
        "stops": {"round_limit": 20},
        "plurality": [16, 16, 17],
        "ties": [2, 0, 0],
        "repair": (4, 12),
        "damage": (1, 48),
        "inactive": 0,
        "retained": 0,
    }

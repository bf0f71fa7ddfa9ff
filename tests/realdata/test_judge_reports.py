"""Published judgments through the commands: import, report, and the right values in its JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from debateweb.access import ensure_default_workspace
from tests.audits.reports.commands import command, figure, report_json

pytestmark = [pytest.mark.realdata, pytest.mark.django_db]

Conditions = dict[tuple[str, str | None], dict[str, Any]]


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """No value depends on how often questions are resampled, only its interval."""
    monkeypatch.setattr("audits.reports.build.REPORT_RESAMPLES", 200)


def reported(source: Path, folder: Path, format_name: str) -> Conditions:
    """Import judgments by command and report on them by command: conditions by judge and group."""
    ensure_default_workspace()
    words = ("--name", "set", "--format", format_name)
    code, said = command("audits", "judgments", "import", str(source), *words)
    assert code == 0, said
    report = report_json("set", folder)
    assert report["kind"] == "judge_audit"
    return {(one.get("judge", one["name"]), one.get("group")): one for one in report["conditions"]}


def accuracy(condition: dict[str, Any], order: str, ties: str = "class") -> tuple[int, int]:
    found = figure(condition, "judge_accuracy", agg="pooled", by={"order": order, "ties": ties})
    return found["num"], found["den"]


def pooled(condition: dict[str, Any], metric: str) -> tuple[int, int]:
    found = figure(condition, metric, agg="pooled", by={})
    return found["num"], found["den"]


def kappa(condition: dict[str, Any], **by: str) -> float:
    found = figure(condition, "cohen_kappa", by=by)
    assert found["ci"][0] < found["value"] < found["ci"][1]
    value: float = found["value"]
    return value


def test_llmbar_by_order_and_group(real_data: Path, tmp_path: Path) -> None:
    found = reported(real_data / "llmbar", tmp_path, "llmbar")

    natural = found["GPT-4/Vanilla_NoRules", "LLMBar/Natural"]
    assert accuracy(natural, "given") == (92, 100)
    assert accuracy(natural, "swapped") == (95, 100)
    assert pooled(natural, "position_consistency") == (97, 100)

    chatgpt = found["ChatGPT/Vanilla_NoRules", "Processed/FairEval"]
    assert [accuracy(chatgpt, order)[0] for order in ("given", "swapped")] == [44, 32]
    assert pooled(chatgpt, "position_consistency") == (12, 66)
    assert pooled(chatgpt, "conflict_rate") == (54, 66)
    assert pooled(chatgpt, "primacy") == (54, 66) and pooled(chatgpt, "recency") == (0, 66)
    assert pooled(chatgpt, "preference_fairness") == (-54, 66)
    excess = figure(chatgpt, "excess_flip", agg="pooled")
    assert excess["value"] is None and "differ" in excess["reason"]

    gpt_4 = found["GPT-4/Vanilla_NoRules", "Processed/FairEval"]
    assert [accuracy(gpt_4, order)[0] for order in ("given", "swapped")] == [51, 45]
    assert pooled(gpt_4, "position_consistency") == (46, 66)
    by_order = [kappa(gpt_4, pair="judge|gold", order=order) for order in ("given", "swapped")]
    assert by_order == pytest.approx([0.5133, 0.3948], abs=5e-5)
    two_missing_verdicts_are_no_agreement(found)


def two_missing_verdicts_are_no_agreement(found: Conditions) -> None:
    whole = [one for (_, group), one in found.items() if group is None]
    invalid = [figure(one, "invalid_rate", agg="pooled", by={}) for one in whole]
    assert sum(one["num"] for one in invalid) >= 3
    for one in whole:
        consistent = figure(one, "position_consistency", agg="pooled", by={})
        of_all = figure(one, "position_consistency_all", agg="pooled", by={})
        assert consistent["num"] == of_all["num"] and consistent["den"] <= of_all["den"]


def test_pandalm_people_and_judge(real_data: Path, tmp_path: Path) -> None:
    found = reported(real_data / "pandalm", tmp_path, "pandalm")
    people, judge = found["people", None], found["gpt-3.5-turbo", None]

    pairs = [kappa(people, pair=f"annotator{a}|annotator{b}") for a, b in ((1, 2), (1, 3), (2, 3))]
    assert sorted(pairs) == pytest.approx([0.8520227, 0.8616615, 0.8789438], abs=5e-8)
    alpha = figure(people, "krippendorff_alpha", by={"level": "nominal"})
    assert alpha["value"] == pytest.approx(0.8642207, abs=5e-8)

    assert accuracy(judge, "given")[1] == 974
    parsed = figure(judge, "judge_accuracy", agg="pooled", by={"order": "given", "ties": "class"})
    assert parsed["value"] == pytest.approx(0.7156057, abs=5e-8)
    folded = {"order": "given", "ties": "class", "invalid": "tie"}
    as_ties = figure(judge, "judge_accuracy", agg="pooled", by=folded)
    assert as_ties["value"] == pytest.approx(0.7107107, abs=5e-8)
    assert pooled(judge, "invalid_rate") == (25, 999)
    with_majority = figure(
        judge, "percent_agreement", agg="pooled", by={"pair": "judge|majority", "order": "given"}
    )
    assert with_majority["value"] == pytest.approx(0.7156057, abs=5e-8)
    decided = {row["label"]: row["items"] for row in people["tables"]["majority"]}
    unanimous = decided.pop("unanimous, of items with two labels or more")
    assert decided == {"tie": 105, "response1": 422, "response2": 472} and unanimous == 879


def test_vicuna_scores_add_up(real_data: Path, tmp_path: Path) -> None:
    found = reported(real_data / "vicuna_blog", tmp_path, "vicuna_blog")
    totals = {}
    for (_, group), one in found.items():
        if group is not None:
            baseline, other = group.split(" against ")
            totals[baseline.partition(":")[0]] = tuple(
                figure(one, "score_total", by={"model": model})["value"]
                for model in (baseline, other)
            )
    assert totals == {
        "llama-13b": (513, 694),
        "alpaca-13b": (583, 704),
        "bard": (664, 655.5),
        "gpt-3.5-turbo": (693, 638),
    }


def test_chateval_by_either_rule(real_data: Path, tmp_path: Path) -> None:
    found = reported(real_data / "chateval", tmp_path, "chateval")
    for rule, share, agreement in (
        ("unparsable as tie", 0.55, 0.187),
        ("unparsable dropped", 0.5375, 0.1516),
    ):
        panel = next(one for (judge, _), one in found.items() if judge.endswith(rule))
        by = {"order": "given", "ties": "class"}
        assert figure(panel, "judge_accuracy", agg="pooled", by=by)["value"] == share
        assert kappa(panel, pair="judge|gold", order="given") == pytest.approx(agreement, abs=5e-4)


RIGHT = {
    "ai_debate": (68, 87, 0.18309, 0.161),
    "ai_consultancy": (61, 76, 0.16849, 0.136),
}


@pytest.mark.parametrize("way", ["debates", "judgments"])
def test_nyu_beliefs_by_setting_and_side(real_data: Path, tmp_path: Path, way: str) -> None:
    source = real_data / "nyu_debate/ai_sessions.jsonl"
    if way == "judgments":
        found = {group: one for (_, group), one in reported(source, tmp_path, "nyu").items()}
    else:
        words = ("--name", "log", "--format", "nyu")
        assert command("runs", "debates", "import", str(source), *words)[0] == 0
        found = {one["name"]: one for one in report_json("log", tmp_path)["conditions"]}
    for setting, (right, n, brier, ece) in RIGHT.items():
        one = found[setting]
        assert pooled(one, "judge_accuracy") == (right, n)
        assert figure(one, "brier", agg="pooled", by={})["value"] == pytest.approx(brier, abs=5e-6)
        calibration = figure(one, "ece", by={})
        assert calibration["value"] == pytest.approx(ece, abs=5e-4)
        assert "10 bins, left-closed" in calibration["notes"]
        assert one["tables"]["reliability"]
    sides = {
        side: figure(found["ai_consultancy"], "judge_accuracy", agg="pooled", by={"assigned": side})
        for side in ("correct", "incorrect")
    }
    assert {side: (one["num"], one["den"]) for side, one in sides.items()} == {
        "correct": (28, 38),
        "incorrect": (33, 38),
    }

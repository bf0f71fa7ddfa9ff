"""By commands alone, as a person types them: import, run, report, on real files (formats.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runs.providers.simulated import parse_spec
from runs.providers.simulated_truth import simulated_truth
from tests.debateweb.sites import Site, new_site

pytestmark = pytest.mark.realdata

MODEL = "simulated:accuracy=0.6,correlation=0.3,conformity=0.4,seed=7"
REPLAY = """
name: {name}-replay
questions: {name}
arms:
  - {{name: replay, protocol: du_replay, models: {{default: "recorded:{name}"}}}}
"""
SIMULATED = f"""
name: simulated
questions: gsm8k
limit: 200
arms:
  - {{name: debate, protocol: du_2023, models: {{default: "{MODEL}"}}}}
"""


def ok(site: Site, *words: str, **extra_env: str) -> str:
    done = site.run(*words, **extra_env)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def report_of(site: Site, name: str) -> dict[str, Any]:
    path = site.folder / f"{name}.json"
    ok(site, "report", name, "--format", "json", "-o", str(path))
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def started(site: Site, text: str, name: str, **extra_env: str) -> dict[str, Any]:
    path = site.folder / f"{name}.yaml"
    path.write_text(text)
    said = ok(site, "experiment", "run", str(path), "--wait", "--json", **extra_env)
    seen: dict[str, Any] = json.loads(said)
    assert seen["status"] == "FINISHED"
    return seen


def figure(report: dict[str, Any], metric: str, **wanted: Any) -> dict[str, Any]:
    """Return the one figure of the only condition with this metric, aggregation, round and by."""
    wanted = {"agg": None, "round": None, "by": {}, **wanted}
    found = [
        f
        for f in report["conditions"][0]["figures"]
        if f["metric"] == metric and all(f[key] == value for key, value in wanted.items())
    ]
    assert len(found) == 1, (metric, wanted, found)
    only: dict[str, Any] = found[0]
    return only


def share(report: dict[str, Any], metric: str, **wanted: Any) -> tuple[float, float]:
    one = figure(report, metric, **wanted)
    return one["num"], one["den"]


def by_round(report: dict[str, Any], metric: str) -> list[int]:
    rounds = range(3)
    return [int(figure(report, metric, round=t)["num"]) for t in rounds]


@pytest.fixture(scope="module")
def site(real_data: Path) -> Iterator[Site]:
    """Yield a site with both published logs and 200 questions imported."""
    with new_site() as made:
        for kind in ("gsm", "mmlu"):
            log = real_data / "du_format" / f"{kind}_3agents_3rounds.json"
            ok(made, "debates", "import", str(log), "--name", f"du-{kind}", "--format", "du")
        _import_200(made, real_data)
        yield made


def _import_200(site: Site, real_data: Path) -> None:
    lines = (real_data / "gsm8k_4agents" / "test.jsonl").read_text().splitlines(keepends=True)
    path = site.folder / "first200.jsonl"
    path.write_text("".join(lines[:200]))
    ok(site, "questions", "import", str(path), "--name", "gsm8k", "--format", "gsm8k")


def test_the_gsm_log_sent_through_the_engine_gives_the_published_values(site: Site) -> None:
    seen = started(site, REPLAY.format(name="du-gsm"), "gsm")
    assert seen["arms"]["replay"]["stops"] == {"round_limit": 20}
    report = report_of(site, "du-gsm-replay")
    assert by_round(report, "plurality_accuracy") == [16, 16, 17]
    assert by_round(report, "plurality_tied") == [2, 0, 0]
    assert share(report, "repair_T", agg="pooled") == (4, 12)
    assert share(report, "damage_T", agg="pooled") == (1, 48)
    assert report["conditions"][0]["marked"] == "recorded"


def test_the_mmlu_log_sent_through_the_engine_gives_the_published_values(site: Site) -> None:
    seen = started(site, REPLAY.format(name="du-mmlu"), "mmlu")
    assert seen["arms"]["replay"]["stops"] == {
        "round_limit": 16,
        "no_admitted_updates": 3,
        "no_admitted_initial_states": 1,
    }
    report = report_of(site, "du-mmlu-replay")
    opened = [row["opened"] for row in report["conditions"][0]["tables"]["rounds"]]
    assert opened == [20, 19, 16]
    assert by_round(report, "plurality_accuracy") == [8, 8, 9]
    assert by_round(report, "plurality_tied") == [3, 4, 1]
    assert share(report, "repair_T", agg="pooled") == (2, 36)
    assert share(report, "damage_T", agg="pooled") == (3, 24)
    assert figure(report, "inactive", agg="pooled")["num"] == 17
    assert figure(report, "retained", agg="pooled")["num"] == 12
    assert ok(site, "experiment", "verify", "du-mmlu-replay").strip().endswith("20 runs replayed")


def test_simulated_agents_are_found_as_they_were_made_and_the_same_twice(
    site: Site, real_data: Path
) -> None:
    started(site, SIMULATED, "simulated")
    report = report_of(site, "simulated")
    _assert_near_the_truth(report)
    assert report["conditions"][0]["marked"] == "simulated"
    with new_site() as other:
        _import_200(other, real_data)
        # Another machine, another order of work: three threads instead of forty.
        started(other, SIMULATED, "simulated", DEBATEWEB_WORKER_THREADS="3")
        assert _without_time(report_of(other, "simulated")) == _without_time(report)


def _assert_near_the_truth(report: dict[str, Any]) -> None:
    truth = simulated_truth(parse_spec(MODEL), 3, peers="full", rounds=1)
    expected = {
        "agent_accuracy_0": truth["agent_accuracy"][0],
        "agent_accuracy_T": truth["agent_accuracy"][1],
        "repair_T": truth["repair_T"],
        "damage_T": truth["damage_T"],
    }
    for metric, value in expected.items():
        found = figure(report, metric, agg="pooled")
        assert math.isclose(found["value"], value, abs_tol=3 * found["se_cluster"]), metric
    rho = figure(report, "rho_cov", by={"at": "0"})
    # The percentile interval is 3.92 standard errors wide, so that three are 0.77 of it.
    assert abs(rho["value"] - 0.3) < 0.77 * (rho["ci"][1] - rho["ci"][0])


def _without_time(report: dict[str, Any]) -> str:
    for condition in report["conditions"]:
        condition["figures"] = [f for f in condition["figures"] if f["metric"] != "wall_seconds"]
    return json.dumps(report, sort_keys=True)

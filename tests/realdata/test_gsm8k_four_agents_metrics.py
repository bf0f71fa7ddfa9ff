"""The published model solutions of GSM8K, four models on 1,319 questions, as error vectors."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from audits.metrics import RunRow, Settings, debate_figures, debate_tables, dependence
from audits.metrics.arrays import floats
from audits.metrics.revision import transitions
from tests.audits.metrics.builders import find, trajectory

ROOT = Path(__file__).resolve().parents[2]
FILE = (
    Path(os.environ.get("DEBATEWEB_REAL_DATA", ROOT / ".." / "shared" / "data"))
    / "gsm8k_4agents"
    / "example_model_solutions.jsonl"
)
MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")

pytestmark = [
    pytest.mark.realdata,
    pytest.mark.skipif(not FILE.exists(), reason=f"no real data at {FILE}"),
]


@pytest.fixture(scope="module")
def correct() -> list[list[bool]]:
    with FILE.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [[bool(row[model]["is_correct"]) for model in MODELS] for row in rows]


@pytest.fixture(scope="module")
def runs(correct: list[list[bool]]) -> list[RunRow]:
    return [trajectory(f"q{i:04}", [[int(c) for c in row]]) for i, row in enumerate(correct)]


def test_right_answers_by_model_and_by_question(runs: list[RunRow]) -> None:
    figures = debate_figures(runs, settings=Settings(resamples=200))
    by_agent = [
        find(figures, "agent_accuracy_T", by={"agent": f"a{slot}"}).num for slot in range(4)
    ]
    assert by_agent == [286, 515, 458, 742]
    histogram = debate_tables(runs)["right_at_start"]
    assert isinstance(histogram, list)
    assert [row["n"] for row in histogram] == [432, 290, 236, 205, 156]
    any_right = find(figures, "oracle_any", by={"at": "T"}).value
    assert any_right == pytest.approx(0.67247915, abs=1e-8)


def test_dependence_of_the_four_models(runs: list[RunRow]) -> None:
    figures = debate_figures(runs, settings=Settings(resamples=500, seed=1))
    expected = {
        "mean_phi": 0.3957646,
        "n_eff_phi": 1.8287439,
        "rho_cov": 0.3954503,
        "n_eff_cov": 1.8295325,
    }
    for metric, value in expected.items():
        figure = find(figures, metric, by={"at": "0"})
        assert figure.value == pytest.approx(value, abs=1e-6), metric
        assert figure.ci is not None
        assert figure.ci[0] < value < figure.ci[1]


def test_the_pure_functions_give_the_same_dependence(correct: list[list[bool]]) -> None:
    sample = dependence.moments(1 - floats(correct))
    assert float(dependence.mean_phi(sample)) == pytest.approx(0.3957646, abs=1e-6)
    assert float(dependence.n_eff_cov(sample)) == pytest.approx(1.8295325, abs=1e-6)


def test_two_models_as_two_steps_give_repair_and_damage(correct: list[list[bool]]) -> None:
    flags = np.array(correct)
    moved = transitions(flags[:, 2:3], flags[:, 3:4], np.ones((len(flags), 1), dtype=np.bool_))
    assert (moved.fixed.sum(), moved.wrong.sum()) == (360, 861)
    assert (moved.broke.sum(), moved.right.sum()) == (76, 458)

"""The rule ``a_marker`` and g on four published models' solutions, against their own flags."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.engine.extraction import extract
from runs.engine.normalise import is_correct
from runs.engine.types import Question
from runs.protocols.spec import Extraction, Normaliser

pytestmark = pytest.mark.realdata

RULES = Extraction(number=("a_marker",))
MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


def flags() -> Iterator[tuple[str, bool, bool]]:
    """Yield (model, flag in the file, our verdict) for every solution."""
    root = Path(__file__).resolve().parents[2]
    data = Path(os.environ.get("DEBATEWEB_REAL_DATA", root / ".." / "shared" / "data"))
    path = data / "gsm8k_4agents" / "example_model_solutions.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            gold = row["ground_truth"].rpartition("A:")[2].strip()
            question = Question("q", row["question"], "number", reference=(gold,))
            for model in MODELS:
                answer = extract(row[model]["solution"], question, RULES, Normaliser())
                ours = is_correct(answer, question, Normaliser())
                yield model, row[model]["is_correct"], ours is True


def test_every_flag_of_the_file_is_reproduced() -> None:
    rows = list(flags())
    assert len(rows) == 5276
    assert [row for row in rows if row[1] != row[2]] == []
    right = [sum(ours for name, _, ours in rows if name == model) for model in MODELS]
    assert right == [286, 515, 458, 742]

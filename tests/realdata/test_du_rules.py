"""
The extraction rules of du_replay on the published logs, imported as logged.

Each round's reply is scored as it stands; plurality needs a unique winner.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runs.engine.extraction import extract
from runs.engine.normalise import is_correct
from runs.engine.types import Answer, AnswerType, Question
from runs.protocols.spec import Extraction, Normaliser

pytestmark = pytest.mark.realdata

RULES = Extraction(number=("boxed", "last_number"), choice=("parenthesised_letter", "answer_is"))
REPLIES = (1, 3, 5)


class Debate(NamedTuple):
    question: Question
    answers: tuple[tuple[Answer, ...], ...]  # by agent, then round

    def right(self, agent: int, t: int) -> bool:
        return is_correct(self.answers[agent][t], self.question, Normaliser()) is True

    def plurality(self, t: int) -> tuple[str | None, bool]:
        """Return the unique winner of round ``t`` and whether there was a tie."""
        votes = Counter(row[t].value for row in self.answers if row[t].is_vote).most_common()
        if not votes:
            return None, False
        tied = len(votes) > 1 and votes[0][1] == votes[1][1]
        return (None, True) if tied else (votes[0][0], False)


def real_data() -> Path:
    root = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("DEBATEWEB_REAL_DATA", root / ".." / "shared" / "data"))


def gold_of(text: str) -> str:
    return text.rpartition("####")[2].strip() if "####" in text else text.strip()


@lru_cache
def debates(name: str, answer_type: AnswerType) -> tuple[Debate, ...]:
    path = real_data() / "du_format" / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    logs: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return tuple(debate(text, log, answer_type) for text, log in logs.items())


def debate(text: str, log: Any, answer_type: AnswerType) -> Debate:
    agents, gold = log
    question = Question(id="q", text=text, answer_type=answer_type, reference=(gold_of(gold),))
    answers = tuple(
        tuple(extract(agent[r]["content"], question, RULES, Normaliser()) for r in REPLIES)
        for agent in agents
    )
    return Debate(question, answers)


def figures(found: tuple[Debate, ...]) -> dict[str, Any]:
    cells = [(d.right(a, 0), d.right(a, 2)) for d in found for a in range(3)]
    outcomes = [[(d, d.plurality(t)) for d in found] for t in range(3)]
    return {
        "plurality": [
            sum(value in d.question.reference for d, (value, _) in row) for row in outcomes
        ],
        "ties": [sum(tied for _, (_, tied) in row) for row in outcomes],
        "repair": (cells.count((False, True)), sum(not first for first, _ in cells)),
        "damage": (cells.count((True, False)), sum(first for first, _ in cells)),
        "unscorable": [
            sum(not d.answers[a][t].is_vote for d in found for a in range(3)) for t in range(3)
        ],
    }


def test_the_arithmetic_logs_give_their_right_values() -> None:
    assert figures(debates("gsm_3agents_3rounds.json", "number")) == {
        "plurality": [16, 16, 17],
        "ties": [2, 0, 0],
        "repair": (4, 12),
        "damage": (1, 48),
        "unscorable": [0, 0, 0],
    }


def test_the_multiple_choice_logs_give_their_right_values() -> None:
    assert figures(debates("mmlu_3agents_3rounds.json", "choice")) == {
        "plurality": [8, 9, 10],
        "ties": [3, 3, 0],
        "repair": (4, 36),
        "damage": (4, 24),
        "unscorable": [17, 16, 22],
    }

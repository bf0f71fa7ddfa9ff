"""
Published debate logs sent through the engine reply by reply (du_replay): an invalid revision
keeps the last valid state, an agent without an initial answer is inactive and counts as wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from runs.engine.aggregation import aggregate
from runs.engine.draws import Draws
from runs.engine.normalise import is_correct
from runs.engine.operators import initial_snapshot
from runs.engine.replay import RunRecord, replay
from runs.engine.snapshots import following_snapshot
from runs.engine.types import AnswerType, CallResult, Question, RoundPlan, Snapshot, Status
from runs.protocols.presets import load_preset
from tests.runs.engine.builders import answered
from tests.runs.engine.debates import debate

pytestmark = pytest.mark.realdata

PROTOCOL = load_preset("du_replay")
REPLIES = (1, 3, 5)  # Where the replies stand in each agent's messages.


@cache
def runs(file: Path, answer_type: AnswerType) -> tuple[RunRecord, ...]:
    logs: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return tuple(run(text, log, answer_type) for text, log in logs.items())


def run(text: str, log: Any, answer_type: AnswerType) -> RunRecord:
    messages, gold = log
    said = dict(zip(PROTOCOL.agent_ids, messages, strict=True))

    def recorded(plan: RoundPlan) -> list[CallResult]:
        return [
            answered(call, said[call.agent_id][REPLIES[plan.t]]["content"]) for call in plan.calls
        ]

    reference = gold.rpartition("####")[2].strip()
    question = Question(id=text[:20], text=text, answer_type=answer_type, reference=(reference,))
    return debate(PROTOCOL, recorded, question=question)


def snapshots(record: RunRecord) -> list[Snapshot]:
    """Return the states after t = 0, 1, 2; those of a run that stopped are carried forward."""
    found = []
    snapshot = initial_snapshot()
    for stored in record.rounds:
        snapshot = following_snapshot(
            snapshot=snapshot, admitted=stored.states, agent_ids=PROTOCOL.agent_ids
        )
        found.append(snapshot)
    return found + [snapshot] * (3 - len(found))


def figures(records: tuple[RunRecord, ...]) -> dict[str, Any]:
    right: list[Counter[int]] = [Counter(), Counter()]
    transitions: Counter[tuple[bool, bool]] = Counter()
    for record in records:
        after = snapshots(record)
        for t, snapshot in enumerate(after):
            outcome = aggregate(
                protocol=PROTOCOL, snapshot=snapshot, t=t, zero=after[0], draws=Draws(1, "q")
            )
            right[0][t] += is_correct(outcome.answer, record.question, PROTOCOL.normaliser) is True
            right[1][t] += outcome.tied
        for agent_id in PROTOCOL.agent_ids:
            transitions[scored(record, after[0], agent_id), scored(record, after[2], agent_id)] += 1
    wrong = transitions[False, True] + transitions[False, False]
    return {
        "opened": [sum(len(r.rounds) > t for r in records) for t in range(3)],
        "stops": Counter(r.stop.reason.value for r in records if r.stop is not None),
        "plurality": [right[0][t] for t in range(3)],
        "ties": [right[1][t] for t in range(3)],
        "repair": (transitions[False, True], wrong),
        "damage": (transitions[True, False], sum(transitions.values()) - wrong),
        "inactive": sum(3 - len(r.rounds[0].active) for r in records),
        "retained": sum(
            v.status not in (Status.SUCCEEDED, Status.INACTIVE)
            for r in records
            for stored in r.rounds[1:]
            for v in stored.verdicts
        ),
    }


def scored(record: RunRecord, snapshot: Snapshot, agent_id: str) -> bool:
    state = snapshot.state_of(agent_id)
    if state is None:
        return False
    return is_correct(state.answer, record.question, PROTOCOL.normaliser) is True


def test_the_mmlu_logs_give_the_right_values(real_data: Path) -> None:
    found = figures(runs(real_data / "du_format" / "mmlu_3agents_3rounds.json", "choice"))
    assert found == {
        "opened": [20, 19, 16],
        "stops": {"round_limit": 16, "no_admitted_updates": 3, "no_admitted_initial_states": 1},
        "plurality": [8, 8, 9],
        "ties": [3, 4, 1],
        "repair": (2, 36),
        "damage": (3, 24),
        "inactive": 17,
        "retained": 12,
    }


def test_the_gsm_logs_give_the_right_values(real_data: Path) -> None:
    found = figures(runs(real_data / "du_format" / "gsm_3agents_3rounds.json", "number"))
    assert found == {
        "opened": [20, 20, 20],
        "stops": {"round_limit": 20},
        "plurality": [16, 16, 17],
        "ties": [2, 0, 0],
        "repair": (4, 12),
        "damage": (1, 48),
        "inactive": 0,
        "retained": 0,
    }


@pytest.mark.parametrize(
    ("name", "answer_type"),
    [("mmlu_3agents_3rounds.json", "choice"), ("gsm_3agents_3rounds.json", "number")],
)
def test_every_run_of_the_logs_agrees_with_its_records(
    real_data: Path, name: str, answer_type: AnswerType
) -> None:
    assert [replay(record) for record in runs(real_data / "du_format" / name, answer_type)] == [
        []
    ] * 20

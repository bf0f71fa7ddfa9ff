"""Small files in memory, and what the importers say about them."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from runs.importers.faults import ImportFaults
from runs.importers.records import DebateRecord, QuestionRecord
from runs.importers.registry import read_debates, read_questions


def as_bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode()


def questions(content: str | bytes, format_name: str | None = "jsonl") -> list[QuestionRecord]:
    return list(read_questions(io.BytesIO(as_bytes(content)), format_name, name="q.jsonl"))


def debates(content: str | bytes, format_name: str | None = "jsonl") -> list[DebateRecord]:
    return list(read_debates(io.BytesIO(as_bytes(content)), format_name, name="d.jsonl"))


def question_faults(content: str | bytes, format_name: str = "jsonl") -> list[str]:
    with pytest.raises(ImportFaults) as caught:
        questions(content, format_name)
    return str(caught.value).split("\n")


def debate_faults(content: str | bytes, format_name: str = "jsonl") -> list[str]:
    with pytest.raises(ImportFaults) as caught:
        debates(content, format_name)
    return str(caught.value).split("\n")


def a_question(**changes: Any) -> dict[str, Any]:
    """Return a good question; a change to ``...`` leaves the key out."""
    return _changed(
        {"id": "q1", "question": "2 + 2?", "reference": "4", "answer_type": "number"}, changes
    )


def a_turn(agent_id: str, answer: str | None = "4", **changes: Any) -> dict[str, Any]:
    return _changed({"agent_id": agent_id, "answer": answer}, changes)


def a_debate(**changes: Any) -> dict[str, Any]:
    """Return a good debate of two agents and two rounds."""
    return _changed(
        {
            "debate_id": "d1",
            "question_id": "q1",
            "question": "2 + 2?",
            "reference": "4",
            "answer_type": "number",
            "protocol": "pairs",
            "agents": [{"agent_id": "a", "model": "m"}, {"agent_id": "b", "model": "m"}],
            "rounds": [[a_turn("a"), a_turn("b", "5")], [a_turn("a"), a_turn("b")]],
        },
        changes,
    )


def _changed(item: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = {**item, **changes}
    return {key: value for key, value in merged.items() if value is not ...}


def lines(*items: dict[str, Any]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)

"""Records as the JSON Lines that ``questions`` and ``debates`` read back unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import IO, Any

from runs.importers.records import DebateRecord, QuestionRecord


def question_json(record: QuestionRecord) -> dict[str, Any]:
    """Return a question as the object of docs/formats.md."""
    return {"id": record.id, **_question_body(record), **_extra(record.metadata)}


def _question_body(record: QuestionRecord) -> dict[str, Any]:
    body: dict[str, Any] = {
        "question": record.question,
        "reference": list(record.reference) or None,
        "answer_type": record.answer_type,
    }
    if record.choices:
        body["choices"] = list(record.choices)
    for key in ("stratum", "family", "split"):
        if getattr(record, key) is not None:
            body[key] = getattr(record, key)
    if record.evidence:
        body["evidence"] = [asdict(item) for item in record.evidence]
    return body


def debate_json(record: DebateRecord) -> dict[str, Any]:
    """Return a debate as the object of docs/formats.md."""
    body: dict[str, Any] = {
        "debate_id": record.debate_id,
        "question_id": record.question.id,
        **_question_body(record.question),
        "protocol": record.protocol,
        "agents": [_plain(agent) for agent in record.agents],
        "rounds": [[_turn_json(turn) for turn in turns] for turns in record.rounds],
        "reads_known": record.reads_known,
    }
    if record.beliefs:
        body["beliefs"] = [asdict(belief) for belief in record.beliefs]
    for key in ("seed", "rules"):
        if getattr(record, key) is not None:
            body[key] = getattr(record, key)
    for key in ("final", "usage"):
        if getattr(record, key) is not None:
            body[key] = asdict(getattr(record, key))
    return {**body, **_extra({**record.question.metadata, **record.metadata})}


def _turn_json(turn: Any) -> dict[str, Any]:
    return {"answer": None, **_plain(turn)}


def _plain(record: Any) -> dict[str, Any]:
    """Return the parts of a record that say something; an empty ``reads`` does."""
    found: dict[str, Any] = {}
    for part in fields(record):
        value = getattr(record, part.name)
        if value is None or value == {} or (value == () and part.name != "reads"):
            continue
        found[part.name] = [asdict(v) for v in value] if isinstance(value, tuple) else value
    return found


def _extra(metadata: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": metadata} if metadata else {}


def write_questions(records: Iterable[QuestionRecord], stream: IO[str]) -> int:
    """Write one question a line; return how many."""
    return _write((question_json(record) for record in records), stream)


def write_debates(records: Iterable[DebateRecord], stream: IO[str]) -> int:
    """Write one debate a line; return how many."""
    return _write((debate_json(record) for record in records), stream)


def _write(objects: Iterable[dict[str, Any]], stream: IO[str]) -> int:
    count = 0
    for item in objects:
        stream.write(json.dumps(item, ensure_ascii=False) + "\n")
        count += 1
    return count

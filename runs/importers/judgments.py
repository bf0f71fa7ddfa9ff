"""Judgments of our own format, one JSON object a line (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from runs.importers.faults import FaultLog, shown
from runs.importers.fields import Fields
from runs.importers.judged_records import (
    JUDGMENT_STATUSES,
    NO_CANDIDATE,
    TIE,
    CandidateRecord,
    ItemRecord,
    JudgeRecord,
    JudgmentRecord,
    JudgmentStatus,
)
from runs.importers.rows import json_rows
from runs.importers.sources import Source

MAX_CANDIDATES = 26  # One letter each where they are shown.
MAX_HASH_CHARS = 64
MAX_RUBRIC_CHARS = 100


def read_jsonl(source: Source, log: FaultLog) -> Iterator[tuple[int, JudgmentRecord]]:
    """Yield the good judgments of a JSON Lines file or JSON array with their lines."""
    for row in json_rows(source, log):
        fields = Fields(row.data, row.line, log)
        record = judgment_from(fields)
        if fields.clean:
            yield row.line, record


def judgment_from(fields: Fields) -> JudgmentRecord:
    """Read a judgment out of the keys of a row; faults are in the log."""
    item = item_from(fields)
    ids = tuple(candidate.candidate_id for candidate in item.candidates)
    order = _order(fields, ids)
    verdict, status = _verdict(fields, ids)
    return JudgmentRecord(
        item=item,
        judge=_judge(fields),
        order=order,
        repeat=fields.whole("repeat") or 0,
        verdict=verdict,
        status=status,
        scores=_scores(fields, ids),
        rationale=fields.optional_text("rationale"),
        metadata=fields.row_metadata(),
    )


def item_from(fields: Fields) -> ItemRecord:
    """Read what is judged out of the keys of a row."""
    item_id = fields.identifier("item_id")
    candidates = candidates_from(fields)
    gold = fields.optional_text("gold")
    known = {candidate.candidate_id for candidate in candidates}
    if gold is not None and gold != TIE and gold not in known:
        fields.fault("gold", f"{shown(gold)} is none of the candidates and not tie")
    given = fields.object("item_metadata")
    return ItemRecord(
        item_id=item_id,
        question_id=fields.identifier("question_id") if fields.get("question_id") else item_id,
        question=fields.text("question"),
        candidates=candidates,
        gold=gold,
        group=fields.identifier("group") if fields.get("group") is not None else None,
        metadata=given.data if given is not None else {},
    )


def candidates_from(fields: Fields) -> tuple[CandidateRecord, ...]:
    """Read the list of candidates: at least one, all ids different, none named as a tie is."""
    found: list[CandidateRecord] = []
    for item in fields.objects("candidates"):
        item.require("text")
        candidate = CandidateRecord(
            candidate_id=item.identifier("candidate_id"),
            text=item.optional_text("text") or "",
            model=item.identifier("model") if item.get("model") is not None else None,
            metadata=item.metadata(),
        )
        if any(candidate.candidate_id == other.candidate_id for other in found):
            item.fault("candidate_id", f"{shown(candidate.candidate_id)} stands twice")
        if candidate.candidate_id in NO_CANDIDATE:
            item.fault("candidate_id", f"{shown(candidate.candidate_id)} is no name to choose")
        found.append(candidate)
    if not found and not fields.get("candidates"):
        fields.fault("candidates", "must list at least one candidate")
    if len(found) > MAX_CANDIDATES:
        fields.fault("candidates", f"lists {len(found)}; the most is {MAX_CANDIDATES}")
    return tuple(found)


def _order(fields: Fields, ids: Sequence[str]) -> tuple[str, ...]:
    fields.require("order")
    order = fields.texts("order")
    for place, name in enumerate(order):
        if name not in ids:
            fields.fault(f"order[{place}]", f"{shown(name)} is none of the candidates")
        elif name in order[:place]:
            fields.fault(f"order[{place}]", f"{shown(name)} stands twice")
    missing = [name for name in ids if name not in order]
    if missing and isinstance(fields.get("order"), list):
        fields.fault("order", f"leaves out {shown(missing[0])}")
    return order


def _verdict(fields: Fields, ids: Sequence[str]) -> tuple[str | None, JudgmentStatus]:
    fields.require("verdict")
    verdict = fields.optional_text("verdict")
    status = fields.one_of("status", JUDGMENT_STATUSES)
    if verdict is not None and verdict not in ids and verdict not in NO_CANDIDATE:
        fields.fault("verdict", f"{shown(verdict)} is none of the candidates, tie or abstain")
    if status == "SUCCEEDED" and verdict is None and fields.has("verdict"):
        fields.fault("verdict", "is null, but the status is SUCCEEDED")
    if status not in (None, "SUCCEEDED") and verdict is not None:
        fields.fault("verdict", f"is given, but the status is {status}")
    return verdict, status or ("SUCCEEDED" if verdict is not None else "INVALID")


def _scores(fields: Fields, ids: Sequence[str]) -> dict[str, float] | None:
    item = fields.object("scores")
    if item is None:
        return None
    for name in item.data:
        if name not in ids:
            item.fault(name, "is none of the candidates")
    return {name: signed(item, name) for name in item.data}


def signed(fields: Fields, key: str) -> float:
    """Return a number that must be there and may be negative."""
    value: Any = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        fields.fault(key, f"must be a number, not {shown(value)}")
        return 0.0
    return float(value)


def _judge(fields: Fields) -> JudgeRecord:
    if isinstance(fields.get("judge"), str):
        return JudgeRecord(fields.identifier("judge"))
    item = fields.object("judge")
    if item is None:
        fields.fault("judge", "is null" if fields.has("judge") else "is missing")
        return JudgeRecord("")
    decoding = item.object("decoding")
    return JudgeRecord(
        name=item.identifier("name"),
        model=_short(item, "model"),
        model_version=_short(item, "model_version"),
        prompt_hash=_short(item, "prompt_hash", MAX_HASH_CHARS),
        rubric_version=_short(item, "rubric_version", MAX_RUBRIC_CHARS),
        decoding=decoding.data if decoding is not None else {},
        metadata=item.metadata(),
    )


def _short(item: Fields, key: str, most_chars: int | None = None) -> str | None:
    if item.get(key) is None:
        return None
    value = item.identifier(key)
    if most_chars is not None and len(value) > most_chars:
        item.fault(key, f"is longer than {most_chars} characters")
    return value

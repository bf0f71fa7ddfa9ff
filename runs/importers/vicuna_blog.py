"""
The reviews of the Vicuna post (FastChat, 2023): GPT-4's scores of a baseline's and Vicuna's answer.

``review/*.jsonl`` holds the scores, ``question.jsonl`` and ``answer/*.jsonl`` the texts,
``reviewer.jsonl`` and ``prompt.jsonl`` how the judge was asked. The baseline was always shown
first, so that nothing can be said of order. The prompt depends on the question's category: all
three reviewers together are one judge, and which of them spoke is kept in the metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runs.engine.hashing import digest
from runs.importers.beside import Files, speaking_of
from runs.importers.faults import FaultLog, shown
from runs.importers.fields import Fields
from runs.importers.judged_records import (
    TIE,
    CandidateRecord,
    ItemRecord,
    JudgeRecord,
    JudgmentRecord,
)
from runs.importers.judgments import signed
from runs.importers.rows import json_rows
from runs.importers.sources import Source

_CATEGORY_SUFFIXES = ("generic", "default", "coding", "math")


def read_vicuna_blog(files: Files, log: FaultLog) -> Iterator[tuple[int, JudgmentRecord]]:
    """
    Yield the judgments of one review file, or of all in the named folder.

    The higher score wins, equal ones tie; a negative score is upstream's mark of a reply that
    could not be read: INVALID.
    """
    texts = _Texts(files, log)
    if log.total:
        return
    with files.opened(log, "review/*.jsonl", "review_*.jsonl") as sources:
        for source in sources:
            with speaking_of(log, source):
                yield from _reviews(source, texts, log)


class _Texts:
    """What review files refer to by id."""

    def __init__(self, files: Files, log: FaultLog) -> None:
        self.questions: dict[int, str] = {}
        self.answers: dict[str, CandidateRecord] = {}
        for row in files.rows("question.jsonl", log):
            fields = Fields(row.data, row.line, log)
            self.questions[fields.whole("question_id") or 0] = fields.text("text")
        for row in files.rows("answer/*.jsonl", log):
            fields = Fields(row.data, row.line, log)
            fields.require("text")
            model = fields.identifier("model_id")
            text = fields.optional_text("text") or ""
            self.answers[fields.identifier("answer_id")] = CandidateRecord(model, text, model)
        if not log.total and not (self.questions and self.answers):
            log.add(0, "file", "needs question.jsonl and answer/*.jsonl beside it; name the folder")
        self.prompt_hash = _hash_of(files.rows("prompt.jsonl", log))
        self.decoding = _decoding([row.data for row in files.rows("reviewer.jsonl", log)])


def _hash_of(rows: Iterator[Any]) -> str | None:
    prompts = [row.data for row in rows]
    return digest(prompts) if prompts else None


def _decoding(reviewers: list[Any]) -> dict[str, Any]:
    """Return the settings that all reviewers share; {} where they differ or are not said."""
    given = [one.get("metadata") for one in reviewers if isinstance(one, dict)]
    first = given[0] if given else None
    return first if isinstance(first, dict) and all(one == first for one in given) else {}


def _reviews(source: Source, texts: _Texts, log: FaultLog) -> Iterator[tuple[int, JudgmentRecord]]:
    for row in json_rows(source, log):
        fields = Fields(row.data, row.line, log)
        record = _review(fields, texts)
        if record is not None and fields.clean:
            yield row.line, record


def _review(fields: Fields, texts: _Texts) -> JudgmentRecord | None:
    fields.require("question_id")
    number = fields.whole("question_id") or 0
    pair = [_answer(fields, key, texts) for key in ("answer1_id", "answer2_id")]
    question = texts.questions.get(number)
    if question is None and fields.clean:
        fields.fault("question_id", f"{number} is not in question.jsonl")
    scores = _scores(fields)
    if not fields.clean:
        return None
    baseline, other = (answer.candidate_id for answer in pair)
    if baseline == other:
        fields.fault("answer2_id", f"is by {shown(other)} as the first one is")
    group = f"{baseline} against {other}"
    first, second = scores
    failed = min(scores) < 0
    reviewer = fields.identifier("reviewer_id")
    return JudgmentRecord(
        item=ItemRecord(
            item_id=f"vicuna-{number:03d} {group}",
            question_id=f"vicuna-{number:03d}",
            question=question or "",
            candidates=tuple(pair),
            group=group,
        ),
        judge=JudgeRecord(
            _judge_name(reviewer), prompt_hash=texts.prompt_hash, decoding=texts.decoding
        ),
        order=(baseline, other),
        repeat=0,
        verdict=None if failed else _winner(baseline, first, other, second),
        status="INVALID" if failed else "SUCCEEDED",
        scores={baseline: first, other: second},
        rationale=fields.optional_text("text"),
        metadata={
            "reviewer_id": reviewer,
            "review_id": fields.optional_text("review_id"),
            **fields.metadata(),
        },
    )


def _answer(fields: Fields, key: str, texts: _Texts) -> CandidateRecord:
    name = fields.identifier(key)
    if name in texts.answers:
        return texts.answers[name]
    if fields.clean:
        fields.fault(key, f"{shown(name)} is in no file of answers")
    return CandidateRecord("", "")


def _scores(fields: Fields) -> list[float]:
    given = fields.items("score")
    if len(given) != 2:
        fields.fault("score", "must be a list of two numbers")
        return [0.0, 0.0]
    pair = fields.inner({str(place): value for place, value in enumerate(given)}, "score")
    return [signed(pair, "0"), signed(pair, "1")]


def _winner(one: str, first: float, other: str, second: float) -> str:
    if first == second:
        return TIE
    return one if first > second else other


def _judge_name(reviewer: str) -> str:
    """Return a reviewer's name without the category for which it was asked."""
    name, _, category = reviewer.rpartition("-")
    return name if category in _CATEGORY_SUFFIXES else reviewer

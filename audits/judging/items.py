"""Items of a judge audit as questions: the candidates are the evidence, unnamed."""

from __future__ import annotations

from dataclasses import dataclass

from audits.judging.design import JudgeDesign, candidate_key
from runs.engine.types import Evidence
from runs.importers.records import QuestionRecord


@dataclass(frozen=True, slots=True)
class Candidate:
    """One text to be judged. ``model`` wrote it, where that is known; no prompt shows it."""

    candidate_id: str
    text: str
    model: str = ""


@dataclass(frozen=True, slots=True)
class AuditItem:
    """One thing to be judged. ``question_id`` is the cluster; ``gold`` a candidate id or tie."""

    item_id: str
    question_id: str
    question: str
    candidates: tuple[Candidate, ...]
    gold: str = ""
    group: str = ""


def as_question(item: AuditItem, design: JudgeDesign) -> QuestionRecord:
    """
    Return the item as a judge is asked it; nothing of who wrote what is in it.

    Raises ValueError where the item has another number of candidates than the design.
    """
    if len(item.candidates) != design.candidates:
        raise ValueError(
            f"item {item.item_id}: has {len(item.candidates)} candidates, the design compares "
            f"{design.candidates}"
        )
    is_scored = design.mode == "pointwise"
    return QuestionRecord(
        id=item.item_id,
        question=item.question,
        reference=(),
        answer_type="number" if is_scored else "choice",
        choices=design.options,
        stratum=item.group or None,
        family=item.question_id,
        evidence=tuple(
            Evidence(candidate_key(index), candidate.text, "")
            for index, candidate in enumerate(item.candidates)
        ),
    )

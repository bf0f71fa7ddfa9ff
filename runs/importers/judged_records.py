"""
What judges and people said elsewhere: judgments and labels of formats.md as frozen values.

A record holds only what JSON and PostgreSQL can hold. ``judgment_hash`` and ``label_hash``
identify its whole content, so that importing the same file twice adds nothing.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Literal

from runs.engine.hashing import digest

JudgmentStatus = Literal["SUCCEEDED", "FAILED", "TIMEOUT", "INVALID"]
LabelKind = Literal[
    "correctness", "pairwise", "scale", "claim", "check", "belief", "turn", "judge_decision"
]
LabelUnit = Literal["item", "transition", "question"]
RevealState = Literal["sealed", "after_reveal"]
LabelValue = str | float | dict[str, float]

JUDGMENT_STATUSES: tuple[JudgmentStatus, ...] = ("SUCCEEDED", "FAILED", "TIMEOUT", "INVALID")
LABEL_KINDS: tuple[LabelKind, ...] = (
    "correctness",
    "pairwise",
    "scale",
    "claim",
    "check",
    "belief",
    "turn",
    "judge_decision",
)
LABEL_UNITS: tuple[LabelUnit, ...] = ("item", "transition", "question")
REVEAL_STATES: tuple[RevealState, ...] = ("sealed", "after_reveal")
TIE = "tie"
ABSTAIN = "abstain"
#: Verdicts that name no candidate, which therefore no candidate may be called.
NO_CANDIDATE = (TIE, ABSTAIN)


@dataclass(frozen=True, slots=True)
class CandidateRecord:
    """One of the texts that are compared; ``text`` may be empty, as models' answers may be."""

    candidate_id: str
    text: str
    model: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class JudgeRecord:
    """Who judged. Another model version, prompt, rubric or decoding is another judge."""

    name: str
    model: str | None = None
    model_version: str | None = None
    prompt_hash: str | None = None
    rubric_version: str | None = None
    decoding: dict[str, Any] = field(default_factory=dict, hash=False)
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def judge_hash(self) -> str:
        """Hex SHA-256 of all that makes it this judge; judges with different ones never pool."""
        return digest({"kind": "judge", "record": judge_json(self)})


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """
    What is judged or labelled: a question and its candidates in the file's order.

    ``question_id`` is the cluster. ``gold`` is a candidate's id, ``tie`` or None.
    """

    item_id: str
    question_id: str
    question: str
    candidates: tuple[CandidateRecord, ...] = ()
    gold: str | None = None
    group: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class JudgmentRecord:
    """
    One verdict of one judge under one order.

    ``order`` lists every candidate's id as shown. ``verdict`` is a candidate's id, ``tie`` or
    ``abstain``; it is None exactly where ``status`` is not SUCCEEDED.
    """

    item: ItemRecord
    judge: JudgeRecord
    order: tuple[str, ...]
    repeat: int
    verdict: str | None
    status: JudgmentStatus = "SUCCEEDED"
    scores: dict[str, float] | None = field(default=None, hash=False)
    rationale: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> bytes:
        """What can be there once: item, judge, order, repeat."""
        judge = judge_json(self.judge)
        return fingerprint([self.item.item_id, judge, self.order, self.repeat])


@dataclass(frozen=True, slots=True)
class LabelRecord:
    """
    What one person said of one item.

    ``weight`` is 1 / inclusion probability; ``shown_order`` lists candidate ids left to right;
    a ``belief`` is shares of 1 by option.
    """

    item_id: str
    annotator: str
    kind: LabelKind
    label: LabelValue = field(hash=False)
    unit: LabelUnit | None = None
    weight: float | None = None
    shown_order: tuple[str, ...] = ()
    shown_reference: bool | None = None
    guideline_version: str | int | None = None
    active_seconds: float | None = None
    reveal_state: RevealState | None = None
    confidence: float | None = None
    comment: str | None = None
    at: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def key(self) -> bytes:
        """
        What one person can say once: everything that tells two servings or versions apart.

        Two labels with one key would contradict each other or count twice.
        """
        said = {
            name: value
            for name, value in label_json(self).items()
            if name not in ("label", "confidence", "comment", "active_seconds", "weight")
        }
        return fingerprint(said)


def judge_json(judge: JudgeRecord) -> dict[str, Any]:
    """Return a judge as the object of docs/formats.md."""
    return _given(
        name=judge.name,
        model=judge.model,
        model_version=judge.model_version,
        prompt_hash=judge.prompt_hash,
        rubric_version=judge.rubric_version,
        decoding=judge.decoding or None,
        metadata=judge.metadata or None,
    )


def candidate_json(candidate: CandidateRecord) -> dict[str, Any]:
    """Return a candidate as the object of docs/formats.md."""
    return _given(
        candidate_id=candidate.candidate_id,
        text=candidate.text,
        model=candidate.model,
        metadata=candidate.metadata or None,
    )


def item_json(item: ItemRecord) -> dict[str, Any]:
    """Return what judgments of one item say alike."""
    return _given(
        item_id=item.item_id,
        question_id=item.question_id,
        question=item.question,
        candidates=[candidate_json(candidate) for candidate in item.candidates],
        gold=item.gold,
        group=item.group,
        item_metadata=item.metadata or None,
    )


def judgment_json(record: JudgmentRecord) -> dict[str, Any]:
    """Return a judgment as the object of docs/formats.md."""
    return {
        **item_json(record.item),
        "judge": judge_json(record.judge),
        "order": list(record.order),
        "repeat": record.repeat,
        "verdict": record.verdict,
        "status": record.status,
        **_given(
            scores=record.scores,
            rationale=record.rationale,
            metadata=record.metadata or None,
        ),
    }


def label_json(record: LabelRecord) -> dict[str, Any]:
    """Return a label as the object of docs/formats.md."""
    return _given(
        item_id=record.item_id,
        annotator=record.annotator,
        kind=record.kind,
        label=record.label,
        unit=record.unit,
        weight=record.weight,
        shown_order=list(record.shown_order) or None,
        shown_reference=record.shown_reference,
        guideline_version=record.guideline_version,
        active_seconds=record.active_seconds,
        reveal_state=record.reveal_state,
        confidence=record.confidence,
        comment=record.comment,
        at=record.at,
        metadata=record.metadata or None,
    )


def fingerprint(value: Any) -> bytes:
    """Return what tells values of one file apart: as a hash, but quick and never stored."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()


def _given(**parts: Any) -> dict[str, Any]:
    return {name: value for name, value in parts.items() if value is not None}


def item_hash(item: ItemRecord) -> str:
    """Return the hex SHA-256 of everything an item says."""
    return digest({"kind": "item", "record": item_json(item)})


def judgment_hash(record: JudgmentRecord) -> str:
    """Return the hex SHA-256 of everything a judgment says."""
    return digest({"kind": "judgment", "record": judgment_json(record)})


def label_hash(record: LabelRecord) -> str:
    """Return the hex SHA-256 of everything a label says."""
    return digest({"kind": "label", "record": label_json(record)})

"""
What an imported file says, validated: questions and debates of formats.md as frozen values.

A record holds only what JSON and PostgreSQL can hold. ``record_hash`` identifies its whole
content, so that importing the same file twice adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from runs.engine.hashing import digest
from runs.engine.types import AnswerType, Evidence, Question

ReadsKnown = Literal["recorded", "assumed", "unknown"]
Split = Literal["validation", "test"]

ANSWER_TYPES: tuple[AnswerType, ...] = ("number", "choice", "yesno", "text", "open")
SPLITS: tuple[Split, ...] = ("validation", "test")
READS_KNOWN: tuple[ReadsKnown, ...] = ("recorded", "assumed", "unknown")
STATUSES = (
    "SUCCEEDED",
    "INVALID",
    "TRUNCATED",
    "FILTERED",
    "FAILED",
    "TIMEOUT",
    "CANCELLED",
    "SKIPPED_BUDGET",
    "INACTIVE",
)


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """
    One question. ``reference`` lists every right answer and is empty where none is known.

    ``family`` groups questions that are not independent (the unit of inference where given);
    ``stratum`` is what reports break down by.
    """

    id: str
    question: str
    reference: tuple[str, ...]
    answer_type: AnswerType
    choices: tuple[str, ...] = ()
    stratum: str | None = None
    family: str | None = None
    split: Split | None = None
    evidence: tuple[Evidence, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)

    def as_question(self) -> Question:
        """Return the question as the engine debates it."""
        return Question(
            id=self.id,
            text=self.question,
            answer_type=self.answer_type,
            choices=self.choices,
            reference=self.reference,
            evidence=self.evidence,
        )


@dataclass(frozen=True, slots=True)
class AgentRecord:
    agent_id: str
    model: str
    role: str | None = None
    side: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    claim_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """One turn that was shown to an agent: whose, of which round, at which place."""

    agent_id: str
    round: int
    position: int


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """
    What one agent did in one round.

    ``answer`` is None where the log keeps only the reply's ``text``: the answer is then read out
    of it by the rules that the format names. ``reads`` is None where the log does not say.
    """

    agent_id: str
    answer: str | None
    text: str | None = None
    prompt: str | None = None
    claims: tuple[ClaimRecord, ...] = ()
    status: str = "SUCCEEDED"
    finish_reason: str | None = None
    confidence: float | None = None
    reads: tuple[ReadRecord, ...] | None = None
    order: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class BeliefRecord:
    """A judge's belief over options after ``after`` rounds; shares of 1."""

    judge: str
    after: int
    belief: dict[str, float] = field(hash=False)


@dataclass(frozen=True, slots=True)
class FinalRecord:
    answer: str | None
    aggregator: str


@dataclass(frozen=True, slots=True)
class UsageRecord:
    """Tokens and US dollars of a whole debate as its log gives them."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class DebateRecord:
    """
    One debate that ran elsewhere.

    ``rounds[t]`` holds the turns of round t, at most one per agent; an agent without a turn
    stays configured. ``rules`` names the extraction rules by which replies without an
    ``answer`` are read (see ``registry.score_rules``).
    """

    debate_id: str
    question: QuestionRecord
    protocol: str
    agents: tuple[AgentRecord, ...]
    rounds: tuple[tuple[TurnRecord, ...], ...]
    seed: int | None = None
    beliefs: tuple[BeliefRecord, ...] = ()
    final: FinalRecord | None = None
    usage: UsageRecord | None = None
    reads_known: ReadsKnown = "unknown"
    rules: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)


def record_hash(record: QuestionRecord | DebateRecord) -> str:
    """Return the hex SHA-256 of everything a record says."""
    from runs.importers.writers import debate_json, question_json  # They import these records.

    if isinstance(record, QuestionRecord):
        return digest({"kind": "question", "record": question_json(record)})
    return digest({"kind": "debate", "record": debate_json(record)})

"""
The engine's vocabulary: frozen values of the rules S2–S13.

No value here holds a time, a latency or a database id: whatever is hashed or compared must be
the same in every process and order of work (S35).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

AnswerType = Literal["number", "choice", "yesno", "text", "open"]


class CallKind(StrEnum):
    """What a provider invocation is for (S4)."""

    INITIAL = "initial"
    REVISION = "revision"
    CHALLENGE = "challenge"
    REVIEW = "review"
    VERIFY = "verify"
    TOOL = "tool"
    SUMMARISE = "summarise"
    NORMALISE = "normalise"
    ROUTE = "route"
    RANK = "rank"
    DRAFT = "draft"
    JUDGE = "judge"


class CallStatus(StrEnum):
    """How an attempt ended at the provider (S4)."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMEOUT = "TIMEOUT"


class Status(StrEnum):
    """What became of an agent in a round: the one mapping of files and reports."""

    SUCCEEDED = "SUCCEEDED"  # admitted
    INVALID = "INVALID"  # unparseable or rejected
    TRUNCATED = "TRUNCATED"
    FILTERED = "FILTERED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"
    SKIPPED_BUDGET = "SKIPPED_BUDGET"
    INACTIVE = "INACTIVE"  # no admitted initial state (S12)
    NOT_SCHEDULED = "NOT_SCHEDULED"  # silenced or not selected this round


class StopReason(StrEnum):
    """Why a run ended (S13)."""

    ROUND_LIMIT = "round_limit"
    STABLE_CANDIDATES = "stable_candidates"
    UNANIMOUS = "unanimous"
    NO_OPEN_CHALLENGES = "no_open_challenges"
    DECISIVE_CHECKS_PASSED = "decisive_checks_passed"
    UNRESOLVED_CHALLENGES = "unresolved_challenges"
    WORKER_BUDGET = "worker_budget"
    INSUFFICIENT_FINAL_BUDGET = "insufficient_final_budget"
    WORK_DEADLINE = "work_deadline"
    NO_ADMITTED_INITIAL_STATES = "no_admitted_initial_states"
    NO_JOBS_DISPATCHED = "no_jobs_dispatched"
    NO_ADMITTED_UPDATES = "no_admitted_updates"
    CANCELLED = "cancelled"
    ERROR = "error"


class AnswerKind(StrEnum):
    """What g made of an answer (S26). Only VALUE is a valid vote."""

    VALUE = "value"
    ABSTAIN = "abstain"
    REFUSAL = "refusal"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Answer:
    """
    An answer as given and as counted.

    ``raw`` is the text that the extraction rule found; ``value`` is g(raw) and is empty unless
    ``kind`` is VALUE; ``rule`` names the extraction rule; ``reason`` says why it is INVALID.
    """

    raw: str
    kind: AnswerKind
    value: str = ""
    rule: str = ""
    reason: str = ""

    @property
    def is_vote(self) -> bool:
        return self.kind is AnswerKind.VALUE


@dataclass(frozen=True, slots=True)
class Evidence:
    id: str
    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question as debated. ``reference`` never enters a prompt or ``question_hash`` (S35)."""

    id: str
    text: str
    answer_type: AnswerType
    choices: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """One atomic claim (S7): ``claim_id`` over its life, ``claim_hash`` for one wording."""

    claim_id: str
    text: str
    claim_hash: str


@dataclass(frozen=True, slots=True)
class State:
    """
    A host-versioned candidate (S3).

    ``state_version`` counts an agent's admitted states from 1; ``parent_version`` is 0 for an
    initial one; ``round`` is the t in which it was admitted; ``text`` is the display text of
    the reply (escaped, S35), which peers and the agent itself may be shown; ``raw_hash`` is the
    SHA-256 of the reply's raw bytes.
    """

    agent_id: str
    state_version: int
    parent_version: int
    round: int
    text: str
    answer: Answer
    raw_hash: str
    content_hash: str
    claims: tuple[Claim, ...] = ()
    evidence_refs: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()
    confidence: str | None = None  # A decimal string: data as the model gave it, no evidence.
    change: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """
    The immutable read buffer of round ``t`` (S9).

    ``states`` holds, in the order of the configured agents, the last valid state of every agent
    that has one; ``history`` every admitted state up to now, ordered by agent then version.
    ``snapshot_hash`` covers ``states`` (see docs/semantics.md for the preimage).
    """

    t: int
    states: tuple[State, ...]
    history: tuple[State, ...]
    snapshot_hash: str

    def state_of(self, agent_id: str) -> State | None:
        return next((s for s in self.states if s.agent_id == agent_id), None)

    def history_of(self, agent_id: str) -> tuple[State, ...]:
        return tuple(s for s in self.history if s.agent_id == agent_id)


@dataclass(frozen=True, slots=True)
class ReadEntry:
    """
    One state that the host put in a prompt, whole or cut (S6).

    ``position`` counts from 0 in the order in which the states stand in the prompt.
    """

    agent_id: str
    state_version: int
    content_hash: str
    position: int
    own: bool = False
    from_chars: int = 0  # Length before truncation; equal to to_chars when not cut.
    to_chars: int = 0
    earlier: bool = False  # In a past turn of a conversation that is sent along (own_history all).

    @property
    def truncated(self) -> bool:
        return self.to_chars < self.from_chars


@dataclass(frozen=True, slots=True)
class Dropped:
    """One visible state that was left out, and why (S6, S19)."""

    agent_id: str
    state_version: int
    content_hash: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What an attempt read, as built by the host (S6)."""

    entries: tuple[ReadEntry, ...] = ()
    dropped: tuple[Dropped, ...] = ()

    @property
    def peers(self) -> tuple[ReadEntry, ...]:
        """The peers' states that this round's turn shows, in the order shown."""
        return tuple(entry for entry in self.entries if not (entry.own or entry.earlier))


@dataclass(frozen=True, slots=True)
class PromptMessage:
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class CallPlan:
    """
    One call that a round wants to make.

    ``prompt`` re-renders byte for byte from the snapshot (S6); ``request_digest`` is the SHA-256
    of prompt, model slot, decoding and response schema; ``input_token_bound`` is an upper bound
    (UTF-8 bytes) of the prompt's tokens.
    """

    agent_id: str
    t: int
    kind: CallKind
    model_slot: str
    prompt: tuple[PromptMessage, ...]
    read_set: ReadSet
    parent_version: int
    max_output_tokens: int
    input_token_bound: int
    request_digest: str
    response_schema: dict[str, Any] | None = field(default=None, hash=False)
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """All calls of round ``t``, in the order of the configured agents."""

    t: int
    snapshot_hash: str
    scheduled: tuple[str, ...]
    calls: tuple[CallPlan, ...]


@dataclass(frozen=True, slots=True)
class CallResult:
    """
    What came back for one call, as admission sees it.

    ``raw`` is the reply's text as bytes (UTF-8, surrogates passed through), empty when there is
    none. ``attempt`` counts the calls of this agent in this round from 0, retries included.
    ``late`` marks a result that arrived after its epoch closed; it can change no state.
    """

    agent_id: str
    t: int
    status: CallStatus
    attempt: int = 0
    raw: bytes = b""
    finish_reason: str = ""
    error_class: str = ""
    request_digest: str = ""
    parent_version: int = 0
    late: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """Admission's record of one configured agent in one round (S11)."""

    agent_id: str
    t: int
    status: Status
    reason: str = ""
    state: State | None = None

    @property
    def admitted(self) -> bool:
        return self.state is not None


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """
    What one presentation of the candidates to a judge came to (S28).

    ``call_id`` names the presentation among the calls of its run; ``order`` are the candidates'
    values as shown, ``repeat`` counts from 1 how often this order is shown. ``said`` is
    "candidate", "tie", "abstain" or "score", and empty where ``status`` is no success: a failure
    is never a verdict. ``choice`` is the value that was chosen or scored, ``attempt`` the ordinal
    of the attempt that decided and ``raw_hash`` its bytes' hash.
    """

    call_id: str
    order: tuple[str, ...]
    repeat: int
    status: Status
    reason: str = ""
    said: str = ""
    choice: str = ""
    score: int | None = None
    attempt: int | None = None
    raw_hash: str = ""


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """
    All calls to a judge at a run's end: one for each presentation, in one order for both.

    ``orders`` and ``repeats`` say what each call shows; ``candidates`` are the values to decide
    among, of which an order shows all, two or one, as the mode has it.
    """

    t: int
    candidates: tuple[str, ...]
    orders: tuple[tuple[str, ...], ...]
    repeats: tuple[int, ...]
    calls: tuple[CallPlan, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run ended and the observables it was judged by (S13)."""

    reason: StopReason
    observables: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class RoundCommit:
    """What one transaction writes at the end of a round (S9)."""

    snapshot: Snapshot  # The read buffer of round t + 1.
    verdicts: tuple[Verdict, ...]
    active: tuple[str, ...]
    stop: Stop | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """
    The aggregated answer at one time (S27).

    ``answer`` is ABSTAIN with ``tied`` where the tie policy abstains. ``counts`` are the valid
    votes by value, largest first. ``unresolved`` is the local fallback of S14, which lists
    ``candidates`` and ``open_issues`` and made no call.
    """

    t: int
    aggregator: str
    answer: Answer
    counts: tuple[tuple[str, int], ...]
    tied: bool = False
    tie_resolved_by: str = ""
    unresolved: bool = False
    candidates: tuple[tuple[str, str], ...] = ()
    open_issues: tuple[str, ...] = ()

"""What the API tells of questions, protocols, models, experiments and runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ninja import Schema

Json = dict[str, Any]


class SetOut(Schema):
    """An imported set. ``content_hash`` identifies what it holds."""

    name: str
    format: str
    size: int
    content_hash: str
    created_at: datetime


class SetsOut(Schema):
    items: list[SetOut]
    next: int | None


class QuestionSetOut(SetOut):
    """``referenced`` counts questions that have a reference; the others cannot be scored."""

    referenced: int
    answer_types: dict[str, int]
    strata: dict[str, int]
    splits: dict[str, int]


class DebateSetOut(SetOut):
    """``rules`` names how replies are scored; ``protocols`` counts debates of each."""

    rules: str
    protocols: dict[str, int]


class QuestionOut(Schema):
    position: int
    id: str
    question: str
    answer_type: str
    choices: list[Any]
    reference: list[Any]
    stratum: str
    family: str
    split: str
    evidence: list[Any]
    question_hash: str

    @staticmethod
    def resolve_id(row: Any) -> str:
        return str(row.external_id)

    @staticmethod
    def resolve_question(row: Any) -> str:
        return str(row.text)


class QuestionsOut(Schema):
    items: list[QuestionOut]
    next: int | None


class DebateOut(Schema):
    """One imported debate; ``body`` is its record in our own format (docs/formats.md)."""

    position: int
    debate_id: str
    protocol: str
    seed: int | None
    body: Json


class DebatesOut(Schema):
    items: list[DebateOut]
    next: int | None


class ImportedOut(Schema):
    """``added`` is false where the very same content was there already."""

    name: str
    size: int
    content_hash: str
    added: bool
    format: str


class PresetOut(Schema):
    """A shipped protocol; ``unsupported`` says why it cannot be run yet."""

    name: str
    title: str
    agents: int
    revision_rounds: int
    protocol_hash: str
    unsupported: list[str]


class PresetsOut(Schema):
    items: list[PresetOut]


class VersionOut(Schema):
    id: int
    name: str
    version: int
    protocol_hash: str
    created_at: datetime


class VersionsOut(Schema):
    items: list[VersionOut]
    next: int | None


class ProtocolOut(Schema):
    """A protocol as a value and as YAML. ``version`` is null for a shipped one."""

    name: str
    version: int | None
    protocol_hash: str
    unsupported: list[str]
    protocol: Json
    yaml: str


class BoundOut(Schema):
    """The most that one run can use: every round, every retry, every cap."""

    calls: int
    input_tokens: int
    output_tokens: int


class CheckedProtocolOut(Schema):
    """``bound`` is null where the protocol cannot be run yet; ``unsupported`` says why."""

    name: str
    protocol_hash: str
    unsupported: list[str]
    bound: BoundOut | None
    protocol: Json


class SavedProtocolOut(VersionOut):
    """``added`` is false where the same content is stored already."""

    added: bool


class DiffOut(Schema):
    """``changes`` by field; a side that does not have the field is left out."""

    hashes: list[str]
    same_algorithm: bool
    changes: list[Json]


class ModelOut(Schema):
    """A model's address, price and limits. ``api_key_env`` names a variable, never its value."""

    name: str
    path: str
    base_url: str
    api_key_env: str
    input_microusd_per_mtok: int | None
    output_microusd_per_mtok: int | None
    max_concurrency: int | None


class ModelsOut(Schema):
    items: list[ModelOut]


class CheckedModelOut(ModelOut):
    """``lacks`` says what keeps a call from starting."""

    lacks: list[str]


class ImportedModelsOut(Schema):
    models: list[str]
    changed: int


class ExperimentOut(Schema):
    id: int
    name: str
    status: str
    spec_hash: str
    analysis_hash: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


class ExperimentsOut(Schema):
    items: list[ExperimentOut]
    next: int | None


class ProgressOut(Schema):
    """Counts of runs and the balance, in micro-USD; ``arms`` by name."""

    runs: int
    done: int
    running: int
    pending: int
    arms: dict[str, Json]
    cap_microusd: int | None
    settled_microusd: int
    held_microusd: int
    reserved_microusd: int
    overrun_microusd: int


class ExperimentDetailOut(ExperimentOut):
    """``spec`` and ``analysis`` are frozen since it was made."""

    questions: str
    spec: Json
    analysis: Json
    progress: ProgressOut


class RunOut(Schema):
    """A run; ``stop_reason`` is empty until it is DONE."""

    id: int
    position: int
    arm: str
    question_id: str
    seed: int
    status: str
    stop_reason: str
    next_round: int
    started_at: datetime | None
    ended_at: datetime | None


class RunsOut(Schema):
    items: list[RunOut]
    next: int | None


class BalanceOut(Schema):
    cap_microusd: int | None
    cap_output_tokens: int | None
    settled_microusd: int
    held_microusd: int
    reserved_microusd: int
    overrun_microusd: int
    settled_output_tokens: int
    held_output_tokens: int
    reserved_output_tokens: int
    overrun_output_tokens: int


class StateOut(Schema):
    """An admitted candidate (S3)."""

    agent_id: str
    state_version: int
    parent_version: int
    round: int
    text: str
    answer_raw: str
    answer_kind: str
    answer_value: str
    confidence: str | None
    claims: list[Any]
    content_hash: str
    attempt_id: int | None


class VerdictOut(Schema):
    """Admission's record of an agent in a round (S11)."""

    t: int
    agent_id: str
    status: str
    reason: str
    state_version: int | None
    attempt_id: int | None


class OutcomeOut(Schema):
    """How an attempt ended. ``reply`` is the reply as text, broken bytes replaced."""

    late: bool
    status: str
    reply: str
    finish_reason: str
    error_class: str
    error_detail: str
    input_tokens: int | None
    output_tokens: int | None
    cost_microusd: int | None
    latency_milliseconds: int | None
    model_version: str
    at: datetime

    @staticmethod
    def resolve_reply(row: Any) -> str:
        return bytes(row.raw).decode("utf-8", "replace")


class EntryOut(Schema):
    """One movement of the ledger (S31)."""

    kind: str
    source: str
    microusd: int
    output_tokens: int
    attempt_id: int | None
    at: datetime


class AttemptOut(Schema):
    """One call with its exact prompt and what of the others it was given to read."""

    id: int
    t: int
    agent_id: str
    kind: str
    ordinal: int
    model: str
    prompt: Any
    read_set: Any
    decoding: Any
    reserved_microusd: int
    reserved_output_tokens: int
    retry_of_id: int | None
    created_at: datetime
    outcomes: list[OutcomeOut]
    entries: list[EntryOut]


class AggregateOut(Schema):
    ordinal: int
    t: int
    aggregator: str
    answer_raw: str
    answer_kind: str
    answer_value: str
    answer_reason: str
    counts: Any
    tied: bool
    tie_resolved_by: str
    unresolved: bool
    candidates: Any


class RunDetailOut(RunOut):
    """All that is stored of one run. Entries without an attempt stand in ``entries``."""

    experiment: str
    question: QuestionOut
    protocol_hash: str
    question_hash: str
    evidence_hash: str
    snapshot_hash: str
    deadline_at: datetime | None
    stop_observables: Json
    model_changed: bool
    balance: BalanceOut
    states: list[StateOut]
    verdicts: list[VerdictOut]
    attempts: list[AttemptOut]
    entries: list[EntryOut]
    aggregates: list[AggregateOut]


class DisagreementOut(Schema):
    where: str
    field: str
    stored: str
    recomputed: str


class VerificationOut(Schema):
    """``agrees`` is false where a record does not follow from the others: the first one (S34)."""

    run_id: int
    agrees: bool
    disagreement: DisagreementOut | None

"""The parts of a protocol that check, decide, stop and limit."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from runs.protocols.parts import AgentId, Decoding, Fraction, Part, PositiveInt, Short, Template


class Verifier(Part):
    """A check that the host runs on claims (S22)."""

    id: AgentId
    kind: Literal["schema", "exact_quote", "numeric", "python_tests", "model"]
    version: Short = "1"
    scope: str = ""
    decisive: bool = False
    cap_seconds: PositiveInt = 10
    cap_memory_mb: PositiveInt = 256
    cap_output_bytes: PositiveInt = 65_536
    model: Short | None = None
    prompt: Template = ""


class JudgeSettings(Part):
    """A model that selects, scores or abstains (S28)."""

    by: Literal["model", "person"] = "model"
    model: Short = "judge"
    mode: Literal["pointwise", "pairwise", "listwise", "transcript"] = "pairwise"
    prompt: Template
    decoding: Decoding = Decoding()
    orders: Literal["given", "both", "all", "balanced"] = "both"
    repeats: PositiveInt = 1
    combine: Literal["consistent_only", "majority", "summed_scores"] = "consistent_only"
    sees_rounds: Literal["first", "last", "all"] = "last"
    sees_evidence: bool = Field(
        default=True, description="False: the judge decides without the text debaters quote."
    )
    may_ask: bool = False
    synthesise: bool = False


TiePolicy = Literal[
    "abstain", "round_zero_plurality", "judge", "track_record", "seeded_lot", "agent_order"
]


class Calibration(Part):
    """Confidence weighting (S27): only with a versioned calibrator, or a published table."""

    calibrator: str | None = None
    buckets: tuple[tuple[float, float], ...] = Field(
        default=(), description="(upper bound of confidence, weight), ascending."
    )


class Aggregation(Part):
    """How candidates become one answer (S27, S28). Ties go through ``tie`` in order."""

    kind: Literal[
        "plurality",
        "strict_majority",
        "supermajority",
        "unanimity",
        "single",
        "approval",
        "cumulative",
        "ranked",
        "weighted",
        "claim_vote",
        "summed_scores",
        "judge",
        "none",
    ] = "plurality"
    tie: tuple[TiePolicy, ...] = ("abstain",)
    threshold: Fraction | None = None
    points: PositiveInt | None = Field(
        default=None, description="cumulative: points to share; ranked: points of a first place."
    )
    candidate_orders: Literal["given", "both"] = Field(
        default="given", description="summed_scores: whether each pair is also scored swapped."
    )
    track_record: dict[AgentId, float] = Field(default_factory=dict)
    judge: JudgeSettings | None = None
    calibration: Calibration | None = None


class Moderator(Part):
    """A model call after a round that may declare the debate decided."""

    model: Short = "moderator"
    prompt: Template
    decoding: Decoding = Decoding()
    from_round: int = Field(default=0, ge=0)


class AgreementStep(Part):
    """From ``from_round`` on, more than ``threshold`` of the votes have to agree."""

    from_round: int = Field(ge=0)
    threshold: Fraction


class Stopping(Part):
    """Which observables end a run before its last round (S13)."""

    stable_candidates: bool = False
    unanimous: bool = False
    unanimous_at_zero: bool = Field(
        default=False, description="Disagreement-triggered: unanimity at t = 0 ends the run."
    )
    agreement_threshold: Fraction | None = Field(
        default=None, description="Stop when more than this share of valid votes agrees."
    )
    agreement_steps: tuple[AgreementStep, ...] = Field(
        default=(), description="Thresholds that change from round to round."
    )
    no_open_challenges: bool = False
    decisive_checks_passed: bool = False
    moderator: Moderator | None = None


class Retries(Part):
    """Calls repeated after a provider's failure, on the same budget (S31)."""

    transport: int = Field(default=2, ge=0, le=10, description="After 429, 5xx, lost connections.")
    timeout: int = Field(default=0, ge=0, le=10)
    invalid: int = Field(
        default=0, ge=0, le=10, description="After a reply that was INVALID (S11)."
    )


class Limits(Part):
    """Time limits and how a round takes its reservation (S10, S30, S31)."""

    call_timeout_seconds: PositiveInt = 120
    round_timeout_seconds: PositiveInt = 600
    final_time_cap_seconds: int = Field(default=0, ge=0)
    final_microusd: int = Field(default=0, ge=0)
    round_reservation: Literal["all_or_nothing", "seeded_order"] = "all_or_nothing"
    min_agents: PositiveInt = 1


class GeneratedExperts(Part):
    """Personas written by a model before t = 0."""

    model: Short = "default"
    prompt: Template
    decoding: Decoding = Decoding()


class Drafts(Part):
    """Several drafts a turn, the best kept by a judge."""

    count: PositiveInt = 1
    judge: JudgeSettings | None = None


class Challenges(Part):
    """The claim-challenge-check loop (S21)."""

    challengers: tuple[AgentId, ...] = ()
    max_per_round: PositiveInt = 4
    reviewed: bool = True

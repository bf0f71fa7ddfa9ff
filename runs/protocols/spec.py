"""
The protocol language (S1): everything that decides what a debate computes.

One frozen value per protocol. The engine reads these fields and nothing else, so two
protocols with equal values are the same algorithm, whatever they are called. Published
protocols are YAML files in ``presets/``; the engine never asks for a protocol by name.

Units are in the field names. Lengths are in characters of the text as shown.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

SCHEMA_VERSION = 1

AgentId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Fraction = Annotated[float, Field(ge=0, le=1)]
PositiveInt = Annotated[int, Field(ge=1)]
Template = Annotated[str, Field(max_length=20_000)]


class Part(BaseModel):
    """Base of every section: immutable, no unknown keys, no silent coercion."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, str_max_length=100_000)


class Source(Part):
    """Where a published protocol comes from and how near this file is to it."""

    citation: str
    faithful: str = Field(default="", description="What is as published.")
    ours: str = Field(default="", description="What is our choice, and why.")


class Decoding(Part):
    """Sampling settings sent to the model; ``None`` leaves the provider's default."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = 1024
    stop: tuple[str, ...] = ()
    seeded: bool = Field(
        default=False, description="Send a seed drawn from the run's seed, where supported."
    )


class Agent(Part):
    """One configured participant. Its id never leaves a log or a denominator (S12)."""

    id: AgentId
    model: str = Field(default="default", description="A slot that the experiment fills.")
    role: str = "debater"
    persona: Template = ""
    side: str | None = Field(default=None, description="An assigned side, where there is one.")
    decoding: Decoding = Decoding()
    evidence: tuple[str, ...] = Field(
        default=(), description="Ids of evidence only this agent reads; empty: all of it."
    )
    tools: tuple[Literal["python", "calculator", "passage_lookup"], ...] = ()
    votes: bool = Field(default=True, description="Whether the aggregator counts its answer.")


class Operator(Part):
    """When agents update and which versions they read (S9, S15, S16)."""

    kind: Literal["synchronous", "sequential", "asynchronous"] = "synchronous"
    permutation: tuple[AgentId, ...] | Literal["seeded"] | None = None
    this_round_only: bool = False
    staleness_limit: PositiveInt | None = None
    on_conflict: Literal["reject", "recompute"] = "reject"
    update_budget: PositiveInt | None = None


class Edge(Part):
    """``reader`` may read ``source`` (S18)."""

    source: AgentId
    reader: AgentId


class Topology(Part):
    """Who may read whom (S18)."""

    kind: Literal["full", "none", "ring", "star", "k_regular", "groups", "custom"] = "full"
    k: PositiveInt | None = Field(default=None, description="In-degree of k_regular.")
    hub: AgentId | None = Field(default=None, description="Centre of star; default the first.")
    edges: tuple[Edge, ...] = ()
    groups: tuple[tuple[AgentId, ...], ...] = ()
    bidirectional: bool = Field(default=True, description="Ring read in both directions.")


class Summary(Part):
    """A model call that condenses peers; it has its own attempt and price (S19)."""

    model: str = "default"
    prompt: Template
    decoding: Decoding = Decoding()
    scope: Literal["per_reader", "shared"] = "shared"


class DynamicSelection(Part):
    """A judge call that ranks, silences or routes (S17, S18)."""

    kind: Literal["rank_and_silence", "keep_top", "route"]
    model: str = "judge"
    prompt: Template = ""
    decoding: Decoding = Decoding()
    silenced: int = Field(default=0, ge=0)
    kept: PositiveInt | None = None
    from_round: PositiveInt = 1


class Selection(Part):
    """What of a visible peer is put in the prompt, in which order, how long (S19)."""

    show: Literal[
        "full_answer",
        "final_answer",
        "final_and_justification",
        "claims",
        "evidence",
        "answer_groups",
        "summary",
        "transcript",
    ] = "full_answer"
    rounds: Literal["last", "all"] = Field(default="last", description="Peers' rounds shown.")
    last_turns: PositiveInt | None = None
    order: Literal["by_id", "fixed", "seeded_shuffle"] = "by_id"
    fixed_order: tuple[AgentId, ...] = ()
    message_cap_chars: PositiveInt = 8_000
    total_cap_chars: PositiveInt = 32_000
    own_history: Literal["none", "last", "all"] = "last"
    include_self: bool = Field(default=False, description="Own state among the peers' messages.")
    identities: Literal["hidden", "ids", "roles"] = "hidden"
    summary: Summary | None = None
    dynamic: DynamicSelection | None = None
    largest_groups: PositiveInt | None = Field(default=None, description="answer_groups only.")
    agreement_intensity_percent: Annotated[int, Field(ge=0, le=100)] | None = None
    against_majority: tuple[AgentId, ...] = Field(
        default=(), description="Agents told the present majority and to argue against it."
    )
    targeted_challenges: bool = False
    quotes_verified: bool = False
    randomised_read_probability: Fraction | None = None


class Prompts(Part):
    """
    Prompt texts. ``{{name}}`` marks a slot; slots are filled once, never re-read.

    Slots: question, choices, evidence, persona, side, answer_format, own_answer, own_text,
    peers, majority, agreement_intensity, summary. Peer and evidence text is delimited by the
    renderer (S20).
    """

    system: Template = ""
    initial: Template
    revision: Template = ""
    by_role: dict[str, RolePrompts] = Field(default_factory=dict)
    peer: Template = Field(
        default="", description="One peer's message; slots: label, text, answer, count."
    )
    separator: str = "\n\n"


class RolePrompts(Part):
    """Texts for one role, where they differ from the common ones."""

    system: Template | None = None
    initial: Template | None = None
    revision: Template | None = None


NumberRule = Literal["final_line", "boxed", "hash_marks", "answer_is", "last_number", "whole"]
ChoiceRule = Literal[
    "final_line", "boxed", "parenthesised_letter", "answer_is", "option_text", "whole"
]
YesNoRule = Literal["final_line", "boxed", "answer_is", "first_word", "whole"]
TextRule = Literal["final_line", "boxed", "answer_is", "whole"]


class Extraction(Part):
    """Rules tried in order until one finds an answer, by answer type (S26)."""

    number: tuple[NumberRule, ...] = ("final_line", "boxed", "hash_marks", "answer_is")
    choice: tuple[ChoiceRule, ...] = ("final_line", "boxed", "answer_is", "parenthesised_letter")
    yesno: tuple[YesNoRule, ...] = ("final_line", "boxed", "answer_is")
    text: tuple[TextRule, ...] = ("final_line", "boxed", "answer_is")
    open: tuple[TextRule, ...] = ("final_line", "whole")


class Output(Part):
    """What a reply has to look like and how an answer is read out of it."""

    format: Literal["text", "json"] = Field(
        default="text", description="json asks for a schema-bound answer where the model can."
    )
    extraction: Extraction = Extraction()
    claims: bool = False
    confidence: bool = False
    change_reason: bool = False
    abstention_allowed: bool = True
    truncated: Literal["fail", "parse"] = "fail"
    filtered: Literal["fail", "parse"] = "fail"
    max_reply_chars: PositiveInt = 200_000


class Normaliser(Part):
    """The map g from answers to values that are counted (S26)."""

    number_tolerance: Annotated[str, Field(pattern=r"^\d+(\.\d+)?$")] = Field(
        default="0", description="Absolute tolerance against the reference, a decimal string."
    )
    strip_units: bool = True
    casefold: bool = True
    strip_punctuation: bool = True
    strip_articles: bool = False
    model: DynamicNormaliser | None = None


class DynamicNormaliser(Part):
    """A model-made g: a component with a price and errors of its own (S26)."""

    model: str = "normaliser"
    prompt: Template
    decoding: Decoding = Decoding()


class Verifier(Part):
    """A check that the host runs on claims (S22)."""

    id: str
    kind: Literal["schema", "exact_quote", "numeric", "python_tests", "model"]
    version: str = "1"
    scope: str = ""
    decisive: bool = False
    cap_seconds: PositiveInt = 10
    cap_memory_mb: PositiveInt = 256
    cap_output_bytes: PositiveInt = 65_536
    model: str | None = None
    prompt: Template = ""


class JudgeSettings(Part):
    """A model that selects, scores or abstains (S28)."""

    model: str = "judge"
    mode: Literal["pointwise", "pairwise", "listwise", "transcript"] = "pairwise"
    prompt: Template
    decoding: Decoding = Decoding()
    orders: Literal["given", "both", "all", "balanced"] = "both"
    repeats: PositiveInt = 1
    combine: Literal["consistent_only", "majority", "summed_scores"] = "consistent_only"
    sees_rounds: Literal["first", "last", "all"] = "last"
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
        "judge",
        "none",
    ] = "plurality"
    tie: tuple[TiePolicy, ...] = ("abstain",)
    threshold: Fraction | None = None
    points: PositiveInt | None = None
    track_record: dict[AgentId, float] = Field(default_factory=dict)
    judge: JudgeSettings | None = None
    calibration: Calibration | None = None


class Stopping(Part):
    """Which observables end a run before its last round (S13)."""

    stable_candidates: bool = False
    unanimous: bool = False
    unanimous_at_zero: bool = Field(
        default=False, description="Disagreement-triggered: unanimity at t = 0 ends the run."
    )
    agreement_threshold: Fraction | None = None
    no_open_challenges: bool = False
    decisive_checks_passed: bool = False
    moderator: DynamicSelection | None = None


class Retries(Part):
    """Calls repeated after a provider's failure, on the same budget (S31)."""

    transport: int = Field(default=2, ge=0, le=10, description="After 429, 5xx, lost connections.")
    timeout: int = Field(default=0, ge=0, le=10)
    invalid: int = Field(default=0, ge=0, le=10, description="After a reply that was INVALID (S11).")


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

    model: str = "default"
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


class Protocol(Part):
    """A debate protocol Π (S1): immutable; any change is another version and another hash."""

    schema_version: Literal[1] = SCHEMA_VERSION
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
    title: str = ""
    description: str = ""
    source: Source | None = None
    initialisation: Literal["blind", "sequential"] = "blind"
    agents: tuple[Agent, ...] = Field(min_length=1, max_length=64)
    generated_experts: GeneratedExperts | None = None
    operator: Operator = Operator()
    revision_rounds: int = Field(ge=0, le=64, description="Rounds after t = 0.")
    turns_per_round: PositiveInt = 1
    topology: Topology = Topology()
    selection: Selection = Selection()
    prompts: Prompts
    output: Output = Output()
    drafts: Drafts = Drafts()
    challenges: Challenges | None = None
    normaliser: Normaliser = Normaliser()
    verifiers: tuple[Verifier, ...] = ()
    aggregation: Aggregation = Aggregation()
    stopping: Stopping = Stopping()
    retries: Retries = Retries()
    limits: Limits = Limits()

    @property
    def agent_ids(self) -> tuple[str, ...]:
        return tuple(agent.id for agent in self.agents)

    def agent(self, agent_id: str) -> Agent:
        """Return the configured agent; KeyError when there is none."""
        for agent in self.agents:
            if agent.id == agent_id:
                return agent
        raise KeyError(agent_id)

    @property
    def model_slots(self) -> tuple[str, ...]:
        """Every model slot that some call of this protocol uses, sorted."""
        slots = {agent.model for agent in self.agents}
        parts = (
            self.generated_experts,
            self.selection.summary,
            self.selection.dynamic,
            self.normaliser.model,
            self.stopping.moderator,
            self.aggregation.judge,
            self.drafts.judge,
        )
        slots.update(part.model for part in parts if part is not None)
        slots.update(v.model for v in self.verifiers if v.model is not None)
        return tuple(sorted(slots))

    @model_validator(mode="after")
    def _check(self) -> Self:
        from runs.protocols.checks import problems  # The rules are long; they have a room.

        found = problems(self)
        if found:
            raise ValueError("; ".join(found))
        return self


Prompts.model_rebuild()
Normaliser.model_rebuild()
Protocol.model_rebuild()

"""
The parts of a protocol that say who speaks, who reads whom, and what a reply looks like.

Units are in the field names. Lengths are in characters of the text as shown.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

AgentId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Fraction = Annotated[float, Field(ge=0, le=1)]
PositiveInt = Annotated[int, Field(ge=1)]
Short = Annotated[str, Field(max_length=200)]
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
    model: Short = Field(default="default", description="A slot that the experiment fills.")
    role: Short = "debater"
    persona: Template = ""
    side: Short | None = Field(default=None, description="An assigned side, where there is one.")
    decoding: Decoding = Decoding()
    evidence: tuple[str, ...] = Field(
        default=(),
        description="Ids of evidence only this agent reads, candidates in this order; empty: all.",
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

    model: Short = "default"
    prompt: Template
    decoding: Decoding = Decoding()
    scope: Literal["per_reader", "shared", "other_groups"] = Field(
        default="shared", description="other_groups: own group in full, the others condensed."
    )


class DynamicSelection(Part):
    """A judge call that ranks, silences or routes (S17, S18)."""

    kind: Literal["rank_and_silence", "keep_top", "route"]
    model: Short = "judge"
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


class AnswerFormats(Part):
    """
    What fills ``{{answer_format}}``, by answer type.

    It is a part of the protocol since it is a part of the prompt. What stands for the answer
    has to be something that no extraction rule takes for one (S26).
    """

    number: Template = "Give your answer on the last line, alone:\nFinal answer: <number>"
    choice: Template = "Give your answer on the last line, alone:\nFinal answer: <letter>"
    yesno: Template = "Give your answer on the last line, alone:\nFinal answer: <yes or no>"
    text: Template = "Give your answer on the last line, alone:\nFinal answer: <answer>"
    open: Template = "Give your answer on the last line, alone:\nFinal answer: <answer>"


#: What a reply is asked for beside the answer, by field of ``Output``: as a key of the object and
#: as lines before the answer.
ASKED_AS_KEY = {
    "confidence": '"confidence": <number from 0 to 1>',
    "claims": '"claims": [{"claim_id": "<id>", "text": "<one checkable claim>"}]',
    "change_reason": '"change": {"kind": "<retain, revise or withdraw>", "claim_id": "<id>", '
    '"text": "<why>"}',
}
ASKED_AS_LINE = {
    "confidence": "Confidence: <number from 0 to 1>",
    "claims": "Claim [<id>]: <one checkable claim>",
    "change_reason": "Change: <retain, revise or withdraw, and why>",
}


class Prompts(Part):
    """
    Prompt texts. ``{{name}}`` marks a slot; slots are filled once, never re-read.

    Slots: question, choices, evidence, candidates, persona, side, answer_format, own_answer,
    own_text, peers, majority, agreement_intensity, summary. Peer, evidence and candidate text is
    delimited by the renderer (S20).
    """

    system: Template = ""
    initial: Template
    revision: Template = ""
    by_role: dict[str, RolePrompts] = Field(default_factory=dict)
    peer: Template = Field(
        default="", description="One peer's message; slots: label, text, answer, count."
    )
    separator: str = Field(default="\n\n", max_length=200)
    answer_format: AnswerFormats = AnswerFormats()


class RolePrompts(Part):
    """Texts for one role, where they differ from the common ones."""

    system: Template | None = None
    initial: Template | None = None
    revision: Template | None = None


NumberRule = Literal[
    "final_line", "boxed", "hash_marks", "a_marker", "answer_is", "last_number", "whole"
]
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
    candidate_scores: bool = Field(
        default=False, description="Each agent scores the candidates that the question names."
    )
    peer_rating_max: PositiveInt | None = Field(
        default=None, description="Agents rate what they read from 1 to this."
    )
    min_words: PositiveInt | None = None
    max_words: PositiveInt | None = None
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

    model: Short = "normaliser"
    prompt: Template
    decoding: Decoding = Decoding()


Prompts.model_rebuild()
Normaliser.model_rebuild()

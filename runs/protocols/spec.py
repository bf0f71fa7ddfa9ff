"""
The protocol language (S1): everything that decides what a debate computes.

One frozen value per protocol. The engine reads these fields and nothing else, so two
protocols with equal values are the same algorithm, whatever they are called. Published
protocols are YAML files in ``presets/``; the engine never asks for a protocol by name.

Units are in the field names. Lengths are in characters of the text as shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from runs.protocols.decisions import (
    Aggregation,
    AgreementStep,
    Calibration,
    Challenges,
    Drafts,
    GeneratedExperts,
    JudgeSettings,
    Limits,
    Moderator,
    Retries,
    Stopping,
    TiePolicy,
    Verifier,
)
from runs.protocols.parts import (
    ASKED_AS_KEY,
    ASKED_AS_LINE,
    Agent,
    AgentId,
    AnswerFormats,
    ChoiceRule,
    Decoding,
    DynamicNormaliser,
    DynamicSelection,
    Edge,
    Extraction,
    Fraction,
    Normaliser,
    NumberRule,
    Operator,
    Output,
    Part,
    PositiveInt,
    Prompts,
    RolePrompts,
    Selection,
    Short,
    Source,
    Summary,
    Template,
    TextRule,
    Topology,
    YesNoRule,
)

__all__ = [
    "SCHEMA_VERSION",
    "Agent",
    "AgentId",
    "Aggregation",
    "AgreementStep",
    "AnswerFormats",
    "Calibration",
    "Challenges",
    "ChoiceRule",
    "Decoding",
    "Drafts",
    "DynamicNormaliser",
    "DynamicSelection",
    "Edge",
    "Extraction",
    "Fraction",
    "GeneratedExperts",
    "JudgeSettings",
    "Limits",
    "Moderator",
    "Normaliser",
    "NumberRule",
    "Operator",
    "Output",
    "Part",
    "PositiveInt",
    "Prompts",
    "Protocol",
    "ProtocolProblemsError",
    "Retries",
    "RolePrompts",
    "Selection",
    "Short",
    "Source",
    "Stopping",
    "Summary",
    "Template",
    "TextRule",
    "TiePolicy",
    "Topology",
    "Verifier",
    "YesNoRule",
]

SCHEMA_VERSION: Final = 1


class ProtocolProblemsError(ValueError):
    """Fields that are well formed each but do not fit together; ``found`` has one line each."""

    def __init__(self, found: Sequence[str]) -> None:
        self.found = tuple(found)
        super().__init__("; ".join(found))


class Protocol(Part):
    """A debate protocol Π (S1): immutable; any change is another version and another hash."""

    schema_version: Literal[1] = SCHEMA_VERSION
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")]
    title: Short = ""
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

    def answer_format(self, answer_type: str) -> str:
        """
        Return what fills ``{{answer_format}}`` for questions of this type.

        A text of the protocol's own stands as it is. The default asks for all that ``output``
        reads: as lines before the answer, or as keys of one JSON object.
        """
        formats = self.prompts.answer_format
        text: str = getattr(formats, answer_type)
        if formats != AnswerFormats():
            return text
        wanted = [name for name in ASKED_AS_LINE if getattr(self.output, name)]
        if self.output.format == "json":
            answer = text.rpartition("Final answer: ")[2]
            keys = [f'"answer": "{answer}"', *(ASKED_AS_KEY[name] for name in wanted)]
            return "Answer with one JSON object and nothing else:\n{" + ", ".join(keys) + "}"
        return "\n".join([*(ASKED_AS_LINE[name] for name in wanted), text])

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
        slots.update(
            part.model
            for part in parts
            if part is not None and getattr(part, "by", "model") == "model"
        )
        slots.update(v.model for v in self.verifiers if v.model is not None)
        return tuple(sorted(slots))

    @model_validator(mode="after")
    def _check(self) -> Self:
        from runs.protocols.checks import problems  # The rules are long; they have a room.

        found = problems(self)
        if found:
            raise ProtocolProblemsError(found)
        return self

"""
The design of a queue: what is asked, of whom, how often, and what stays hidden (ui.md).

One frozen value per queue, hashed when the queue is made. Nothing here knows a database.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from runs.engine.hashing import digest

SCHEMA_VERSION: Final = 1

Key = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]
Short = Annotated[str, Field(min_length=1, max_length=200)]
Fraction = Annotated[float, Field(ge=0, le=1)]
#: The kinds of the interchange file (formats.md).
LabelKind = Literal[
    "correctness", "pairwise", "scale", "claim", "check", "belief", "turn", "judge_decision"
]
CANNOT_TELL: Final = "cannot_tell"


class Part(BaseModel):
    """Base of every section: immutable, no unknown keys, no silent coercion."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, str_max_length=20_000)


class Option(Part):
    """One answer that a person can give. ``counts_as`` is what figures of correctness read."""

    value: Key
    title: Short
    help: str = ""
    counts_as: Literal["right", "wrong", "unscored"] = "unscored"


CORRECTNESS: Final = (
    Option(value="correct", title="Correct", counts_as="right"),
    Option(value="incorrect", title="Incorrect", counts_as="wrong"),
    Option(value=CANNOT_TELL, title="Cannot tell"),
)


class Ask(Part):
    """
    What is asked of an item.

    ``correctness``, ``claim``, ``check`` and ``judge_decision`` use ``options``; ``scale`` uses
    its bounds, ``threshold`` (from which value on an answer counts as right) and ``anchors`` by
    value; ``pairwise`` and ``belief`` take their options from the item's candidates.
    """

    kind: LabelKind
    title: Short
    options: tuple[Option, ...] = ()
    scale_min: int = 1
    scale_max: int = 5
    threshold: int | None = None
    anchors: dict[str, str] = Field(default_factory=dict)
    ties: bool = True
    abstain: bool = True

    @model_validator(mode="after")
    def _check(self) -> Self:
        values = [option.value for option in self.options]
        if len(set(values)) != len(values):
            raise ValueError("options: each value may stand once")
        if self.kind in {"correctness", "claim", "check", "judge_decision"} and len(values) < 2:
            raise ValueError(f"options: {self.kind} needs at least 2")
        if len(values) > 9:
            raise ValueError("options: at most 9, one key each")
        if self.kind == "scale" and not 1 <= self.scale_max - self.scale_min <= 100:
            raise ValueError("scale_max: has to be 1 to 100 above scale_min")
        return self


class Reasons(Part):
    """Reasons that may be ticked with a label; several at once."""

    title: Short = "Why"
    options: tuple[Option, ...] = Field(min_length=1, max_length=20)
    needed_for: tuple[Key, ...] = ()  # Labels that have to come with a reason.


class LabelSchema(Part):
    """One decision with what may stand beside it."""

    ask: Ask
    reasons: Reasons | None = None
    confidence: bool = False
    comment: Literal["none", "optional", "required"] = "optional"


class Sampling(Part):
    """
    Which of the source's items are drawn, and with which stored weight.

    ``flip_first`` takes all items where the judge flipped and ``random_share`` of the others;
    ``disagreement_first`` does so where agents or judges differ. Weights are 1 / inclusion
    probability, so that figures can be of the whole.
    """

    kind: Literal["all", "random", "stratified", "flip_first", "disagreement_first"] = "all"
    n: Annotated[int, Field(ge=1)] | None = None
    per_stratum: Annotated[int, Field(ge=1)] | None = None
    random_share: Fraction = 0.1

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind == "random" and self.n is None:
            raise ValueError("n: random sampling needs it")
        if self.kind == "stratified" and self.n is None and self.per_stratum is None:
            raise ValueError("n: stratified sampling needs it, or per_stratum")
        if self.kind in {"flip_first", "disagreement_first"} and self.random_share == 0:
            raise ValueError("random_share: 0 would leave no sample of the others to weight")
        return self


class Calibration(Part):
    """A first round on gold items; who stays under ``min_accuracy`` is not admitted by itself."""

    items: Annotated[int, Field(ge=1, le=200)]
    min_accuracy: Fraction = 0.8


class QueueDesign(Part):
    """
    The whole design.

    ``unit`` is what is sampled; ``transition`` makes two blind items, far apart, of the first
    and last answer of one agent. ``overlap`` is how many people label each item; with
    ``overlap_share`` below 1 only that share of items gets it and the rest gets one. Shares of
    items that one person sees a second time: ``swapped_share`` with the order turned,
    ``unswapped_share`` as before. ``lease_seconds`` is how long an item is held without a sign
    of life. ``batch_items`` closes a person's batch, after which its secrets may be seen.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    label: LabelSchema
    unit: Literal["item", "transition", "question"] = "item"
    sampling: Sampling = Sampling()
    overlap: Annotated[int, Field(ge=1, le=20)] = 2
    overlap_share: Annotated[float, Field(gt=0, le=1)] = 1.0
    gold_share: Fraction = 0.0
    swapped_share: Fraction = 0.0
    unswapped_share: Fraction = 0.0
    calibration: Calibration | None = None
    show_reference: bool = False
    mask_giveaways: bool = False
    reuse_labels: bool = False  # Label once per content hash, with provenance.
    reveal: Literal["batch", "queue", "item"] = "batch"
    batch_items: Annotated[int, Field(ge=1, le=1000)] = 50
    lease_seconds: Annotated[int, Field(ge=30, le=86_400)] = 900
    two_people: bool = False  # A second person confirms each resolution.

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.swapped_share + self.unswapped_share > 1:
            raise ValueError("swapped_share: with unswapped_share it is more than 1")
        if self.swapped_share and self.label.ask.kind not in {"pairwise", "judge_decision"}:
            raise ValueError("swapped_share: only pairs have an order to turn")
        if self.unit == "transition" and self.label.ask.kind in {"pairwise", "judge_decision"}:
            raise ValueError("unit: a transition is two single answers, not a pair")
        return self


def read_design(value: Mapping[str, Any]) -> QueueDesign:
    """Return the design that a JSON object says. Raises pydantic's ValidationError."""
    return QueueDesign.model_validate_json(json.dumps(value))


def plain_digest(value: Any) -> str:
    """Return the hash of a JSON value whose floats stand as their text (S35: no floats)."""
    return digest(_without_floats(value))


def _without_floats(value: Any) -> Any:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return {key: _without_floats(inner) for key, inner in value.items()}
    return [_without_floats(inner) for inner in value] if isinstance(value, list) else value

"""A queue as one document, YAML or JSON: where items come from, what is asked, what people read."""

from __future__ import annotations

import json
from typing import Any, Final

import yaml
from pydantic import Field, ValidationError

from audits.labelling.design import CORRECTNESS, Ask, LabelSchema, Option, Part, QueueDesign
from audits.queue_models import QueueKind
from audits.queues.creating import NewItem, NewQueue
from audits.queues.errors import QueueDesignError
from audits.queues.sources import Source, source_items, state_hash
from debateweb.models import Workspace

MOST_CHARACTERS: Final = 1_000_000
_SAME: Final = (
    Option(value="same", title="They say the same", counts_as="unscored"),
    Option(value="different", title="They say different things", counts_as="unscored"),
    Option(value="cannot_tell", title="Cannot tell"),
)
#: What is asked by default of each kind that has a source.
PRESETS: Final[dict[QueueKind, LabelSchema]] = {
    QueueKind.ANSWER: LabelSchema(
        ask=Ask(kind="correctness", title="Is the answer right?", options=CORRECTNESS)
    ),
    QueueKind.PAIR: LabelSchema(ask=Ask(kind="pairwise", title="Which answer is better?")),
    QueueKind.JUDGE: LabelSchema(ask=Ask(kind="pairwise", title="Which answer is better?")),
    QueueKind.DEBATE: LabelSchema(ask=Ask(kind="turn", title="How likely is each option?")),
    QueueKind.MERGE: LabelSchema(
        ask=Ask(kind="check", title="Do both answers say the same?", options=_SAME)
    ),
}


class Example(Part):
    """A worked example: a text, its label, and why."""

    text: str
    label: str
    why: str = ""


class GoldItem(Part):
    """An item with a known label, out of a file."""

    item_id: str = Field(min_length=1, max_length=200)
    shown: dict[str, Any]
    gold: str | float | int | dict[str, Any]


class QueueDocument(Part):
    """The whole queue. ``gold`` holds the items that calibrate and that are hidden in it."""

    name: str = Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    kind: QueueKind
    source: Source
    design: QueueDesign
    guideline: str = Field(min_length=1)
    examples: tuple[Example, ...] = ()
    gold: tuple[GoldItem, ...] = ()
    seed: int = Field(default=1, ge=0, lt=2**63)


def read_document(text: str) -> QueueDocument:
    """
    Return the queue that a YAML or JSON text says; without ``label`` it is asked as its kind is.

    Raises QueueDesignError with one line per fault, by field.
    """
    if len(text) > MOST_CHARACTERS:
        raise QueueDesignError(f"design: at most {MOST_CHARACTERS} characters")
    try:
        value = yaml.safe_load(text)
        as_json = json.dumps(_with_preset(value), allow_nan=False)
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as exc:
        raise QueueDesignError(f"design: no YAML or JSON: {str(exc).splitlines()[0]}") from exc
    try:
        return QueueDocument.model_validate_json(as_json)
    except ValidationError as exc:
        raise QueueDesignError("\n".join(_faults(exc))) from exc


def _with_preset(value: object) -> object:
    if not isinstance(value, dict) or value.get("kind") not in set(PRESETS):
        return value
    design = value.get("design", {})
    if not isinstance(design, dict) or "label" in design:
        return value
    label = PRESETS[QueueKind(value["kind"])].model_dump(mode="json")
    return {**value, "design": {**design, "label": label}}


def _faults(exc: ValidationError) -> list[str]:
    found = []
    for fault in exc.errors(include_url=False, include_input=False):
        place = ".".join(map(str, fault["loc"])) or "design"
        found.append(f"{place}: {fault['msg']}")
    return found


def new_queue(workspace: Workspace, document: QueueDocument) -> NewQueue:
    """Return what ``create_queue`` and ``planned`` take. Raises QueueDesignError."""
    found = source_items(workspace, document.source, document.kind, document.design)
    gold = [
        NewItem(
            item_id=f"gold {one.item_id}",
            unit_id=f"gold {one.item_id}",
            question_id=f"gold {one.item_id}",
            shown=one.shown,
            gold=one.gold,
        )
        for one in document.gold
    ]
    return NewQueue(
        name=document.name,
        kind=document.kind,
        design=document.design,
        items=[*found, *gold],
        source={**document.source.model_dump(mode="json"), "state_hash": state_hash(found)},
        seed=document.seed,
        guideline=document.guideline,
        examples=[one.model_dump() for one in document.examples],
    )

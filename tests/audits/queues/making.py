"""Queues for tests: made by the service, with as much design as a test names."""

from __future__ import annotations

from itertools import count
from typing import Any

from audits.labelling.design import CORRECTNESS, Ask, LabelSchema, QueueDesign
from audits.queue_models import Annotator, Queue, QueueKind
from audits.queues.claiming import Claimed, next_item
from audits.queues.creating import NewItem, NewQueue, add_annotator, create_queue
from audits.queues.submitting import Said, submit
from debateweb.models import Role, Workspace
from tests.debateweb.people import member

CORRECT = LabelSchema(ask=Ask(kind="correctness", title="Is it right?", options=CORRECTNESS))
PAIR = LabelSchema(ask=Ask(kind="pairwise", title="Which is better?"))
_keys = count(1)


def home() -> Workspace:
    return Workspace.objects.get_or_create(name="home")[0]


def answers(n: int, gold: int = 0) -> list[NewItem]:
    made = [
        NewItem(
            item_id=f"i{i}",
            unit_id=f"u{i}",
            question_id=f"q{i}",
            shown={"question": f"What is {i} + 1?", "answer": f"It is {i + 1}."},
            secret={"model": "acme/secret-model", "round": 2, "arm": "debate"},
        )
        for i in range(n)
    ]
    known = [
        NewItem(
            item_id=f"g{i}",
            unit_id=f"gu{i}",
            question_id=f"gq{i}",
            shown={"question": f"Known {i}?", "answer": "yes"},
            gold="correct",
        )
        for i in range(gold)
    ]
    return made + known


def pairs(n: int) -> list[NewItem]:
    return [
        NewItem(
            item_id=f"i{i}",
            unit_id=f"u{i}",
            question_id=f"q{i}",
            shown={
                "question": f"Question {i}",
                "candidates": [
                    {"candidate_id": "x", "text": f"left {i}"},
                    {"candidate_id": "y", "text": f"right {i}"},
                ],
            },
            secret={"verdicts": ["x", "x"]},
        )
        for i in range(n)
    ]


def queue_of(
    items: list[NewItem],
    name: str = "queue",
    seed: int = 7,
    in_workspace: Workspace | None = None,
    **fields: Any,
) -> Queue:
    has_pairs = any("candidates" in item.shown for item in items)
    kind = fields.pop("kind", QueueKind.PAIR if has_pairs else QueueKind.ANSWER)
    design: dict[str, Any] = {"label": PAIR if has_pairs else CORRECT, "overlap": 1} | fields
    new = NewQueue(
        name=name,
        kind=kind,
        design=QueueDesign(**design),
        items=items,
        source={"kind": "test", "name": "test"},
        seed=seed,
        guideline="Be fair.",
    )
    return create_queue(workspace=in_workspace or home(), new=new, actor=None)


def annotators(queue: Queue, n: int, **fields: Any) -> list[Annotator]:
    people = [member(queue.workspace, Role.ANNOTATOR, f"ann{next(_keys)}") for _ in range(n)]
    return [add_annotator(queue=queue, user=user, actor=None, **fields) for user in people]


def claimed(annotator: Annotator) -> Claimed:
    found = next_item(annotator)
    assert isinstance(found, Claimed), found
    return found


def said(label: object = "correct", **fields: Any) -> Said:
    fields = {"request_key": f"request-{next(_keys)}"} | fields
    return Said(value={"label": label, "reasons": []}, **fields)


def label_next(annotator: Annotator, label: object = "correct") -> Claimed:
    mine = claimed(annotator)
    submit(annotator=annotator, slot_id=mine.slot.pk, fence=mine.slot.fence, said=said(label))
    return mine

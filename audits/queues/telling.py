"""
What webhooks are told of labels and decisions: opaque keys, pseudonyms, values; no more.

Nothing here reads what is sealed (gold, model, arm, verdicts, the item's name in files), names or
free text: comments and reasons can name people.
"""

from __future__ import annotations

from audits.queue_models import Adjudication, Annotator, Item, Label, Queue
from debateweb.webhooks import ADJUDICATE, LABEL_SUBMIT, emit


def tell_submit(queue: Queue, item: Item, annotator: Annotator, label: Label) -> None:
    """Tell of a label that is just being stored, in the same transaction."""
    body = {
        "queue": queue.name,
        "kind": queue.kind,
        "item": item.key,
        "annotator": annotator.pseudonym,
        "version": label.version,
        "value": label.value,
        "confidence": label.confidence,
        "guideline_version": label.guideline_version,
        "reveal_state": label.reveal_state,
    }
    emit(queue.workspace, LABEL_SUBMIT, body)


def tell_decision(queue: Queue, item: Item, decision: Adjudication) -> None:
    """Tell of a decision that is just being stored, in the same transaction."""
    body = {
        "queue": queue.name,
        "kind": queue.kind,
        "item": item.key,
        "ordinal": decision.ordinal,
        "value": decision.value,
        "is_precedent": decision.is_precedent,
    }
    emit(queue.workspace, ADJUDICATE, body)

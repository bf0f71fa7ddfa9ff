"""What the page of the next item holds: card, form, progress, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from audits import queries_annotator
from audits.label_cards import Card, card_of, in_words
from audits.label_forms import Fault, Typed, new_key, typed_before
from audits.label_words import ENDINGS, why_shown
from audits.labelling.design import QueueDesign, read_design
from audits.queue_models import Annotator, Item, QueueStatus, Serving
from audits.queues.claiming import Claimed, Nothing, open_batch
from audits.queues.drafts import draft_of, given_beliefs
from audits.queues.masking import masked_item


@dataclass(frozen=True, slots=True)
class Before:
    """An item as it was put before a person, with the beliefs that they gave turn by turn."""

    annotator: Annotator
    serving: Serving
    design: QueueDesign
    card: Card
    beliefs: Sequence[dict[str, Any]]

    @property
    def item(self) -> Item:
        return self.serving.slot.item

    @property
    def turn(self) -> int:
        """Return the number of the turn that was read last, 0 where nothing comes by turns."""
        return len(self.card.turns) if self.card.asks_beliefs else 0


def before(
    annotator: Annotator, serving: Serving, *, whole: bool = False, all_turns: bool = False
) -> Before:
    """Return the item of a serving: masked, ordered and cut as it was served."""
    design = read_design(annotator.queue.design)
    item = serving.slot.item
    by_turns = design.label.ask.kind in {"belief", "turn"} and bool(item.shown.get("turns"))
    beliefs = given_beliefs(annotator=annotator, item=item) if by_turns and not all_turns else []
    card = card_of(
        masked_item(item) if serving.masked else item.shown,
        design,
        serving.shown_order,
        with_reference=serving.shown_reference,
        turns_read=len(beliefs) if by_turns and not all_turns else None,
        whole=whole,
    )
    return Before(annotator, serving, design, card, beliefs)


def panel(
    annotator: Annotator,
    found: Claimed | Nothing,
    *,
    typed: Typed | None = None,
    faults: Sequence[Fault] = (),
    whole: bool = False,
) -> dict[str, Any]:
    """Return the template's context. ``typed`` None: what the draft says."""
    context = {"queue": annotator.queue} | _progress(annotator)
    if isinstance(found, Nothing):
        is_left = bool(context["in_batch"]) and annotator.queue.status != QueueStatus.CLOSED
        return context | {"ending": ENDINGS[found], "may_close": is_left, "undo_key": new_key()}
    serving = found.serving
    serving.slot.item = found.item
    shown = before(annotator, serving, whole=whole)
    draft = draft_of(annotator=annotator, item=found.item)
    if typed is None:
        typed = typed_before(draft.body if draft is not None else {}, shown.card)
    return (
        context
        | form_of(shown, typed, faults)
        | {
            "item": found.item,
            "fence": serving.fence,
            "sequence": draft.sequence if draft is not None else 0,
            "lease_seconds": shown.design.lease_seconds,
            "why": why_shown(shown.design, found.item.phase),
            "thread": list(queries_annotator.thread(annotator, found.item)),
            "undo_key": new_key(),
            "direct": is_direct(shown),
        }
    )


def is_direct(shown: Before) -> bool:
    """Whether one key can say all: nothing has to be typed or ticked beside the choice."""
    schema = shown.design.label
    has_needs = schema.comment == "required" or (
        schema.reasons is not None and bool(schema.reasons.needed_for)
    )
    return bool(shown.card.choices) and not shown.card.claim_ids and not has_needs


def form_of(shown: Before, typed: Typed, faults: Sequence[Fault]) -> dict[str, Any]:
    """Return what the decision form shows."""
    card, schema = shown.card, shown.design.label
    claims = [(n, claim, typed.claims.get(n)) for n, claim in enumerate(card.claims, 1)]
    beliefs = [
        (n, option, typed.beliefs.get(n, ""))
        for n, option in enumerate(card.candidates if card.asks_beliefs else (), 1)
    ]
    return {
        "card": card,
        "schema": schema,
        "typed": typed,
        "claims": claims,
        "beliefs": beliefs,
        "turn": shown.turn,
        "faults": list(faults),
        "fault_fields": {fault.field for fault in faults},
        "request_key": new_key(),
        "given": [in_words(card, one["belief"]) for one in shown.beliefs],
    }


def _progress(annotator: Annotator) -> dict[str, Any]:
    design = read_design(annotator.queue.design)
    has_batches = design.reveal == "batch"
    return {
        "progress": queries_annotator.progress_for(annotator),
        "in_batch": open_batch(annotator).count() if has_batches else 0,
        "batch_items": design.batch_items if has_batches else 0,
    }

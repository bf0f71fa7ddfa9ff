"""Precedents as people read them beside the guideline: an item, what was decided, and why."""

from __future__ import annotations

from dataclasses import dataclass

from audits.label_cards import Card, Text, card_of, in_words
from audits.labelling.design import read_design
from audits.queue_models import Queue
from audits.queues.adjudicating import precedents_of
from audits.queues.masking import masked_item

MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Precedent:
    """One precedent: what of its item people may see, the decision in words, the reason."""

    texts: tuple[Text, ...]
    words: str
    reason: str


def beside_guideline(queue: Queue) -> list[Precedent]:
    """Return the newest precedents, oldest first. Giveaways are masked as in the items."""
    design = read_design(queue.design)
    newest = list(precedents_of(queue).order_by("-pk")[:MOST_SHOWN])
    found = []
    for decision in reversed(newest):
        item = decision.item
        shown = masked_item(item) if design.mask_giveaways else item.shown
        order = [c["candidate_id"] for c in item.shown.get("candidates", ())]
        card = card_of(shown, design, order, with_reference=design.show_reference)
        words = in_words(card, decision.value.get("label"))
        found.append(Precedent(_texts(card), words, decision.reason))
    return found


def _texts(card: Card) -> tuple[Text, ...]:
    answer = (card.answer,) if card.answer is not None else ()
    return (card.question, *answer, *card.candidates, *card.claims)

"""What pages tell annotators: why an item is before them, and what to do when none is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from audits.labelling.design import QueueDesign
from audits.queue_models import ItemPhase
from audits.queues.claiming import Nothing


@dataclass(frozen=True, slots=True)
class Ending:
    """Why there is no next item: its heading, and what to do."""

    title: str
    text: str
    kind: str = "info"


ENDINGS: Final[dict[Nothing, Ending]] = {
    Nothing.ALL_DONE: Ending(
        "All done",
        "Every item of this queue has all the labels that it needs. Nothing is left for you here.",
        "ok",
    ),
    Nothing.HELD_BY_OTHERS: Ending(
        "Nothing is free at the moment",
        "The items that are left are open in front of other people. One comes free when they give "
        "it back or when their time on it runs out. The queue is not finished: look again in a "
        "few minutes.",
    ),
    Nothing.SET_ASIDE: Ending(
        "You have put the rest aside",
        "What is left for you are items that you skipped twice; they go to other people. If you "
        "want one back, tell the lead.",
    ),
    Nothing.DONE_BY_YOU: Ending(
        "You have done your part",
        "You have labelled every item that you can. The queue still waits for labels of other "
        "people: each item is labelled by several.",
        "ok",
    ),
    Nothing.BATCH_FULL: Ending(
        "Your batch is full",
        "Check your labels now if you want to: they are sealed when you close the batch. "
        "Afterwards you see what was hidden, and the next batch begins.",
    ),
    Nothing.CAPACITY_REACHED: Ending(
        "You have reached your number of items",
        "You have labelled as many items as were agreed with you. Tell the lead if you want more.",
        "ok",
    ),
    Nothing.NOT_ADMITTED: Ending(
        "The calibration round is over for you",
        "The lead looks at how the first round went and decides whether you go on. Read the "
        "guideline again meanwhile, and ask the lead if you hear nothing.",
    ),
    Nothing.PAUSED: Ending(
        "The queue is paused",
        "The lead has stopped it for now. What you had typed is kept and comes back when the "
        "queue goes on.",
        "warn",
    ),
    Nothing.CLOSED: Ending(
        "The queue is closed",
        "It takes no more labels. Your labels are under “My labels”, with what was hidden.",
    ),
    Nothing.REMOVED: Ending(
        "You no longer label in this queue",
        "The lead has taken you off it. The labels that you gave stay; ask the lead if this is a "
        "mistake.",
        "warn",
    ),
}

_SAMPLING: Final = {
    "all": "This queue holds all items of its source.",
    "random": "The items of this queue were drawn at random, each with the same chance.",
    "stratified": "The items of this queue were drawn at random within groups.",
    "flip_first": "This queue holds items on which a judge was of two minds, and a random share "
    "of all others, mixed. Which of them this one is, is not shown.",
    "disagreement_first": "This queue holds items on which answers or judges differed, and a "
    "random share of all others, mixed. Which of them this one is, is not shown.",
}


def why_shown(design: QueueDesign, phase: str) -> list[str]:
    """Return sentences that are the same for every item of a phase: they can tell nothing of it."""
    if phase == ItemPhase.CALIBRATION:
        return [
            "This is the first round, in which everybody labels the same items with known labels.",
            "It shows whether people and guideline mean the same; you go on after it.",
        ]
    said = [_SAMPLING[design.sampling.kind], "You see it because it is the next free one."]
    if design.overlap > 1:
        said.append(
            f"Up to {design.overlap} people label an item, each without the others' labels."
        )
    if design.swapped_share or design.unswapped_share:
        said.append("Some items come to you twice, far apart.")
    if design.gold_share:
        said.append("For some items the right label is known; they look like the others.")
    if design.label.ask.kind == "pairwise":
        said.append("Which one stands on the left is drawn for you, each order equally often.")
    if design.mask_giveaways:
        said.append("Words that would tell who wrote a text, or when, are hidden.")
    return said

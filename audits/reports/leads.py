"""What the first screen of each kind of report asks and leads with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from audits.reports.definitions import definition_of

Json = Mapping[str, Any]

KINDS: Final = {
    "experiment": "an experiment",
    "debates": "imported debates",
    "judge_audit": "judgments",
    "queue": "a queue of labels",
}
_DEBATES = (
    "Under these models, tasks and budgets, which exchanges repaired which initial answers, and "
    "which correct answers did they lose?"
)
QUESTIONS: Final = {
    "experiment": _DEBATES,
    "debates": _DEBATES,
    "judge_audit": "Does this judge say the same when the order is turned and when it is asked "
    "again, and do people say what it says?",
    "queue": "Do the people who labelled agree, with each other, with themselves and with what "
    "is known?",
}
UNSCORED: Final = {
    "judge_audit": "What has no verdict, and why",
    "queue": "What has no verdict, and why",
}
NOTHING_UNSCORED: Final = {
    "judge_audit": "Every judgment has a verdict.",
    "queue": "Every judgment has a verdict.",
}


@dataclass(frozen=True, slots=True)
class Lead:
    """
    A figure of the first screen. With ``by`` exactly that one, else the first over all.

    ``if_any`` leaves the column out where no condition has a value: the figures below say why.
    """

    metric: str
    by: Mapping[str, str] | None = None
    title: str = ""
    is_raw: bool = False
    if_any: bool = False

    @property
    def words(self) -> str:
        return self.title or definition_of(self.metric).words

    def is_shown(self, bodies: Sequence[Json]) -> bool:
        """Tell whether the first screen of these conditions has this column."""
        found = [f for body in bodies if (f := self.of(body["figures"])) is not None]
        return any(f["value"] is not None or not self.if_any for f in found)

    def of(self, figures: Sequence[Json]) -> Json | None:
        """Return the figure among those of a condition; None where there is none."""
        own = (f for f in figures if f["metric"] == self.metric and is_whole(f))
        return next((f for f in own if self.by is None or f["by"] == self.by), None)


_DEBATE_LEADS = (
    Lead("excess_repair_T"),
    Lead("excess_damage_T"),
    Lead("repair_T", is_raw=True),
    Lead("damage_T", is_raw=True),
    Lead("accuracy_T"),
    Lead("accuracy_change"),
)
_GIVEN = {"order": "given", "ties": "class"}
_SWAPPED = {"order": "swapped", "ties": "class"}
_JUDGE_LEADS = (
    Lead("position_consistency"),
    Lead("conflict_rate", if_any=True),
    Lead("preference_fairness", if_any=True),
    Lead("excess_flip"),
    Lead("judge_accuracy", _GIVEN, "Right, given order", if_any=True),
    Lead("judge_accuracy", _SWAPPED, "Right, swapped order", if_any=True),
    Lead("invalid_rate", {}),
    Lead("winner_differs", if_any=True),
    Lead("brier", {}, if_any=True),
    Lead("ece", {}, if_any=True),
)
_PEOPLE_LEADS = (
    Lead("percent_agreement", {}),
    Lead("krippendorff_alpha", {"level": "nominal"}),
    Lead("gwet_ac1", {}),
    Lead("labelled_right", {}, if_any=True),
    Lead("gold_accuracy", {}, if_any=True),
    Lead("human_flip_rate", {}, if_any=True),
    Lead("human_order_effect", {}, if_any=True),
)
LEADS: Final = {
    "experiment": _DEBATE_LEADS,
    "debates": _DEBATE_LEADS,
    "judge_audit": _JUDGE_LEADS,
    "queue": (*_PEOPLE_LEADS, _JUDGE_LEADS[0], *_JUDGE_LEADS[4:6]),
}
#: A breakdown by one of these is no figure over the whole.
_PARTS = {
    "items",
    "variant",
    "stratum",
    "agent",
    "annotator",
    "category",
    "status",
    "cause",
    "invalid",
}


def is_whole(figure: Json) -> bool:
    """Tell whether a figure is over all that its condition has, not a breakdown or a mean."""
    return figure["agg"] != "macro" and not _PARTS & figure["by"].keys()


def facts(body: Json) -> str:
    """Return in a line what a condition's figures are of."""
    counts = body["tables"].get("counts", {})
    if "judge" in body:
        said = _judged(body, counts)
    elif "labels" in body["tables"]:
        said = _labelled(body["tables"]["labels"])
    else:
        said = _debated(body, counts)
    return "; ".join(part for part in said if part)


def _debated(body: Json, counts: Json) -> Iterator[str]:
    yield body.get("protocol") or ""
    questions, seeds, runs = (counts.get(key, 0) for key in ("questions", "seeds", "runs"))
    designed = body.get("runs")
    of = f"{designed['done']} of {designed['designed']} runs" if designed else f"{runs} debates"
    yield f"{_n(questions, 'question')}, {_n(seeds, 'seed')}, {of}"
    if body.get("same_start"):
        yield f"excess over {body['same_start']}"


def _judged(body: Json, counts: Json) -> Iterator[str]:
    yield f"group {body['group']}" if body["group"] else ""
    of = f"{_n(counts.get('items', 0), 'item')}, {_n(counts.get('questions', 0), 'question')}"
    yield f"{_n(counts.get('judgments', 0), 'judgment')} of {of}"
    one_order = counts.get("items_in_one_order_only", 0)
    if one_order:
        yield f"{one_order} in one order only"


def _labelled(counts: Json) -> Iterator[str]:
    people = "1 person" if counts["people"] == 1 else f"{counts['people']:,} people"
    yield f"{_n(counts['labels'], 'label')} of {_n(counts['items'], 'item')} by {people}"
    if counts["decided_by_lead"]:
        yield f"{counts['decided_by_lead']} decided by the lead"


def _n(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


#: The three agreements of a judge audit: between whom, and which figures say it.
AGREEMENTS: Final = (
    ("People with each other", (Lead("percent_agreement", {}),
                                Lead("krippendorff_alpha", {"level": "nominal"}))),
    ("The judge with the people's majority",
     (Lead("percent_agreement", {"pair": "judge|majority", "order": "given"}),
      Lead("cohen_kappa", {"pair": "judge|majority", "order": "given"}))),
    ("The judge with the others, one person left out at a time",
     (Lead("percent_agreement", {"pair": "judge|others", "order": "given"}),)),
    ("People with the others, the same left out",
     (Lead("percent_agreement", {"pair": "people|others", "order": "given"}),)),
    ("The judge with itself, turned", (Lead("position_consistency"),)),
    ("The judge with itself, asked again", (Lead("repetition_stability"),)),
)  # fmt: skip

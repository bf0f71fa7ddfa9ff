"""
What the lead's desk reads of people and of the plan: figures of each, and labels needed.

For owners and researchers only. The number of queries is fixed whatever the size of the queue.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any, Final

from django.db.models import Count, Q, Sum

from audits.metrics.audit_sampling import labels_still_needed
from audits.metrics.intervals import wilson
from audits.queue_models import (
    Annotator,
    Item,
    ItemNote,
    ItemPhase,
    ItemSecret,
    Label,
    LabelVoid,
    Queue,
    Skip,
    Slot,
    SlotState,
)

WRITTEN: Final = ("flag", "question")
HALF_WIDTHS: Final = (0.1, 0.05, 0.03, 0.02)


@dataclass(frozen=True, slots=True)
class Plan:
    """Labels of the main phase, second servings left out: planned by the design, and done."""

    planned: int
    done: int

    @property
    def is_reached(self) -> bool:
        return self.planned > 0 and self.done >= self.planned


def plan_of(queue: Queue) -> Plan:
    slots = Slot.objects.filter(queue=queue, phase=ItemPhase.MAIN, item__again_of=None)
    counts = slots.aggregate(planned=Count("pk"), done=Count("pk", filter=Q(state=SlotState.DONE)))
    return Plan(planned=counts["planned"], done=counts["done"])


@dataclass(slots=True)
class Share:
    """A count out of a count."""

    num: int = 0
    den: int = 0

    def add(self, *, hit: bool) -> None:
        self.num += hit
        self.den += 1

    @property
    def value(self) -> float | None:
        return self.num / self.den if self.den else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's interval at 95 %."""
        return wilson(self.num, self.den) if self.den else None


@dataclass(slots=True)
class Person:
    """
    What the lead sees of a person. Labels that stand only; ``seconds`` are active ones.

    ``agreed`` is over pairs with another person on a shared item, in the main phase; the page
    shows it at the planned number of labels only. Flips are second servings that were labelled
    otherwise than the first.
    """

    annotator: Annotator
    items: int = 0
    seconds: list[float] = field(default_factory=list)
    gold: Share = field(default_factory=Share)
    swapped: Share = field(default_factory=Share)
    unswapped: Share = field(default_factory=Share)
    agreed: Share = field(default_factory=Share)
    skips: int = 0
    flags: int = 0
    voided: int = 0
    last_at: datetime | None = None

    @property
    def median_seconds(self) -> float | None:
        return median(self.seconds) if self.seconds else None

    @property
    def per_hour(self) -> float | None:
        """Items per hour of active time, over the items whose time was measured."""
        total = sum(self.seconds)
        return len(self.seconds) * 3600 / total if total > 0 else None


@dataclass(frozen=True, slots=True)
class _Said:
    """A label that stands, as far as the table of people reads it."""

    item: int
    person: int
    label: Any
    milliseconds: int | None
    at: datetime
    again_of: int | None
    served_as: str
    phase: str


def people_of(queue: Queue) -> list[Person]:
    """Return every annotator of the queue with their figures, by name. Six queries."""
    people = {
        row.pk: Person(row)
        for row in Annotator.objects.filter(queue=queue).select_related("user").order_by("name")
    }
    standing = _standing(queue)
    _add_own(people, standing, _gold(queue))
    _add_flips(people, standing)
    _add_agreement(people, standing)
    for name, counts in _counts(queue).items():
        for pk, count in counts:
            if pk in people:
                setattr(people[pk], name, count)
    return list(people.values())


def _standing(queue: Queue) -> list[_Said]:
    rows: Iterable[tuple[Any, ...]] = (
        Label.objects.filter(item__queue=queue, void=None)
        .order_by("item", "annotator", "version")
        .values_list(
            "item",
            "annotator",
            "value",
            "active_milliseconds",
            "created_at",
            "item__again_of",
            "item__served_as",
            "item__phase",
        )
        .iterator(chunk_size=5_000)
    )
    newest = {(row[0], row[1]): row for row in rows}
    return [
        _Said(item, person, value.get("label"), *rest)
        for item, person, value, *rest in newest.values()
        if isinstance(value, Mapping)
    ]


def _gold(queue: Queue) -> dict[int, Any]:
    known = ItemSecret.objects.filter(item__queue=queue, is_gold=True)
    return {one.item_id: one.body.get("gold") for one in known}


def _add_own(people: Mapping[int, Person], said: Iterable[_Said], gold: Mapping[int, Any]) -> None:
    for one in said:
        person = people[one.person]
        person.items += 1
        if one.milliseconds is not None:
            person.seconds.append(one.milliseconds / 1000)
        if one.item in gold and one.again_of is None:
            person.gold.add(hit=one.label == gold[one.item])
        if person.last_at is None or one.at > person.last_at:
            person.last_at = one.at


def _add_flips(people: Mapping[int, Person], said: Sequence[_Said]) -> None:
    first = {(one.item, one.person): one.label for one in said}
    for one in said:
        key = (one.again_of, one.person)
        if one.again_of is None or key not in first:
            continue
        person = people[one.person]
        share = person.swapped if one.served_as == "swapped" else person.unswapped
        share.add(hit=one.label != first[one.again_of, one.person])


def _add_agreement(people: Mapping[int, Person], said: Iterable[_Said]) -> None:
    by_item: dict[int, list[_Said]] = defaultdict(list)
    for one in said:
        if one.again_of is None and one.phase == ItemPhase.MAIN:
            by_item[one.item].append(one)
    for together in by_item.values():
        for one in together:
            for other in together:
                if other.person != one.person:
                    people[one.person].agreed.add(hit=one.label == other.label)


def _counts(queue: Queue) -> dict[str, Iterable[tuple[int, int]]]:
    here = {"item__queue": queue}
    skips = Skip.objects.filter(**here).values_list("annotator").annotate(n=Count("pk"))
    flags = ItemNote.objects.filter(**here, annotator__isnull=False, kind__in=WRITTEN)
    voids = LabelVoid.objects.filter(label__item__queue=queue)
    by_person = Count("label__item", distinct=True)
    return {
        "skips": [(pk, n) for pk, n in skips],
        "flags": [
            (pk, n)
            for pk, n in flags.values_list("annotator").annotate(n=Count("pk"))
            if pk is not None
        ],
        "voided": [
            (pk, n) for pk, n in voids.values_list("label__annotator").annotate(n=by_person)
        ],
    }


@dataclass(frozen=True, slots=True)
class Needed:
    """How many more items to label for an interval of ± ``half_width`` at 95 %."""

    half_width: float
    safe: int  # Whatever the share is: reckoned with ½.
    expected: int | None  # With the share that is there now; None before the planned number.


@dataclass(frozen=True, slots=True)
class Precision:
    """What the table of labels needed rests on."""

    labelled: int
    population: int
    share: float | None
    rows: tuple[Needed, ...]


def precision_of(queue: Queue, half_width: float | None, plan: Plan) -> Precision:
    """
    Return what intervals cost. The population is the sum of the sample's weights.

    ``half_width`` is one that was asked for beside the usual ones, above 0 and below 1.
    """
    items = Item.objects.filter(queue=queue, phase=ItemPhase.MAIN, again_of=None)
    population = round(items.aggregate(total=Sum("weight"))["total"] or 0)
    said = [one for one in _standing(queue) if one.phase == ItemPhase.MAIN and one.again_of is None]
    labelled = len({one.item for one in said})
    share = _commonest(said) if plan.is_reached else None
    asked = [half_width] if half_width is not None else []
    widths = sorted({*HALF_WIDTHS, *asked}, reverse=True)
    rows = tuple(
        Needed(
            width,
            labels_still_needed(labelled, width, population=population),
            None
            if share is None
            else labels_still_needed(labelled, width, share=share, population=population),
        )
        for width in widths
        if population
    )
    return Precision(labelled, population, share, rows)


def _commonest(said: Sequence[_Said]) -> float | None:
    """Return the share of the commonest label."""
    counts = Counter(str(one.label) for one in said)
    return counts.most_common(1)[0][1] / len(said) if said else None

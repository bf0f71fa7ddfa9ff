"""
People's labels as metric rows: what they said of a queue's items, and of imported judgments.

People of a queue stand under their pseudonyms, people in files as their files name them. Labels
of different kinds, units or sources are never put together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from audits.judgment_models import JudgedItem, JudgmentSet
from audits.labelling.design import Ask, read_design
from audits.labelling.values import ABSTAIN, TIE
from audits.metrics.beliefs import BeliefRow
from audits.metrics.labels import LabelRow, LabelValue
from audits.queue_models import (
    Adjudication,
    Annotator,
    ImportedLabel,
    Item,
    ItemPhase,
    ItemSecret,
    Label,
    LabelVoid,
    Queue,
    QueueStatus,
    Skip,
)
from audits.rows.labels import current_labels, record_of
from runs.importers.judged_records import LabelRecord

IMPORTED = "imported labels"
BELIEFS = ("belief", "turn")
#: A second serving to one person, and how it was shown: the first one speaks for agreement.
SERVINGS = {"first": 0, "swapped": 1, "unswapped": 2}
CHUNK = 2_000


@dataclass(frozen=True)
class LabelSet:
    """
    Labels of one kind and unit from one source.

    ``categories`` are the rubric's, in order; None where the labels that occur are all there is.
    ``calibration`` are those of the round that decides who is admitted, left out of agreement.
    ``decided`` holds the lead's decisions by item. ``beliefs`` are the same labels where they are
    shares by option and the right option is known. ``left`` says what is still to be labelled,
    empty where nothing is; ``voided`` counts labels that the lead took out, ``skipped`` items.
    ``right`` says which categories the design counts as right or wrong; ``giving_away`` names the
    items whose texts gave identity or time away as they were labelled.
    """

    source: str
    kind: str
    rows: Sequence[LabelRow]
    categories: tuple[str, ...] | None = None
    calibration: Sequence[LabelRow] = ()
    decided: Mapping[str, str] = field(default_factory=dict)
    beliefs: Sequence[BeliefRow] = ()
    left: str = ""
    voided: int = 0
    skipped: int = 0
    right: Mapping[str, bool] = field(default_factory=dict)
    giving_away: frozenset[str] = frozenset()


def queue_labels(queue: Queue) -> LabelSet:
    """Return the newest labels of a queue that are neither cleared nor voided. Five queries."""
    ask = read_design(queue.design).label.ask
    labels = current_labels(queue)
    people = dict(Annotator.objects.filter(queue=queue).values_list("pk", "pseudonym"))
    secrets = dict(ItemSecret.objects.filter(item__queue=queue).values_list("item_id", "body"))
    main: list[LabelRow] = []
    calibration: list[LabelRow] = []
    beliefs: list[BeliefRow] = []
    for label in labels:
        secret = secrets.get(label.item_id, {})
        found = list(_queue_rows(label, ask, people[label.annotator_id], secret))
        (calibration if label.item.phase == "calibration" else main).extend(found)
        beliefs += _queue_beliefs(label, ask, people[label.annotator_id], secret)
    categories = _categories(ask, labels)
    known = {row.category for row in (*main, *calibration)}
    return LabelSet(
        queue.name,
        ask.kind,
        main,
        categories if categories is not None and known <= set(categories) else None,
        calibration,
        _decisions(queue),
        beliefs,
        left=_left(queue),
        voided=LabelVoid.objects.filter(label__item__queue=queue).count(),
        skipped=Skip.objects.filter(item__queue=queue).values("item").distinct().count(),
        right=_counts_as(ask),
        giving_away=frozenset(
            label.item.item_id for label in labels if label.metadata.get("giveaways")
        ),
    )


def _counts_as(ask: Ask) -> dict[str, bool]:
    """Return which categories count as right or wrong by the design, frozen with the queue."""
    if ask.kind == "scale" and ask.threshold is not None:
        scale = range(ask.scale_min, ask.scale_max + 1)
        return {f"{value:g}": value >= ask.threshold for value in scale}
    counted = [option for option in ask.options if option.counts_as != "unscored"]
    return {option.value: option.counts_as == "right" for option in counted}


def _left(queue: Queue) -> str:
    """Say how many labels of the plan are missing; a queue that is closed misses none."""
    if queue.status == QueueStatus.CLOSED:
        return ""
    given = Label.objects.filter(item=OuterRef("pk"), value__isnull=False, void=None)
    people = given.order_by().values("item").annotate(n=Count("annotator", distinct=True))
    items = Item.objects.filter(queue=queue, phase=ItemPhase.MAIN).annotate(
        planned=Count("slots"), given=Coalesce(Subquery(people.values("n")), 0)
    )
    counts = list(items.values_list("planned", "given"))
    planned = sum(wanted for wanted, _ in counts)
    done = sum(min(wanted, have) for wanted, have in counts)
    if done >= planned:
        return ""
    return f"labelling goes on: {done} of {planned} labels; figures are told when all are there"


def _queue_rows(
    label: Label, ask: Ask, person: str, secret: Mapping[str, Any]
) -> Iterator[LabelRow]:
    item, said = label.item, (label.value or {}).get("label")
    row = LabelRow(
        item_id=item.item_id,
        annotator=person,
        kind=ask.kind,
        label="",
        question_id=item.question_id,
        unit=item.unit,
        weight=item.weight,
        stratum=item.stratum or None,
        shown_order=tuple(label.shown_order),
        serving=SERVINGS.get(item.served_as, 0),
        reveal_state=label.reveal_state,
        gold=_gold(secret),
    )
    if ask.kind == "claim" and isinstance(said, Mapping):
        gold = secret.get("gold")
        for claim, verdict in said.items():
            own = gold.get(claim) if isinstance(gold, Mapping) else None
            yield replace(row, item_id=f"{item.item_id} {claim}", label=verdict, gold=own)
    else:
        yield replace(row, label=_named(ask.kind, said))


def _gold(secret: Mapping[str, Any]) -> str | float | None:
    gold = secret.get("gold")
    return gold if isinstance(gold, str | float | int) else None


def _named(kind: str, said: Any) -> LabelValue:
    """Return a label that can be counted: of a belief its first choice, a tie where two lead."""
    if kind not in BELIEFS or not isinstance(said, Mapping) or not said:
        return said if isinstance(said, str | float | int) else str(said)
    best = max(said.values())
    leading = [option for option, share in said.items() if best - share < 1e-9]
    return leading[0] if len(leading) == 1 else TIE


def _queue_beliefs(
    label: Label, ask: Ask, person: str, secret: Mapping[str, Any]
) -> Iterator[BeliefRow]:
    """
    Yield what was believed of an item whose right option is known, turn by turn.

    Where no turns were told apart it is the label alone. Beliefs are stored in per cent.
    """
    last = (label.value or {}).get("label")
    correct = secret.get("gold") or secret.get("correct")
    if ask.kind not in BELIEFS or not isinstance(last, Mapping) or correct not in last:
        return
    turns = [
        (one["turn"], one["belief"])
        for one in label.metadata.get("beliefs", ())
        if isinstance(one.get("belief"), Mapping) and correct in one["belief"]
    ]
    for turn, said in turns or [(0, last)]:
        total = sum(said.values()) or 1.0
        yield BeliefRow(
            session_id=f"{label.item.item_id} {person} {label.item.served_as}",
            question_id=label.item.question_id,
            after=turn,
            belief={option: share / total for option, share in said.items()},
            correct=str(correct),
            assigned=secret.get("assigned"),
        )


def _categories(ask: Ask, labels: Iterable[Label]) -> tuple[str, ...] | None:
    """Return the rubric's categories; None where items have different candidates."""
    if ask.kind == "scale":
        return tuple(f"{value:g}" for value in range(ask.scale_min, ask.scale_max + 1))
    if ask.options:
        return tuple(option.value for option in ask.options)
    named = {
        tuple(sorted(c["candidate_id"] for c in label.item.shown.get("candidates", ())))
        for label in labels
    }
    if ask.kind != "pairwise" or len(named) != 1:
        return None
    extra = [word for word, on in ((TIE, ask.ties), (ABSTAIN, ask.abstain)) if on]
    return (*named.pop(), *extra)


def _decisions(queue: Queue) -> dict[str, str]:
    """Return the lead's newest decision on each item, where it is one word."""
    found = Adjudication.objects.filter(item__queue=queue).order_by("item", "ordinal")
    return {
        item_id: value["label"]
        for item_id, value in found.values_list("item__item_id", "value")
        if isinstance(value, Mapping) and isinstance(value.get("label"), str)
    }


def imported_labels(judgment_set: JudgmentSet) -> list[LabelSet]:
    """Return the labels that were imported onto judgments, by kind and unit. Two queries."""
    items = {item.item_id: item for item in judgment_set.items.all()}
    found: dict[tuple[str, str], list[tuple[LabelRecord, JudgedItem]]] = {}
    stored = ImportedLabel.objects.filter(judgment_set=judgment_set).order_by("item_id", "pk")
    for label in stored.iterator(chunk_size=CHUNK):
        record = record_of(label.body)
        key = record.kind, record.unit or "item"
        found.setdefault(key, []).append((record, items[record.item_id]))
    return [
        LabelSet(
            IMPORTED,
            kind,
            list(_imported_rows(pairs, unit)),
            beliefs=[row for pair in pairs if (row := _imported_belief(*pair)) is not None],
        )
        for (kind, unit), pairs in sorted(found.items())
    ]


def _imported_rows(
    pairs: Iterable[tuple[LabelRecord, JudgedItem]], unit: str
) -> Iterator[LabelRow]:
    seen: Counter[tuple[str, str]] = Counter()
    for record, item in pairs:
        key = record.item_id, record.annotator
        yield LabelRow(
            item_id=record.item_id,
            annotator=record.annotator,
            kind=record.kind,
            label=_named(record.kind, record.label),
            question_id=item.question_id,
            unit=unit,
            weight=1.0 if record.weight is None else record.weight,
            stratum=item.group or None,
            shown_order=record.shown_order,
            serving=seen[key],
            reveal_state=record.reveal_state or "sealed",
        )
        seen[key] += 1


def _imported_belief(record: LabelRecord, item: JudgedItem) -> BeliefRow | None:
    said = record.label
    if record.kind not in BELIEFS or not isinstance(said, Mapping) or item.gold not in said:
        return None
    total = sum(said.values()) or 1.0
    return BeliefRow(
        session_id=f"{record.item_id} {record.annotator}",
        question_id=item.question_id,
        after=int(record.metadata.get("after", 0)),
        belief={option: share / total for option, share in said.items()},
        correct=item.gold,
        assigned=item.metadata.get("assigned"),
    )


def queues_on(judgment_set: JudgmentSet) -> QuerySet[Queue]:
    """Return the queues whose items were drawn from a set of judgments."""
    named = {"source__name": judgment_set.name, "archived_at": None}
    return Queue.objects.filter(workspace=judgment_set.workspace, **named).order_by("pk")


def judged_in(queue: Queue) -> JudgmentSet | None:
    """Return the judgments that a queue's items were drawn from; None where it was others."""
    named = {"name": queue.source.get("name", ""), "archived_at": None}
    return JudgmentSet.objects.filter(workspace=queue.workspace, **named).first()

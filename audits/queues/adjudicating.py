"""
Decisions of the lead on items where people differ. Labels are read here and never touched.

A decision is conditional on what its maker saw: the ids of the labels that stood, and how many
decisions there were. The item's row is locked first; a label refers to it and so either is
committed before and counts, or waits until the decision stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from audits.labelling.design import read_design
from audits.labelling.values import LabelFaultError, checked_value
from audits.queue_models import Adjudication, Item, Label, Queue, Slot, SlotState
from audits.queues.errors import LabelError
from audits.queues.telling import tell_decision
from debateweb.audit import record
from debateweb.errors import StateError
from debateweb.models import User

MOST_REASON_CHARS = 5_000


@dataclass(frozen=True, slots=True)
class Table:
    """What is on the table of an item: its standing labels' ids, and the count of decisions."""

    labels: frozenset[int]
    decisions: int


class TableChangedError(StateError):
    """Labels or decisions came or went since the page was shown. Nothing was decided."""

    code = "table_changed"

    def __init__(self, new_labels: frozenset[int], gone_labels: frozenset[int], by_others: int):
        self.new_labels, self.gone_labels = new_labels, gone_labels
        self.new_decisions = by_others
        super().__init__(
            "since this page was shown "
            + ", ".join(
                f"{count} {word}"
                for count, word in (
                    (len(new_labels), "label(s) came"),
                    (len(gone_labels), "label(s) were changed or voided"),
                    (by_others, "decision(s) were made"),
                )
                if count
            )
            + "; nothing was decided"
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """What the lead decides. ``value`` is a label's value; ``seen`` what their page showed."""

    value: Mapping[str, Any]
    reason: str
    seen: Table
    is_precedent: bool = False
    names_hidden: bool = False


def standing_labels(items: Sequence[int]) -> list[Label]:
    """
    Return each person's newest label of each item, cleared and voided ones left out.

    Two queries whatever the number of items; annotator, serving and item come with the labels.
    """
    stored = (
        Label.objects.filter(item__in=items, void=None)
        .select_related("annotator__user", "serving", "item")
        .order_by("item", "annotator", "version")
    )
    newest = {(label.item_id, label.annotator_id): label for label in stored}
    return [label for label in newest.values() if label.value is not None]


def table_of(item: Item) -> Table:
    labels = frozenset(label.pk for label in standing_labels([item.pk]))
    return Table(labels, Adjudication.objects.filter(item=item).count())


@transaction.atomic
def decide(*, item: Item, decision: Decision, actor: User) -> Adjudication:
    """
    Append a decision. Raises LabelError for one that does not fit what was asked or has no
    reason, TableChangedError where its maker did not see what is there by now.
    """
    locked = Item.objects.select_for_update(of=("self",)).select_related("queue__workspace")
    item = locked.get(pk=item.pk)
    value = _checked(item, decision)
    now = table_of(item)
    if now != decision.seen:
        raise TableChangedError(
            now.labels - decision.seen.labels,
            decision.seen.labels - now.labels,
            max(0, now.decisions - decision.seen.decisions),
        )
    made = Adjudication.objects.create(
        item=item,
        ordinal=now.decisions + 1,
        value=value,
        reason=decision.reason.strip(),
        is_precedent=decision.is_precedent,
        names_hidden=decision.names_hidden,
        labels_seen=sorted(now.labels),
        created_by=actor,
    )
    record(
        act="item.adjudicate",
        workspace=item.queue.workspace,
        obj=made,
        actor=actor,
        detail={"ordinal": made.ordinal, "value": value, "labels_seen": made.labels_seen},
    )
    tell_decision(item.queue, item, made)
    return made


def _checked(item: Item, decision: Decision) -> dict[str, Any]:
    reason = decision.reason.strip()
    if not reason:
        raise LabelError("reason: say why it is decided so")
    if len(reason) > MOST_REASON_CHARS:
        raise LabelError(f"reason: at most {MOST_REASON_CHARS:,} characters")
    try:
        return checked_value(
            read_design(item.queue.design).label,
            decision.value,
            candidates=[c["candidate_id"] for c in item.shown.get("candidates", ())],
            claims=[c["claim_id"] for c in item.shown.get("claims", ())],
            comment=reason,
        )
    except LabelFaultError as exc:
        raise LabelError(str(exc)) from exc


def is_settled(decisions: Sequence[Adjudication], *, two_people: bool) -> bool:
    """
    Return whether the newest decision stands: where the design asks for two people, once a second
    one has decided the same right after the first.
    """
    if not decisions:
        return False
    if not two_people:
        return True
    if len(decisions) < 2:
        return False
    before, last = decisions[-2:]
    return before.value == last.value and before.created_by_id != last.created_by_id


def precedents_of(queue: Queue) -> QuerySet[Adjudication]:
    """
    Return the precedents that people may read beside the guideline, oldest first.

    Of each item its newest decision, if that is a precedent, and only once nobody can be asked
    about the item any more: a decision that is shown to somebody who is still to label it would
    be their answer.
    """
    newest = (
        Adjudication.objects.filter(item__queue=queue)
        .order_by("item", "-ordinal")
        .distinct("item")
        .values("pk")
    )
    unfinished = Slot.objects.filter(queue=queue).exclude(state=SlotState.DONE)
    repeated = unfinished.filter(item__again_of__isnull=False)
    return (
        Adjudication.objects.filter(pk__in=newest, is_precedent=True)
        .exclude(item__in=unfinished.values("item"))
        .exclude(item__in=repeated.values("item__again_of"))
        .select_related("item")
        .order_by("pk")
    )

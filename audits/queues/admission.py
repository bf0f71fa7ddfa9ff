"""The calibration round: who has done it, and who is admitted to the rest."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models.functions import Now

from audits.labelling.design import read_design
from audits.queue_models import Annotator, ItemPhase, ItemSecret, Label, Slot, SlotState
from debateweb.audit import record
from debateweb.models import User


@dataclass(frozen=True, slots=True)
class Calibrated:
    """How a person's calibration went. ``asked`` 0: the queue has none."""

    asked: int
    done: int
    agreed: int

    @property
    def is_over(self) -> bool:
        return self.done >= self.asked


def calibration_of(annotator: Annotator) -> Calibrated:
    """Count the calibration items of a person: asked, labelled, and labelled as the gold says."""
    slots = Slot.objects.filter(queue=annotator.queue_id, holder=annotator)
    done = slots.filter(phase=ItemPhase.CALIBRATION, state=SlotState.DONE)
    items = list(done.values_list("item_id", flat=True))
    gold = dict(ItemSecret.objects.filter(item__in=items).values_list("item_id", "body"))
    said = {
        label.item_id: label
        for label in Label.objects.filter(annotator=annotator, item__in=items).order_by("version")
    }
    agreed = sum(
        label.value is not None and label.value.get("label") == gold[item]["gold"]
        for item, label in said.items()
    )
    design = read_design(annotator.queue.design)
    asked = design.calibration.items if design.calibration is not None else 0
    return Calibrated(asked=asked, done=len(items), agreed=agreed)


@transaction.atomic
def admit_if_calibrated(annotator: Annotator) -> bool:
    """Admit a person whose calibration is over and good enough. Returns whether they are in."""
    person = Annotator.objects.select_for_update(no_key=True).get(pk=annotator.pk)
    if person.admitted_at is not None:
        return True
    calibration = read_design(person.queue.design).calibration
    went = calibration_of(person)
    if calibration is None or not went.is_over:
        return False
    if went.agreed / went.asked < calibration.min_accuracy:
        return False
    _admit(person, None)
    return True


@transaction.atomic
def admit(*, annotator: Annotator, actor: User) -> None:
    """Let the lead admit a person whatever their calibration says; the trail says who did."""
    _admit(annotator, actor)


def _admit(annotator: Annotator, actor: User | None) -> None:
    admitted = Annotator.objects.filter(pk=annotator.pk, admitted_at=None).update(admitted_at=Now())
    if admitted:
        record(
            act="annotator.admit",
            workspace=annotator.queue.workspace,
            obj=annotator,
            actor=actor,
        )

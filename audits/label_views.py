"""The annotator's item: next, draft, submit, skip, release, flag, ask, undo, and a lost lease."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from audits import queries_annotator
from audits.label_cards import in_words
from audits.label_forms import (
    Fault,
    Typed,
    cleared,
    draft_body,
    is_empty,
    new_key,
    said_of,
    sequence_in,
    typed_before,
    typed_in,
)
from audits.label_panel import Before, before, panel
from audits.queue_models import Annotator, SlotState
from audits.queues import claiming, drafts, notes, submitting
from audits.queues.errors import (
    AlreadySubmittedError,
    LabelError,
    LeaseLostError,
    NotCorrectableError,
    QueueNotOpenError,
)
from audits.queues.submitting import Said
from debateweb.errors import StateError
from debateweb.guards import WorkspaceRequest, require_role
from debateweb.models import Role

LABELLERS = (Role.OWNER, Role.RESEARCHER, Role.ANNOTATOR)
CONFLICT = 409
SAVED = "Saved."
NOT_VALID = "This answer does not fit what is asked. Choose again."


@dataclass(frozen=True, slots=True)
class Sent:
    """What a form of an item sent, with the item as it was served."""

    shown: Before
    typed: Typed
    sequence: int

    @property
    def lease(self) -> dict[str, Any]:
        serving = self.shown.serving
        return {
            "annotator": self.shown.annotator,
            "slot_id": serving.slot_id,
            "fence": serving.fence,
        }

    def keep(self, typed: Typed | None = None) -> bool:
        """Save what was typed as a draft. Returns whether the lease still stands."""
        return drafts.save_draft(
            annotator=self.shown.annotator,
            slot_id=self.shown.serving.slot_id,
            sequence=self.sequence,
            body=draft_body(self.typed if typed is None else typed, self.shown.card),
        )


def mine(request: WorkspaceRequest, name: str) -> Annotator:
    """Return the person's row in the queue. Raises Http404 for everybody else."""
    annotator = queries_annotator.annotator_in(request.user, request.workspace, name)
    if annotator is None:
        raise Http404
    return annotator


def _sent(request: WorkspaceRequest, name: str) -> Sent:
    annotator = mine(request, name)
    fence = request.POST.get("fence", "")
    is_number = fence.isascii() and fence.isdigit() and len(fence) < 19
    key = request.POST.get("key", "").replace("\x00", "")
    serving = queries_annotator.served(annotator, key, int(fence)) if is_number else None
    if serving is None:
        raise Http404
    shown = before(annotator, serving)
    sequence = sequence_in(request.POST, drafts.milliseconds_now())
    return Sent(shown, typed_in(request.POST), sequence)


def _show(
    request: WorkspaceRequest,
    annotator: Annotator,
    said: str,
    *,
    kind: Literal["ok", "warn"] = "ok",
    status: int = 200,
    **form: Any,
) -> HttpResponse:
    """Show the item that is next, in the page or, for HTMX, in place of the last one."""
    found = claiming.next_item(annotator)
    context = panel(annotator, found, **form) | {"said": said, "said_kind": kind}
    template = "audits/_label_work.html" if request.htmx else "audits/label.html"
    return render(request, template, context, status=status)


def _onwards(
    request: WorkspaceRequest,
    annotator: Annotator,
    said: str,
    kind: Literal["ok", "warn"] = "ok",
) -> HttpResponse:
    """Go to the next item: HTMX gets it at once, a page is moved so that it can be reloaded."""
    if request.htmx:
        return _show(request, annotator, said, kind=kind)
    messages.add_message(request, messages.SUCCESS if kind == "ok" else messages.WARNING, said)
    return redirect("audits:label", request.workspace.name, annotator.queue.name)


@require_role(*LABELLERS)
@require_safe
def work(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Show the item that this person holds or gets next; those who are not in it may join."""
    annotator = queries_annotator.annotator_in(request.user, request.workspace, name)
    if annotator is None:
        queue = queries_annotator.queue_named(request.workspace, name)
        if queue is None:
            raise Http404
        return render(request, "audits/label_join.html", {"queue": queue})
    return _show(request, annotator, "", whole=request.GET.get("all") == "1")


@require_role(*LABELLERS)
@require_POST
def submit(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Store the label and show the next item; of a debate, keep the belief and show a turn more."""
    sent = _sent(request, name)
    shown, annotator = sent.shown, sent.shown.annotator
    key = request.POST.get("request_key", "")
    key = key if 8 <= len(key) <= 64 else new_key()
    if annotator.labels.filter(request_key=key).exists():
        return _onwards(request, annotator, SAVED)
    if request.POST.get("turn", "0") != str(shown.turn):
        return _onwards(request, annotator, "This belief was kept before. Here is what is next.")
    said, faults = said_of(sent.typed, shown.card, shown.design.label, key)
    if said is None:
        return _refused(request, sent, faults)
    if shown.card.asks_beliefs and shown.card.turns_left:
        is_held = drafts.give_belief(
            annotator=annotator,
            slot_id=shown.serving.slot_id,
            belief=_belief(sent, said),
            written={"comment": sent.typed.comment, "note": sent.typed.note},
        )
        if not is_held:
            return lost(request, sent)
        return _onwards(request, annotator, f"Kept. Now turn {shown.turn + 1}.")
    return _stored(request, sent, _with_beliefs(sent, said) if shown.turn else said)


def _stored(request: WorkspaceRequest, sent: Sent, said: Said) -> HttpResponse:
    annotator = sent.shown.annotator
    try:
        submitting.submit(**sent.lease, said=said)
    except LabelError:
        return _refused(request, sent, [Fault("choice-1", NOT_VALID)])
    except (LeaseLostError, AlreadySubmittedError) as exc:
        return lost(request, sent, already=isinstance(exc, AlreadySubmittedError))
    except QueueNotOpenError as exc:
        sent.keep()
        return _onwards(request, annotator, _sentence(exc), "warn")
    return _onwards(request, annotator, SAVED)


def _belief(sent: Sent, said: Said) -> dict[str, Any]:
    return {
        "turn": sent.shown.turn,
        "belief": said.value["label"],
        "active_milliseconds": sent.typed.active_milliseconds,
    }


def _with_beliefs(sent: Sent, said: Said) -> Said:
    """Return the last belief as the label, with all of them and the time of all turns."""
    beliefs = [*sent.shown.beliefs, _belief(sent, said)]
    spent = [one["active_milliseconds"] for one in beliefs]
    known = [one for one in spent if one is not None]
    return replace(said, beliefs=beliefs, active_milliseconds=sum(known) if known else None)


def _sentence(error: StateError) -> str:
    return f"{error.message[:1].upper()}{error.message[1:]}."


def _refused(request: WorkspaceRequest, sent: Sent, faults: list[Fault]) -> HttpResponse:
    """Show the form again as it was sent, with what is wrong; the draft keeps it as well."""
    annotator = sent.shown.annotator
    if not sent.keep():
        return lost(request, sent)
    return _show(
        request,
        annotator,
        "Not saved: " + " ".join(fault.text for fault in faults),
        kind="warn",
        status=400,
        typed=sent.typed,
        faults=faults,
    )


@require_role(*LABELLERS)
@require_POST
def draft(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Keep what is being typed. Scripts get JSON: whether the item is still this person's."""
    sent = _sent(request, name)
    wants_json = request.headers.get("Accept", "").startswith("application/json")
    if request.POST.get("turn", "0") != str(sent.shown.turn):
        return (
            JsonResponse({"held": True})
            if wants_json
            else _onwards(request, sent.shown.annotator, "This belief was kept before.")
        )
    is_clear = request.POST.get("act") == "clear"
    held = sent.keep(cleared(sent.typed) if is_clear else None)
    if wants_json:
        return JsonResponse({"held": held})
    if not held:
        return lost(request, sent)
    said = "Your choice is cleared." if is_clear else "Saved as a draft."
    return _onwards(request, sent.shown.annotator, said)


@require_role(*LABELLERS)
@require_POST
def beat(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Say that the person is still there, so that the item stays theirs."""
    sent = _sent(request, name)
    try:
        claiming.heartbeat(**sent.lease)
    except LeaseLostError:
        return JsonResponse({"held": False}, status=CONFLICT)
    return JsonResponse({"held": True})


@require_role(*LABELLERS)
@require_POST
def skip(request: WorkspaceRequest, name: str) -> HttpResponse:
    sent = _sent(request, name)
    _keep_if_any(sent)
    try:
        comes_again = claiming.skip(**sent.lease)
    except LeaseLostError:
        return lost(request, sent)
    said = (
        "Skipped: it comes again at your end."
        if comes_again
        else "Skipped again: it goes to others."
    )
    return _onwards(request, sent.shown.annotator, said)


@require_role(*LABELLERS)
@require_POST
def release(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Give the item back and stop: the list of queues comes next, not another item."""
    sent = _sent(request, name)
    _keep_if_any(sent)
    try:
        claiming.release(**sent.lease)
    except LeaseLostError:
        return lost(request, sent)
    messages.success(request, "The item is given back. What you had typed on it is kept for you.")
    return redirect("audits:label_queues", request.workspace.name)


def _keep_if_any(sent: Sent) -> None:
    if not is_empty(sent.typed):
        sent.keep()


@require_role(*LABELLERS)
@require_POST
def note(request: WorkspaceRequest, name: str, kind: Literal["flag", "question"]) -> HttpResponse:
    """Send a flag or a question to the lead; the item stays, with what was typed on it."""
    sent = _sent(request, name)
    shown = sent.shown
    try:
        notes.add_note(annotator=shown.annotator, item=shown.item, kind=kind, text=sent.typed.note)
    except LabelError as exc:
        return _refused(request, sent, [Fault("note", exc.message.removeprefix("note: ") + ".")])
    if not sent.keep(replace(sent.typed, note="")):
        return lost(request, replace(sent, typed=replace(sent.typed, note="")))
    word = "flag" if kind == "flag" else "question"
    return _onwards(
        request, shown.annotator, f"Your {word} went to the lead. You can still label or skip."
    )


@require_role(*LABELLERS)
@require_POST
def undo(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Take the last submit back; what is typed on the item in front is kept for later."""
    annotator = mine(request, name)
    if request.POST.get("key"):
        _keep_if_any(_sent(request, name))
    key = request.POST.get("undo_key", "")
    try:
        submitting.undo_last(
            annotator=annotator, request_key=key if 8 <= len(key) <= 64 else new_key()
        )
    except (NotCorrectableError, QueueNotOpenError) as exc:
        return _onwards(request, annotator, _sentence(exc), "warn")
    return _onwards(request, annotator, "Undone: here is your last item again.")


def lost(
    request: WorkspaceRequest, sent: Sent, *, already: bool = False, said: str = ""
) -> HttpResponse:
    """Say that the item is no longer theirs, show what they typed, and the ways on from here."""
    if not already:
        sent.keep()
    shown = sent.shown
    context = {
        "queue": shown.annotator.queue,
        "item": shown.item,
        "fence": shown.serving.fence,
        "already": already,
        "said": said,
        "typed": sent.typed,
        "words": _label_in_words(sent),
    }
    template = "audits/_label_lost.html" if request.htmx else "audits/label_lost.html"
    return render(request, template, context, status=CONFLICT)


def _label_in_words(sent: Sent) -> str:
    card = sent.shown.card
    if card.asks_beliefs:
        return ", ".join(
            f"{option.name}: {sent.typed.beliefs.get(n, '–')}"
            for n, option in enumerate(card.candidates, 1)
        )
    return in_words(card, draft_body(sent.typed, card)["value"]["label"])


@require_role(*LABELLERS)
@require_POST
def kept(request: WorkspaceRequest, name: str) -> HttpResponse:
    """After a lost lease: take the item up again, send the text to the lead, or discard it."""
    sent = _sent(request, name)
    annotator, item = sent.shown.annotator, sent.shown.item
    stored = drafts.draft_of(annotator=annotator, item=item)
    if stored is not None:
        sent = replace(sent, typed=typed_before(stored.body, sent.shown.card))
    way = request.POST.get("way")
    if way == "again":
        is_mine = item.slots.filter(holder=annotator, state=SlotState.HELD).exists()
        if not is_mine and claiming.take_again(annotator=annotator, item=item) is None:
            return lost(request, sent, said="Somebody else has it open at the moment.")
        return _onwards(request, annotator, "The item is yours again, with what you had typed.")
    if way == "remark":
        text = "\n".join((notes.LATE, _label_in_words(sent), sent.typed.comment))
        notes.add_note(annotator=annotator, item=item, kind="flag", text=text)
    drafts.discard_draft(annotator=annotator, item=item)
    said = (
        "Sent to the lead as a remark." if way == "remark" else "What you had typed is discarded."
    )
    return _onwards(request, annotator, said)

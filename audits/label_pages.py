"""The pages around labelling: my queues, guideline, my labels, corrections, batches, keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from audits import queries_annotator
from audits.label_cards import Card, in_words
from audits.label_forms import Fault, new_key, said_of, typed_before, typed_in
from audits.label_panel import Before, before, form_of
from audits.label_views import LABELLERS, NOT_VALID, mine
from audits.queries_revealed import Revealed, revealed, secrets_of
from audits.queue_models import Annotator, Item, Label, QueueStatus
from audits.queues import batches, submitting
from audits.queues.creating import add_annotator
from audits.queues.errors import LabelError, NotCorrectableError, QueueNotOpenError
from audits.queues.precedents import beside_guideline
from debateweb.guards import WorkspaceRequest, require_role
from debateweb.paging import page_of

ITEMS_ON_A_PAGE = 20
MAX_REASON_CHARS = 2_000


@require_role(*LABELLERS)
@require_safe
def queues(request: WorkspaceRequest) -> HttpResponse:
    """List the queues that this person labels in, and those that they may join."""
    rows = queries_annotator.my_queues(request.user, request.workspace)
    context = {
        "mine": [row for row in rows if row.annotator is not None],
        "others": [row for row in rows if row.annotator is None],
    }
    return render(request, "audits/label_queues.html", context)


@require_role(*LABELLERS)
@require_POST
def join(request: WorkspaceRequest, name: str) -> HttpResponse:
    queue = queries_annotator.queue_named(request.workspace, name)
    if queue is None:
        raise Http404
    if queue.status != QueueStatus.OPEN:
        messages.warning(request, "The queue takes no labels at the moment.")
        return redirect("audits:label_queues", request.workspace.name)
    add_annotator(queue=queue, user=request.user, actor=request.user)
    return redirect("audits:label", request.workspace.name, queue.name)


@require_role(*LABELLERS)
@require_safe
def guideline(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Show the newest guideline, the older ones below; HTMX gets the newest alone."""
    annotator = mine(request, name)
    versions = list(queries_annotator.guidelines(annotator.queue))
    context = {
        "queue": annotator.queue,
        "guideline": versions[0],
        "older": versions[1:],
        "precedents": beside_guideline(annotator.queue),
    }
    template = "audits/_label_guideline.html" if request.htmx else "audits/label_guideline.html"
    return render(request, template, context)


@require_role(*LABELLERS)
@require_safe
def keys(request: WorkspaceRequest, name: str) -> HttpResponse:
    """List the shortcuts; a script lets people change theirs."""
    return render(request, "audits/label_keys.html", {"queue": mine(request, name).queue})


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a label, in words."""

    label: Label
    words: str
    is_void: bool
    beliefs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Labelled:
    """An item that a person labelled, with all versions; ``secret`` only once it is revealed."""

    item: Item
    card: Card
    versions: tuple[Version, ...]
    secret: Revealed | None = None

    @property
    def current(self) -> Version:
        return self.versions[-1]


@require_role(*LABELLERS)
@require_safe
def history(request: WorkspaceRequest, name: str) -> HttpResponse:
    """List this person's own labels, newest first, each with its versions."""
    annotator = mine(request, name)
    page = page_of(request, queries_annotator.first_labels(annotator), size=ITEMS_ON_A_PAGE)
    rows = _labelled(annotator, [label.item for label in page.rows])
    context = {"queue": annotator.queue, "page": page, "rows": rows}
    return render(request, "audits/label_history.html", context)


@require_role(*LABELLERS)
@require_safe
def opened(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Show what was hidden of the items whose batch this person has closed."""
    annotator = mine(request, name)
    items = batches.revealed_items(annotator)
    firsts = queries_annotator.first_labels(annotator).filter(item__in=items.values("pk"))
    page = page_of(request, firsts, size=ITEMS_ON_A_PAGE)
    rows = _labelled(annotator, [label.item for label in page.rows], with_secrets=True)
    context = {"queue": annotator.queue, "page": page, "rows": rows}
    return render(request, "audits/label_revealed.html", context)


def _labelled(
    annotator: Annotator, items: Sequence[Item], *, with_secrets: bool = False
) -> list[Labelled]:
    of_item = queries_annotator.versions_of(annotator, [item.pk for item in items])
    servings = queries_annotator.servings_of(annotator, [item.pk for item in items])
    keys = [item.pk for item in items] if with_secrets else []
    secrets = secrets_of(batches.revealed_items(annotator), keys) if keys else {}
    rows = []
    for item in items:
        if item.pk not in servings:
            continue  # A label out of a file was never put before anybody here.
        card = before(annotator, servings[item.pk], all_turns=True).card
        secret = secrets.get(item.pk)
        rows.append(
            Labelled(
                item=item,
                card=card,
                versions=tuple(_version(label, card) for label in of_item[item.pk]),
                secret=None if secret is None else revealed(secret, card.candidate_ids),
            )
        )
    return rows


def _version(label: Label, card: Card) -> Version:
    words = "taken back" if label.value is None else in_words(card, label.value.get("label"))
    beliefs = tuple(in_words(card, one["belief"]) for one in label.metadata.get("beliefs", ()))
    return Version(label, words, hasattr(label, "void"), beliefs)


@require_role(*LABELLERS)
@require_http_methods(["GET", "HEAD", "POST"])
def correct(request: WorkspaceRequest, name: str, key: str) -> HttpResponse:
    """Change one's own label: a new version, with a reason."""
    annotator = mine(request, name)
    item = queries_annotator.labelled(annotator, key)
    if item is None:
        raise Http404
    serving = queries_annotator.servings_of(annotator, [item.pk])[item.pk]
    shown = before(annotator, serving, whole=request.GET.get("all") == "1", all_turns=True)
    versions = queries_annotator.versions_of(annotator, [item.pk])[item.pk]
    faults: list[Fault] = []
    if request.method == "POST":
        faults = _corrected(request, shown)
        if not faults:
            messages.success(request, "The correction is stored as a new version.")
            return redirect("audits:label_history", request.workspace.name, annotator.queue.name)
        typed = typed_in(request.POST)
    else:
        typed = typed_before(_as_body(versions), shown.card)
    context: dict[str, Any] = form_of(shown, typed, faults) | {
        "queue": annotator.queue,
        "item": item,
        "reason": request.POST.get("why", ""),
        "versions": [_version(label, shown.card) for label in versions],
    }
    return render(request, "audits/label_correct.html", context, status=400 if faults else 200)


def _as_body(versions: Sequence[Label]) -> dict[str, Any]:
    """Return the newest version that says something as the form's state."""
    last = next((one for one in reversed(versions) if one.value is not None), versions[-1])
    return {"value": last.value, "comment": last.comment, "confidence": last.confidence}


def _corrected(request: WorkspaceRequest, shown: Before) -> list[Fault]:
    """Store the correction, or return what is in its way."""
    key = request.POST.get("request_key", "")
    key = key if 8 <= len(key) <= 64 else new_key()
    said, faults = said_of(typed_in(request.POST), shown.card, shown.design.label, key)
    why = request.POST.get("why", "").replace("\x00", "\ufffd")[:MAX_REASON_CHARS]
    if not why.strip():
        faults.append(Fault("why", "Say why the label changes."))
    if said is None or faults:
        return faults
    try:
        submitting.correct(annotator=shown.annotator, item=shown.item, said=said, reason=why)
    except LabelError:
        return [Fault("choice-1", NOT_VALID)]
    except (QueueNotOpenError, NotCorrectableError) as exc:
        return [Fault("why", exc.message)]
    return []


@require_role(*LABELLERS)
@require_POST
def close_batch(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Seal what this person labelled since their last batch, and show what was hidden."""
    annotator = mine(request, name)
    try:
        batches.close_batch(annotator=annotator)
    except NotCorrectableError as exc:
        messages.warning(request, f"{exc.message[:1].upper()}{exc.message[1:]}.")
        return redirect("audits:label", request.workspace.name, annotator.queue.name)
    messages.success(request, "The batch is closed. Here is what was hidden.")
    return redirect("audits:label_revealed", request.workspace.name, annotator.queue.name)

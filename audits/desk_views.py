"""The lead's desk: items on which people differ, decisions, people, the plan, the key."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_safe

from audits import queries_desk
from audits.label_cards import Card, card_of, in_words, letter_of
from audits.label_forms import Fault, Typed, new_key, said_of, typed_in
from audits.labelling.design import QueueDesign, read_design
from audits.queries_desk import Show
from audits.queue_models import Item, Label, Queue
from audits.queues import adjudicating
from audits.queues.adjudicating import Decision, Table, TableChangedError
from audits.queues.errors import LabelError
from debateweb.context import Link
from debateweb.guards import RUNNERS, WorkspaceRequest, require_role
from debateweb.models import Role

HIDDEN = "hidden"
MOST_SEEN = 1_000
TITLES = {
    Show.DIFFER: "People differ",
    Show.AGAINST: "Against gold or judge",
    Show.DECIDED: "Decided",
    Show.ALL: "All",
}


def queue_here(request: WorkspaceRequest, name: str) -> Queue:
    """Return the queue of this name in the request's workspace, or answer 404."""
    queue = queries_desk.queue_of(request.workspace, name)
    if queue is None:
        raise Http404
    return queue


def tabs_of(request: WorkspaceRequest, queue: Queue, current: str) -> list[Link]:
    """Return the tabs of the desk; only an owner has the key."""
    pages = [("desk", "Items"), ("desk_people", "People"), ("desk_plan", "Plan")]
    if request.role == Role.OWNER:
        pages.append(("desk_key", "Key"))
    where = [request.workspace.name, queue.name]
    return [
        Link(label, reverse(f"audits:{route}", args=where), route == current)
        for route, label in pages
    ]


@require_role(*RUNNERS)
@require_safe
def desk(request: WorkspaceRequest, name: str) -> HttpResponse:
    """List items by what there is to decide, in the queue's order."""
    queue = queue_here(request, name)
    show = _show(request.GET.get("show", ""))
    after = request.GET.get("after", "")
    position = int(after) if after.isascii() and after.isdigit() and len(after) < 10 else -1
    rows = queries_desk.desk_rows(queue, show, position)
    page = rows[: queries_desk.PAGE]
    more = page[-1].item.position if len(rows) > queries_desk.PAGE else None
    context = {
        "queue": queue,
        "tabs": tabs_of(request, queue, "desk"),
        "show": show.value,
        "shows": [(one.value, title, one == show) for one, title in TITLES.items()],
        "title": TITLES[show],
        "rows": [(row, _excerpt(row.item)) for row in page],
        "next_query": urlencode({"show": show.value, "after": more}) if more is not None else "",
        "is_first": position < 0,
    }
    return render(request, "audits/desk.html", context)


def _show(word: str) -> Show:
    return Show(word) if word in set(Show) else Show.DIFFER


def _excerpt(item: Item) -> str:
    return str(item.shown.get("question") or item.shown.get("answer") or "")[:400]


@dataclass(frozen=True, slots=True)
class Said:
    """A label as the desk shows it. ``who`` is a name, or "Person 2" where names are hidden."""

    who: str
    pseudonym: str  # Empty where names are hidden.
    label: Label
    words: str
    order: str
    serving: str
    is_new: bool


@require_role(*RUNNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def item(request: WorkspaceRequest, name: str, key: str) -> HttpResponse:
    """Show all that was said of an item side by side; decide on it."""
    queue = queue_here(request, name)
    found = queries_desk.item_of(queue, key)
    if found is None:
        raise Http404
    found.queue = queue
    if request.method != "POST":
        return _item_page(request, found, Typed(), "", [])
    reason = request.POST.get("why", "").replace("\x00", "\ufffd").replace("\r\n", "\n")
    typed = typed_in(request.POST)
    design = read_design(queue.design)
    said, faults = said_of(typed, _card(found, design), _decided(design).label, new_key())
    if not reason.strip():
        faults.append(Fault("why", "Say why it is decided so."))
    if said is None or faults:
        return _item_page(request, found, typed, reason, faults, status=400)
    decision = Decision(
        value=said.value,
        reason=reason,
        seen=_seen(request),
        is_precedent="precedent" in request.POST,
        names_hidden=_is_hidden(request),
    )
    try:
        adjudicating.decide(item=found, decision=decision, actor=request.user)
    except LabelError as exc:
        fault = Fault("why", exc.message)
        return _item_page(request, found, typed, reason, [fault], status=400)
    except TableChangedError as exc:
        return _item_page(request, found, typed, reason, [], changed=exc, status=409)
    messages.success(request, "The decision is stored. All labels stay as they were.")
    return redirect(_next_url(request, queue, found))


def _next_url(request: WorkspaceRequest, queue: Queue, decided: Item) -> str:
    """Return the next item of the list that one came from, or the list."""
    show = _show(request.POST.get("show", ""))
    query = {"show": show.value} | ({"names": HIDDEN} if _is_hidden(request) else {})
    rows = queries_desk.desk_rows(queue, show, decided.position, 1)
    where = [request.workspace.name, queue.name]
    if not rows:
        return f"{reverse('audits:desk', args=where)}?{urlencode({'show': show.value})}"
    to = reverse("audits:desk_item", args=[*where, rows[0].item.key])
    return f"{to}?{urlencode(query)}"


def _is_hidden(request: WorkspaceRequest) -> bool:
    sent = request.POST if request.method == "POST" else request.GET
    return sent.get("names") == HIDDEN


def _seen(request: WorkspaceRequest) -> Table:
    words = request.POST.get("seen", "").split(",")[:MOST_SEEN]
    ids = frozenset(int(one) for one in words if one.isascii() and one.isdigit() and len(one) < 19)
    count = request.POST.get("decisions", "")
    is_count = count.isascii() and count.isdigit() and len(count) < 10
    return Table(ids, int(count) if is_count else -1)


def _decided(design: QueueDesign) -> QueueDesign:
    """Return the design as a decision asks: a reason stands for comment and confidence."""
    label = design.label.model_copy(update={"comment": "none", "confidence": False})
    return design.model_copy(update={"label": label})


def _card(found: Item, design: QueueDesign, *, whole: bool = False) -> Card:
    order = [c["candidate_id"] for c in found.shown.get("candidates", ())]
    return card_of(found.shown, design, order, with_reference=True, whole=whole)


def _item_page(
    request: WorkspaceRequest,
    found: Item,
    typed: Typed,
    reason: str,
    faults: Sequence[Fault],
    *,
    changed: TableChangedError | None = None,
    status: int = 200,
) -> HttpResponse:
    queue = found.queue
    design = read_design(queue.design)
    card = _card(found, design, whole=request.GET.get("all") == "1")
    again = {one.pk: one for one in queries_desk.servings_again(found)}
    labels = adjudicating.standing_labels([found.pk, *again])
    is_hidden = _is_hidden(request)
    decisions = queries_desk.decisions_on(found)
    show = _show(request.POST.get("show", "") or request.GET.get("show", ""))
    new = changed.new_labels if changed is not None else frozenset()
    own = sorted(label.pk for label in labels if label.item_id == found.pk)
    context: dict[str, Any] = _form(card, _decided(design), typed, faults) | {
        "queue": queue,
        "tabs": tabs_of(request, queue, ""),
        "item": found,
        "said": _said(labels, found, card, again, new=new, is_hidden=is_hidden),
        "decisions": [(one, in_words(card, one.value.get("label"))) for one in decisions],
        "is_settled": adjudicating.is_settled(decisions, two_people=design.two_people),
        "two_people": design.two_people,
        "secret": queries_desk.words_of(found.secret.body),
        "is_gold": found.secret.is_gold,
        "notes": [] if is_hidden else queries_desk.notes_on(found),
        "is_hidden": is_hidden,
        "show": show.value,
        "seen": ",".join(map(str, own)),
        "reason": reason,
        "is_precedent": "precedent" in request.POST,
        "changed": changed,
        "other_names": _other_names(show, is_hidden=is_hidden),
    }
    return render(request, "audits/desk_item.html", context, status=status)


def _other_names(show: Show, *, is_hidden: bool) -> str:
    return urlencode({"show": show.value} | ({} if is_hidden else {"names": HIDDEN}))


def _form(card: Card, design: QueueDesign, typed: Typed, faults: Sequence[Fault]) -> dict[str, Any]:
    return {
        "card": card,
        "schema": design.label,
        "typed": typed,
        "claims": [(n, claim, typed.claims.get(n)) for n, claim in enumerate(card.claims, 1)],
        "beliefs": [
            (n, option, typed.beliefs.get(n, ""))
            for n, option in enumerate(card.candidates if card.asks_beliefs else (), 1)
        ],
        "faults": list(faults),
        "fault_fields": {fault.field for fault in faults},
    }


def _said(
    labels: Sequence[Label],
    found: Item,
    card: Card,
    again: Mapping[int, Item],
    *,
    new: frozenset[int],
    is_hidden: bool,
) -> list[Said]:
    """Return the labels side by side; where names are hidden in an order that tells nothing."""

    def place(label: Label) -> str:
        text = f"{found.key} {label.annotator.pseudonym}"
        return hashlib.sha256(text.encode()).hexdigest() if is_hidden else label.annotator.name

    ordered = sorted(labels, key=lambda label: (place(label), label.item_id))
    numbers: dict[int, int] = {}
    for label in ordered:
        numbers.setdefault(label.annotator_id, len(numbers) + 1)
    return [
        Said(
            who=f"Person {numbers[label.annotator_id]}" if is_hidden else label.annotator.name,
            pseudonym="" if is_hidden else label.annotator.pseudonym,
            label=label,
            words=in_words(card, (label.value or {}).get("label")),
            order=_order(label, card),
            serving=again[label.item_id].served_as if label.item_id in again else "",
            is_new=label.pk in new,
        )
        for label in ordered
    ]


def _order(label: Label, card: Card) -> str:
    """Return the order that a person saw by the letters of this page."""
    letters = {one: letter_of(n) for n, one in enumerate(card.candidate_ids)}
    return " | ".join(letters.get(one, "?") for one in label.shown_order)

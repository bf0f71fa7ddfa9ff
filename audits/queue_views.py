"""Queues for leads: the list, a new one out of a document, and one queue with its people."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from audits import queries_queues
from audits.queue_models import Queue
from audits.queues.admission import admit
from audits.queues.batches import close_queue
from audits.queues.creating import add_annotator, create_queue, planned, set_paused
from audits.queues.designs import new_queue, read_document
from debateweb.errors import DebatewebError
from debateweb.guards import RUNNERS, WorkspaceRequest, require_role
from debateweb.paging import page_of
from debateweb.workspace_views import confirm

MOST_CAPACITY = 1_000_000


@require_role(*RUNNERS)
@require_safe
def queues(request: WorkspaceRequest) -> HttpResponse:
    """List the workspace's queues, newest first."""
    page = page_of(request, queries_queues.queues_in(request.workspace))
    progress = queries_queues.progress_of(page.rows)
    rows = [(queue, progress[queue.pk]) for queue in page.rows]
    return render(request, "audits/queues.html", {"page": page, "rows": rows})


@require_role(*RUNNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: WorkspaceRequest) -> HttpResponse:
    """Take a queue's document; look at what it would draw, or make it."""
    text = request.POST.get("document", "").replace("\x00", "\ufffd")
    context: dict[str, Any] = {"document": text}
    if request.method == "POST":
        try:
            wanted = new_queue(request.workspace, read_document(text))
            if "create" in request.POST:
                made = create_queue(workspace=request.workspace, new=wanted, actor=request.user)
                return redirect("audits:queue", request.workspace.name, made.name)
            context |= {"drawn": planned(wanted), "available": len(wanted.items)}
        except DebatewebError as exc:
            context["faults"] = exc.message.splitlines()
    return render(
        request, "audits/queue_new.html", context, status=400 if "faults" in context else 200
    )


def _queue(request: WorkspaceRequest, name: str) -> Queue:
    found = queries_queues.queues_in(request.workspace).filter(name=name).first()
    if found is None:
        raise Http404
    return found


@require_role(*RUNNERS)
@require_safe
def queue(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Show how far a queue is, who labels in it, and what can be done."""
    found = _queue(request, name)
    context = {
        "queue": found,
        "progress": queries_queues.progress_of([found])[found.pk],
        "annotators": queries_queues.annotators_of(found),
        "others": queries_queues.may_be_added(found),
    }
    return render(request, "audits/queue.html", context)


@require_role(*RUNNERS)
@require_POST
def add(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Let a member label in the queue; no capacity means as much as there is."""
    found = _queue(request, name)
    username, raw = request.POST.get("username", ""), request.POST.get("capacity", "").strip()
    user = queries_queues.may_be_added(found).filter(username=username).first()
    if user is None:
        messages.error(request, "Nobody was added: choose a member who does not label here yet.")
    elif raw and not (raw.isascii() and raw.isdigit() and 0 < int(raw[:9]) <= MOST_CAPACITY):
        messages.error(request, "Nobody was added: the capacity is a number of items above 0.")
    else:
        capacity = int(raw[:9]) if raw else None
        add_annotator(queue=found, user=user, actor=request.user, capacity=capacity)
        messages.success(request, f"{user.get_username()} labels here now.")
    return redirect("audits:queue", request.workspace.name, found.name)


@require_role(*RUNNERS)
@require_POST
def admit_person(request: WorkspaceRequest, name: str, pseudonym: str) -> HttpResponse:
    """Admit a person whatever their calibration says."""
    found = _queue(request, name)
    annotator = found.annotators.filter(pseudonym=pseudonym).first()
    if annotator is None:
        raise Http404
    admit(annotator=annotator, actor=request.user)
    return redirect("audits:queue", request.workspace.name, found.name)


@require_role(*RUNNERS)
@require_POST
def pause(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Pause the queue, or open it again."""
    found = _queue(request, name)
    set_paused(queue=found, paused="open" not in request.POST, actor=request.user)
    return redirect("audits:queue", request.workspace.name, found.name)


@require_role(*RUNNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def close(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Close the queue for good, after a question: what was hidden is then seen."""
    found = _queue(request, name)
    back = reverse("audits:queue", args=[request.workspace.name, found.name])
    if request.method != "POST":
        says = ["Nobody labels in it any more.", "Its annotators see what was hidden from them."]
        heading = f"Close {found.name} for good?"
        return confirm(request, heading=heading, says=says, button="Close", cancel_url=back)
    if found.closed_at is None:
        close_queue(queue=found, actor=request.user)
    return redirect(back)

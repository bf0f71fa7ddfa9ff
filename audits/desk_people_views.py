"""The lead's desk on people: figures, voids, the plan, and the key of pseudonyms."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from audits import queries_people
from audits.desk_views import queue_here, tabs_of
from audits.queue_models import Annotator, Queue
from audits.queues import redoing, severing
from audits.queues.adjudicating import precedents_of
from audits.queues.redoing import Voided, batches_of
from debateweb.errors import DebatewebError
from debateweb.guards import OWNERS, RUNNERS, WorkspaceRequest, require_role

ALL = "all"


@require_role(*RUNNERS)
@require_safe
def people(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Show every annotator with their figures; agreement at the planned number of labels only."""
    queue = queue_here(request, name)
    context = {
        "queue": queue,
        "tabs": tabs_of(request, queue, "desk_people"),
        "people": queries_people.people_of(queue),
        "plan": queries_people.plan_of(queue),
    }
    return render(request, "audits/desk_people.html", context)


@require_role(*RUNNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def person(request: WorkspaceRequest, name: str, pseudonym: str) -> HttpResponse:
    """Show one person; take a batch of theirs out, or all that they said."""
    queue = queue_here(request, name)
    annotator = Annotator.objects.filter(queue=queue, pseudonym=pseudonym).first()
    if annotator is None:
        raise Http404
    annotator.queue = queue
    fault = ""
    if request.method == "POST":
        try:
            done = _voided(request, annotator)
        except DebatewebError as exc:
            fault = exc.message
        else:
            _tell(request, done)
            return redirect("audits:desk_person", request.workspace.name, queue.name, pseudonym)
    found = queries_people.people_of(queue)
    context = {
        "queue": queue,
        "tabs": tabs_of(request, queue, "desk_people"),
        "person": next(one for one in found if one.annotator.pk == annotator.pk),
        "plan": queries_people.plan_of(queue),
        "batches": [batch for batch in batches_of(annotator) if batch.labels or batch.is_open],
        "fault": fault,
        "reason": request.POST.get("reason", ""),
        "scope": request.POST.get("scope", ""),
    }
    return render(request, "audits/desk_person.html", context, status=400 if fault else 200)


def _voided(request: WorkspaceRequest, annotator: Annotator) -> Voided:
    reason = request.POST.get("reason", "").replace("\x00", "\ufffd")
    scope = request.POST.get("scope", "")
    if scope == ALL:
        remove = "remove" in request.POST
        return redoing.void_person(
            annotator=annotator, reason=reason, actor=request.user, remove=remove
        )
    batch = next((one for one in batches_of(annotator) if str(one.number) == scope), None)
    if batch is None:
        raise Http404
    return redoing.void_batch(annotator=annotator, batch=batch, reason=reason, actor=request.user)


def _tell(request: WorkspaceRequest, done: Voided) -> None:
    messages.success(
        request,
        f"{done.labels} labels are out of the figures and stay on record; "
        f"{done.slots} are asked for again.",
    )


@require_role(*RUNNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def plan(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Show how far the queue is and what intervals cost; ask again under a new guideline."""
    queue = queue_here(request, name)
    fault = ""
    if request.method == "POST":
        try:
            done = _requeued(request, queue)
        except DebatewebError as exc:
            fault = exc.message
        else:
            _tell(request, done)
            return redirect("audits:desk_plan", request.workspace.name, queue.name)
    so_far = queries_people.plan_of(queue)
    width, width_fault = _half_width(request.GET.get("half_width", ""))
    counts = redoing.guideline_counts(queue)
    versions = list(queue.guidelines.order_by("version").values_list("version", flat=True))
    context = {
        "queue": queue,
        "tabs": tabs_of(request, queue, "desk_plan"),
        "plan": so_far,
        "precision": queries_people.precision_of(queue, width, so_far),
        "half_width": request.GET.get("half_width", ""),
        "width_fault": width_fault,
        "guidelines": [(one, counts.get(one, 0), one < versions[-1]) for one in versions],
        "precedents": list(precedents_of(queue)[:50]),
        "fault": fault,
        "reason": request.POST.get("reason", ""),
    }
    return render(request, "audits/desk_plan.html", context, status=400 if fault else 200)


def _requeued(request: WorkspaceRequest, queue: Queue) -> Voided:
    version = request.POST.get("version", "")
    if not (version.isascii() and version.isdigit() and len(version) < 10):
        raise Http404
    return redoing.requeue_guideline(
        queue=queue,
        version=int(version),
        reason=request.POST.get("reason", "").replace("\x00", "\ufffd"),
        actor=request.user,
    )


def _half_width(text: str) -> tuple[float | None, str]:
    """Return ± x out of percentage points, or what is wrong with them."""
    if not text.strip():
        return None, ""
    try:
        points = float(text.replace(",", "."))
    except ValueError:
        points = 0.0
    if not 0.1 <= points <= 50:
        return None, "A number from 0.1 to 50, in percentage points."
    return points / 100, ""


@never_cache
@require_role(*OWNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def key(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Say what the key is; destroy it when its queue's name is typed."""
    queue = queue_here(request, name)
    fault = ""
    if request.method == "POST":
        try:
            count = severing.sever(
                queue=queue, typed=request.POST.get("typed", ""), actor=request.user
            )
        except DebatewebError as exc:
            fault = exc.message
        else:
            messages.success(request, f"The key is destroyed: {count} people are severed.")
            return redirect("audits:desk_key", request.workspace.name, queue.name)
    context = {
        "queue": queue,
        "tabs": tabs_of(request, queue, "desk_key"),
        "people": Annotator.objects.filter(queue=queue, user__isnull=False).count(),
        "severed": Annotator.objects.filter(queue=queue, user=None).count(),
        "fault": fault,
    }
    return render(request, "audits/desk_key.html", context, status=400 if fault else 200)


@never_cache
@require_role(*OWNERS)
@require_POST
def key_file(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Send the key as a file; the trail notes who took it."""
    queue = queue_here(request, name)
    body = severing.export_key(queue=queue, actor=request.user)
    answer = HttpResponse(body, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="key-of-queue-{queue.pk}.csv"'
    return answer

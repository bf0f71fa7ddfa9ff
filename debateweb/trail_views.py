"""The trail of a workspace with its hash chain, and the webhooks that are told of acts."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Count, Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from debateweb import webhooks
from debateweb.errors import InputError
from debateweb.forms import WebhookForm
from debateweb.guards import OWNERS, RUNNERS, WorkspaceRequest, require_role
from debateweb.models import AuditEvent, DeliveryStatus, WebhookDelivery, WebhookEndpoint
from debateweb.paging import page_of
from debateweb.trail import Verified, trail_head, verify_trail
from debateweb.workspace_views import confirm


@require_role(*RUNNERS)
@require_safe
def trail(request: WorkspaceRequest) -> HttpResponse:
    """Show who did what, newest first, each row with its hash."""
    return _trail_page(request, None)


@require_role(*RUNNERS)
@require_POST
def verify(request: WorkspaceRequest) -> HttpResponse:
    """Recompute the whole chain and say where it breaks, if it does."""
    return _trail_page(request, verify_trail(request.workspace))


def _trail_page(request: WorkspaceRequest, found: Verified | None) -> HttpResponse:
    events = AuditEvent.objects.filter(workspace=request.workspace).select_related("link")
    here = reverse("trail", args=[request.workspace.name])
    context = {
        "page": page_of(request, events, path=here),
        "head": trail_head(request.workspace),
        "found": found,
    }
    return render(request, "debateweb/trail.html", context)


@never_cache
@require_role(*OWNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def webhook_list(request: WorkspaceRequest) -> HttpResponse:
    """List the webhooks; make one, whose key is in this answer and in no other."""
    form = WebhookForm(request.POST or None)
    if request.method != "POST":
        return _webhooks_page(request, form)
    if form.is_valid():
        try:
            made, key = webhooks.add_endpoint(
                workspace=request.workspace,
                url=form.cleaned_data["url"],
                events=form.cleaned_data["events"],
                actor=request.user,
            )
        except InputError as exc:
            form.add_error("url", exc.message)
        else:
            return _webhooks_page(request, WebhookForm(), made=made, new_key=key, status=201)
    return _webhooks_page(request, form, status=400)


def _webhooks_page(
    request: WorkspaceRequest, form: WebhookForm, *, status: int = 200, **extra: Any
) -> HttpResponse:
    endpoints = (
        WebhookEndpoint.objects.filter(workspace=request.workspace)
        .select_related("created_by")
        .annotate(
            waiting=Count("deliveries", filter=Q(deliveries__status=DeliveryStatus.PENDING)),
            failed=Count("deliveries", filter=Q(deliveries__status=DeliveryStatus.FAILED)),
        )
    )
    deliveries = WebhookDelivery.objects.filter(endpoint__workspace=request.workspace)
    here = reverse("webhooks", args=[request.workspace.name])
    context = {
        "form": form,
        "endpoints": endpoints.order_by("-pk")[:100],
        "page": page_of(request, deliveries.select_related("endpoint"), path=here),
        **extra,
    }
    return render(request, "debateweb/webhooks.html", context, status=status)


@require_role(*OWNERS)
@require_POST
def webhook_ping(request: WorkspaceRequest, endpoint_id: int) -> HttpResponse:
    """Send a webhook an event that means nothing."""
    endpoint = _endpoint(request, endpoint_id)
    if endpoint.revoked_at is None:
        webhooks.ping(endpoint)
        messages.success(request, "A ping is on its way. How it went stands below.")
    return redirect("webhooks", request.workspace.name)


@require_role(*OWNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def webhook_revoke(request: WorkspaceRequest, endpoint_id: int) -> HttpResponse:
    """Ask first; then tell this address nothing any more."""
    endpoint = _endpoint(request, endpoint_id)
    if request.method == "POST":
        webhooks.revoke_endpoint(endpoint=endpoint, actor=request.user)
        messages.success(request, "The webhook is revoked.")
        return redirect("webhooks", request.workspace.name)
    return confirm(
        request,
        heading="Revoke this webhook?",
        says=[f"{endpoint.url} is told nothing any more, not even what is waiting."],
        button="Revoke the webhook",
        cancel_url=reverse("webhooks", args=[request.workspace.name]),
    )


@require_role(*OWNERS)
@require_POST
def webhook_again(request: WorkspaceRequest, delivery_id: int) -> HttpResponse:
    """Begin anew with a delivery that was given up."""
    rows = WebhookDelivery.objects.filter(endpoint__workspace=request.workspace)
    delivery = rows.select_related("endpoint__workspace").filter(pk=delivery_id).first()
    if delivery is None:
        raise Http404
    webhooks.deliver_again(delivery=delivery, actor=request.user)
    return redirect("webhooks", request.workspace.name)


def _endpoint(request: WorkspaceRequest, endpoint_id: int) -> WebhookEndpoint:
    found = WebhookEndpoint.objects.filter(workspace=request.workspace, pk=endpoint_id).first()
    if found is None:
        raise Http404
    found.workspace = request.workspace
    return found

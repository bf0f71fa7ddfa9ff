"""Pages for what went wrong: what happened, what was kept, what to do. Never a traceback."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import REASON_BAD_ORIGIN
from django.shortcuts import render
from django.template.loader import render_to_string

from debateweb import drafts

HEADINGS = {
    400: "This request could not be read",
    403: "This is not allowed",
    404: "Not found",
    405: "This address only takes forms",
    500: "Something broke on our side",
}


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _page(request, 400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _page(request, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _page(request, 404)


def not_allowed(request: HttpRequest) -> HttpResponse:
    return _page(request, 405)


def server_error(request: HttpRequest) -> HttpResponse:
    """Render without session or database: they may be what broke."""
    text = render_to_string("debateweb/error_500.html", {"heading": HEADINGS[500]})
    return HttpResponse(text, status=500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """
    Show what was sent from a page whose token is out of date, with a button that sends it again.

    Only what came from our own pages is shown: nobody is to confirm what another site sent.
    """
    if getattr(request, "htmx", False) or request.META.get("HTTP_HX_REQUEST") == "true":
        # The page loads again with a token that is valid; what was typed is put back there.
        return HttpResponse(status=403, headers={"HX-Refresh": "true"})
    if not _is_from_here(request) or reason.startswith(REASON_BAD_ORIGIN.split("%")[0]):
        return _page(request, 403)
    return drafts.show_again(
        request,
        drafts.draft_of(request),
        happened="The page was too old to be trusted: you signed in or out since you opened it.",
        status=403,
    )


def _is_from_here(request: HttpRequest) -> bool:
    if "Sec-Fetch-Site" in request.headers:
        return request.headers["Sec-Fetch-Site"] == "same-origin"
    source = request.headers.get("Origin") or request.headers.get("Referer", "")
    return urlsplit(source).netloc == request.get_host()


def _page(request: HttpRequest, status: int) -> HttpResponse:
    context = {"status": status, "heading": HEADINGS[status]}
    return render(request, "debateweb/error.html", context, status=status)

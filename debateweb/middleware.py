"""What must hold for every answer: no fragment where a page belongs, no page inside a panel."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseRedirectBase
from django.utils.cache import patch_cache_control, patch_vary_headers

from debateweb import errorpages

Respond = Callable[[HttpRequest], HttpResponse]
FRAGMENT_HEADERS = ("HX-Request", "HX-History-Restore-Request")


class FragmentMiddleware:
    """
    Keep pages and fragments apart. Stands above django-htmx's middleware.

    A request that restores history gets the whole page. Caches are told what the answer depends
    on. A redirect moves the whole page, because a browser would follow it into the panel.
    """

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.META.get("HTTP_HX_HISTORY_RESTORE_REQUEST") == "true":
            request.META.pop("HTTP_HX_REQUEST", None)
            request.__dict__.pop("headers", None)  # Built from META on first use.
        is_htmx = request.META.get("HTTP_HX_REQUEST") == "true"
        response = self.get_response(request)
        if is_htmx and isinstance(response, HttpResponseRedirectBase):
            response = _move_the_page(response)
        if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED and request.method == "GET":
            response = _with_words(request, response)
        if response.get("Content-Type", "").startswith("text/html"):
            patch_vary_headers(response, FRAGMENT_HEADERS)
            if not response.has_header("Cache-Control"):
                # Not no-store: Back would lose what was typed.
                patch_cache_control(response, private=True, no_cache=True)
        return response


def _with_words(request: HttpRequest, refusal: HttpResponse) -> HttpResponse:
    """Reloading the answer to a form asks for an address that only takes forms: say so."""
    response = errorpages.not_allowed(request)
    response["Allow"] = refusal["Allow"]
    return response


def _move_the_page(response: HttpResponseRedirectBase) -> HttpResponse:
    moved = HttpResponse(status=204, headers={"HX-Redirect": response["Location"]})
    moved.cookies = response.cookies
    return moved

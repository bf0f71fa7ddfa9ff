"""Pages of the site itself: the way in, the theme, drafts and the design system."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from debateweb import access, drafts, gallery
from debateweb.context import THEME_COOKIE, THEMES
from debateweb.errors import InputError
from debateweb.forms import PasswordForm
from debateweb.guards import SignedInRequest, enter, signed_in

YEAR_SECONDS = 365 * 24 * 3600


@require_safe
@signed_in
def home(request: SignedInRequest) -> HttpResponse:
    """Go to the first workspace, or to the list where there is none."""
    first = access.workspaces_of(request.user).first()
    return redirect("workspaces") if first is None else redirect("workspace", first.name)


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def welcome(request: HttpRequest, token: str) -> HttpResponse:
    """
    Set a password by a one-time link and sign in.

    Opening the page uses nothing up, so that a link preview or a prefetch cannot spend the link.
    """
    form = PasswordForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            user = access.redeem_link(token, form.cleaned_data["password"])
        except InputError as exc:
            form.add_error(None, exc.message)
        else:
            enter(request, user)
            return redirect("home")
    status = 400 if form.errors else 200
    return render(request, "registration/welcome.html", {"form": form}, status=status)


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Keep the chosen theme in a cookie, so that the server draws the page in it at once."""
    chosen = request.POST.get("theme", "")
    response = redirect(safe_next(request, request.POST.get("next", "")))
    if chosen in THEMES:
        response.set_cookie(
            THEME_COOKIE,
            chosen,
            max_age=YEAR_SECONDS,
            httponly=True,
            samesite="Lax",
            secure=request.is_secure(),
        )
    return response


@never_cache
@require_safe
@signed_in
def draft(request: SignedInRequest, key: str) -> HttpResponse:
    """Show what was sent without a session, with a button that sends it again."""
    kept = drafts.stored(request, key)
    if kept is None:
        raise Http404
    return drafts.show_again(request, kept, happened="Your session had ended when you sent this.")


@require_safe
@signed_in
def design(request: SignedInRequest) -> HttpResponse:
    """Show every component of the design system in all its states."""
    return render(request, "debateweb/design.html", gallery.examples())


def safe_next(request: HttpRequest, url: str) -> str:
    """Return ``url`` where it stays on this site, else the first page."""
    hosts = {request.get_host()}
    is_ours = url_has_allowed_host_and_scheme(url, hosts, require_https=request.is_secure())
    return url if is_ours else "/"

"""Pages of the site itself."""

from __future__ import annotations

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from debateweb import access
from debateweb.errors import InputError
from debateweb.forms import PasswordForm


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
            login(request, user)
            return redirect("home")
    status = 400 if form.errors else 200
    return render(request, "registration/welcome.html", {"form": form}, status=status)

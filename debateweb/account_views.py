"""Signing in and out, one's own account and API tokens."""

from __future__ import annotations

import logging

from django.contrib import messages
from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from debateweb import throttle, tokens
from debateweb.audit import record
from debateweb.errors import StateError
from debateweb.forms import ChangePasswordForm, TokenForm
from debateweb.guards import SignedInRequest, enter, signed_in
from debateweb.models import ApiToken, User
from debateweb.views import safe_next

logger = logging.getLogger(__name__)

TOO_MANY = (
    f"Too many tries for this name from this address. Wait {throttle.WINDOW_SECONDS // 60} "
    "minutes, then try again; a colleague who owns a workspace cannot lift this."
)


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponse:
    """Sign in by name and password; then go where the person wanted to go."""
    back = safe_next(request, request.POST.get("next") or request.GET.get("next", ""))
    if request.user.is_authenticated:
        return redirect(back)
    if request.method != "POST":
        return _sign_in_page(request, AuthenticationForm(request), back, 200)
    form = AuthenticationForm(request, data=request.POST)
    account, address = request.POST.get("username", ""), request.META.get("REMOTE_ADDR", "")
    if not throttle.may_try(account=account, address=address):
        form = AuthenticationForm(request, initial={"username": account})
        return _sign_in_page(request, form, back, 429, TOO_MANY)
    if not form.is_valid():
        logger.warning("a sign-in was refused", extra={"account": account[:150]})
        return _sign_in_page(request, form, back, 400)
    throttle.forget(account=account, address=address)
    enter(request, form.get_user())
    return redirect(back)


def _sign_in_page(
    request: HttpRequest, form: AuthenticationForm, back: str, status: int, refusal: str = ""
) -> HttpResponse:
    context = {"form": form, "next": back, "refusal": refusal, "keeps_draft": "/draft/" in back}
    return render(request, "registration/login.html", context, status=status)


@require_POST
def sign_out(request: HttpRequest) -> HttpResponse:
    if isinstance(request.user, User):
        record(act="session.end", workspace=None, obj=request.user, actor=request.user)
    logout(request)
    messages.success(request, "You are signed out.")
    return redirect("login")


@never_cache
@require_safe
@signed_in
def account(request: SignedInRequest) -> HttpResponse:
    return _account_page(request)


@never_cache
@sensitive_post_parameters()
@require_POST
@signed_in
def change_password(request: SignedInRequest) -> HttpResponse:
    """Set a new password; other sessions of the person end."""
    form = ChangePasswordForm(request.POST)
    if form.is_valid():
        _judge(request, form)
    if not form.is_valid():
        return _account_page(request, password_form=form, status=400)
    user = request.user
    user.set_password(form.cleaned_data["password"])
    user.save(update_fields=["password"])
    record(act="password.change", workspace=None, obj=user, actor=user)
    update_session_auth_hash(request, user)
    messages.success(request, "The password is changed. Your other sessions are signed out.")
    return redirect("account")


def _judge(request: SignedInRequest, form: ChangePasswordForm) -> None:
    name, address = request.user.get_username(), request.META.get("REMOTE_ADDR", "")
    if not throttle.may_try(account=name, address=address):
        form.add_error("old_password", TOO_MANY)
    elif not request.user.check_password(form.cleaned_data["old_password"]):
        form.add_error("old_password", "This is not your present password.")
    else:
        throttle.forget(account=name, address=address)
        try:
            validate_password(form.cleaned_data["password"], request.user)
        except ValidationError as exc:
            form.add_error("password", exc)


@never_cache
@require_POST
@signed_in
def create_token(request: SignedInRequest) -> HttpResponse:
    """Make an API token and show it: this answer is the only one that ever holds it."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _account_page(request, token_form=form, status=400)
    try:
        token = tokens.create_token(user=request.user, name=form.cleaned_data["name"])
    except StateError as exc:
        form.add_error(None, exc.message)
        return _account_page(request, token_form=form, status=409)
    return _account_page(request, new_token=token, status=201)


@require_POST
@signed_in
def revoke_token(request: SignedInRequest, token_id: int) -> HttpResponse:
    try:
        tokens.revoke_token(user=request.user, token_id=token_id)
    except ApiToken.DoesNotExist as exc:
        raise Http404 from exc
    messages.success(request, "The token is revoked. Programs that use it are refused from now on.")
    return redirect("account")


def _account_page(
    request: SignedInRequest,
    *,
    password_form: ChangePasswordForm | None = None,
    token_form: TokenForm | None = None,
    new_token: str = "",
    status: int = 200,
) -> HttpResponse:
    context = {
        "password_form": password_form or ChangePasswordForm(),
        "token_form": token_form or TokenForm(),
        "new_token": new_token,
        "tokens": ApiToken.objects.filter(user=request.user).order_by("revoked_at", "-pk")[:200],
    }
    return render(request, "debateweb/account.html", context, status=status)

"""
Who may open a page: decorators that turn an address into a person, a workspace and a role.

Without a session a person is sent to the sign-in and keeps what was sent. What a role may not
see does not exist for it: the answer is 404, the same as for a workspace that is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth import login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django_htmx.middleware import HtmxDetails

from debateweb import access, drafts
from debateweb.audit import record
from debateweb.models import Role, User, Workspace

P = ParamSpec("P")
View = Callable[..., HttpResponse]

#: For ``require_role``: who reads results, and who is in the workspace at all.
ANYONE = tuple(Role)
RUNNERS = access.RUNNERS
READERS = (Role.OWNER, Role.RESEARCHER, Role.READER)
OWNERS = (Role.OWNER,)


class SignedInRequest(HttpRequest):
    """A request of a person who is signed in."""

    user: User
    htmx: HtmxDetails


class WorkspaceRequest(SignedInRequest):
    """A request of a member, for something inside the member's workspace."""

    workspace: Workspace
    role: Role


def signed_in(
    view: Callable[Concatenate[SignedInRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Hand ``view`` requests of people who are signed in; send the others to the sign-in."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_authenticated:
            return ask_to_sign_in(request)
        return view(cast("SignedInRequest", request), *args, **kwargs)

    return guarded


def require_role(
    *roles: Role,
) -> Callable[[Callable[Concatenate[WorkspaceRequest, P], HttpResponse]], View]:
    """
    Hand a view the requests of members with one of ``roles``; 404 for everybody else.

    Stands above ``require_POST`` and the like, so that a stranger gets 404 for every method.
    The view's address has ``<slug:workspace>``; the view gets it as ``request.workspace`` with
    ``request.role``, and no argument of that name.
    """
    if not roles:
        raise ValueError("require_role names the roles; ANYONE means every member")

    def decorate(view: Callable[Concatenate[WorkspaceRequest, P], HttpResponse]) -> View:
        @wraps(view)
        def guarded(
            request: HttpRequest, *args: Any, workspace: str, **kwargs: Any
        ) -> HttpResponse:
            user = request.user
            if not isinstance(user, User):
                return ask_to_sign_in(request)
            membership = access.membership(user, workspace)
            if membership is None or membership.role not in roles:
                raise Http404
            inside = cast("WorkspaceRequest", request)
            inside.workspace, inside.role = membership.workspace, Role(membership.role)
            return view(inside, *args, **kwargs)

        return guarded

    return decorate


def enter(request: HttpRequest, user: User) -> None:
    """Start a session of ``user``. What the session kept without a person stays in it."""
    login(request, user)
    record(act="session.start", workspace=None, obj=user, actor=user)
    request.session.clear_expired()  # Nobody else does, and drafts without a person add up.


def ask_to_sign_in(request: HttpRequest) -> HttpResponse:
    """
    Send a person without a session to the sign-in, and back afterwards.

    A form that was sent is kept and shown again after the sign-in. HTMX gets 401 with
    ``HX-Redirect``: the whole page moves, and no panel ever shows a sign-in.
    """
    htmx: HtmxDetails = request.htmx  # type: ignore[attr-defined]
    if htmx:
        # The page keeps its own drafts; going back to it puts them into place again.
        back = htmx.current_url_abs_path or request.path
        return HttpResponse(status=401, headers={"HX-Redirect": _sign_in_url(back)})
    if request.method in {"GET", "HEAD"}:
        return redirect(_sign_in_url(request.get_full_path()))
    return redirect(_sign_in_url(drafts.keep(request)))


def _sign_in_url(back: str) -> str:
    return f"{settings.LOGIN_URL}?{urlencode({'next': back})}"

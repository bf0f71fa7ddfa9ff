"""Workspaces: the list, the first page, settings, members and invitations."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from debateweb import access, membership
from debateweb.errors import InputError, StateError
from debateweb.forms import InvitationForm, JoinForm, RoleForm, WorkspaceForm
from debateweb.guards import (
    ANYONE,
    OWNERS,
    RUNNERS,
    SignedInRequest,
    WorkspaceRequest,
    enter,
    require_role,
    signed_in,
)
from debateweb.models import Invitation, Member, Role, User
from debateweb.paging import page_of

INVITATIONS_SHOWN = 100


@require_http_methods(["GET", "HEAD", "POST"])
@signed_in
def workspaces(request: SignedInRequest) -> HttpResponse:
    """List one's workspaces; make a new one."""
    form = WorkspaceForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = membership.create_workspace(name=form.cleaned_data["name"], owner=request.user)
        except InputError as exc:
            form.add_error("name", exc.message)
        else:
            messages.success(request, f"The workspace {made.name} is there. You own it.")
            return redirect("workspace", made.name)
    own = Member.objects.filter(
        user=request.user, archived_at=None, workspace__archived_at=None
    ).select_related("workspace")
    context = {"form": form, "page": page_of(request, own)}
    status = 400 if form.errors else 200
    return render(request, "debateweb/workspaces.html", context, status=status)


@require_role(*ANYONE)
@require_safe
def workspace(request: WorkspaceRequest) -> HttpResponse:
    """Say what is here and what to do first."""
    return render(request, "debateweb/workspace.html", {"may_run": request.role in RUNNERS})


@require_role(*RUNNERS)
@require_safe
def settings(request: WorkspaceRequest) -> HttpResponse:
    return _settings_page(request)


@require_role(*OWNERS)
@require_POST
def rename(request: WorkspaceRequest) -> HttpResponse:
    form = WorkspaceForm(request.POST)
    if form.is_valid():
        try:
            row = membership.rename_workspace(
                workspace=request.workspace, name=form.cleaned_data["name"], actor=request.user
            )
        except InputError as exc:
            form.add_error("name", exc.message)
        else:
            messages.success(request, "The workspace is renamed. Old addresses lead nowhere now.")
            return redirect("workspace_settings", row.name)
    return _settings_page(request, rename_form=form, status=400)


@require_role(*OWNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def archive(request: WorkspaceRequest) -> HttpResponse:
    """Ask first; then put the workspace away."""
    name = request.workspace.name
    if request.method == "POST":
        membership.archive_workspace(workspace=request.workspace, actor=request.user)
        messages.success(request, f"The workspace {name} is archived. Nothing in it was deleted.")
        return redirect("workspaces")
    return confirm(
        request,
        heading=f"Archive the workspace {name}?",
        says=[
            "Nobody will see it any more, you included.",
            "Nothing in it is deleted; whoever runs this site can bring it back.",
        ],
        button="Archive the workspace",
        cancel_url=reverse("workspace_settings", args=[name]),
    )


@require_role(*OWNERS)
@require_POST
def change_role(request: WorkspaceRequest, member_id: int) -> HttpResponse:
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, "There is no such role. Nothing was changed.")
        return redirect("workspace_settings", request.workspace.name)
    role = Role(form.cleaned_data["role"])
    try:
        member = membership.change_role(
            workspace=request.workspace, member_id=member_id, role=role, actor=request.user
        )
    except Member.DoesNotExist as exc:
        raise Http404 from exc
    except StateError as exc:
        return _settings_page(request, refusal=exc.message, status=409)
    messages.success(request, f"{member.user} is {role.label.lower()} now.")
    return _after_own_change(request, member)


@require_role(*OWNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def archive_member(request: WorkspaceRequest, member_id: int) -> HttpResponse:
    """Ask first; then end a membership."""
    found = membership.members_of(request.workspace).filter(pk=member_id, archived_at=None).first()
    if found is None:
        raise Http404
    if request.method != "POST":
        return confirm(
            request,
            heading=f"Remove {found.user} from {request.workspace}?",
            says=[
                f"{found.user} will not see this workspace any more.",
                "What they made stays, under their name. An invitation brings them back.",
            ],
            button=f"Remove {found.user}",
            cancel_url=reverse("workspace_settings", args=[request.workspace.name]),
        )
    try:
        member = membership.archive_member(
            workspace=request.workspace, member_id=member_id, actor=request.user
        )
    except Member.DoesNotExist as exc:
        raise Http404 from exc
    except StateError as exc:
        return _settings_page(request, refusal=exc.message, status=409)
    messages.success(request, f"{member.user} is no member any more.")
    return _after_own_change(request, member)


@never_cache
@require_role(*OWNERS)
@require_POST
def invite(request: WorkspaceRequest) -> HttpResponse:
    """Make an invitation and show its link: this answer is the only one that ever holds it."""
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return _settings_page(request, invitation_form=form, status=400)
    token = membership.invite(
        workspace=request.workspace,
        role=Role(form.cleaned_data["role"]),
        note=form.cleaned_data["note"],
        actor=request.user,
    )
    link = request.build_absolute_uri(reverse("join", args=[token]))
    return _settings_page(request, new_link=link, status=201)


@require_role(*OWNERS)
@require_POST
def revoke_invitation(request: WorkspaceRequest, invitation_id: int) -> HttpResponse:
    try:
        membership.revoke_invitation(
            workspace=request.workspace, invitation_id=invitation_id, actor=request.user
        )
    except Invitation.DoesNotExist as exc:
        raise Http404 from exc
    messages.success(request, "The invitation is revoked. Its link is useless now.")
    return redirect("workspace_settings", request.workspace.name)


@never_cache
@sensitive_post_parameters("password", "again")
@require_http_methods(["GET", "HEAD", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """
    Take an invitation: with a new account, or as the person who is signed in.

    Opening the page uses nothing up, so that a link preview cannot spend the invitation.
    """
    invitation = membership.open_invitation(token)
    if invitation is None:
        return render(request, "debateweb/join_refused.html", status=404)
    form = JoinForm(request.POST or None)
    context = {"invitation": invitation, "form": form}
    if request.method == "POST":
        try:
            response = _take(request, token, form)
        except InputError as exc:
            form.add_error(None, exc.message)
        else:
            if response is not None:
                return response
    return render(request, "debateweb/join.html", context, status=400 if form.errors else 200)


def _take(request: HttpRequest, token: str, form: JoinForm) -> HttpResponse | None:
    if isinstance(request.user, User):
        home = membership.join(token=token, user=request.user)
        return redirect("workspace", home.name)
    if not form.is_valid():
        return None
    user, home = membership.join_as_new_person(
        token=token,
        username=form.cleaned_data["username"],
        password=form.cleaned_data["password"],
    )
    enter(request, user)
    return redirect("workspace", home.name)


def confirm(
    request: HttpRequest,
    *,
    heading: str,
    says: list[str],
    button: str,
    cancel_url: str,
    is_dangerous: bool = True,
) -> HttpResponse:
    """Ask before something that cannot be taken back easily. The page posts to its own address."""
    context = {
        "heading": heading,
        "says": says,
        "button": button,
        "cancel_url": cancel_url,
        "is_dangerous": is_dangerous,
    }
    return render(request, "debateweb/confirm.html", context)


def _after_own_change(request: WorkspaceRequest, member: Member) -> HttpResponse:
    """Go back to the settings, or away from them where the person may not see them any more."""
    still = access.role_in(request.user, request.workspace)
    if member.user_id == request.user.pk and still not in RUNNERS:
        return redirect("home")
    return redirect("workspace_settings", request.workspace.name)


def _settings_page(request: WorkspaceRequest, *, status: int = 200, **extra: Any) -> HttpResponse:
    invitations = Invitation.objects.filter(workspace=request.workspace).select_related(
        "created_by", "used_by"
    )
    here = reverse("workspace_settings", args=[request.workspace.name])
    context = {
        "is_owner": request.role == Role.OWNER,
        "page": page_of(request, membership.members_of(request.workspace), path=here),
        "roles": Role.choices,
        "invitations": invitations.order_by("-pk")[:INVITATIONS_SHOWN],
        "rename_form": WorkspaceForm(initial={"name": request.workspace.name}),
        "invitation_form": InvitationForm(),
        "new_link": "",
        "refusal": "",
        **extra,
    }
    return render(request, "debateweb/workspace_settings.html", context, status=status)

"""
Addresses of the site.

What belongs to a workspace stands under ``/w/<workspace>/``, so that an address says whose it is
and the guard of every view finds it in one place. Every route needs a line in
``tests/debateweb/routes.py``: who gets which answer.
"""

from django.urls import URLPattern, URLResolver, include, path

from debateweb import account_views, api, health, trail_views, views, workspace_views

workspace_patterns: list[URLPattern | URLResolver] = [
    path("", workspace_views.workspace, name="workspace"),
    path("settings", workspace_views.settings, name="workspace_settings"),
    path("settings/rename", workspace_views.rename, name="workspace_rename"),
    path("settings/archive", workspace_views.archive, name="workspace_archive"),
    path("members/<int:member_id>/role", workspace_views.change_role, name="member_role"),
    path("members/<int:member_id>/remove", workspace_views.archive_member, name="member_archive"),
    path("invitations", workspace_views.invite, name="invite"),
    path(
        "invitations/<int:invitation_id>/revoke",
        workspace_views.revoke_invitation,
        name="invitation_revoke",
    ),
    path("trail/", trail_views.trail, name="trail"),
    path("trail/verify", trail_views.verify, name="trail_verify"),
    path("webhooks/", trail_views.webhook_list, name="webhooks"),
    path("webhooks/<int:endpoint_id>/ping", trail_views.webhook_ping, name="webhook_ping"),
    path("webhooks/<int:endpoint_id>/revoke", trail_views.webhook_revoke, name="webhook_revoke"),
    path("webhooks/deliveries/<int:delivery_id>", trail_views.webhook_again, name="webhook_again"),
    path("", include("runs.urls")),
    path("", include("audits.urls")),
]

urlpatterns = [
    path("", views.home, name="home"),
    path("health", health.health_page, name="health"),
    path("health.json", health.health_json, name="health_json"),
    path("login/", account_views.sign_in, name="login"),
    path("logout/", account_views.sign_out, name="logout"),
    path("welcome/<str:token>", views.welcome, name="welcome"),
    path("join/<str:token>", workspace_views.join, name="join"),
    path("theme", views.theme, name="theme"),
    path("draft/<str:key>", views.draft, name="draft"),
    path("design", views.design, name="design"),
    path("account", account_views.account, name="account"),
    path("account/password", account_views.change_password, name="change_password"),
    path("account/tokens", account_views.create_token, name="token_create"),
    path("account/tokens/<int:token_id>/revoke", account_views.revoke_token, name="token_revoke"),
    path("workspaces", workspace_views.workspaces, name="workspaces"),
    path("w/<slug:workspace>/", include(workspace_patterns)),
    path("api/v1/", api.urls),
]

handler400 = "debateweb.errorpages.bad_request"
handler403 = "debateweb.errorpages.forbidden"
handler404 = "debateweb.errorpages.not_found"
handler500 = "debateweb.errorpages.server_error"

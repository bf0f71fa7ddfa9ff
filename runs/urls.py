"""Addresses of questions, protocols, experiments and runs, under ``/w/<workspace>/``."""

from django.urls import URLPattern, path

from runs import experiment_views, run_views, watch_views

app_name = "runs"
urlpatterns: list[URLPattern] = [
    path("experiments/", experiment_views.experiments, name="experiments"),
    path("experiments/new", experiment_views.set_up, name="experiment_new"),
    path("experiments/<int:experiment_id>/", watch_views.experiment, name="experiment"),
    *(
        path(
            f"experiments/<int:experiment_id>/{act}",
            watch_views.act,
            {"act": act},
            name=f"experiment_{act}",
        )
        for act in watch_views.ACTS
    ),
    path("experiments/<int:experiment_id>/cancel", watch_views.cancel, name="experiment_cancel"),
    path("runs/<int:run_id>/", run_views.run, name="run"),
    path("runs/<int:run_id>/verify", run_views.run_verify, name="run_verify"),
    path("runs/<int:run_id>/<int:t>/<str:agent_id>/", run_views.run_cell, name="run_cell"),
]

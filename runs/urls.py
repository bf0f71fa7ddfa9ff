"""Addresses of questions, protocols, experiments and runs, under ``/w/<workspace>/``."""

from django.urls import URLPattern, path

from runs import (
    experiment_views,
    import_views,
    protocol_views,
    question_views,
    run_views,
    watch_views,
)

app_name = "runs"
urlpatterns: list[URLPattern] = [
    path("questions/", question_views.questions, name="questions"),
    path("questions/import", import_views.question_import, name="question_import"),
    path(
        "questions/import/<slug:content_hash>", import_views.question_upload, name="question_upload"
    ),
    path("questions/debates/", question_views.debates, name="debates"),
    path("questions/debates/<int:set_id>/", question_views.debate_set, name="debate_set"),
    path(
        "questions/debates/<int:set_id>/archive",
        question_views.debate_set_archive,
        name="debate_set_archive",
    ),
    path("questions/debates/<int:set_id>/<int:debate_id>", question_views.debate, name="debate"),
    path("questions/<int:set_id>/", question_views.question_set, name="question_set"),
    path(
        "questions/<int:set_id>/archive",
        question_views.question_set_archive,
        name="question_set_archive",
    ),
    path("questions/<int:set_id>/<int:question_id>", question_views.question, name="question"),
    path("protocols/", protocol_views.protocols, name="protocols"),
    path("protocols/edit", protocol_views.protocol_edit, name="protocol_edit"),
    path("protocols/shipped/<slug:name>/", protocol_views.preset, name="preset"),
    path("protocols/<int:version_id>/", protocol_views.protocol, name="protocol"),
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
    path("experiments/<int:experiment_id>/turned", run_views.turned, name="experiment_turned"),
    path("runs/<int:run_id>/", run_views.run, name="run"),
    path("runs/<int:run_id>/verify", run_views.run_verify, name="run_verify"),
    path("runs/<int:run_id>/<int:t>/<str:agent_id>/", run_views.run_cell, name="run_cell"),
]

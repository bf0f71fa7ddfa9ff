"""Addresses of reports and audits, under ``/w/<workspace>/``."""

from django.urls import URLPattern, path

from audits import desk_people_views, desk_views, label_pages, label_views, queue_views, views

app_name = "audits"
urlpatterns: list[URLPattern] = [
    path("reports/", views.reports, name="reports"),
    path("reports/<str:name>/", views.report, name="report"),
    path("reports/<str:name>/build", views.build, name="report_build"),
    path("reports/<str:name>/rows", views.rows, name="rows"),
    path("reports/<str:name>/rows.csv", views.rows_file, name="rows_csv"),
    path("reports/<str:name>/table.csv", views.table, name="table"),
    *(
        path(f"reports/<str:name>/report.{form}", views.download, {"form": form}, f"report_{form}")
        for form in views.TYPES
    ),
    path("label/", label_pages.queues, name="label_queues"),
    path("label/<str:name>/", label_views.work, name="label"),
    path("label/<str:name>/submit", label_views.submit, name="label_submit"),
    path("label/<str:name>/draft", label_views.draft, name="label_draft"),
    path("label/<str:name>/beat", label_views.beat, name="label_beat"),
    path("label/<str:name>/skip", label_views.skip, name="label_skip"),
    path("label/<str:name>/release", label_views.release, name="label_release"),
    path("label/<str:name>/flag", label_views.note, {"kind": "flag"}, name="label_flag"),
    path("label/<str:name>/ask", label_views.note, {"kind": "question"}, name="label_ask"),
    path("label/<str:name>/undo", label_views.undo, name="label_undo"),
    path("label/<str:name>/kept", label_views.kept, name="label_kept"),
    path("label/<str:name>/join", label_pages.join, name="label_join"),
    path("label/<str:name>/guideline", label_pages.guideline, name="label_guideline"),
    path("label/<str:name>/keys", label_pages.keys, name="label_keys"),
    path("label/<str:name>/history", label_pages.history, name="label_history"),
    path("label/<str:name>/correct/<str:key>", label_pages.correct, name="label_correct"),
    path("label/<str:name>/close-batch", label_pages.close_batch, name="label_close_batch"),
    path("label/<str:name>/revealed", label_pages.opened, name="label_revealed"),
    path("queues/", queue_views.queues, name="queues"),
    path("queues/new", queue_views.new, name="queue_new"),
    path("queues/<str:name>/", queue_views.queue, name="queue"),
    path("queues/<str:name>/add", queue_views.add, name="queue_add"),
    path("queues/<str:name>/admit/<str:pseudonym>", queue_views.admit_person, name="queue_admit"),
    path("queues/<str:name>/pause", queue_views.pause, name="queue_pause"),
    path("queues/<str:name>/close", queue_views.close, name="queue_close"),
    path("desk/<str:name>/", desk_views.desk, name="desk"),
    path("desk/<str:name>/item/<str:key>", desk_views.item, name="desk_item"),
    path("desk/<str:name>/people", desk_people_views.people, name="desk_people"),
    path("desk/<str:name>/people/<str:pseudonym>", desk_people_views.person, name="desk_person"),
    path("desk/<str:name>/plan", desk_people_views.plan, name="desk_plan"),
    path("desk/<str:name>/key", desk_people_views.key, name="desk_key"),
    path("desk/<str:name>/key.csv", desk_people_views.key_file, name="desk_key_file"),
]

"""Addresses of reports and audits, under ``/w/<workspace>/``."""

from django.urls import URLPattern, path

from audits import views

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
]

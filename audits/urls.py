"""Addresses of reports and audits, under ``/w/<workspace>/``."""

from django.urls import URLPattern

app_name = "audits"
urlpatterns: list[URLPattern] = []

"""Addresses of questions, protocols, experiments and runs, under ``/w/<workspace>/``."""

from django.urls import URLPattern

app_name = "runs"
urlpatterns: list[URLPattern] = []

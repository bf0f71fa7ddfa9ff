"""Addresses of the site."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path
from django.views.generic import RedirectView

from debateweb import health, views

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="health"), name="home"),
    path("health", health.health_page, name="health"),
    path("health.json", health.health_json, name="health_json"),
    path("login/", LoginView.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("welcome/<str:token>", views.welcome, name="welcome"),
]

"""Wrong settings stop every command with one line; production refuses unsafe defaults."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.conf import settings

from tests.debateweb.sites import PROJECT, Site
from tests.debateweb.test_up import one_line

KEY = "k" * 50


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"DEBATEWEB_PORT": "http"}, "DEBATEWEB_PORT='http' is not an integer"),
        ({"DEBATEWEB_SECRET_KEY": "short"}, "DEBATEWEB_SECRET_KEY must have"),
        ({"DATABASE_URL": "sqlite:///db"}, "DATABASE_URL must start with postgresql://"),
        ({"DEBATEWEB_ENV": "prod"}, "DEBATEWEB_ENV='prod'"),
        ({"DEBATEWEB_ENV": "production"}, "needs DEBATEWEB_SECRET_KEY"),
        (
            {"DEBATEWEB_ENV": "production", "DEBATEWEB_SECRET_KEY": KEY},
            "needs DEBATEWEB_ALLOWED_HOSTS",
        ),
        (
            {
                "DEBATEWEB_ENV": "production",
                "DEBATEWEB_SECRET_KEY": KEY,
                "DEBATEWEB_ALLOWED_HOSTS": "*",
            },
            "must name hosts",
        ),
    ],
)
def test_a_wrong_setting_is_one_line(site: Site, extra: dict[str, str], said: str) -> None:
    line = one_line(site.run("up", **extra))
    assert said in line
    assert KEY not in line


def test_production_with_its_own_key_and_hosts_starts_with_secure_cookies(site: Site) -> None:
    code = "from django.conf import settings as s; print(s.SESSION_COOKIE_SECURE, s.DEBUG)"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **site.env,
            "DEBATEWEB_ENV": "production",
            "DEBATEWEB_SECRET_KEY": KEY,
            "DEBATEWEB_ALLOWED_HOSTS": "debates.example",
        },
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "True False\n"


def test_a_database_that_is_away_is_one_line(site: Site) -> None:
    url = f"postgresql://me:hush@127.0.0.1:{site.port}/none"
    line = one_line(site.run("up", "--json", DATABASE_URL=url))
    assert "the database cannot be used" in line
    assert "hush" not in line


def test_importing_the_settings_loads_nothing_heavy(site: Site) -> None:
    code = (
        "import sys, django; django.setup(); "
        "print([m for m in ('litellm', 'scipy', 'numpy', 'pandas') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env=site.env,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "[]\n"


def test_the_tests_run_on_postgresql_and_not_as_the_site_would() -> None:
    assert settings.DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql"
    assert os.environ["DATABASE_URL"].startswith("postgresql://")
    assert not settings.DATABASE_IS_EMBEDDED

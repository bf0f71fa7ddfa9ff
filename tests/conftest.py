"""What every test may use: the real data, and the rule that nothing needed is skipped silently."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from hypothesis import settings

# A time limit an example would fail on a busy machine; speed is measured in tests/load.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

PROJECT = Path(__file__).resolve().parent.parent
REQUIRABLE = frozenset({"browser", "sandbox", "realdata"})


def required() -> frozenset[str]:
    """Return what ``DEBATEWEB_REQUIRE`` says must be there."""
    words = os.environ.get("DEBATEWEB_REQUIRE", "").split(",")
    named = frozenset(word.strip() for word in words if word.strip())
    unknown = named - REQUIRABLE
    if unknown:
        raise pytest.UsageError(f"DEBATEWEB_REQUIRE names unknown things: {sorted(unknown)}")
    return named


def absent(what: str, reason: str) -> None:
    """Skip the test because ``what`` is missing, or fail it where that is required."""
    if what in required():
        pytest.fail(f"{what} is required (DEBATEWEB_REQUIRE) and missing: {reason}", pytrace=False)
    pytest.skip(f"{what}: {reason}")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the folder of real data sets; skip, or fail under DEBATEWEB_REQUIRE, without it."""
    named = os.environ.get("DEBATEWEB_REAL_DATA", "../shared/data")
    folder = (PROJECT / named).resolve()
    if not folder.is_dir():
        absent("realdata", f"{folder} is not a folder; set DEBATEWEB_REAL_DATA")
    return folder


def pytest_configure(config: pytest.Config) -> None:
    required()
    if config.pluginmanager.has_plugin("django"):
        # The real ones are slow by design, which protects people and not the passwords of tests.
        django_settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have each test marked ``realdata`` skipped or failed for want of data, as the rule says."""
    # Playwright keeps an event loop running in this thread until the session ends, beside which
    # no other test could run its own: the browser comes last.
    items.sort(key=lambda item: "tests/browser/" in item.nodeid)
    for item in items:
        if item.get_closest_marker("realdata"):
            item.add_marker(pytest.mark.usefixtures("real_data"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where the test is marked with something that is required."""
    report = yield
    hidden = sorted(what for what in required() if item.get_closest_marker(what))
    if report.skipped and hidden and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = (
            f"{', '.join(hidden)} required (DEBATEWEB_REQUIRE), yet: {report.longrepr}"
        )
    return report

"""Fixtures for tests that start real sites."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.debateweb.sites import Site, new_site


@pytest.fixture
def site() -> Iterator[Site]:
    with new_site() as made:
        yield made


@pytest.fixture(scope="module")
def shared_site() -> Iterator[Site]:
    """A site with something in it, for tests that change nothing."""
    with new_site() as made:
        done = made.run("demo")
        assert done.returncode == 0, done.stderr
        yield made

"""Fixtures for tests that start real sites."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.debateweb.sites import Site, new_site


@pytest.fixture
def site() -> Iterator[Site]:
    with new_site() as made:
        yield made

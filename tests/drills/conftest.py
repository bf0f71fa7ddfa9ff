"""One arena for all drills of a module; each drill hires workers of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.drills.arena import Arena


@pytest.fixture(scope="session")
def one_arena() -> Iterator[Arena]:
    with Arena.opened() as opened:
        yield opened


@pytest.fixture
def arena(one_arena: Arena) -> Iterator[Arena]:
    """The arena with both servers up; workers of an earlier drill may still be there."""
    yield one_arena
    one_arena.tidy()

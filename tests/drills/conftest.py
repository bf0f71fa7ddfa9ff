"""One arena for all drills of a module; each drill hires workers of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.drills.arena import Arena

pytest.register_assert_rewrite("tests.drills.records")  # So that a failure shows its rows.
MEASURED = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def one_arena() -> Iterator[Arena]:
    with Arena.opened() as opened:
        yield opened


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Keep a line of measured figures for the end of the session."""
    return request.config.stash.setdefault(MEASURED, []).append


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print what the drills have measured, whether or not output is captured."""
    lines = config.stash.get(MEASURED, [])
    if lines:
        terminalreporter.section("measured by the drills")
    for line in lines:
        terminalreporter.write_line(line)


@pytest.fixture
def arena(one_arena: Arena) -> Iterator[Arena]:
    """The arena with both servers up; workers of an earlier drill may still be there."""
    yield one_arena
    one_arena.tidy()

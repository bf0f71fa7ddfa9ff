"""Embedded services as the settings ask for them: nothing where a URL names a server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from django.conf import settings
from django.db import connections

from debateweb.services import keeper


@contextlib.contextmanager
def running(*, broker: bool) -> Iterator[None]:
    """
    Have the database, and the broker if asked, for the time of the block.

    Uses what another process on this data folder runs; else starts it, and the last user stops
    it. Raises a DebatewebError with one line if that fails.
    """
    with contextlib.ExitStack() as stack:
        if settings.DATABASE_IS_EMBEDDED:
            stack.enter_context(keeper.using(settings.DATA_DIR, keeper.POSTGRES))
            stack.callback(connections.close_all)  # Before the server goes.
        if broker and settings.BROKER_IS_EMBEDDED:
            stack.enter_context(keeper.using(settings.DATA_DIR, keeper.VALKEY))
        yield


def lost() -> list[str]:
    """Return the names of embedded services that ought to run and do not."""
    wanted = {
        keeper.POSTGRES: settings.DATABASE_IS_EMBEDDED,
        keeper.VALKEY: settings.BROKER_IS_EMBEDDED,
    }
    return [
        name
        for name, is_embedded in wanted.items()
        if is_embedded and not keeper.is_running(settings.DATA_DIR, name)
    ]

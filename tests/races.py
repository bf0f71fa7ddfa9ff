"""Forced interleavings: wait until PostgreSQL says that a session is blocked."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from django.db import connection

T = TypeVar("T")
PATIENCE_SECONDS = 10.0

_BLOCKED = """
SELECT count(DISTINCT l.pid) FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE NOT l.granted AND a.datname = current_database()
"""


def wait_for_blocked_session(count: int = 1) -> None:
    """Return when so many sessions of this database wait for a lock; fail if none ever does."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while True:
        with connection.cursor() as cursor:
            # Inside a transaction a view of activity is a memory of the first look at it.
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(_BLOCKED)
            if cursor.fetchone()[0] >= count:
                return
        assert time.monotonic() < give_up_at, "no session is waiting for a lock"
        time.sleep(0.005)


def in_own_session(act: Callable[[], T]) -> Callable[[], T]:
    """Return ``act`` for a thread of its own, whose connection is closed when it ends."""

    def run() -> T:
        try:
            return act()
        finally:
            connection.close()

    return run

"""
The pulse of a process: one thread renews the leases of all the runs that it works on.

A worker that stops renewing has lost its runs by the database's clock. Whoever holds a watch is
told through its queue when its lease is gone or its experiment was cancelled.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from queue import SimpleQueue
from typing import Any

from django.db import connection

from runs.services.rounds import HEARTBEAT_SECONDS, Lease, renew

logger = logging.getLogger(__name__)


class Signal(Enum):
    """What a round is told besides the results of its calls."""

    LEASE_LOST = "lease_lost"
    CANCELLED = "cancelled"


@dataclass
class Watch:
    """One round's ear. ``inbox`` receives signals and, from the gateway, results of calls."""

    lease: Lease
    inbox: SimpleQueue[Any] = field(default_factory=SimpleQueue)
    told: set[Signal] = field(default_factory=set)

    def tell(self, signal: Signal) -> None:
        if signal not in self.told:
            self.told.add(signal)
            self.inbox.put(signal)


class LeaseKeeper:
    """Renews every held lease each HEARTBEAT_SECONDS, in one statement."""

    def __init__(self, renew_leases: Callable[[dict[int, int]], dict[int, bool]] = renew) -> None:
        self._renew = renew_leases
        self._watches: dict[int, Watch] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()

    @contextmanager
    def holding(self, lease: Lease) -> Iterator[Watch]:
        """Keep ``lease`` alive inside the block."""
        watch = Watch(lease)
        with self._lock:
            self._watches[lease.run_id] = watch
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, name="lease-keeper", daemon=True)
                self._thread.start()
        try:
            yield watch
        finally:
            with self._lock:
                if self._watches.get(lease.run_id) is watch:
                    del self._watches[lease.run_id]

    def _beat(self) -> None:
        while not self._wake.wait(HEARTBEAT_SECONDS):
            with self._lock:
                watches = dict(self._watches)
            if not watches:
                continue
            try:
                self._renew_and_tell(watches)
            except Exception:  # The database may be away for a while; the leases then run out.
                logger.exception("leases could not be renewed")
            finally:
                connection.close()

    def _renew_and_tell(self, watches: dict[int, Watch]) -> None:
        ours = self._renew({run_id: w.lease.fence for run_id, w in watches.items()})
        for run_id, watch in watches.items():
            if run_id not in ours:
                # A round that was committed meanwhile has left the table of watches; telling
                # its abandoned inbox does no harm.
                watch.tell(Signal.LEASE_LOST)
            elif ours[run_id]:
                watch.tell(Signal.CANCELLED)


keeper = LeaseKeeper()

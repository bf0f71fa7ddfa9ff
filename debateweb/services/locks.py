"""Advisory file locks. The kernel drops them when their process ends, however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[int]:
    """Hold ``path`` alone; wait for it if need be. Yields the open file."""
    with _locked(path, fcntl.LOCK_EX) as fd:
        yield fd


@contextlib.contextmanager
def shared(path: Path) -> Iterator[int]:
    """Hold ``path`` together with other sharers; wait while somebody holds it alone."""
    with _locked(path, fcntl.LOCK_SH) as fd:
        yield fd


def try_exclusive(path: Path) -> int | None:
    """Return the open file if nobody holds ``path``, else None. Close it to let go."""
    fd = _open(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def is_held_alone(path: Path) -> bool:
    """Tell whether a process holds ``path`` exclusively at this moment."""
    fd = _open(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[int]:
    fd = _open(path)
    try:
        fcntl.flock(fd, how)
        yield fd
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)  # Not inherited by child programs.

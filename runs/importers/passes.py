"""
All or nothing: a file is read twice.

The first pass validates every row; only a file without a fault is read again and yielded, record
by record, so that files larger than memory stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from runs.importers.faults import FaultLog

Record = TypeVar("Record")


def all_or_nothing(
    read: Callable[[FaultLog], Iterator[tuple[int, Record]]],
    name: str,
    check: Callable[[int, Record, FaultLog], None],
) -> Iterator[Record]:
    """
    Yield the records of a file. ``check`` sees each with its line and notes what is wrong.

    Raises ImportFaults, at the first ``next``, where anything in the file is wrong.
    """
    log = FaultLog(name)
    count = 0
    for line, record in read(log):
        count += 1
        check(line, record, log)
    if not count and not log.total:
        log.add(0, "file", "holds no record")
    log.raise_if_any()
    for _, record in read(log):
        log.raise_if_any()  # The file may have changed since the first pass.
        yield record
    log.raise_if_any()

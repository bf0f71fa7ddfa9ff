"""
The trail as a hash chain: each row holds the hash of the one before and its own (decision 0072).

The database links an event when its transaction commits (migration 0010), under one advisory
lock that is held for that moment only: no two rows can follow one, and no act waits for another.
Here the chain is read and checked; the canonical text is built here again, from the columns, so
that a changed function in the database proves nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection

from debateweb.models import AuditEvent, TrailLink, Workspace

FIRST_PREVIOUS = "0" * 64
CHUNK = 2_000

#: One JSON array as PostgreSQL writes jsonb: the content that ``row_hash`` is of.
CANONICAL = """
jsonb_build_array('debateweb-trail-1', e.workspace_id, l.position, l.previous_hash, e.id,
    to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), e.actor_id, e.actor_name,
    e.act, e.object_kind, e.object_id, e.object_name, e.detail)::text
"""
_ROWS = f"""
SELECT l.position, l.previous_hash, l.row_hash, l.event_id, {CANONICAL}
FROM debateweb_traillink l JOIN debateweb_auditevent e ON e.id = l.event_id
WHERE l.workspace_id IS NOT DISTINCT FROM %s AND l.position > %s ORDER BY l.position LIMIT %s
"""  # noqa: S608  # Made of constants.


@dataclass(frozen=True, slots=True)
class Head:
    """The newest link of a chain: its position, from 1, and its hash. Reports print it."""

    position: int
    row_hash: str


@dataclass(frozen=True, slots=True)
class Broken:
    """The first row at which a chain does not hold. ``event_id`` None: a row is missing."""

    position: int
    event_id: int | None
    why: str

    def __str__(self) -> str:
        of = f" (event {self.event_id})" if self.event_id is not None else ""
        return f"row {self.position}{of}: {self.why}"


@dataclass(frozen=True, slots=True)
class Verified:
    """What a check found: how many rows hold from the first on, and where the chain breaks."""

    rows: int
    head: Head | None
    broken: Broken | None


def trail_head(workspace: Workspace | None) -> Head | None:
    """Return the head of a workspace's committed trail, or None for one without acts."""
    newest = TrailLink.objects.filter(workspace=workspace).order_by("-position").first()
    return Head(newest.position, newest.row_hash) if newest is not None else None


def verify_trail(workspace: Workspace | None, expected_head: str | None = None) -> Verified:
    """
    Check every row of a chain from its first to its last.

    ``expected_head`` is a hash that a report printed: a chain that lost its end no longer holds
    it, which nothing else could tell.
    """
    head: Head | None = None
    found = expected_head is None
    for position, previous, row_hash, event_id, text in _rows(workspace):
        fault = _fault(head, position, previous, row_hash, text)
        if fault is not None:
            at = head.position if head is not None else 0
            missing = position != at + 1
            row = Broken(at + 1, None if missing else event_id, fault)
            return Verified(rows=at, head=head, broken=row)
        head = Head(position, row_hash)
        found = found or row_hash == expected_head
    length = head.position if head is not None else 0
    return Verified(rows=length, head=head, broken=_outside(workspace, length, found))


def _fault(head: Head | None, position: int, previous: str, row_hash: str, text: str) -> str | None:
    expected = head.position + 1 if head is not None else 1
    if position != expected:
        return "this row is missing"
    if previous != (head.row_hash if head is not None else FIRST_PREVIOUS):
        return "it does not follow the row before it"
    if hashlib.sha256(text.encode()).hexdigest() != row_hash:
        return "its content is not what was recorded"
    return None


def _outside(workspace: Workspace | None, length: int, found: bool) -> Broken | None:
    """Return what is wrong beside the links: an event without one, or an end that is gone."""
    loose = AuditEvent.objects.filter(workspace=workspace, link=None).order_by("pk").first()
    if loose is not None:
        return Broken(length + 1, loose.pk, "it stands outside the chain")
    if not found:
        return Broken(
            length + 1, None, "the head that was named is not in the chain: rows are gone"
        )
    return None


def _rows(workspace: Workspace | None) -> Iterator[tuple[Any, ...]]:
    last = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_ROWS, [workspace.pk if workspace is not None else None, last, CHUNK])
            chunk = cursor.fetchall()
        yield from chunk
        if len(chunk) < CHUNK:
            return
        last = chunk[-1][0]

"""`trail verify` and `trail head`: is the record of acts whole, and where does it end?"""

from __future__ import annotations

import re
from typing import Any

from django.core.management.base import CommandParser

from debateweb.access import command_workspace
from debateweb.errors import InputError, NegativeAnswer
from debateweb.management.actions import Actions
from debateweb.management.base import Command as DebatewebCommand
from debateweb.models import Workspace
from debateweb.trail import trail_head, verify_trail

SITE = "(site)"


class Command(DebatewebCommand):
    help = "Check the hash chain of the trail, or print its head."
    example = "python manage.py trail verify"

    def add_arguments(self, parser: CommandParser) -> None:
        actions = Actions(parser, "trail")
        check = actions.add("verify", "check every row of every chain", "")
        check.add_argument(
            "--head", metavar="HASH", help="a head that a report printed: it has to be in the chain"
        )
        actions.add("head", "print the head of a workspace's chain", "")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "head":
            self._head()
        else:
            self._verify(options["head"])

    def _head(self) -> None:
        workspace = command_workspace(self.workspace_name)
        head = trail_head(workspace)
        if head is None:
            raise NegativeAnswer(f"{workspace.name}: the trail is empty")
        row = {"workspace": workspace.name, "rows": head.position, "head": head.row_hash}
        self.emit(row, f"{workspace.name}: row {head.position:,}, {head.row_hash}")

    def _verify(self, expected: str | None) -> None:
        if expected is not None and not re.fullmatch(r"[0-9a-f]{64}", expected):
            raise InputError("--head: a hash has 64 hexadecimal digits")
        rows: list[dict[str, Any]] = []
        lines: list[str] = []
        for name, workspace in self._chains(expected):
            found = verify_trail(workspace, expected)
            if found.broken is not None:
                raise NegativeAnswer(f"{name}: broken at {found.broken}")
            head = found.head.row_hash if found.head is not None else None
            rows.append({"workspace": name, "rows": found.rows, "head": head})
            lines.append(f"{name}: {found.rows:,} rows hold; head {head or '–'}")
        self.emit(rows, "\n".join(lines))

    def _chains(self, expected: str | None) -> list[tuple[str, Workspace | None]]:
        """Return the chains to check: of one workspace where one is named, else all."""
        if self.workspace_name is not None or expected is not None:
            one = command_workspace(self.workspace_name)
            return [(one.name, one)]
        named: list[tuple[str, Workspace | None]] = [
            (workspace.name, workspace) for workspace in Workspace.objects.order_by("name")
        ]
        return [(SITE, None), *named]

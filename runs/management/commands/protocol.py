"""Protocols from the command line: presets, files and standard input. No database is needed."""

from __future__ import annotations

import sys
from argparse import SUPPRESS
from pathlib import Path
from typing import Any, NamedTuple

from django.core.management.base import CommandParser

from debateweb.errors import InputError, NegativeAnswer
from debateweb.management.base import Command as DebatewebCommand
from debateweb.management.base import OneLineParser
from runs.protocols.checks import unsupported
from runs.protocols.diff import as_json, diff
from runs.protocols.digest import protocol_hash
from runs.protocols.presets import load_preset, preset_names, preset_text
from runs.protocols.schema import json_schema, schema_text
from runs.protocols.spec import Protocol
from runs.protocols.yaml12 import MAX_BYTES
from runs.protocols.yaml_io import ProtocolError, load_protocol

STANDARD_INPUT = "-"


class DifferentProtocols(NegativeAnswer):
    """The two protocols are different algorithms."""

    code = "different_protocols"


class Named(NamedTuple):
    """A protocol and the text that it was read from."""

    protocol: Protocol
    text: str


class Command(DebatewebCommand):
    help = "List, show, hash and compare protocols."
    example = "python manage.py protocol diff du_2023 my-debate.yaml"
    needs_database = False

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(
            dest="action", required=True, metavar="ACTION", parser_class=OneLineParser
        )
        _add(actions, "list", "the protocols that are shipped")
        _add(actions, "show", "a protocol's YAML", "P")
        _add(actions, "hash", "the SHA-256 that identifies its algorithm", "P")
        _add(actions, "diff", "field by field; exit 1 where the algorithms differ", "A", "B")
        _add(actions, "schema", "the JSON Schema of the protocol language")

    def handle(self, *args: Any, **options: Any) -> None:
        action = options["action"]
        if action == "list":
            self._list()
        elif action == "show":
            self._show(_named(options["P"]))
        elif action == "hash":
            self._hash(_named(options["P"]).protocol)
        elif action == "diff":
            self._diff(options["A"], options["B"])
        else:
            self.emit(json_schema(), schema_text().rstrip("\n"))

    def _list(self) -> None:
        protocols = [load_preset(name) for name in preset_names()]
        rows = [
            {
                "name": p.name,
                "title": p.title,
                "agents": len(p.agents),
                "revision_rounds": p.revision_rounds,
                "protocol_hash": protocol_hash(p),
                "unsupported": unsupported(p),
            }
            for p in protocols
        ]
        width = max(len(p.name) for p in protocols)
        lines = [
            f"{p.name:{width}}  {len(p.agents)} × {p.revision_rounds}  {protocol_hash(p)[:12]}"
            f"  {p.title}"
            for p in protocols
        ]
        self.emit(rows, "\n".join(lines))

    def _show(self, named: Named) -> None:
        data = {
            "name": named.protocol.name,
            "protocol_hash": protocol_hash(named.protocol),
            "unsupported": unsupported(named.protocol),
            "protocol": named.protocol.model_dump(mode="json"),
        }
        self.emit(data, named.text.rstrip("\n"))

    def _hash(self, protocol: Protocol) -> None:
        digest = protocol_hash(protocol)
        self.emit({"name": protocol.name, "protocol_hash": digest}, digest)

    def _diff(self, a: str, b: str) -> None:
        if a == b == STANDARD_INPUT:
            raise InputError("standard input can be read once; name a file for one of the two")
        before, after = _named(a).protocol, _named(b).protocol
        changes = diff(before, after)
        hashes = [protocol_hash(before), protocol_hash(after)]
        same = hashes[0] == hashes[1]
        data = {
            "hashes": hashes,
            "same_algorithm": same,
            "changes": [as_json(change) for change in changes],
        }
        lines = [str(change) for change in changes]
        self.emit(data, "\n".join([*lines, f"same algorithm {hashes[0]}"] if same else lines))
        if not same:
            count = sum(not change.is_descriptive for change in changes)
            fields = "field" if count == 1 else "fields"
            raise DifferentProtocols(f"{a} and {b} differ in {count} {fields} of the algorithm")


def _add(actions: Any, name: str, text: str, *protocols: str) -> None:
    example = {"P": "du_2023", "A": "du_2023", "B": "my-debate.yaml"}
    called = " ".join(["python manage.py protocol", name, *(example[p] for p in protocols)])
    parser = actions.add_parser(name, help=text, description=text, epilog=f"example: {called}")
    for protocol in protocols:
        parser.add_argument(protocol, help="a shipped protocol, a file, or - for standard input")
    # People write options last; what stood before the action is kept unless given again.
    parser.add_argument("--json", action="store_true", default=SUPPRESS, help="for machines")
    parser.add_argument("--workspace", metavar="W", default=SUPPRESS, help=SUPPRESS)


def _named(name: str) -> Named:
    """
    Return a shipped protocol by name, else the file of that name, else standard input for -.

    Raises InputError with the first fault and the number of the others.
    """
    if name in preset_names():
        return Named(load_preset(name), preset_text(name))
    where = "standard input" if name == STANDARD_INPUT else name
    try:
        text = _read(name)
        return Named(load_protocol(text, where), text)
    except UnicodeDecodeError as exc:
        raise InputError(f"{where}: not UTF-8 at byte {exc.start}") from exc
    except ProtocolError as exc:
        more = f" (and {len(exc.lines) - 1} more)" if len(exc.lines) > 1 else ""
        raise InputError(f"{exc.lines[0]}{more}") from exc


def _read(name: str) -> str:
    """Return at most one byte more than is accepted, so that a huge file stays on the disk."""
    if name == STANDARD_INPUT:
        return sys.stdin.buffer.read(MAX_BYTES + 1).decode("utf-8-sig")
    try:
        with Path(name).open("rb") as stream:
            return stream.read(MAX_BYTES + 1).decode("utf-8-sig")
    except FileNotFoundError as exc:
        shipped = ", ".join(preset_names())
        raise InputError(f"{name}: no such file, and no shipped protocol ({shipped})") from exc
    except (OSError, ValueError) as exc:
        if isinstance(exc, UnicodeDecodeError):
            raise
        reason = exc.strerror if isinstance(exc, OSError) else str(exc)
        raise InputError(f"{name}: cannot be read: {reason}") from exc

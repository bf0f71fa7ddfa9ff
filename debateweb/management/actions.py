"""Commands with actions (`experiment run`): every action has its own help and example."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser
from typing import Any

from debateweb.management.base import OneLineParser


class Actions:
    """The actions of one command. ``add`` returns the action's parser for its arguments."""

    def __init__(self, parser: ArgumentParser, command: str) -> None:
        self._command = command
        self._actions: Any = parser.add_subparsers(
            dest="action", required=True, metavar="ACTION", parser_class=OneLineParser
        )

    def add(self, name: str, text: str, example: str) -> ArgumentParser:
        called = f"python manage.py {self._command} {name} {example}".rstrip()
        parser: ArgumentParser = self._actions.add_parser(
            name, help=text, description=text, epilog=f"example: {called}"
        )
        # People write options last; what stood before the action is kept unless given again.
        parser.add_argument("--json", action="store_true", default=SUPPRESS, help="for machines")
        parser.add_argument(
            "--workspace", metavar="W", default=SUPPRESS, help="workspace (default: the only one)"
        )
        return parser

"""
The base of every command: services for its own time, one line for an error, fixed exit codes.

0 done · 1 finished with a negative answer · 2 bad input or state.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError

from debateweb import schema
from debateweb.errors import DebatewebError, InputError, NegativeAnswer, StateError
from debateweb.logs import redact
from debateweb.services import embedded

EXIT_NEGATIVE = 1
EXIT_BAD = 2
#: What Django adds to each command.
DJANGO_OPTIONS = frozenset(
    [
        "version",
        "verbosity",
        "settings",
        "pythonpath",
        "traceback",
        "no_color",
        "force_color",
        "skip_checks",
    ]
)
#: What a disk says that takes no more.
FULL = frozenset([errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells have it.


class OneLineParser(CommandParser):
    """Says what is wrong with the arguments in one line instead of printing the usage."""

    def error(self, message: str) -> NoReturn:
        if self.called_from_command_line:
            self.exit(EXIT_BAD, f"{self.prog}: {message} (see --help)\n")
        raise CommandError(f"Error: {message}")


class Command(BaseCommand):
    """
    What our commands derive from. ``example`` is shown by ``--help``.

    ``--json`` and ``--workspace`` end up in ``self.as_json`` and ``self.workspace_name``
    (None: the only one). Print results through ``self.emit``.
    """

    example = ""
    needs_database = True
    needs_broker = False
    requires_system_checks = []  # `make check` runs them; a command is to start at once.

    as_json = False
    workspace_name: str | None = None

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        if self.example:
            kwargs["epilog"] = f"example: {self.example}"
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.__class__ = OneLineParser  # Django offers no other place to choose the class.
        parser.add_argument("--json", action="store_true", help="print JSON for machines")
        parser.add_argument(
            "--workspace", metavar="W", default=None, help="workspace (default: the only one)"
        )
        _hide_django_options(parser)
        return parser

    def execute(self, *args: Any, **options: Any) -> str | None:
        self.as_json = bool(options.get("json"))
        self.workspace_name = options.get("workspace")
        with self._services():
            return super().execute(*args, **options)

    def run_from_argv(self, argv: list[str]) -> None:
        """Run from the command line; every way out is one line and an exit code."""
        try:
            self._run(argv)
        except NegativeAnswer as exc:
            self._fail(exc.message, EXIT_NEGATIVE)
        except DebatewebError as exc:
            self._fail(exc.message, EXIT_BAD)
        except KeyboardInterrupt:
            self._fail("interrupted", EXIT_INTERRUPTED)
        except BrokenPipeError:
            # Whoever read our output has enough (`| head`); say nothing at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OperationalError as exc:
            self._fail(f"the database cannot be used: {_first_line(exc)}", EXIT_BAD)
        except Exception as exc:  # noqa: BLE001  # The last net: people get no traceback.
            if isinstance(exc, OSError) and exc.errno in FULL:
                self._fail(
                    f"cannot write to {exc.filename or 'the output'}: {exc.strerror}", EXIT_BAD
                )
            self._fail(f"unexpected {type(exc).__name__}; details in {_keep(exc)}", EXIT_BAD)

    def emit(self, data: object, text: str) -> None:
        """Print ``data`` as JSON under ``--json``, else ``text``."""
        if self.as_json:
            text = json.dumps(data, ensure_ascii=False, default=str)
        self.stdout.write(text)

    def progress(self, done: int, total: int, label: str) -> None:
        """Show how far it is on a terminal; silent when piped or under ``--json``."""
        if self.as_json or not sys.stderr.isatty():
            return
        end = "\n" if done >= total else ""
        self.stderr.write(f"\r\033[K{label}: {done:,} of {total:,}{end}", ending="")
        sys.stderr.flush()

    def _run(self, argv: list[str]) -> None:
        self._called_from_command_line = True
        parser = self.create_parser(argv[0], argv[1])
        options = vars(parser.parse_args(argv[2:]))
        try:
            self.execute(*options.pop("args", ()), **options)
        except CommandError as exc:
            raise InputError(_first_line(exc)) from exc

    @contextlib.contextmanager
    def _services(self) -> Iterator[None]:
        if not self.needs_database:
            yield
            return
        with embedded.running(broker=self.needs_broker):
            try:
                schema.ensure()
            except OperationalError as exc:
                raise StateError(f"the database cannot be reached: {_first_line(exc)}") from exc
            yield

    def _fail(self, message: str, code: int) -> NoReturn:
        name = type(self).__module__.rpartition(".")[2]
        sys.stderr.write(f"{name}: {redact(message)}\n")
        raise SystemExit(code)


def _hide_django_options(parser: CommandParser) -> None:
    """Leave the options that Django adds to each command out of the help; they still work."""
    for action in parser._actions:  # noqa: SLF001
        if action.dest in DJANGO_OPTIONS:
            action.help = argparse.SUPPRESS


def _first_line(exc: Exception) -> str:
    lines = str(exc).strip().splitlines()
    return lines[0] if lines else type(exc).__name__


def _keep(exc: Exception) -> str:
    """Write the traceback to a log file and return its name."""
    log = settings.DATA_DIR.logs / "commands.log"
    at = datetime.now(UTC).isoformat(timespec="seconds")
    body = redact("".join(traceback.format_exception(exc)))
    try:
        log.parent.mkdir(mode=0o700, exist_ok=True)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(f"{at} {' '.join(sys.argv[1:3])}\n{body}\n")
    except OSError as failure:
        return f"no file ({log}: {failure.strerror})"
    return str(log)

"""The way into every command: settings fail in one line, Django's own commands get services."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line

from debateweb.errors import DebatewebError

# Django's own commands know nothing of embedded services; these need the database.
DATABASE_COMMANDS = frozenset(
    {
        "changepassword",
        "createsuperuser",
        "dbshell",
        "dumpdata",
        "flush",
        "inspectdb",
        "loaddata",
        "migrate",
        "shell",
        "showmigrations",
        "sqlmigrate",
    }
)
# These change the schema or truncate, which the application's role may not.
OWNER_COMMANDS = frozenset({"migrate", "flush", "dbshell"})


def main() -> None:
    """
    Run the command that the arguments name. Exits 2 with one line if it cannot start.

    A reader of the output who has enough (`| head`) or a closed output is no error: silence.
    """
    _open_closed_outputs()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "debateweb.settings")
    name = sys.argv[1] if len(sys.argv) > 1 else "help"
    if name in OWNER_COMMANDS:
        os.environ.setdefault("DEBATEWEB_DB_ROLE", "owner")
    try:
        with _services_for(name):
            execute_from_command_line(sys.argv)
    except (DebatewebError, ImproperlyConfigured) as exc:
        sys.stderr.write(f"{name}: {exc}\n")
        raise SystemExit(2) from None
    except BrokenPipeError:
        pass
    finally:
        _write_out_what_is_left()


def _write_out_what_is_left() -> None:
    """Flush here: what breaks at the interpreter's exit is told there as a traceback."""
    try:
        sys.stdout.flush()
    except OSError:  # Nobody reads any more, or a full disk, which the command has told.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_closed_outputs() -> None:
    """Give a command started with `>&-` somewhere to write; its files then get other numbers."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # Until exit.
            setattr(sys, name, nowhere)


def _services_for(name: str) -> contextlib.AbstractContextManager[None]:
    # Imported late: the environment above must be complete before the settings are read, and
    # wrong settings are to be reported by main.
    from django.conf import settings

    from debateweb.services import embedded

    settings._setup()  # type: ignore[misc]  # noqa: SLF001  # Django itself would go on without.
    if name in DATABASE_COMMANDS and "--help" not in sys.argv:
        return embedded.running(broker=False)
    return contextlib.nullcontext()

"""The way into every command: settings fail in one line, Django's own commands get services."""

from __future__ import annotations

import contextlib
import os
import sys

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
    """Run the command that the arguments name. Exits 2 with one line if it cannot start."""
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


def _services_for(name: str) -> contextlib.AbstractContextManager[None]:
    # Imported late: the environment above must be complete before the settings are read, and
    # wrong settings are to be reported by main.
    from django.conf import settings

    from debateweb.services import embedded

    settings._setup()  # type: ignore[misc]  # noqa: SLF001  # Django itself would go on without.
    if name in DATABASE_COMMANDS and "--help" not in sys.argv:
        return embedded.running(broker=False)
    return contextlib.nullcontext()

"""Is the database's schema the one this code needs? Migrating, by one process at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection

from debateweb.errors import StateError
from debateweb.services import postgres

MIGRATION_LOCK = 0x6465_6261_7465  # "debate"; an advisory lock's number.


class SchemaError(StateError):
    """The database lacks migrations of this release, or has another vendor or version."""

    code = "schema"


def missing_migrations() -> list[str]:
    """
    Return the migrations on disk that the database has not applied, as ``app.name``.

    Lists files and reads one table, because every command asks; it imports no migration.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('django_migrations') IS NOT NULL")
        applied: set[tuple[str, str]] = set()
        if cursor.fetchone() == (True,):
            cursor.execute("SELECT app, name FROM django_migrations")
            applied = {(app, name) for app, name in cursor.fetchall()}
    on_disk = {
        (config.label, path.stem)
        for config in apps.get_app_configs()
        for path in (Path(config.path) / "migrations").glob("[0-9]*.py")
    }
    return sorted(f"{app}.{name}" for app, name in on_disk - applied)


def ensure() -> None:
    """Migrate an embedded database that is behind. Raises SchemaError for a server of others."""
    missing = missing_migrations()
    if not missing:
        return
    if not settings.DATABASE_IS_EMBEDDED:
        raise SchemaError(
            f"the database lacks {len(missing)} migrations of this release (first: {missing[0]}); "
            "run: manage.py migrate"
        )
    migrate()


def migrate() -> None:
    """Apply all migrations as the owner of the schema; a second process waits and finds none."""
    with as_owner(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        try:
            if missing_migrations():
                call_command("migrate", verbosity=0, interactive=False)
        except DatabaseError as exc:
            reason = str(exc).splitlines()[0]
            raise SchemaError(f"the database could not be migrated: {reason}") from exc
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])


@contextlib.contextmanager
def as_owner() -> Iterator[None]:
    """Use the schema's owner instead of the application's role for the time of the block."""
    if not settings.DATABASE_IS_EMBEDDED:
        yield
        return
    before = connection.settings_dict["USER"]
    connection.close()
    connection.settings_dict["USER"] = postgres.OWNER
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["USER"] = before

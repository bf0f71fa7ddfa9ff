"""The schema is what this release needs, and the tests' database proves it."""

from __future__ import annotations

import pytest
from django.db import connection

from debateweb import schema
from debateweb.schema import SchemaError


@pytest.mark.django_db
def test_a_migrated_database_lacks_nothing() -> None:
    assert schema.missing_migrations() == []
    schema.ensure()


@pytest.mark.django_db
def test_a_server_of_others_that_is_behind_is_not_migrated_by_a_command() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'debateweb'")
    with pytest.raises(SchemaError, match=r"debateweb\.0001_initial.*manage\.py migrate"):
        schema.ensure()


@pytest.mark.django_db
def test_the_database_is_postgresql_15_or_later_in_utc() -> None:
    assert connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        row = cursor.fetchone()
    assert row is not None
    assert int(row[0]) >= 150_000

"""The role that the application works under cannot empty, unlock or rewrite a record (S37)."""

from __future__ import annotations

import pytest

from tests.debateweb.sites import Site

TRY = """
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SELECT count(*) FROM debateweb_auditevent")
    print("rows", cursor.fetchone()[0])
    cursor.execute({sql!r})
"""


@pytest.mark.parametrize(
    "sql",
    [
        "TRUNCATE debateweb_auditevent CASCADE",
        "TRUNCATE runs_question CASCADE",
        "ALTER TABLE debateweb_auditevent DISABLE TRIGGER ALL",
        "DROP TRIGGER debateweb_auditevent_frozen ON debateweb_auditevent",
        "DROP TABLE runs_verdict",
        "SET session_replication_role = 'replica'",
        "UPDATE debateweb_auditevent SET act = 'x'",
        "CREATE OR REPLACE FUNCTION debateweb_refuse_change() RETURNS trigger LANGUAGE plpgsql"
        " AS $$ BEGIN RETURN NEW; END $$",
        "UPDATE pg_trigger SET tgenabled = 'D'",
        "SET ROLE debateweb_owner",
    ],
)
def test_the_application_cannot(sql: str, shared_site: Site) -> None:
    done = shared_site.run("shell", "-v", "0", "-c", TRY.format(sql=sql))
    assert "rows" in done.stdout, done.stderr
    assert int(done.stdout.split("rows")[1].split()[0]) > 0
    assert done.returncode != 0, f"{sql} went through"
    words = ("permission denied", "must be owner", "is refused", "does not exist")
    assert any(word in done.stderr for word in words), done.stderr[-300:]

"""The commands of docs/operations.md: dump, restore into an empty database, verify, roles."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from debateweb.services import binaries, postgres
from debateweb.services.datadir import open_data_dir
from tests.debateweb.sites import PROJECT, Site, new_site

TRIGGERS = "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgenabled = 'O'"
TRUNCATE = "TRUNCATE runs_question CASCADE"


def programs() -> Path:
    return binaries.postgres_programs(Path("/nowhere"), None)


def psql(site: Site, role: str, sql: str, database: str = postgres.DATABASE) -> str:
    done = run(site, "psql", role, "-XAtq", "-d", database, "-c", sql)
    return (done.stdout + done.stderr).strip()


def run(site: Site, program: str, role: str, *words: str) -> subprocess.CompletedProcess[str]:
    sockets = str(open_data_dir(site.data).postgres_sockets)
    return subprocess.run(
        [str(programs() / program), "-h", sockets, "-U", role, *words],
        capture_output=True,
        text=True,
        check=False,
    )


@contextlib.contextmanager
def only_the_database(site: Site) -> Iterator[None]:
    """As `manage.py dbshell` in a second terminal: the database without the site."""
    with subprocess.Popen(
        Site._command(("dbshell",)),
        env={**site.env, "PATH": f"{programs()}{os.pathsep}{os.environ['PATH']}"},
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as shell:
        assert shell.stdin is not None and shell.stdout is not None
        shell.stdin.write("\\echo here\n")
        shell.stdin.flush()
        # Its own session has to stand: the database lasts as long as it does.
        assert any("here" in line for line in shell.stdout)
        yield
        shell.stdin.close()


def test_what_was_dumped_and_restored_verifies_and_stays_frozen(
    shared_site: Site, tmp_path: Path
) -> None:
    dump = str(tmp_path / "debateweb.dump")
    with only_the_database(shared_site):
        done = run(
            shared_site, "pg_dump", postgres.OWNER, "-Fc", "-f", dump, "-d", postgres.DATABASE
        )
        assert (done.returncode, done.stderr) == (0, "")
        triggers = psql(shared_site, postgres.OWNER, TRIGGERS)
        name = psql(shared_site, postgres.OWNER, "SELECT min(name) FROM runs_experiment")
    assert int(triggers) > 10
    with new_site() as other:
        with only_the_database(other):
            words = ("--exit-on-error", "--single-transaction", "-d", postgres.DATABASE, dump)
            done = run(other, "pg_restore", postgres.OWNER, *words)
            assert (done.returncode, done.stderr) == (0, "")
            assert psql(other, postgres.OWNER, TRIGGERS) == triggers
            assert "permission denied" in psql(other, postgres.APPLICATION, TRUNCATE)
        assert other.run("migrate", "--check").returncode == 0
        verified = other.run("experiment", "verify", name)
        assert verified.returncode == 0, verified.stdout + verified.stderr


def test_the_script_for_a_server_of_ones_own_makes_the_same_split(
    site: Site, tmp_path: Path
) -> None:
    for role in ("OWNER", "APP"):
        (tmp_path / role).write_text('it\'s "quoted" $x\n', encoding="utf-8")
    with only_the_database(site):
        for sql in (
            f"DROP DATABASE {postgres.DATABASE} WITH (FORCE)",
            f"DROP ROLE {postgres.OWNER}",
            f"DROP ROLE {postgres.APPLICATION}",
            "CREATE DATABASE lab",
        ):
            assert psql(site, postgres.ADMIN, sql, "postgres") == ""
        env = {
            "PATH": f"{programs()}{os.pathsep}{os.environ['PATH']}",
            "PGHOST": str(open_data_dir(site.data).postgres_sockets),
            "POSTGRES_USER": postgres.ADMIN,
            "POSTGRES_DB": "lab",
            "DEBATEWEB_OWNER_PASSWORD_FILE": str(tmp_path / "OWNER"),
            "DEBATEWEB_APP_PASSWORD_FILE": str(tmp_path / "APP"),
        }
        script = str(PROJECT / "debateweb/services/roles.sh")
        done = subprocess.run(["sh", script], env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, "")
        assert psql(site, postgres.OWNER, "CREATE TABLE t (n integer)", "lab") == ""
        assert psql(site, postgres.APPLICATION, "INSERT INTO t VALUES (1)", "lab") == ""
        for sql in ("TRUNCATE t", "DROP TABLE t", "CREATE TABLE u (n integer)"):
            said = psql(site, postgres.APPLICATION, sql, "lab")
            assert "permission denied" in said or "must be owner" in said, said

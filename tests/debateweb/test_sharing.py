"""Commands without ``up`` share one database: the first starts it, the last stops it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from debateweb.services import keeper, locks, postgres
from debateweb.services.datadir import DataDir, open_data_dir
from tests.debateweb.sites import PROJECT, Site, wait_for

HOLD = """
import sys
from pathlib import Path
from debateweb.services import keeper
from debateweb.services.datadir import open_data_dir
with keeper.using(open_data_dir(Path(sys.argv[1])), keeper.POSTGRES):
    print("using", flush=True)
    sys.stdin.readline()
"""


def starts(site: Site) -> int:
    log = (site.data / "log" / "postgres.log").read_text()
    return log.count("starting PostgreSQL")


class User:
    """A process that uses the database until it is told to leave or killed."""

    def __init__(self, site: Site) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-c", HOLD, str(site.data)],
            env={**site.env, "PYTHONPATH": str(PROJECT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.child.stdout is not None
        assert self.child.stdout.readline() == "using\n"

    def leave(self) -> None:
        self.child.communicate("\n", timeout=10)

    def kill(self) -> None:
        self.child.kill()
        self.child.communicate()


def select_one(data_dir: DataDir) -> object:
    where = f"host={data_dir.postgres_sockets} dbname=debateweb user={postgres.APPLICATION}"
    with psycopg.connect(where) as connection:
        return connection.execute("SELECT 1").fetchone()


def test_the_second_user_joins_and_the_server_outlives_the_first(site: Site) -> None:
    first = User(site)
    second = User(site)
    first.leave()
    data_dir = open_data_dir(site.data)
    assert select_one(data_dir) == (1,)
    assert starts(site) == 1
    second.leave()
    site.settles()  # The last one out waits until the server is gone.


def test_the_server_outlives_a_first_user_that_is_killed_and_ends_after_the_last(
    site: Site,
) -> None:
    first = User(site)
    second = User(site)
    first.kill()
    assert select_one(open_data_dir(site.data)) == (1,)
    second.kill()
    wait_for(site.is_quiet, 5, "the server stayed")


def test_commands_that_start_at_the_same_moment_share_one_new_cluster(site: Site) -> None:
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(lambda _: site.run("showmigrations", "sessions"), range(3)))
    assert [result.returncode for result in results] == [0, 0, 0], results
    site.settles()


def test_a_killed_keeper_takes_the_server_along_and_the_next_user_starts_anew(site: Site) -> None:
    user = User(site)
    os.kill(site.pid_of("services.keeper"), signal.SIGKILL)
    wait_for(lambda: not any("postgres" in text for text in site.processes().values()), 5, "alive")
    another = User(site)
    assert select_one(open_data_dir(site.data)) == (1,)
    assert starts(site) == 2
    user.leave()
    another.leave()
    site.settles()


def test_the_application_may_neither_truncate_nor_change_the_schema(site: Site) -> None:
    assert site.run("migrate", "--verbosity", "0").returncode == 0
    user = User(site)
    sockets = open_data_dir(site.data).postgres_sockets
    where = f"host={sockets} dbname=debateweb user={postgres.APPLICATION}"
    with psycopg.connect(where, autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM debateweb_user").fetchone() == (0,)
        for statement in (
            "TRUNCATE debateweb_user CASCADE",
            "DROP TABLE debateweb_user",
            "CREATE TABLE mine (id int)",
            "ALTER TABLE debateweb_user DISABLE TRIGGER ALL",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    user.leave()


def test_the_sockets_are_closed_to_other_accounts(site: Site) -> None:
    user = User(site)
    data_dir = open_data_dir(site.data)
    try:
        assert data_dir.postgres_sockets.stat().st_mode & 0o077 == 0
        assert "trust" not in (data_dir.cluster / "pg_hba.conf").read_text()
    finally:
        user.leave()


def test_a_lock_is_free_again_when_its_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with locks.shared(path):
        assert not locks.is_held_alone(path)
        assert locks.try_exclusive(path) is None
    held = locks.try_exclusive(path)
    assert held is not None
    assert locks.is_held_alone(path)
    os.close(held)
    assert not locks.is_held_alone(path)


def test_a_keeper_that_says_nothing_is_an_error_that_names_its_log(site: Site) -> None:
    data_dir = open_data_dir(site.data)
    with pytest.raises(keeper.KeeperError, match=r"postgres could not be started; see .*log"):
        keeper._read_word("", keeper.POSTGRES, data_dir)

"""``up`` as people meet it: real processes, real signals, real ports."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator

import pytest

from debateweb.services import postgres, supervisor, valkey
from tests.debateweb.sites import PROJECT, Site, new_site, wait_for

#: How long a test waits for the end of a site. That a stop takes less than 5 s is measured by
#: `make install-matrix` and follows from the patience of its parts; a loaded machine stretches it.
STOP_WAIT_SECONDS = 30.0
START_WAIT_SECONDS = 60.0
RUN_ARGUMENTS = "import subprocess, sys; subprocess.run(sys.argv[1:])"


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[Site, dict[str, str | None]]]:
    with new_site() as site:
        child, announced = site.up()
        yield site, announced
        os.killpg(child.pid, signal.SIGINT)  # As a terminal does at Ctrl-C.
        child.wait(timeout=STOP_WAIT_SECONDS)


Running = tuple[Site, dict[str, str | None]]


def one_line(result: subprocess.CompletedProcess[str]) -> str:
    """Return the one line on standard error of a command that exited with 2."""
    assert result.returncode == 2, result
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stderr
    return lines[0]


def test_the_site_is_healthy_and_an_empty_database_gets_a_first_owner_link(
    running: Running,
) -> None:
    site, announced = running
    assert announced["url"] == f"http://127.0.0.1:{site.port}/"
    assert str(announced["first_owner"]).startswith(f"http://127.0.0.1:{site.port}/welcome/")
    status, body = site.health()
    assert (status, body["status"]) == (200, "ok")


def test_the_owners_page_opens_by_the_link_under_a_strict_policy(running: Running) -> None:
    _, announced = running
    with urllib.request.urlopen(str(announced["first_owner"]), timeout=5) as reply:  # noqa: S310
        page = reply.read().decode()
        policy = reply.headers["content-security-policy"]
    assert 'name="password"' in page
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_second_up_on_the_same_folder_says_where_the_first_one_is(running: Running) -> None:
    site, _ = running
    line = one_line(site.run("up"))
    assert "already up" in line
    assert f"http://127.0.0.1:{site.port}" in line


def test_a_second_site_on_the_same_port_is_told_so(running: Running, site: Site) -> None:
    first, _ = running
    site.port = first.port
    line = one_line(site.run("up"))
    assert f"port {first.port}" in line
    assert "DEBATEWEB_PORT" in line
    site.settles()


def test_a_command_beside_up_uses_its_database_and_leaves_it_running(running: Running) -> None:
    site, _ = running
    before = site.pid_of("bin/postgres -D")
    assert site.run("showmigrations", "debateweb").returncode == 0
    assert site.pid_of("bin/postgres -D") == before
    assert site.health()[0] == 200


def test_a_worker_that_dies_is_started_again(running: Running) -> None:
    site, _ = running
    first = site.pid_of("--queues rounds")
    os.kill(first, signal.SIGKILL)

    def another_runs() -> bool:
        pids = [pid for pid, text in site.processes().items() if "--queues rounds" in text]
        return bool(pids) and first not in pids

    wait_for(another_runs, 5, "no new worker")


def test_ctrl_c_and_a_termination_stop_everything_and_a_second_start_works(
    site: Site,
) -> None:
    for round_number in range(2):
        started = time.monotonic()
        child, announced = site.up()
        assert time.monotonic() - started < START_WAIT_SECONDS
        # A link that nobody used yet is replaced by a new one.
        assert announced["first_owner"] is not None
        asked = time.monotonic()
        os.killpg(child.pid, signal.SIGINT if round_number == 0 else signal.SIGTERM)
        child.wait(timeout=STOP_WAIT_SECONDS)
        wait_for(site.is_quiet, STOP_WAIT_SECONDS - (time.monotonic() - asked), "not quiet")
        assert child.returncode == 0


def test_a_killed_parent_leaves_no_orphan_and_the_next_start_recovers(site: Site) -> None:
    child, _ = site.up()
    assert len(site.processes()) > 8
    child.kill()
    child.wait()
    wait_for(site.is_quiet, STOP_WAIT_SECONDS, "orphans")
    result = site.run("showmigrations", "debateweb")
    assert result.returncode == 0, result.stderr
    assert "[X] 0001_initial" in result.stdout
    site.settles()


def test_killing_everything_at_once_leaves_a_folder_that_starts_again(site: Site) -> None:
    site.up()
    for pid in site.processes():
        with contextlib.suppress(ProcessLookupError):  # It went with its parent.
            os.kill(pid, signal.SIGKILL)
    wait_for(site.is_quiet, STOP_WAIT_SECONDS, "survivors")
    result = site.run("showmigrations", "debateweb")
    assert result.returncode == 0, result.stderr


def test_a_lost_database_stops_up_with_one_line(site: Site) -> None:
    child, _ = site.up()
    os.kill(site.pid_of("bin/postgres -D"), signal.SIGKILL)
    _, errors = child.communicate(timeout=10)
    assert child.returncode == 2
    assert errors.startswith("up: postgres ended")
    assert len(errors.splitlines()) == 1
    wait_for(site.is_quiet, STOP_WAIT_SECONDS, "not quiet")


def test_up_ends_with_the_make_that_started_it(site: Site) -> None:
    make = subprocess.Popen(
        [sys.executable, "-c", RUN_ARGUMENTS, sys.executable, "manage.py", "up", "--json"],
        env={**site.env, "DEBATEWEB_UP_FROM_MAKE": "1"},
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with make:
        assert make.stdout is not None
        assert make.stdout.readline()
        make.kill()
    wait_for(site.is_quiet, STOP_WAIT_SECONDS, "orphans")


def test_a_port_that_another_program_has_is_said_before_anything_starts(site: Site) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", site.port))
        taken.listen()
        assert f"port {site.port} on 127.0.0.1 is taken" in one_line(site.run("up"))
    site.settles()
    assert not (site.data / "postgres").exists()


def test_the_patience_with_all_parts_of_a_site_is_less_than_five_seconds() -> None:
    database = postgres.FAST_STOP_SECONDS + postgres.IMMEDIATE_STOP_SECONDS
    # The keepers of database and broker stop them at the same time, after the processes.
    assert supervisor.STOP_PATIENCE_SECONDS + max(database, valkey.STOP_PATIENCE_SECONDS) < 5

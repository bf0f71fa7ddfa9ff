"""Workers for a command's own time, and a stop that does not wait for long work."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest

from debateweb.services import supervisor
from debateweb.services.supervisor import ProcessError, Role, Supervisor, worker_command
from tests.debateweb.sites import Site

WITH_WORKER = """
import django
django.setup()
from debateweb.services import embedded, supervisor
with embedded.running(broker=True):
    assert not supervisor.worker_is_alive()
    with supervisor.temporary_worker():
        assert supervisor.worker_is_alive()
        with supervisor.temporary_worker():
            print("inside")
"""
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"


@pytest.fixture
def logs(settings: object, tmp_path: Path) -> Path:
    from django.conf import settings as live

    live.DATA_DIR.logs.mkdir(mode=0o700, exist_ok=True)
    return Path(live.DATA_DIR.logs)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_temporary_worker_is_ready_inside_the_block_and_gone_after_it(site: Site) -> None:
    import subprocess

    result = subprocess.run(
        python(WITH_WORKER),
        env={**site.env, "PYTHONPATH": "."},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "inside\n"
    site.settles()


def test_work_that_ignores_the_request_to_stop_is_killed_in_time(logs: Path) -> None:
    with Supervisor([Role("stubborn", python(STUBBORN)), Role("other", python(STUBBORN))]) as some:
        children = list(some.running.values())
        time.sleep(0.3)
        started = time.monotonic()
    assert time.monotonic() - started < supervisor.STOP_PATIENCE_SECONDS + 0.5
    assert all(child.returncode == -signal.SIGKILL for child in children)


def test_what_ends_at_once_again_and_again_is_given_up_with_the_name_of_its_log(logs: Path) -> None:
    def keep_checking(some: Supervisor) -> None:
        for _ in range(1000):
            some.check()
            time.sleep(0.01)

    with (
        Supervisor([Role("brief", python("raise SystemExit('no model')"))]) as some,
        pytest.raises(ProcessError, match=r"brief does not stay up: no model .*brief\.log"),
    ):
        keep_checking(some)


def test_what_is_killed_from_outside_is_started_again_however_often(logs: Path) -> None:
    with Supervisor([Role("killed", python(STUBBORN))]) as some:
        for _ in range(supervisor.MOST_RESTARTS + 2):
            child = some.running["killed"]
            child.kill()
            child.wait()
            assert some.check() == ["killed"]
        assert some.running["killed"].poll() is None


def test_rounds_have_a_worker_of_their_own() -> None:
    by_name = {role.name: list(role.command) for role in supervisor.worker_roles("1")}
    queues = {
        name: command[command.index("--queues") + 1].split(",")
        for name, command in by_name.items()
        if "--queues" in command
    }
    assert queues == {"rounds": ["rounds"], "small": ["default", "judges", "reports"]}


def test_the_worker_command_takes_its_threads_from_the_settings_or_the_caller() -> None:
    assert "--concurrency 96" in " ".join(worker_command(name="a"))
    assert "--concurrency 3" in " ".join(worker_command(name="a", threads=3))

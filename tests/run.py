#!/usr/bin/env python3
"""
Start throw-away services, run pytest against them, stop them in every case.

``python tests/run.py [pytest's arguments]``, or ``python tests/run.py -- COMMAND …`` to run
another command against the same services. Without arguments everything runs, in two lanes side
by side with services of their own: tests that wait for processes and browsers, and all others.
Under ``DEBATEWEB_TEST_DURABLE=1`` the database waits for the disk, as in life. A conftest would be
too late: Django reads its database settings before. ``DATABASE_URL`` and ``REDIS_URL`` select
other servers, and then one lane; they must hold nothing of value. Exits as pytest does.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from debateweb.errors import DebatewebError  # noqa: E402
from debateweb.services import binaries, postgres, process, valkey  # noqa: E402

LOWEST_POSTGRES = 15
#: What mostly waits: for processes, for a browser, for leases to run out.
WAITING = ("tests/browser", "tests/drills", "tests/debateweb")
# A crash may lose a throw-away database: no waiting for the disk.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def main() -> int:
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _leave)
    words, given = sys.argv[1:], {"DATABASE_URL", "REDIS_URL"} & os.environ.keys()
    # Two lanes in one database would be in each other's way.
    return _one_lane(words) if words or given else _both_lanes()


def _both_lanes() -> int:
    """Run the whole suite; the second lane's output follows the first's. Returns the worse code."""
    others = ["tests", *(f"--ignore={folder}" for folder in WAITING)]
    with tempfile.TemporaryFile() as output:
        command = [sys.executable, str(Path(__file__).resolve())]
        second = subprocess.Popen(
            [*command, *others], cwd=PROJECT, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            first = subprocess.call([*command, *WAITING], cwd=PROJECT)
            return max(first, second.wait())
        finally:
            if second.poll() is None:
                process.stop(second, signal.SIGTERM, patience_seconds=10.0)
            output.seek(0)
            sys.stdout.flush()
            shutil.copyfileobj(output, sys.stdout.buffer)
            sys.stdout.flush()


def _one_lane(words: list[str]) -> int:
    with ExitStack() as stack:
        folder = stack.enter_context(_folder())
        env = {
            **os.environ,
            "DEBATEWEB_DATA_DIR": str(folder / "data"),
            "DEBATEWEB_SECRET_KEY": secrets.token_urlsafe(48),
        }
        if "DATABASE_URL" not in env:
            env["DATABASE_URL"] = stack.enter_context(_postgres(folder))
        if "REDIS_URL" not in env:
            env["REDIS_URL"] = stack.enter_context(_valkey(folder))
        _check_database(env["DATABASE_URL"])
        _check_broker(env["REDIS_URL"])
        return _run(_command(words), env)


def _command(words: list[str]) -> list[str]:
    if words and words[0] == "--":
        return words[1:]
    return [sys.executable, "-m", "pytest", *words]


def _run(command: list[str], env: dict[str, str]) -> int:
    child = subprocess.Popen(command, env=env, cwd=PROJECT)
    try:
        return child.wait()
    except KeyboardInterrupt:  # Pytest got the same Ctrl-C: let it print its summary.
        return child.wait()
    finally:
        if child.poll() is None:
            process.stop(child, signal.SIGTERM, patience_seconds=5.0)


@contextmanager
def _folder() -> Iterator[Path]:
    """Yield a short path that the services' account can enter (sockets, and root's case)."""
    folder = Path(tempfile.mkdtemp(prefix="dwtest-"))
    try:
        folder.chmod(0o711)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _postgres(folder: Path) -> Iterator[str]:
    account = process.service_account()
    programs = binaries.postgres_programs(folder, account)
    sockets = folder / "pg"
    # Figures for people are measured on a database that keeps what it says it has kept.
    tuning = {} if os.environ.get("DEBATEWEB_TEST_DURABLE") else FAST
    server = postgres.Postgres(
        programs, folder / "cluster", sockets, folder / "pg.log", account, trust=True, tuning=tuning
    )
    running = server.start()
    try:
        yield f"postgresql://{postgres.ADMIN}@/{postgres.DATABASE}?host={sockets}"
    finally:
        server.stop(running)


@contextmanager
def _valkey(folder: Path) -> Iterator[str]:
    """Run the broker on loopback with a password: one URL then serves broker and cache alike."""
    account = process.service_account()
    program = binaries.valkey_program(folder, account)
    password, port = secrets.token_urlsafe(16), _free_port()
    server = valkey.Valkey(
        program, folder / "vk" / "s", folder / "vk.log", account, port=port, password=password
    )
    running = server.start()
    try:
        yield f"redis://:{password}@127.0.0.1:{port}/0"
    finally:
        server.stop(running)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _check_database(url: str) -> None:
    """The tests mean PostgreSQL; on anything else their success would say nothing."""
    import psycopg

    with psycopg.connect(url) as connection:
        version = connection.info.server_version
    if version < LOWEST_POSTGRES * 10_000:
        raise SystemExit(f"tests need PostgreSQL {LOWEST_POSTGRES} or later, not {version}")
    print(f"test database: PostgreSQL {version // 10_000}.{version % 10_000}", flush=True)


def _check_broker(url: str) -> None:
    import redis

    with redis.Redis.from_url(url) as client:
        info = client.info("server")
    name = "Valkey" if "valkey_version" in info else "Redis"
    print(f"test broker: {name} {info.get('valkey_version', info['redis_version'])}", flush=True)


def _leave(signum: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    try:
        code = main()
    except DebatewebError as exc:
        sys.exit(f"tests/run.py: {exc}")
    sys.exit(code)

"""
One embedded service, shared by every process that uses a data folder.

Each user of a service holds its ``users`` lock together with the others. The first one starts a
keeper, a small process in a session of its own that starts the service and is its parent; when
it can have the ``users`` lock alone nobody is left, and it stops the service and ends. Users that
are killed let go of the lock as well, and a keeper that is killed takes the service with it, so
no orphan stays in either case.

States: (a) no keeper: ``keeper`` and ``users`` free · (b) serving: keeper holds ``keeper``, users
share ``users`` · (c) stopping: keeper holds both, a new user waits and then finds (a).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Protocol

from debateweb.errors import DebatewebError, StateError
from debateweb.services import locks
from debateweb.services.binaries import postgres_programs, valkey_program
from debateweb.services.datadir import DataDir, open_data_dir
from debateweb.services.postgres import Postgres
from debateweb.services.process import service_account
from debateweb.services.valkey import Valkey

POSTGRES = "postgres"
VALKEY = "valkey"
POLL_SECONDS = 0.1
STOP_WAIT_SECONDS = 6.0
PROJECT = Path(__file__).resolve().parents[2]


class KeeperError(StateError):
    """A service could not be started."""

    code = "service"


class Service(Protocol):
    """What a keeper keeps."""

    def start(self) -> subprocess.Popen[bytes]: ...

    def stop(self, server: subprocess.Popen[bytes]) -> None: ...


@contextlib.contextmanager
def using(data_dir: DataDir, name: str) -> Iterator[None]:
    """Have the service running for the time of the block; the last user out stops it."""
    _prepare_run_folder(data_dir)
    users = _lock(data_dir, name, "users")
    try:
        with locks.shared(users):
            with locks.exclusive(_lock(data_dir, name, "start")):
                if not is_running(data_dir, name):
                    _start_keeper(data_dir, name)
            yield
    finally:
        _wait_if_last(data_dir, name)


def is_running(data_dir: DataDir, name: str) -> bool:
    """Tell whether a keeper has the service."""
    return locks.is_held_alone(_lock(data_dir, name, "keeper"))


def build(data_dir: DataDir, name: str) -> Service:
    """Return the service of that name, as this machine and user can run it."""
    account = service_account()
    log = data_dir.logs / f"{name}.log"
    if name == POSTGRES:
        programs = postgres_programs(data_dir.state, account)
        return Postgres(programs, data_dir.cluster, data_dir.postgres_sockets, log, account)
    return Valkey(valkey_program(data_dir.state, account), data_dir.valkey_socket, log, account)


def _prepare_run_folder(data_dir: DataDir) -> None:
    try:
        data_dir.make_run()
    except OSError as exc:
        raise KeeperError(f"{data_dir.run} cannot be made: {exc.strerror}") from exc


def _lock(data_dir: DataDir, name: str, kind: str) -> Path:
    return data_dir.run / f"{name}.{kind}"


def _start_keeper(data_dir: DataDir, name: str) -> None:
    read_end, write_end = os.pipe()
    try:
        words = [sys.executable, "-m", "debateweb.services.keeper", name, str(data_dir.root)]
        with _log(data_dir).open("ab") as log:
            subprocess.run(  # Returns at once: the keeper detaches itself.
                [*words, str(write_end)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=PROJECT,
                pass_fds=(write_end,),
                check=False,
            )
    finally:
        os.close(write_end)
    with os.fdopen(read_end, encoding="utf-8") as word:
        _read_word(word.read(), name, data_dir)


def _log(data_dir: DataDir) -> Path:
    data_dir.logs.mkdir(mode=0o700, exist_ok=True)
    return data_dir.logs / "keeper.log"


def _read_word(word: str, name: str, data_dir: DataDir) -> None:
    if not word:
        raise KeeperError(f"{name} could not be started; see {_log(data_dir)}")
    error = json.loads(word)["error"]
    if error is not None:
        raise KeeperError(error)


def _wait_if_last(data_dir: DataDir, name: str) -> None:
    """Return when others use the service or when it is gone, so that a command leaves nothing."""
    users, give_up_at = _lock(data_dir, name, "users"), time.monotonic() + STOP_WAIT_SECONDS
    while is_running(data_dir, name) and time.monotonic() < give_up_at:
        if not locks.is_held_alone(users):
            alone = locks.try_exclusive(users)
            if alone is None:
                return  # Others share it.
            os.close(alone)
        time.sleep(0.02)


def _detach() -> None:
    """Leave the session and the parent: the service may outlive whoever came first."""
    if os.fork() > 0:
        os._exit(0)
    os.setsid()


def _on_terminate(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


def keep(data_dir: DataDir, name: str, word_fd: int) -> None:
    """Start the service, say so on ``word_fd``, and stop it when nobody uses it any more."""
    users = _lock(data_dir, name, "users")
    with locks.exclusive(_lock(data_dir, name, "keeper")), os.fdopen(word_fd, "w") as word:
        try:
            service = build(data_dir, name)
            server = service.start()
        except (DebatewebError, OSError) as exc:
            json.dump({"error": " ".join(str(exc).split())}, word)
            return
        json.dump({"error": None}, word)
        word.close()
        alone = None
        try:
            alone = _wait_for_last_user(users, server)
        finally:
            service.stop(server)
    # The keeper lock went first: who gets the users lock next must not take us for serving.
    if alone is not None:
        os.close(alone)


def _wait_for_last_user(users: Path, server: subprocess.Popen[bytes]) -> int | None:
    """Return the users lock when it can be had alone, None if the service ended by itself."""
    while server.poll() is None:
        alone = locks.try_exclusive(users)
        if alone is not None:
            return alone
        time.sleep(POLL_SECONDS)
    return None


def main(arguments: list[str]) -> None:
    name, root, word_fd = arguments
    _detach()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _on_terminate)
    keep(open_data_dir(Path(root)), name, int(word_fd))


if __name__ == "__main__":
    main(sys.argv[1:])

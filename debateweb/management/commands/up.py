"""Start everything on this machine and keep it running until Ctrl-C."""

from __future__ import annotations

import contextlib
import errno
import http.client
import os
import signal
import socket
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn

from django.conf import settings

from debateweb import access, schema
from debateweb.errors import StateError
from debateweb.management.base import Command as DebatewebCommand
from debateweb.services import embedded, locks, process, supervisor

CHECK_SECONDS = 0.25
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class UpError(StateError):
    """The site cannot be started, or a part of it was lost."""

    code = "up"


class _StopAskedFor(BaseException):  # Not an Exception: nothing on the way may swallow it.
    pass


class Command(DebatewebCommand):
    help = "Start the database, the broker, workers and the web server; Ctrl-C stops all."
    example = "DEBATEWEB_PORT=8080 python manage.py up"
    needs_database = False  # It has its own order: lock, port, services.

    def handle(self, *args: Any, **options: Any) -> None:
        if os.environ.pop("DEBATEWEB_UP_FROM_MAKE", None):
            process.die_with_parent(signal.SIGTERM, os.getppid())
        for signum in STOP_SIGNALS:
            signal.signal(signum, _ask_to_stop)
        try:
            with _alone() as lock_fd:
                _refuse_taken_port()
                self._say("Starting the database and the broker …")
                with embedded.running(broker=True):
                    self._serve(lock_fd)
        except _StopAskedFor:
            self._say("Stopped.")

    def _serve(self, lock_fd: int) -> None:
        schema.migrate()
        link = access.ensure_first_owner()
        suffix = str(os.getpid())
        roles = [*supervisor.worker_roles(suffix), supervisor.Role("web", supervisor.web_command())]
        with supervisor.Supervisor(roles) as children:
            self._say("Starting workers and the web server …")
            _wait_for_web(children)
            supervisor.wait_for_workers(children, suffix)
            os.pwrite(lock_fd, f"{os.getpid()} {_url()}\n".encode(), 0)
            self._announce(link)
            self._watch(children)

    def _announce(self, link: str | None) -> None:
        record = {"url": f"{_url()}/", "first_owner": f"{_url()}{link}" if link else None}
        lines = [f"debateweb is ready: {_url()}/"]
        if link:
            lines.append(f"First owner, open once to set a password: {_url()}{link}")
        lines.append(f"Logs are in {settings.DATA_DIR.logs}. Ctrl-C stops everything.")
        self.emit(record, "\n".join(lines))
        self.stdout.flush()

    def _watch(self, children: supervisor.Supervisor) -> NoReturn:
        while True:
            for name in children.check():
                self._say(f"{name} ended by itself and was started again; see its log.")
            lost = embedded.lost()
            if lost:
                raise UpError(f"{' and '.join(lost)} ended; see {settings.DATA_DIR.logs}")
            time.sleep(CHECK_SECONDS)

    def _say(self, text: str) -> None:
        if not self.as_json:
            self.stdout.write(text)
            self.stdout.flush()


def _ask_to_stop(signum: int, frame: FrameType | None) -> NoReturn:
    for other in STOP_SIGNALS:  # Stopping has begun; a second Ctrl-C must not cut it short.
        signal.signal(other, signal.SIG_IGN)
    raise _StopAskedFor


@contextlib.contextmanager
def _alone() -> Iterator[int]:
    """Hold the data folder's ``up`` lock, or say who does."""
    settings.DATA_DIR.make_run()
    path = settings.DATA_DIR.run / "up.lock"
    fd = locks.try_exclusive(path)
    if fd is None:
        pid, _, url = path.read_text(encoding="ascii").strip().partition(" ")
        where = f" at {url} (process {pid})" if pid else ""
        raise UpError(f"debateweb is already up on {settings.DATA_DIR.root}{where}")
    try:
        os.ftruncate(fd, 0)
        yield fd
    finally:
        os.ftruncate(fd, 0)
        os.close(fd)


def _refuse_taken_port() -> None:
    family = socket.AF_INET6 if ":" in settings.HOST else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.HOST, settings.PORT))
        except OSError as exc:
            reason = "is taken" if exc.errno == errno.EADDRINUSE else f"fails: {exc.strerror}"
            raise UpError(
                f"port {settings.PORT} on {settings.HOST} {reason}; set DEBATEWEB_PORT to another"
            ) from exc


def _url() -> str:
    host = "127.0.0.1" if settings.HOST in {"0.0.0.0", "::"} else settings.HOST  # noqa: S104
    return f"http://[{host}]:{settings.PORT}" if ":" in host else f"http://{host}:{settings.PORT}"


def _wait_for_web(children: supervisor.Supervisor) -> None:
    give_up_at = time.monotonic() + supervisor.START_TIMEOUT_SECONDS
    while not _web_answers():
        children.check()
        if time.monotonic() > give_up_at:
            log = settings.DATA_DIR.logs / "web.log"
            raise UpError(f"the web server does not answer; see {log}")
        time.sleep(0.05)


def _web_answers() -> bool:
    host = "127.0.0.1" if settings.HOST == "0.0.0.0" else settings.HOST  # noqa: S104
    client = http.client.HTTPConnection(host, settings.PORT, timeout=5)
    try:
        client.request("GET", "/health.json", headers={"Host": settings.ALLOWED_HOSTS[0]})
        return client.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()

"""The processes of a running site: workers, beat and web, started, watched and stopped together."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.core.cache import cache

from debateweb.celery import STALLED_AFTER_SECONDS, heartbeat_key
from debateweb.errors import StateError
from debateweb.services import process
from debateweb.services.postgres import rotate

SIGN_TIMEOUT_SECONDS = 5.0  # A worker gives a sign of life every 2 s.
START_TIMEOUT_SECONDS = 60.0
STOP_PATIENCE_SECONDS = 2.0  # All of `up` must be gone within 5 s, the database's 2.5 included.
MOST_RESTARTS = 5
RESTART_WINDOW_SECONDS = 60.0
WEB_THREADS = 8
ROUND_CONNECTIONS = 24
SMALL_THREADS = 4


class ProcessError(StateError):
    """A worker, beat or the web server does not start or does not stay."""

    code = "process"


@dataclass(frozen=True)
class Role:
    """One process of the site: its name (also its log's) and its command."""

    name: str
    command: Sequence[str]
    stop_signal: signal.Signals = signal.SIGTERM
    db_connections: int = 0  # 0: a connection a thread; else a pool of so many.


def worker_command(
    *, name: str, queues: Sequence[str] = ("rounds",), threads: int | None = None
) -> list[str]:
    """Return the command of a worker for ``queues``; threads default to the settings'."""
    return [
        *_python("celery", "-A", "debateweb.celery:app", "worker"),
        *("--pool", "threads", "--concurrency", str(threads or settings.WORKER_THREADS)),
        *("--queues", ",".join(queues), "--hostname", f"{name}@debateweb"),
        *("--without-gossip", "--without-mingle", "--loglevel", "INFO"),
    ]


def beat_command() -> list[str]:
    """Return the command of beat; its plan is in memory, so a stop can damage no file."""
    scheduler = ("--scheduler", "celery.beat:Scheduler", "--pidfile", "")
    return [*_python("celery", "-A", "debateweb.celery:app", "beat"), *scheduler]


def web_command() -> list[str]:
    return [
        *_python("granian", "--interface", "wsgi", "--no-ws", "--http", "1"),
        *("--host", settings.HOST, "--port", str(settings.PORT)),
        *("--workers", "1", "--blocking-threads", str(WEB_THREADS)),
        *("--workers-kill-timeout", "1", "--respawn-failed-workers"),
        "debateweb.wsgi:application",
    ]


def worker_roles(suffix: str) -> list[Role]:
    """
    Return the workers and beat. Rounds have a worker of their own.

    A queue of long rounds must not keep the sweep, judge audits or reports waiting.
    """
    small = worker_command(
        name=f"small-{suffix}", queues=("default", "judges", "reports"), threads=SMALL_THREADS
    )
    return [
        Role("rounds", worker_command(name=f"rounds-{suffix}"), db_connections=ROUND_CONNECTIONS),
        Role("small", small),
        Role("beat", beat_command()),
    ]


@dataclass
class Supervisor:
    """Keeps one process per role alive. Use it as a context manager; leaving it stops all."""

    roles: Sequence[Role]
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    restarts: dict[str, deque[float]] = field(default_factory=dict)

    def __enter__(self) -> Supervisor:
        try:
            for role in self.roles:
                self._start(role)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def check(self) -> list[str]:
        """Start again what ended by itself; return the names. Raises ProcessError if in vain."""
        ended = [role for role in self.roles if self.running[role.name].poll() is not None]
        for role in ended:
            self._note_restart(role)
            self._start(role)
        return [role.name for role in ended]

    def stop(self) -> None:
        """Ask all at once, then kill what takes too long; leases recover what that cuts short."""
        asked = {role.name: role.stop_signal for role in self.roles}
        for name, child in self.running.items():
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(asked[name])
        give_up_at = time.monotonic() + STOP_PATIENCE_SECONDS
        for child in self.running.values():
            left = max(0.0, give_up_at - time.monotonic())
            process.stop(child, signal.SIGTERM, patience_seconds=left)
        self.running.clear()

    def _start(self, role: Role) -> None:
        log = settings.DATA_DIR.logs / f"{role.name}.log"
        rotate(log)
        with log.open("ab") as output:
            self.running[role.name] = process.spawn(
                role.command,
                on_parent_death=signal.SIGKILL,
                env=_child_environment(role),
                cwd=settings.BASE_DIR,
                output=output,
            )

    def _note_restart(self, role: Role) -> None:
        if self.running[role.name].returncode == -signal.SIGKILL:
            return  # Somebody killed it, or the kernel for memory: it does not crash by itself.
        times = self.restarts.setdefault(role.name, deque(maxlen=MOST_RESTARTS))
        now = time.monotonic()
        if len(times) == MOST_RESTARTS and now - times[0] < RESTART_WINDOW_SECONDS:
            log = settings.DATA_DIR.logs / f"{role.name}.log"
            raise ProcessError(f"{role.name} does not stay up: {last_line(log)} (log: {log})")
        times.append(now)


@contextlib.contextmanager
def temporary_worker() -> Iterator[Callable[[], object]]:
    """
    Have workers and beat for the time of the block: those of ``up`` where it runs, else our own.

    Yields what the block has to call now and then: it starts again those of our own that ended.
    The database and the broker must be there (``needs_broker = True``). Raises ProcessError.
    """
    if worker_is_alive() and _gives_another_sign():
        yield lambda: None  # Whoever started them looks after them.
        return
    suffix = str(os.getpid())
    with Supervisor(worker_roles(suffix)) as supervisor:
        wait_for_workers(supervisor, suffix)
        yield supervisor.check


def worker_is_alive() -> bool:
    """Tell whether a worker for rounds gave a sign of life a moment ago."""
    seen_at = cache.get(heartbeat_key("rounds"))
    return seen_at is not None and time.time() - float(seen_at) < STALLED_AFTER_SECONDS


def _gives_another_sign() -> bool:
    """Wait for the next sign of life: the last one may be that of a worker that was killed."""
    last = cache.get(heartbeat_key("rounds"))
    give_up_at = time.monotonic() + SIGN_TIMEOUT_SECONDS
    while time.monotonic() < give_up_at:
        if cache.get(heartbeat_key("rounds")) != last:
            return True
        time.sleep(0.05)
    return False


def wait_for_workers(supervisor: Supervisor, suffix: str) -> None:
    """Return when the workers of ``worker_roles(suffix)`` are ready. Raises ProcessError."""
    give_up_at = time.monotonic() + START_TIMEOUT_SECONDS
    for role in ("rounds", "small"):
        while cache.get(heartbeat_key(f"{role}-{suffix}")) is None:
            supervisor.check()
            if time.monotonic() > give_up_at:
                log = settings.DATA_DIR.logs / f"{role}.log"
                raise ProcessError(f"the worker {role} is not ready; see {log}")
            time.sleep(0.05)


def last_line(log: Path) -> str:
    """Return the last line that a process wrote, which for a crash names its cause."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "it said nothing"


def _python(*words: str) -> list[str]:
    return [sys.executable, "-m", *words]


def _child_environment(role: Role) -> dict[str, str]:
    env = {**os.environ, "DEBATEWEB_DIE_WITH_PARENT": "1", "PYTHONUNBUFFERED": "1"}
    if role.db_connections:
        env.setdefault("DEBATEWEB_DB_CONNECTIONS", str(role.db_connections))
    env.pop("DEBATEWEB_DB_ROLE", None)  # Only what migrates is the owner.
    return env

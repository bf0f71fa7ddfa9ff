"""A real site in a folder of its own, started as people start it, and what of it still runs."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from debateweb.services.datadir import SYSTEM_STATE, DataDirError, open_data_dir

PROJECT = Path(__file__).resolve().parents[2]
OURS = ("DATABASE_URL", "REDIS_URL", "DEBATEWEB_SECRET_KEY", "DEBATEWEB_DB_ROLE", "PYTEST_VERSION")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], bool], timeout_seconds: float, what: str) -> float:
    """Return how many seconds it took until ``condition`` held; fail the test if it never did."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < timeout_seconds, f"{what} after {timeout_seconds} s"
        time.sleep(0.05)
    return time.monotonic() - started


@dataclass
class Site:
    """One data folder, one port, and the commands that are run on them."""

    folder: Path
    port: int = field(default_factory=free_port)
    children: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def data(self) -> Path:
        return self.folder / "var"

    @property
    def env(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in OURS}
        ours = {"DEBATEWEB_DATA_DIR": str(self.data), "DEBATEWEB_PORT": str(self.port)}
        return {**kept, **ours, "DJANGO_SETTINGS_MODULE": "debateweb.settings"}

    def run(self, *words: str, **extra_env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command(words),
            env={**self.env, **extra_env},
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def start(self, *words: str, **extra_env: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            self._command(words),
            env={**self.env, **extra_env},
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.children.append(child)
        return child

    def up(self, **extra_env: str) -> tuple[subprocess.Popen[str], dict[str, str | None]]:
        """Start ``up`` and return it with what it announces."""
        child = self.start("up", "--json", **extra_env)
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            _, errors = child.communicate()
            raise AssertionError(f"up ended with {child.returncode}: {errors}")
        return child, json.loads(line)

    def health(self) -> tuple[int, dict[str, object]]:
        url = f"http://127.0.0.1:{self.port}/health.json"
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def processes(self) -> dict[int, str]:
        """Return every process that belongs to this site: by command, environment or folder."""
        mark = str(self.data).encode()
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                command = (entry / "cmdline").read_bytes()
                if not command:  # A zombie or a thread of the kernel.
                    continue
                cwd = os.fsencode((entry / "cwd").readlink())
                if mark in command or mark in (entry / "environ").read_bytes() or mark in cwd:
                    found[int(entry.name)] = command.replace(b"\0", b" ").decode().strip()
        return found

    def pid_of(self, *words: str) -> int:
        """Return the one process whose command holds all ``words``."""
        pids = [
            pid for pid, text in self.processes().items() if all(word in text for word in words)
        ]
        assert len(pids) == 1, (words, self.processes())
        return pids[0]

    def is_quiet(self) -> bool:
        return not self.processes()

    def settles(self) -> None:
        """Fail unless nothing is left; what has let go of its locks may need a moment to exit."""
        wait_for(self.is_quiet, 2, "left behind")

    def clean_up(self) -> None:
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.communicate()
        deadline = time.monotonic() + 8
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._remove_what_lies_elsewhere()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _remove_what_lies_elsewhere(self) -> None:
        with contextlib.suppress(DataDirError):
            opened = open_data_dir(self.data)
            folders = (opened.postgres_sockets, opened.valkey_socket.parent, opened.state)
            for folder in folders:
                if not folder.is_relative_to(self.folder):
                    shutil.rmtree(folder, ignore_errors=True)
                if folder.is_relative_to(SYSTEM_STATE) and folder.parent != SYSTEM_STATE:
                    shutil.rmtree(folder.parent, ignore_errors=True)

    @staticmethod
    def _command(words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "manage.py", *words]


@contextlib.contextmanager
def new_site() -> Iterator[Site]:
    """Yield a site in a short folder that the services' account can enter, then remove it."""
    folder = Path(tempfile.mkdtemp(prefix="dwsite-"))
    folder.chmod(0o711)
    site = Site(folder)
    try:
        yield site
    finally:
        site.clean_up()

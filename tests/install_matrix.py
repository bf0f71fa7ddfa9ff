#!/usr/bin/env python3
"""
Install from nothing, as different people, on different Pythons, and start, stop and test.

Legs per Python: ``user`` (an ordinary account), ``root``, and ``closed`` (root, in a clone under
a folder of mode 0700). Each gets a fresh clone of HEAD, an empty package cache and a bare
environment. As an ordinary user only the leg ``user`` can run.

``PYTHONS="/path/python3.11 /path/python3.13"`` names interpreters (default: python3.11 and
python3.13 of PATH), ``MATRIX_LEGS="user root"`` picks legs, ``MATRIX_TEST=0`` leaves `make test`
out, ``MATRIX_USER`` names the account for ``user`` (default: one made for the time of the run).
Needs only the standard library. Exits 1 if a leg failed.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
ACCOUNT = "dwmatrix"
# How this machine reaches its package index; nothing else of the caller's environment is kept.
KEPT_PREFIXES = ("PIP_", "UV_", "SSL_", "REQUESTS_", "HTTP", "http", "NO_PROXY", "no_proxy")
FIRST_START_LIMIT_SECONDS = 900.0
SECOND_START_LIMIT_SECONDS = 15.0
STOP_LIMIT_SECONDS = 5.0
TEST_LIMIT_SECONDS = 1800.0


class LegFailedError(Exception):
    """What was promised did not hold."""


@dataclass(frozen=True)
class Person:
    name: str
    uid: int
    gid: int

    @property
    def is_us(self) -> bool:
        return self.uid == os.geteuid()


@dataclass(frozen=True)
class Leg:
    name: str
    python: Path
    person: Person


def main() -> int:
    if os.geteuid() != 0:
        say("not root: only the leg 'user' can run")
    failed = 0
    with scratch(0o755) as folder, ordinary_person() as person:
        for leg in legs(folder, person):
            title = f"{leg.name} · {version_of(leg.python)}"
            try:
                say(f"{title}: {run_leg(leg, folder)}")
            except (LegFailedError, subprocess.SubprocessError) as exc:
                failed += 1
                say(f"{title}: FAILED: {exc}")
    say("install matrix: " + (f"{failed} legs failed" if failed else "all legs passed"))
    return 1 if failed else 0


def legs(folder: Path, person: Person) -> list[Leg]:
    is_root = os.geteuid() == 0
    chosen = os.environ.get("MATRIX_LEGS", "user root closed" if is_root else "user").split()
    made = []
    for python in interpreters():
        for name in chosen:
            who = person if name == "user" else current_person()
            reachable = python_for(who, python, folder) if name == "user" else python
            made.append(Leg(name, reachable, who))
    return made


def interpreters() -> list[Path]:
    named = os.environ.get("PYTHONS", "").split() or ["python3.11", "python3.13"]
    found = []
    for name in named:
        where = shutil.which(name)
        code = "import sys; print(sys.executable)"
        result = (
            subprocess.run([where, "-c", code], capture_output=True, text=True, check=False)
            if where
            else None
        )
        if result is None or result.returncode != 0:
            raise SystemExit(f"no interpreter {name}; set PYTHONS to paths of Python 3.11 and 3.13")
        found.append(Path(result.stdout.strip()))
    return found


def python_for(person: Person, python: Path, folder: Path) -> Path:
    """Return ``python``, or a copy of its installation where ``person`` cannot reach it."""
    probe = run_as(person, [str(python), "-c", ""], cwd=Path("/"), env=os.environ.copy())
    if probe.returncode == 0:
        return python
    prefix = Path(
        subprocess.check_output(
            [python, "-c", "import sys; print(sys.base_prefix)"], text=True
        ).strip()
    )
    copy = folder / "pythons" / prefix.name
    if not copy.exists():
        copy.parent.mkdir(exist_ok=True)
        subprocess.run(["cp", "-a", prefix, copy], check=True)
        subprocess.run(["chmod", "-R", "a+rX", copy], check=True)
    return copy / python.resolve().relative_to(prefix.resolve())


def run_leg(leg: Leg, folder: Path) -> str:
    """Return the measured times in one line. Raises LegFailedError."""
    with scratch(0o700 if leg.name == "closed" else 0o755, folder) as place:
        clone = place / "debateweb"
        subprocess.run(["git", "clone", "-q", "--no-hardlinks", PROJECT, clone], check=True)
        home = place / "home"
        home.mkdir()
        if not leg.person.is_us:
            subprocess.run(["chown", "-R", f"{leg.person.uid}:{leg.person.gid}", place], check=True)
        env = bare_environment(home, leg)
        try:
            first = start_and_stop(leg, clone, env, FIRST_START_LIMIT_SECONDS)
            second = start_and_stop(leg, clone, env, SECOND_START_LIMIT_SECONDS)
            tested = make_test(leg, clone, env)
        finally:
            forget_state(clone)
        return f"first start {first:.1f} s, second {second:.1f} s{tested}"


def start_and_stop(leg: Leg, clone: Path, env: dict[str, str], limit_seconds: float) -> float:
    """Return how long `make up` took until the health page answered 200."""
    port = free_port()
    log = clone.parent / "up.log"
    started = time.monotonic()
    with log.open("wb") as output:
        child = subprocess.Popen(
            ["make", "up", f"PYTHON={leg.python}"],
            cwd=clone,
            env={**env, "DEBATEWEB_PORT": str(port)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **identity(leg.person),
        )
    try:
        while not is_healthy(port):
            if child.poll() is not None:
                raise LegFailedError(f"make up ended with {child.returncode}: {tail(log)}")
            if time.monotonic() - started > limit_seconds:
                raise LegFailedError(f"not healthy after {limit_seconds:.0f} s: {tail(log)}")
            time.sleep(0.1)
        took = time.monotonic() - started
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGINT)  # As a terminal does at Ctrl-C.
    asked = time.monotonic()
    try:
        child.wait(timeout=STOP_LIMIT_SECONDS)
    except subprocess.TimeoutExpired as exc:
        raise LegFailedError(f"still there {STOP_LIMIT_SECONDS:.0f} s after Ctrl-C") from exc
    while processes_of(clone):
        if time.monotonic() - asked > STOP_LIMIT_SECONDS:
            raise LegFailedError(f"left behind: {processes_of(clone)}")
        time.sleep(0.1)
    return took


def make_test(leg: Leg, clone: Path, env: dict[str, str]) -> str:
    if os.environ.get("MATRIX_TEST") == "0":
        return ""
    data = os.environ.get("DEBATEWEB_REAL_DATA", str(PROJECT.parent / "shared/data"))
    started = time.monotonic()
    result = run_as(
        leg.person,
        ["make", "test", f"PYTHON={leg.python}"],
        cwd=clone,
        env={**env, "DEBATEWEB_REAL_DATA": data},
    )
    last = (result.stdout.strip().splitlines() or [""])[-1]
    if result.returncode != 0:
        raise LegFailedError(f"make test ended with {result.returncode}: {last}\n{result.stdout}")
    return f", make test {time.monotonic() - started:.0f} s: {last.strip('= ')}"


def run_as(
    person: Person, command: list[str], *, cwd: Path, env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=TEST_LIMIT_SECONDS,
            check=False,
            **identity(person),
        )
    except PermissionError as exc:
        return subprocess.CompletedProcess(command, 126, str(exc), "")


def identity(person: Person) -> dict[str, Any]:
    if person.is_us:
        return {}
    return {"user": person.uid, "group": person.gid, "extra_groups": []}


def bare_environment(home: Path, leg: Leg) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT_PREFIXES)}
    cache = home / "empty-cache"
    # A copied interpreter would look for its shared library where it was built.
    libraries = leg.python.parent.parent / "lib"
    if any(libraries.glob("libpython*.so*")):
        kept["LD_LIBRARY_PATH"] = str(libraries)
    ours = {
        "HOME": str(home),
        "USER": leg.person.name,
        "PATH": os.defpath + ":/usr/local/bin:/usr/sbin",
        "LANG": "C.UTF-8",
        "PIP_NO_CACHE_DIR": "1",
        "UV_CACHE_DIR": str(cache),
        "XDG_CACHE_HOME": str(cache),
        "PYTHONDONTWRITEBYTECODE": "1",  # Some machines set it; starts must be quick all the same.
    }
    return {**kept, **ours}


def is_healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
            return int(reply.status) == 200
    except (OSError, urllib.error.URLError):
        return False


def processes_of(clone: Path) -> list[str]:
    """Return the commands of processes that run from ``clone`` or on its data."""
    marks = [os.fsencode(clone), *(os.fsencode(state) for state in states_of(clone))]
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes()
            cwd = os.fsencode((entry / "cwd").readlink())
            if command and any(mark in command or mark in cwd for mark in marks):
                found.append(command.replace(b"\0", b" ").decode(errors="replace")[:100])
    return found


def states_of(clone: Path) -> list[Path]:
    """Return the state folder outside the clone that its marker names, if there is one."""
    marker = clone / "var" / "debateweb.json"
    if not marker.exists():
        return []
    state = Path(json.loads(marker.read_text(encoding="utf-8"))["state"])
    return [] if state.is_relative_to(clone) else [state]


def forget_state(clone: Path) -> None:
    for state in states_of(clone):
        shutil.rmtree(state, ignore_errors=True)


@contextlib.contextmanager
def ordinary_person() -> Iterator[Person]:
    """Yield an ordinary account: the caller's, the named one, or one made for the time."""
    if os.geteuid() != 0:
        yield current_person()
        return
    named = os.environ.get("MATRIX_USER")
    if named is None:
        # An earlier run that was killed may have left the account behind.
        subprocess.run(["userdel", "--remove", ACCOUNT], check=False, capture_output=True)
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", ACCOUNT], check=True)
    try:
        entry = pwd.getpwnam(named or ACCOUNT)
        yield Person(entry.pw_name, entry.pw_uid, entry.pw_gid)
    finally:
        if named is None:
            subprocess.run(["userdel", "--remove", ACCOUNT], check=False, capture_output=True)


def current_person() -> Person:
    entry = pwd.getpwuid(os.geteuid())
    return Person(entry.pw_name, entry.pw_uid, os.getegid())


@contextlib.contextmanager
def scratch(mode: int, parent: Path | None = None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="dwmatrix-", dir=parent))
    folder.chmod(mode)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def version_of(python: Path) -> str:
    code = "import platform; print(platform.python_version())"
    return subprocess.check_output([python, "-c", code], text=True).strip()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tail(log: Path) -> str:
    return " | ".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:])


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())

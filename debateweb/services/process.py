"""Child processes that never outlive us, and the account that services run as."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
SERVICE_ACCOUNT = "nobody"

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True)
class Account:
    """The unprivileged account that services get when we are root: PostgreSQL refuses root."""

    name: str
    uid: int
    gid: int

    def own(self, path: Path) -> None:
        os.chown(path, self.uid, self.gid)


def service_account() -> Account | None:
    """Return the account that services must drop to, or None if they can run as we do."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam(SERVICE_ACCOUNT)
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def die_with_parent(sig: signal.Signals, parent_pid: int) -> None:
    """
    Have the kernel send us ``sig`` when the thread that started us ends, however it ends.

    Call it after any change of user: the kernel clears the setting then.
    """
    if _libc is None:
        return
    _libc.prctl(PR_SET_PDEATHSIG, int(sig), 0, 0, 0)
    if os.getppid() != parent_pid:  # The parent died before the line above.
        os.kill(os.getpid(), sig)


def spawn(
    argv: Sequence[str | Path],
    *,
    on_parent_death: signal.Signals,
    account: Account | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | str = "/",
    output: IO[bytes] | int = subprocess.DEVNULL,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """
    Start a child in a session of its own that ends with us, even if we are killed.

    Its own session, so that a Ctrl-C at the terminal reaches only us and we choose the order
    in which things stop. Call it from a thread that lives as long as the child should.
    """
    parent_pid = os.getpid()
    drop: dict[str, Any] = {}
    if account is not None:
        drop = {"user": account.uid, "group": account.gid, "extra_groups": []}
    return subprocess.Popen(
        [str(word) for word in argv],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=env,
        cwd=cwd,
        pass_fds=pass_fds,
        start_new_session=True,
        # Runs after the change of user, which is what die_with_parent asks for.
        preexec_fn=lambda: die_with_parent(on_parent_death, parent_pid),  # noqa: PLW1509
        **drop,
    )


def stop(process: subprocess.Popen[bytes], sig: signal.Signals, *, patience_seconds: float) -> None:
    """Ask a child to end with ``sig`` and kill its whole session if it takes too long."""
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(sig)
    try:
        process.wait(timeout=patience_seconds)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_alive(pid: int) -> bool:
    """Tell whether a process exists that is not a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return not Path("/proc/self").exists()
    return status.rpartition(")")[2].split()[0] != "Z"


def command_line(pid: int) -> list[str]:
    """Return the words that a process was started with, [] if it is gone or out of sight."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return raw.decode(errors="replace").rstrip("\0").split("\0")


def wait_until_dead(pid: int, timeout_seconds: float) -> bool:
    give_up_at = time.monotonic() + timeout_seconds
    while is_alive(pid):
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.02)
    return True

"""
An embedded PostgreSQL: initialise a cluster, start it, stop it.

It listens on a UNIX socket only and believes the kernel about who connects (``peer``), so that
no password exists that could leak. Two roles: the owner holds the schema and runs migrations, the
application's role reads and writes rows and may neither change the schema nor truncate.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from debateweb.errors import StateError
from debateweb.services import process
from debateweb.services.datadir import make_private
from debateweb.services.process import Account

MAJOR_VERSION = "18"
DATABASE = "debateweb"
ADMIN = "debateweb_admin"
OWNER = "debateweb_owner"
APPLICATION = "debateweb_app"
MARKER = "debateweb.cluster"
START_TIMEOUT_SECONDS = 60.0  # Recovery after a crash replays the log first.
FAST_STOP_SECONDS = 2.0  # Roll back, write everything out.
IMMEDIATE_STOP_SECONDS = 0.5  # Write nothing; the next start replays the log.
LARGEST_LOG_BYTES = 10_000_000

# For two cores and a laptop's memory; every start passes them, so the code is what counts.
TUNING = {
    "max_connections": "100",
    "shared_buffers": "128MB",
    "jit": "off",
    "random_page_cost": "1.1",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "log_checkpoints": "off",
    "timezone": "UTC",
    "lc_messages": "C",
}

ROLES = f"""
CREATE ROLE {OWNER} LOGIN;
CREATE ROLE {APPLICATION} LOGIN;
CREATE DATABASE {DATABASE} OWNER {OWNER};
"""
PRIVILEGES = f"""
REVOKE ALL ON DATABASE {DATABASE} FROM PUBLIC;
GRANT CONNECT ON DATABASE {DATABASE} TO {APPLICATION};
ALTER SCHEMA public OWNER TO {OWNER};
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO {APPLICATION};
ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER}
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {APPLICATION};
ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER}
    GRANT USAGE, SELECT ON SEQUENCES TO {APPLICATION};
"""


class PostgresError(StateError):
    """The embedded database cannot be initialised or started."""

    code = "database"


@dataclass(frozen=True)
class Postgres:
    """One cluster: its programs, its folders and the account that it runs as."""

    programs: Path
    cluster: Path
    sockets: Path
    log: Path
    account: Account | None = None
    trust: bool = False  # For throw-away test clusters only: anyone who reaches the socket.
    tuning: Mapping[str, str] = field(default_factory=dict)

    def start(self) -> subprocess.Popen[bytes]:
        """Return the running server, ready for connections. Raises PostgresError in one line."""
        self._check_cluster()
        if not self.cluster.exists():
            self._initialise()
        self._clear_stale_lock()
        self._make_socket_folder()
        rotate(self.log)
        with self.log.open("ab") as output:
            log_start = output.tell()
            server = process.spawn(
                [self.programs / "postgres", "-D", self.cluster, *self._options()],
                # Fast shutdown: open transactions roll back and the files are left clean.
                on_parent_death=signal.SIGINT,
                account=self.account,
                env=_environment(),
                output=output,
            )
        self._wait_until_ready(server, log_start)
        return server

    def stop(self, server: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            server.send_signal(signal.SIGINT)
            server.wait(FAST_STOP_SECONDS)
        process.stop(server, signal.SIGQUIT, patience_seconds=IMMEDIATE_STOP_SECONDS)

    def _check_cluster(self) -> None:
        if not self.cluster.exists():
            return
        try:
            version = (self.cluster / "PG_VERSION").read_text(encoding="ascii").strip()
            marked = (self.cluster / MARKER).exists()
            owner = self.cluster.stat().st_uid
        except OSError as exc:
            reason = exc.strerror
            raise PostgresError(
                f"the database folder {self.cluster} is damaged ({Path(exc.filename).name}: "
                f"{reason}); restore it from a backup or choose another DEBATEWEB_DATA_DIR"
            ) from exc
        if not marked:
            raise PostgresError(
                f"{self.cluster} is a database that debateweb did not make; "
                "choose another DEBATEWEB_DATA_DIR or set DATABASE_URL"
            )
        if version != MAJOR_VERSION:
            raise PostgresError(
                f"{self.cluster} holds data of PostgreSQL {version}, this release runs "
                f"{MAJOR_VERSION}; see docs/operations.md, Upgrading"
            )
        expected = os.geteuid() if self.account is None else self.account.uid
        if owner != expected:
            raise PostgresError(
                f"{self.cluster} belongs to {process.user_name(owner)}, the database runs as "
                f"{process.user_name(expected)}; choose another DEBATEWEB_DATA_DIR"
            )

    def _initialise(self) -> None:
        """Make the cluster beside its place and move it there when all of it is done."""
        unfinished = self.cluster.with_name(f"{self.cluster.name}.new")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        if self.account is not None:
            self.account.own(unfinished)
        self._run(
            "initdb",
            [
                *("-D", str(unfinished), f"--username={ADMIN}", "--encoding=UTF8"),
                # The same order of strings on every machine, whatever locales it has.
                *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
                *(f"--auth={'trust' if self.trust else 'peer'}", "--no-instructions"),
            ],
        )
        self._write_authentication(unfinished)
        single = ["--single", "-D", str(unfinished), "-c", "log_checkpoints=off"]
        self._run("postgres", [*single, "postgres"], ROLES)
        self._run("postgres", [*single, DATABASE], PRIVILEGES)
        (unfinished / MARKER).write_text("1\n", encoding="ascii")
        unfinished.replace(self.cluster)

    def _write_authentication(self, cluster: Path) -> None:
        if self.trust:
            return
        hba = "local all all peer map=debateweb\n"
        (cluster / "pg_hba.conf").write_text(hba, encoding="ascii")
        # Whoever runs us, and nobody else, may take each of the three roles.
        person = pwd.getpwuid(os.geteuid()).pw_name
        lines = [f'debateweb "{person}" {role}\n' for role in (ADMIN, OWNER, APPLICATION)]
        (cluster / "pg_ident.conf").write_text("".join(lines), encoding="utf-8")

    def _run(self, program: str, arguments: list[str], statements: str = "") -> None:
        drop: dict[str, Any] = {}
        if self.account is not None:
            drop = {"user": self.account.uid, "group": self.account.gid, "extra_groups": []}
        result = subprocess.run(
            [self.programs / program, *arguments],
            input=_one_per_line(statements),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            cwd="/",
            env=_environment(),
            **drop,
        )
        output = result.stdout + result.stderr
        if result.returncode != 0 or "ERROR:" in output:
            reason = _last_complaint(output)
            raise PostgresError(f"{program} could not prepare {self.cluster}: {reason}")

    def _clear_stale_lock(self) -> None:
        """
        Wait for a server whose keeper was killed; disown a lock whose process is gone.

        PostgreSQL asks the kernel whether the number in the lock lives: a zombie does, and so
        does another program that got the number since. The lock is not deleted, because it also
        names the shared memory by which PostgreSQL finds backends that are still there; a lock
        that names the parent of the new server (us) counts as stale, that check included.
        """
        lock = self.cluster / "postmaster.pid"
        try:
            first, rest = lock.read_text(encoding="utf-8", errors="replace").split("\n", 1)
            pid = int(first)
        except (FileNotFoundError, ValueError):
            return
        if process.is_alive(pid) and str(self.cluster) in process.command_line(pid):
            if not process.wait_until_dead(pid, 5.0):
                os.kill(pid, signal.SIGQUIT)
                process.wait_until_dead(pid, 5.0)
            return
        lock.write_text(f"{os.getpid()}\n{rest}", encoding="utf-8")

    def _make_socket_folder(self) -> None:
        make_private(self.sockets, self.account)
        for left_over in self.sockets.glob(".s.PGSQL.*"):
            left_over.unlink()  # Of a server that is gone: the check above saw to that.

    def _options(self) -> list[str]:
        fixed = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.sockets),
            "unix_socket_permissions": "0700",
        }
        merged = {**TUNING, **self.tuning, **fixed}
        return [word for name, value in merged.items() for word in ("-c", f"{name}={value}")]

    def _wait_until_ready(self, server: subprocess.Popen[bytes], log_start: int) -> None:
        give_up_at = time.monotonic() + START_TIMEOUT_SECONDS
        while not self._is_ready(server.pid):
            if server.poll() is not None:
                raise PostgresError(f"the database does not start: {self._complaint(log_start)}")
            if time.monotonic() > give_up_at:
                self.stop(server)
                raise PostgresError(
                    f"the database is not ready after {START_TIMEOUT_SECONDS:.0f} s; see {self.log}"
                )
            time.sleep(0.02)

    def _is_ready(self, pid: int) -> bool:
        """Read what the server itself says in line 8 of its lock file."""
        try:
            lines = (self.cluster / "postmaster.pid").read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError):
            return False
        return len(lines) > 7 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _complaint(self, log_start: int) -> str:
        with self.log.open("rb") as stream:
            stream.seek(log_start)
            said = stream.read().decode(errors="replace")
        return f"{_last_complaint(said)} (log: {self.log})"


def rotate(log: Path) -> None:
    """Keep one older log, so that a log never grows without end."""
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LARGEST_LOG_BYTES:
        log.replace(log.with_name(log.name + ".1"))


def _one_per_line(statements: str) -> str:
    """Write statements as single-user mode reads them: each ends with its line."""
    words = (" ".join(statement.split()) for statement in statements.split(";"))
    return "".join(f"{statement};\n" for statement in words if statement)


def _last_complaint(output: str) -> str:
    """Return the first line that says what went wrong, without time and process number."""
    lines = [line for line in output.splitlines() if line.strip()]
    for level in ("PANIC:", "FATAL:", "ERROR:", "initdb: error:"):
        for line in lines:
            if level in line:
                return line.split(level, 1)[1].strip()
    return lines[-1].strip() if lines else "it said nothing"


def _environment() -> dict[str, str]:
    """Return a bare environment: nothing of the caller's (PGDATA, locales, keys) gets in."""
    return {"LC_ALL": "C", "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "TZ": "UTC"}

"""
An embedded Valkey: broker and cache, on a UNIX socket, nothing kept on disk.

The database is the truth and the broker a doorbell: what a stop forgets here, the sweep rings
again.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from debateweb.errors import StateError
from debateweb.services import process
from debateweb.services.datadir import make_private
from debateweb.services.postgres import rotate
from debateweb.services.process import Account

START_TIMEOUT_SECONDS = 10.0
STOP_PATIENCE_SECONDS = 2.0


class ValkeyError(StateError):
    """The embedded broker cannot be started."""

    code = "broker"


@dataclass(frozen=True)
class Valkey:
    """One server: its program, its socket and the account that it runs as."""

    program: Path
    socket_path: Path
    log: Path
    account: Account | None = None
    port: int = 0  # Loopback as well, with the password; 0 is the socket alone.
    password: str = ""

    def start(self) -> subprocess.Popen[bytes]:
        """Return the running server, ready for connections. Raises ValkeyError in one line."""
        self._make_socket_folder()
        rotate(self.log)
        with self.log.open("ab") as output:
            server = process.spawn(
                [self.program, *self._options()],
                on_parent_death=signal.SIGKILL,
                account=self.account,
                env={"LC_ALL": "C"},
                output=output,
            )
        self._wait_until_ready(server)
        return server

    def stop(self, server: subprocess.Popen[bytes]) -> None:
        process.stop(server, signal.SIGTERM, patience_seconds=STOP_PATIENCE_SECONDS)

    def _make_socket_folder(self) -> None:
        make_private(self.socket_path.parent, self.account)
        self.socket_path.unlink(missing_ok=True)  # Of a server that was killed.

    def _options(self) -> list[str]:
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "unixsocket": str(self.socket_path),
            "unixsocketperm": "700",
            "dir": "/",
            "save": "",
            "appendonly": "no",
            "daemonize": "no",
            # The broker's messages must not be thrown out to make room.
            "maxmemory-policy": "noeviction",
        }
        if self.password:
            options["requirepass"] = self.password
        return [word for name, value in options.items() for word in (f"--{name}", value)]

    def _wait_until_ready(self, server: subprocess.Popen[bytes]) -> None:
        give_up_at = time.monotonic() + START_TIMEOUT_SECONDS
        while not answers(self.socket_path):
            if server.poll() is not None:
                raise ValkeyError(f"the broker does not start (log: {self.log})")
            if time.monotonic() > give_up_at:
                self.stop(server)
                raise ValkeyError(
                    f"the broker is not ready after {START_TIMEOUT_SECONDS:.0f} s; see {self.log}"
                )
            time.sleep(0.01)


def answers(socket_path: Path) -> bool:
    """Tell whether a Valkey or Redis server answers PING on the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1.0)
        try:
            client.connect(str(socket_path))
            client.sendall(b"PING\r\n")
            return client.recv(16).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False

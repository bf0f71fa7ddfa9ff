"""A command whose output nobody reads, or that has none, ends without a word of Python's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMANDS = [
    ("help",),
    ("protocol", "list"),
    ("protocol", "schema", "--json"),
    ("protocol", "--help"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_reader_who_has_gone_is_met_with_silence(words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_closed_output_is_met_with_silence(words: tuple[str, ...]) -> None:
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "manage.py", *words]
    done = subprocess.run(closed, cwd=ROOT, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
def test_a_secret_file_that_gives_no_secret_is_one_line(
    tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    environ = {k: v for k, v in os.environ.items() if k != "DEBATEWEB_SECRET_KEY"}
    done = subprocess.run(
        [sys.executable, "manage.py", "protocol", "list"],
        cwd=ROOT,
        env={**environ, "DEBATEWEB_SECRET_KEY_FILE": str(file)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert f"DEBATEWEB_SECRET_KEY_FILE='{file}'" in line

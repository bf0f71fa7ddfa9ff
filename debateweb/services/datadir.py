"""
The data folder: where the database, the sockets, the logs and the files of one site live.

A marker file says that the folder is ours. As root the services run as ``nobody``; where that
account cannot enter the folder (a clone under a folder of mode 0700), what the services own goes
under /var/lib/debateweb instead, and the marker remembers that choice.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from debateweb.errors import StateError
from debateweb.services.process import Account, user_name

MARKER = "debateweb.json"
FORMAT = 1
SYSTEM_STATE = Path("/var/lib/debateweb")
LONGEST_SOCKET_FOLDER = 80  # Bytes; a UNIX socket's path is at most 107, its name included.
PLAIN_PATH = re.compile(r"[A-Za-z0-9/_.-]+")  # What means nothing else in a URL or a list.


class DataDirError(StateError):
    """The data folder cannot be used: it is not ours, or not readable, or of another version."""

    code = "data_folder"


@dataclass(frozen=True)
class DataDir:
    """``root`` is what the user named; ``state`` is where the services keep what is theirs."""

    root: Path
    state: Path

    @property
    def run(self) -> Path:
        return self.state / "run"

    @property
    def cluster(self) -> Path:
        return self.state / "postgres"

    @property
    def logs(self) -> Path:
        return self.root / "log"

    @property
    def files(self) -> Path:
        return self.root / "files"

    @property
    def postgres_sockets(self) -> Path:
        return self._socket_folder("pg")

    @property
    def valkey_socket(self) -> Path:
        return self._socket_folder("vk") / "s"

    def make_run(self) -> None:
        """Make the folder of sockets and locks, which the services' account passes through."""
        _make_passable(self.run)

    def _socket_folder(self, name: str) -> Path:
        """Return a folder whose path is short and plain enough for a socket's URL, always one."""
        folder = self.run / name
        is_short = len(os.fsencode(folder)) <= LONGEST_SOCKET_FOLDER
        if is_short and PLAIN_PATH.fullmatch(str(folder)):
            return folder
        # Not $TMPDIR or $XDG_RUNTIME_DIR: two terminals of one user must agree on the path.
        if os.geteuid() == 0:
            return SYSTEM_STATE / _digest(self.root) / name
        return Path("/tmp") / f"debateweb-{os.geteuid()}-{_digest(self.root)}-{name}"  # noqa: S108


def open_data_dir(path: Path) -> DataDir:
    """
    Return the data folder at ``path``; make it if there is nothing.

    Raises DataDirError, in one line, if something else is there.
    """
    root = Path.cwd() / path
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _locked(root):
            return _claim(root)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise DataDirError(f"the data folder {root} cannot be used: {reason}") from exc


def secret_key(data_dir: DataDir) -> str:
    """Return the site's secret, drawn once and kept in a file that only its owner reads."""
    path = data_dir.root / "secret_key"
    try:
        with _locked(data_dir.root):
            if not path.exists():
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(fd, "w", encoding="ascii") as stream:
                    stream.write(secrets.token_urlsafe(48))
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                raise DataDirError(f"{path} can be read by others; run: chmod 600 {path}")
            value = path.read_text(encoding="ascii")
    except OSError as exc:
        raise DataDirError(f"{path} cannot be read: {exc.strerror}") from exc
    if not value:
        raise DataDirError(f"{path} is empty; delete it to have a new secret drawn")
    return value


def make_private(folder: Path, account: Account | None) -> None:
    """Make ``folder`` the service's alone, and refuse one that somebody else put there first."""
    if account is not None:
        _make_passable(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
        if account is not None:
            account.own(folder)
    owner = os.geteuid() if account is None else account.uid
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner:
        raise DataDirError(f"{folder} is not a folder of {user_name(owner)}; remove it")
    folder.chmod(0o700)


def _claim(root: Path) -> DataDir:
    marker = root / MARKER
    if not marker.exists():
        if any(root.iterdir()):
            raise DataDirError(
                f"{root} is not empty and is not a debateweb data folder; "
                "choose another DEBATEWEB_DATA_DIR"
            )
        _write_marker(root, marker)
    owner = marker.stat().st_uid
    if owner != os.geteuid():
        raise DataDirError(
            f"the data folder {root} belongs to {user_name(owner)}, not to "
            f"{user_name(os.geteuid())}; run as its owner or choose another DEBATEWEB_DATA_DIR"
        )
    return DataDir(root, Path(_read_marker(marker)["state"]))


def _write_marker(root: Path, marker: Path) -> None:
    state = root
    if os.geteuid() == 0:
        root.chmod(0o711)  # The services' account may pass, not look.
        if not others_can_enter(root):
            state = SYSTEM_STATE / _digest(root)  # Made when a service first needs it.
    else:
        root.chmod(0o700)
    body = json.dumps({"format": FORMAT, "state": str(state)})
    marker.write_text(body + "\n", encoding="utf-8")


def _read_marker(marker: Path) -> dict[str, Any]:
    try:
        body = json.loads(marker.read_text(encoding="utf-8"))
        found = body["format"]
        Path(body["state"])
    except (ValueError, KeyError, TypeError) as exc:
        raise DataDirError(
            f"{marker} is damaged; restore it from a backup or choose another DEBATEWEB_DATA_DIR"
        ) from exc
    if found != FORMAT:
        raise DataDirError(f"{marker} is of format {found}; this release reads format {FORMAT}")
    return dict(body)


def _make_passable(folder: Path) -> None:
    """Make ``folder`` and what is missing above it, for others to pass whatever the umask is."""
    if not folder.parent.exists():
        _make_passable(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o711)


def others_can_enter(folder: Path) -> bool:
    """Tell whether any account may pass through ``folder`` and every folder above it."""
    return all(part.stat().st_mode & stat.S_IXOTH for part in (folder, *folder.parents))


def _digest(root: Path) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:12]


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)

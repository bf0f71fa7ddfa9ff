"""Files that commands write: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from debateweb.errors import InputError


def write_whole(path: Path, content: bytes) -> None:
    """
    Replace a file in one step, so that nobody ever reads half of it. Raises InputError.

    A link keeps pointing at what it names; a device or a pipe is written to and not replaced.
    """
    path = path.resolve()
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".report.")
    except OSError as exc:
        raise InputError(f"-o: {path}: {exc.strerror}") from exc
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        Path(draft).chmod(0o666 & ~_umask())
        Path(draft).replace(path)
    except OSError as exc:
        Path(draft).unlink(missing_ok=True)
        raise InputError(f"-o: {path}: {exc.strerror}") from exc


def _umask() -> int:
    """Return the mask of new files, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask

"""Typed readers of environment variables. ``NAME_FILE`` names a file that holds the value."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS = frozenset({"0", "false", "no", "off", ""})


def env_optional(name: str) -> str | None:
    """Return the variable, or the content of the file named by ``NAME_FILE``, or None."""
    value = os.environ.get(name)
    file_name = os.environ.get(f"{name}_FILE")
    if value is not None and file_name is not None:
        raise ImproperlyConfigured(f"{name} and {name}_FILE are both set; set one")
    if file_name is None:
        return value
    where = f"{name}_FILE={file_name!r}"
    try:
        content = Path(file_name).read_text(encoding="utf-8").strip()
    except OSError as exc:
        raise ImproperlyConfigured(f"{where} cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise ImproperlyConfigured(f"{where} is no text in UTF-8") from exc
    if not content:
        # A secret that was never written must not read as "none is wanted".
        raise ImproperlyConfigured(f"{where} is empty")
    return content


def env_str(name: str, default: str) -> str:
    value = env_optional(name)
    return default if value is None else value


def env_int(name: str, default: int, *, low: int | None = None, high: int | None = None) -> int:
    raw = env_str(name, str(default))
    try:
        value = int(raw)
    except ValueError as exc:
        raise ImproperlyConfigured(f"{name}={raw!r} is not an integer") from exc
    if (low is not None and value < low) or (high is not None and value > high):
        raise ImproperlyConfigured(f"{name}={value} is not between {low} and {high}")
    return value


def env_bool(name: str, *, default: bool) -> bool:
    raw = env_str(name, str(default)).strip().lower()
    if raw in TRUE_WORDS:
        return True
    if raw in FALSE_WORDS:
        return False
    raise ImproperlyConfigured(f"{name}={raw!r} is neither true nor false")


def env_list(name: str, default: list[str]) -> list[str]:
    """Return a comma-separated variable as a list without empty items."""
    raw = env_optional(name)
    if raw is None:
        return default
    return [item.strip() for item in raw.split(",") if item.strip()]


def env_choice(name: str, default: str, choices: tuple[str, ...]) -> str:
    value = env_str(name, default)
    if value not in choices:
        raise ImproperlyConfigured(f"{name}={value!r} is none of {', '.join(choices)}")
    return value


def database_from_url(url: str) -> dict[str, Any]:
    """
    Return Django's database settings for ``postgresql://user:password@host:port/name?option=…``.

    ``?host=/folder`` selects a UNIX socket, as libpq does. Other options are handed to the driver.
    Raises ImproperlyConfigured without repeating the URL, which may hold a password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as exc:
        raise ImproperlyConfigured("DATABASE_URL is not a URL") from exc
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured("DATABASE_URL must start with postgresql:// (PostgreSQL ≥ 15)")
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise ImproperlyConfigured("DATABASE_URL names no database: postgresql://…/NAME")
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    host = options.pop("host", None) or unquote(parts.hostname or "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(port or ""),
        "OPTIONS": options,
    }

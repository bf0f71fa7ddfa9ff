"""Structured logs: one JSON object a line, with what must stay secret taken out."""

from __future__ import annotations

import json
import logging
import os
import re
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ImproperlyConfigured

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)(_FILE)?$")
SHORTEST_SECRET = 8  # Shorter values would take ordinary words out of the logs.
PATTERNS = (
    re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),  # user:password in a URL
    re.compile(r"(?i)(?<=bearer )\S+"),
    re.compile(r"\bsk-[A-Za-z0-9_-]{8,}"),
    re.compile(r"(?<=/welcome/)[A-Za-z0-9_-]+"),
)
STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def redact(text: str) -> str:
    """Return ``text`` without keys, tokens and passwords."""
    for name, value in os.environ.items():
        if SECRET_NAME.search(name) and len(value) >= SHORTEST_SECRET:
            text = text.replace(value, "[secret]")
    for pattern in PATTERNS:
        text = pattern.sub("[secret]", text)
    return text


class JsonFormatter(logging.Formatter):
    """Time, level, logger, message, what ``extra`` holds, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        body: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = vars(record).items()
        body |= {name: value for name, value in fields if name not in STANDARD_FIELDS}
        if record.exc_info:
            body["traceback"] = self.formatException(record.exc_info)
        return json.dumps(_cleaned(body), ensure_ascii=False)


def _cleaned(value: Any) -> Any:
    """Redact every string inside ``value`` before JSON quotes it; unknown types become text."""
    if isinstance(value, dict):
        return {str(name): _cleaned(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return redact(str(value))


def configuration(level: str) -> dict[str, Any]:
    """Return the logging settings: everything to standard error, which ``up`` keeps in files."""
    if level.upper() not in LEVELS:
        raise ImproperlyConfigured(f"DEBATEWEB_LOG_LEVEL={level!r} is none of {', '.join(LEVELS)}")
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "debateweb.logs.JsonFormatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {
            "django": {"handlers": [], "propagate": True},
            "django.server": {"handlers": [], "propagate": True},
            # A line for every task and call says less than their rows and costs more.
            "celery.app.trace": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "LiteLLM": {"level": "WARNING"},
        },
    }

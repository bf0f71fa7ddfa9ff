"""Is the site well? The database, the broker, the workers' signs of life and the versions."""

from __future__ import annotations

import platform
import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import django
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from redis.exceptions import RedisError

from debateweb import __version__
from debateweb.celery import STALLED_AFTER_SECONDS, heartbeat_key

WORKERS = ("rounds", "small")
SERVICE_UNAVAILABLE = 503


@dataclass(frozen=True)
class Part:
    """One part of the site: ``state`` is ok, stalled or away; ``detail`` is for people."""

    name: str
    state: str
    detail: str


def parts() -> list[Part]:
    """Ask each part once. A part that is away costs at most its connection's time-out."""
    broker = _broker()
    away = Part("", "away", "the broker that carries its signs of life is away")
    workers = [
        _worker(name) if broker.state == "ok" else Part(f"worker {name}", away.state, away.detail)
        for name in WORKERS
    ]
    return [_database(), broker, *workers]


def versions() -> dict[str, str]:
    return {
        "debateweb": __version__,
        "python": platform.python_version(),
        "django": django.get_version(),
        "celery": version("celery"),
    }


@never_cache
@require_safe
def health_page(request: HttpRequest) -> HttpResponse:
    found = parts()
    context = {"parts": found, "versions": versions(), "is_well": _is_well(found)}
    return render(request, "debateweb/health.html", context, status=_status(found))


@never_cache
@require_safe
def health_json(request: HttpRequest) -> JsonResponse:
    found = parts()
    body: dict[str, Any] = {
        "status": "ok" if _is_well(found) else "degraded",
        "parts": [asdict(part) for part in found],
        "versions": versions(),
    }
    return JsonResponse(body, status=_status(found))


def _is_well(found: list[Part]) -> bool:
    return all(part.state == "ok" for part in found)


def _status(found: list[Part]) -> int:
    """Without the database nothing works; without the rest pages can still be read."""
    is_away = any(part.name == "database" and part.state == "away" for part in found)
    return SERVICE_UNAVAILABLE if is_away else 200


def _database() -> Part:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW server_version")
            row = cursor.fetchone()
    except DatabaseError:
        connection.close()
        return Part("database", "away", "PostgreSQL does not answer")
    return Part("database", "ok", f"PostgreSQL {row[0]}" if row else "PostgreSQL")


def _broker() -> Part:
    try:
        cache.get("health")
    except RedisError:
        return Part("broker", "away", "Valkey or Redis does not answer")
    return Part("broker", "ok", "answers")


def _worker(name: str) -> Part:
    seen_at = cache.get(heartbeat_key(name))
    if seen_at is None:
        return Part(f"worker {name}", "away", "gave no sign of life within a minute")
    age_seconds = max(0.0, time.time() - float(seen_at))
    state = "ok" if age_seconds < STALLED_AFTER_SECONDS else "stalled"
    return Part(f"worker {name}", state, f"last sign of life {age_seconds:.0f} s ago")

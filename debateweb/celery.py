"""The Celery application. Queues: rounds, judges, reports, and default for the small things."""

from __future__ import annotations

import os
import time
from typing import Any

from celery import Celery
from celery.signals import heartbeat_sent, setup_logging, worker_ready
from django.core.cache import cache

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "debateweb.settings")

HEARTBEAT_KEPT_SECONDS = 60
STALLED_AFTER_SECONDS = 10.0

app = Celery("debateweb")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


def heartbeat_key(worker: str) -> str:
    return f"heartbeat:{worker}"


def keep_our_logging(**kwargs: Any) -> None:
    """Let Django's settings rule: a receiver here stops Celery from installing its own format."""


def note_heartbeat(sender: Any = None, **kwargs: Any) -> None:
    """Leave a sign of life that the health page and whoever waits for a worker read."""
    host = getattr(sender, "hostname", None) or sender.eventer.hostname
    node = str(host).partition("@")[0]  # rounds-123: the role and the process that started it.
    for name in {node, node.partition("-")[0]}:
        cache.set(heartbeat_key(name), time.time(), HEARTBEAT_KEPT_SECONDS)


setup_logging.connect(keep_our_logging)
worker_ready.connect(note_heartbeat)
heartbeat_sent.connect(note_heartbeat)

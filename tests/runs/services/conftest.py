"""Fixtures of the shell's tests: no doorbell reaches a broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest


@pytest.fixture(autouse=True)
def bells() -> Iterator[list[tuple[str, list[Any]]]]:
    """Collect the doorbells that would have gone to workers, as (task, arguments)."""
    rung: list[tuple[str, list[Any]]] = []

    def send_task(name: str, args: list[Any], **options: Any) -> None:
        rung.append((name, args))

    with patch("runs.dispatch.current_app.send_task", send_task):
        yield rung

"""Celery tasks. They hold no rules: each hands its arguments on."""

from __future__ import annotations

from celery import shared_task

from audits import services


@shared_task(name=services.BUILD)
def build(report_id: int) -> None:
    """Build one report that was asked for."""
    services.build_stored(report_id)


@shared_task(name=services.SWEEP)
def sweep() -> None:
    """Ring again for reports whose message was lost or whose worker died."""
    services.sweep()

"""Celery tasks of the site. They hold no rules: each hands its arguments on."""

from __future__ import annotations

from celery import shared_task

from debateweb import webhooks


@shared_task(name=webhooks.DELIVER)
def deliver(delivery_id: int) -> None:
    """Try one delivery of a webhook."""
    webhooks.deliver(delivery_id)


@shared_task(name=webhooks.SWEEP)
def sweep() -> None:
    """Ring for deliveries that are due."""
    webhooks.sweep()

"""Background tasks of alerts; each may run twice."""

from __future__ import annotations

from celery import shared_task

from extras.alerts import deliver, evaluation
from portal.databases import clock


@shared_task
def look_for_alerts() -> None:
    """Every minute: volunteers with channels for alerts who are due, and those with a new security event."""
    if evaluation.evaluate_all(clock.now()):
        deliver_alerts.apply_async(expires=60)


@shared_task
def deliver_alerts() -> None:
    """Every minute, and when there is something to send: the alerts that are due."""
    deliver.deliver_due()

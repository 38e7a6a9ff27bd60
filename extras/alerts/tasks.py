"""Background tasks of alerts; each may run twice."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from extras.alerts import deliver, evaluation


@shared_task
def look_for_alerts() -> None:
    """Every minute: evaluate volunteers with channels who are due, and those with a new security event."""
    if evaluation.evaluate_all(timezone.now()):
        deliver_alerts.delay()


@shared_task
def deliver_alerts() -> None:
    """Every minute, and when there is something to send: deliver the alerts that are due."""
    deliver.deliver_due()

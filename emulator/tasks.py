"""The emulator's background task, which may run twice; runs themselves are requested work (portal/requested_work)."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from emulator.runs import worker


@shared_task
def look_after_runs() -> None:
    """Queue runs again whose worker was lost, and waiting ones that are missing from the queue."""
    worker.requeue_lost(timezone.now())

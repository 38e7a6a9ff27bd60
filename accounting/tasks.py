"""Background tasks of the account manager; each may run twice."""

from __future__ import annotations

import datetime as dt

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from accounting import copies, erasure, partitions, project_memory, rollup


@shared_task
def create_partitions() -> None:
    """Keep the partitions of the next three months in store."""
    today = timezone.now().date()
    partitions.create_months(today, today + dt.timedelta(days=92))


@shared_task
def roll_up() -> None:
    rollup.roll_up(timezone.now())
    project_memory.refresh(timezone.now())


@shared_task
def make_data_copy(copy_id: int) -> None:
    copies.make_copy(copy_id, settings.SITE_NAME)


@shared_task
def erase() -> None:
    """Once a day: accounts whose grace period is over, and copies that are old."""
    now = timezone.now()
    erasure.erase_due(now)
    copies.remove_old_copies(now)

"""Background tasks of the account manager; each may run twice."""

from __future__ import annotations

import datetime as dt

from celery import shared_task
from django.utils import timezone

from accounting import partitions, rollup


@shared_task
def create_partitions() -> None:
    """Keep the partitions of the next three months in store."""
    today = timezone.now().date()
    partitions.create_months(today, today + dt.timedelta(days=92))


@shared_task
def roll_up() -> None:
    rollup.roll_up(timezone.now())

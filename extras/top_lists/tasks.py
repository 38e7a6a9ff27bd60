"""Background tasks of top lists; each may run twice."""

from __future__ import annotations

from celery import shared_task

from extras.top_lists import count


@shared_task
def count_top_lists() -> None:
    """Every ten minutes: count the top lists."""
    count.count()


@shared_task
def count_top_lists_of_apps() -> None:
    """Daily: scans every result of listed volunteers."""
    count.count_apps()

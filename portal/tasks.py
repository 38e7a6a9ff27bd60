"""Background tasks of the site itself."""

from __future__ import annotations

from celery import shared_task

from portal.ops import housekeeping


@shared_task
def tidy_up() -> None:
    """Once a day: remove what has expired."""
    housekeeping.remove_expired()

"""Background tasks of the site itself."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from portal.ops import housekeeping
from portal.requested_work import queue


@shared_task
def tidy_up() -> None:
    """Once a day: remove what has expired."""
    housekeeping.remove_expired()


@shared_task
def carry_out_requested() -> None:
    """Do a piece of work that a volunteer asked for; in a queue of its own, so that no other task waits for it."""
    queue.carry_out_next()


@shared_task
def look_after_requested() -> None:
    """Queue again what lost workers had, and tell workers of what waits."""
    queue.look_after(timezone.now())

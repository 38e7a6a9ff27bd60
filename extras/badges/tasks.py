"""Background tasks of badges; each may run twice."""

from __future__ import annotations

from celery import shared_task

from extras.badges import award
from portal.databases import clock


@shared_task
def award_badges() -> None:
    """Every ten minutes: the badges that some volunteers reached."""
    award.award_due(clock.now())

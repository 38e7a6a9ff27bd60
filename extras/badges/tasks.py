"""Background tasks of badges; each may run twice."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from extras.badges import award


@shared_task
def award_badges() -> None:
    """Every ten minutes: award the badges that some volunteers earned."""
    award.award_due(timezone.now())

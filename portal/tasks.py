"""Background tasks of the site itself."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from portal.ops import housekeeping
from portal.people import security_events
from portal.people.key_mails import send_confirmation, send_key_mail

__all__ = ["send_confirmation", "send_key_mail", "tidy_up"]


@shared_task
def tidy_up() -> None:
    """Once a day: remove what has expired."""
    housekeeping.remove_expired()
    security_events.delete_old(timezone.now())

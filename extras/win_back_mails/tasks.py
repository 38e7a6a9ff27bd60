"""The background task of win-back mails; it may run twice."""

from __future__ import annotations

from contextlib import suppress

from celery import shared_task
from django.utils import timezone

from extras.win_back_mails import campaigns
from portal.ops.mails import MailServerDown


@shared_task
def send_campaigns() -> None:
    """Every ten minutes: send some of the mails that operators released."""
    with suppress(MailServerDown):
        campaigns.send_some(timezone.now())

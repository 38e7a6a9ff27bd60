"""The mail that tells somebody of a new client key. A task sends it: a BOINC client does not wait for a mail server."""

from __future__ import annotations

from smtplib import SMTPException

import structlog
from allauth.account.models import EmailAddress
from celery import shared_task
from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.utils import timezone
from kombu.exceptions import OperationalError

from portal.models import User

log = structlog.get_logger("mails")


def tell_of_key(user: User, address: str) -> None:
    """Queue the mail about a key that was just sent to this IP address. Without a queue there is no mail."""
    try:
        send_key_mail.delay(user.pk, address, timezone.now().isoformat())
    except OperationalError as error:
        log.error("mail_failed", kind="new client key", user=user.pk, reason=type(error).__name__)


@shared_task(name="portal.tasks.send_key_mail", ignore_result=True)
def send_key_mail(user_id: int, address: str, at: str) -> None:
    """Tell the owner of a new client key, at a confirmed address only: strangers must not have us write to others."""
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None or not EmailAddress.objects.filter(user=user, email=user.email, verified=True).exists():
        return
    words = {
        "name": user.display_name,
        "site_name": settings.SITE_NAME,
        "site_url": settings.SITE_URL,
        "address": address,
        "at": at[:16].replace("T", " "),
    }
    subject = f"{settings.ACCOUNT_EMAIL_SUBJECT_PREFIX}A BOINC client has a new key to your account"
    try:
        send_mail(subject, render_to_string("portal/mails/new_key.txt", words), None, [user.email])
    except (OSError, SMTPException) as error:
        log.error("mail_failed", kind="new client key", user=user.pk, reason=type(error).__name__)

"""Mails about what a BOINC client did. Tasks send them: no client waits for a mail server."""

from __future__ import annotations

import datetime as dt
from smtplib import SMTPException
from typing import TYPE_CHECKING, Any

import structlog
from allauth.account.models import EmailAddress, EmailConfirmationHMAC
from celery import shared_task
from django.conf import settings
from django.core.mail import send_mail
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from kombu.exceptions import OperationalError

from portal.languages.recipients import written_for
from portal.models import User

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

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
        "at": dt.datetime.fromisoformat(at),
    }
    send_words(user, _("A BOINC client has a new key to your account"), "new_key", words)


def ask_for_confirmation(user: User) -> None:
    """Queue the mail that confirms the address of an account that a client opened, if that is demanded."""
    if not settings.CONFIRMED_EMAIL_FOR_PROJECTS:
        return
    try:
        send_confirmation.delay(user.pk)
    except OperationalError as error:
        log.error("mail_failed", kind="confirmation", user=user.pk, reason=type(error).__name__)


@shared_task(name="portal.tasks.send_confirmation", ignore_result=True)
def send_confirmation(user_id: int) -> None:
    """Send the link, unless the address is confirmed."""
    user = User.objects.filter(pk=user_id, is_active=True).first()
    address = EmailAddress.objects.filter(user_id=user_id, email=user.email, verified=False).first() if user else None
    if user is None or address is None:
        return
    path = reverse("account_confirm_email", args=[EmailConfirmationHMAC(address).key])
    words = {
        "name": user.display_name,
        "site_name": settings.SITE_NAME,
        "site_url": settings.SITE_URL,
        "url": f"{settings.SITE_URL.rstrip('/')}{path}",
    }
    send_words(user, _("Confirm your e-mail address"), "confirm_address", words)


def send_words(user: User, subject: StrOrPromise, template: str, words: dict[str, Any]) -> bool:
    """Send a mail of a template in its reader's language; False, and a line in the log, if it was not accepted."""
    with written_for(user):
        text = render_to_string(f"portal/mails/{template}.txt", words)
        title = f"{settings.ACCOUNT_EMAIL_SUBJECT_PREFIX}{subject}"
    try:
        send_mail(title, text, None, [user.email])
    except (OSError, SMTPException) as error:
        log.error("mail_failed", kind=template, user=user.pk, reason=type(error).__name__)
        return False
    return True

"""Mails about what a BOINC client did. Tasks send them, so that no client waits for a mail server.

They wait in a table, written in the transaction that they are about. A message to a worker only says that there is
one, so nothing is lost with the broker: a task finds it within a minute. A worker that dies after the mail server
accepted a mail, before that is recorded, sends it a second time.
"""

from __future__ import annotations

import datetime as dt
from functools import partial
from smtplib import SMTPException
from typing import TYPE_CHECKING, Any, Final

import structlog
from allauth.account.models import EmailAddress, EmailConfirmationHMAC
from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.celery import send_if_possible
from portal.languages.recipients import written_for
from portal.models import User, WaitingMail
from portal.wire.mail_refusals import Refusal, refusal_of

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

log = structlog.get_logger("mails")

TASK: Final = "portal.tasks.send_waiting_mails"
LEASE: Final = dt.timedelta(minutes=10)
"""Longer than a batch takes, even if the mail server answers each step just within EMAIL_TIMEOUT. A mail that was not
accepted is tried again after it, and later after longer intervals."""
BATCH: Final = 5
KEPT_TRYING: Final = dt.timedelta(days=3)
Kind = WaitingMail.Kind


def tell_of_key(user: User, address: str) -> None:
    """Mail the owner about a key sent to this IP address, once the caller's transaction has committed."""
    _ask(WaitingMail(user=user, kind=Kind.NEW_KEY, address=address))


def ask_for_confirmation(user: User) -> None:
    """Store the mail that confirms the address of an account opened by a client, if confirmation is required."""
    if settings.CONFIRMED_EMAIL_FOR_PROJECTS:
        _ask(WaitingMail(user=user, kind=Kind.CONFIRMATION))


def _ask(mail: WaitingMail) -> None:
    mail.at = mail.due_at = timezone.now()
    mail.save()
    transaction.on_commit(partial(send_if_possible, TASK))


def send_waiting(now: dt.datetime) -> None:
    """Send a batch of mails that are due, and ask for the next one; while the mail server accepts nothing, the rest
    waits.

    Safe to repeat.
    """
    # A clock was ahead when these were stored. The database's decides: a worker's may be behind while others send them.
    WaitingMail.objects.filter(at__gt=Now() + LEASE).update(at=Now(), due_at=Now())
    for _number in range(BATCH):
        mail = _take(now)
        if mail is None:
            return
        try:
            is_accepting = _send(mail, now)
        except Exception:
            # Any error: this mail cannot be composed, and must not be tried for ever.
            _give_up(WaitingMail.objects.filter(pk=mail.pk), now)
            raise
        if not is_accepting:
            _give_up(WaitingMail.objects.all(), now)
            return
    send_if_possible(TASK)


def _give_up(refused: QuerySet[WaitingMail], now: dt.datetime) -> None:
    """Drop mails waiting for days, after the mail server refused: perhaps nobody tried, or the clock was set."""
    number, _ = refused.filter(at__lt=now - KEPT_TRYING).delete()
    if number:
        log.error("mails_given_up", number=number)


def _take(now: dt.datetime) -> WaitingMail | None:
    """Take a mail that is due, so that others leave it alone for LEASE. Locks its row; skips those being taken.

    One at a time, and those that were tried come after those that have waited since, so that mails which cannot be
    composed do not hold up others.
    """
    with transaction.atomic():
        all_due = WaitingMail.objects.select_for_update(skip_locked=True).filter(due_at__lte=now)
        due = all_due.order_by("due_at", "pk").first()
        if due is not None:
            WaitingMail.objects.filter(pk=due.pk).update(due_at=now + LEASE)
    return due


def _send(mail: WaitingMail, now: dt.datetime) -> bool:
    """Send a mail, unless it is no longer needed; False if the mail server accepts no mails."""
    try:
        if mail.kind == Kind.NEW_KEY:
            _send_key_mail(mail)
        else:
            _send_confirmation(mail.user_id)
    except (OSError, SMTPException, ValueError) as error:
        # ValueError: the address is malformed
        refusal = Refusal.FOR_GOOD if isinstance(error, ValueError) else refusal_of(error)
        log.error("mail_failed", kind=mail.kind, user=mail.user_id, reason=type(error).__name__)
        if refusal is Refusal.FOR_NOW:
            # It waits as long again as it has waited so far.
            waiting = WaitingMail.objects.filter(pk=mail.pk)
            waiting.update(due_at=now + max(LEASE, now - mail.at))
            _give_up(waiting, now)
        if refusal is not Refusal.FOR_GOOD:
            return refusal is Refusal.FOR_NOW
    mail.delete()
    return True


def _send_key_mail(mail: WaitingMail) -> None:
    """Mail the owner about a new client key, only at a confirmed address: strangers must not make us mail others."""
    user = User.objects.filter(pk=mail.user_id, is_active=True).first()
    if user is None or not EmailAddress.objects.filter(user=user, email=user.email, verified=True).exists():
        return
    words = {
        "name": user.display_name,
        "site_name": settings.SITE_NAME,
        "site_url": settings.SITE_URL,
        "address": mail.address,
        "at": mail.at,
    }
    _send_words(user, _("A BOINC client has a new key to your account"), "new_key", words)


def _send_confirmation(user_id: int) -> None:
    """Send the confirmation link, unless the address is confirmed."""
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
    _send_words(user, _("Confirm your e-mail address"), "confirm_address", words)


def send_words(user: User, subject: StrOrPromise, template: str, words: dict[str, Any], address: str = "") -> bool:
    """Mail a template in its reader's language, to this address or the login; False, and a line in the log, if it was
    not accepted.
    """
    try:
        _send_words(user, subject, template, words, address)
    except (OSError, SMTPException) as error:
        log.error("mail_failed", kind=template, user=user.pk, reason=type(error).__name__)
        return False
    return True


def _send_words(user: User, subject: StrOrPromise, template: str, words: dict[str, Any], address: str = "") -> None:
    with written_for(user):
        text = render_to_string(f"portal/mails/{template}.txt", words)
        title = f"{settings.ACCOUNT_EMAIL_SUBJECT_PREFIX}{subject}"
    send_mail(title, text, None, [address or user.email])

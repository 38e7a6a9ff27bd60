"""Win-back mails, which operators write, to volunteers who agreed and whose computers have not reported for long.

A person gets each such mail once, and at most LAPSED_MAILS_PER_YEAR of them within a year; all people together get
LAPSED_MAILS_PER_DAY within a day. A mail that a mail server refuses permanently counts as sent, and is not retried. A
temporary refusal is retried after RETRY_AFTER, and does not hold up others meanwhile. If the mail server is
unreachable, the run ends, and the next one continues with other recipients: this one may be the cause.

A mail is sent for a year at most: recipients are remembered only slightly longer (`mail_choices.SENT_KEPT`).
"""

from __future__ import annotations

import datetime as dt
from smtplib import SMTPException
from typing import Final

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce

from extras.win_back_mails.models import MailCampaign
from portal.models import Host, SentMail, User
from portal.ops.mail_choices import Mail, claim
from portal.ops.mails import MailServerDown, compose, recipients
from portal.wire.mail_refusals import Refusal, refusal_of

log = structlog.get_logger("mails")

MAILS_PER_RUN: Final = 100
RETRY_AFTER: Final = tuple(dt.timedelta(hours=hours) for hours in (1, 4, 12, 24))
"""Waits after temporary refusals; one more is permanent."""
_TEMPLATE: Final = "win_back_mails/mail"
_DAY: Final = dt.timedelta(days=1)
_YEAR: Final = dt.timedelta(days=365)


class NotReleased(Exception):
    """The mail is already being sent, or was sent; or it was started a year ago."""


def due(campaign: MailCampaign, now: dt.datetime) -> QuerySet[User]:
    """Return who would get it now: volunteers who agreed, have computers, and none that reported recently; within the
    yearly limits.
    """
    hosts = Host.objects.filter(owner=OuterRef("pk"))
    recent = hosts.filter(last_contact_at__gt=now - dt.timedelta(days=campaign.lapsed_days))
    others = Q(sent_mails__kind=Mail.LAPSED, sent_mails__sent_at__gt=now - _YEAR) & ~Q(sent_mails__key=_key(campaign))
    of_the_year = Count("sent_mails", others)
    settled = _rows(campaign).filter(Q(retry_at=None) | Q(retry_at__gt=now), user=OuterRef("pk"))
    people = recipients().filter(~Exists(recent), ~Exists(settled), Exists(hosts), mail_choice__lapsed=True)
    return people.annotate(nmails=of_the_year).filter(nmails__lt=settings.LAPSED_MAILS_PER_YEAR).order_by("pk")


def begin(campaign: MailCampaign, now: dt.datetime) -> None:
    """Start to send it, or resume after a stop. Raises NotReleased."""
    ready = Q(released_at=None) | Q(stopped_at__isnull=False, released_at__gt=now - _YEAR)
    campaigns = MailCampaign.objects.filter(ready, pk=campaign.pk, finished_at=None)
    if not campaigns.update(released_at=Coalesce("released_at", now), stopped_at=None):
        raise NotReleased


def stop(campaign: MailCampaign, now: dt.datetime) -> None:
    """Send no more of it. Safe to repeat."""
    MailCampaign.objects.filter(pk=campaign.pk, stopped_at=None, finished_at=None).update(stopped_at=now)


def compose_for(campaign: MailCampaign, user: User) -> EmailMessage:
    """Return the mail as this person gets it."""
    return compose(user, Mail.LAPSED, _TEMPLATE, {"title": campaign.title, "text": campaign.text.strip()})


def send_test(campaign: MailCampaign, user: User) -> None:
    """Send it to one operator as a preview; it does not count towards any limit. Raises MailServerDown."""
    message = compose_for(campaign, user)
    message.subject = f"[Test] {message.subject}"
    try:
        message.send()
    except (OSError, SMTPException) as error:
        raise MailServerDown from error


def send_some(now: dt.datetime) -> int:
    """Send mails that operators started, up to the limits; return how many. Safe to repeat. Raises MailServerDown."""
    nsent = 0
    for _ in range(MAILS_PER_RUN):
        recipient = _claim_next(now)
        if recipient is None:
            break
        nsent += _send(*recipient, now)
    return nsent


def _claim_next(now: dt.datetime) -> tuple[MailCampaign, User] | None:
    """Take the next mail, which counts as sent from now on; None if there is none, or the day's limit is reached.

    Locks the campaigns by number, so that workers count the day's mails one after another; then the person's row.
    """
    with transaction.atomic():
        running = MailCampaign.objects.filter(released_at__isnull=False, stopped_at=None, finished_at=None)
        for campaign in running.select_for_update(no_key=True).order_by("pk"):
            if _nsent_of_day(now) >= settings.LAPSED_MAILS_PER_DAY:
                return None
            is_old = campaign.released_at is not None and campaign.released_at <= now - _YEAR
            user = due(campaign, now).first() if not is_old else None
            if user is not None:
                return (campaign, user) if _claim(campaign, user, now) else None
            if is_old or not _rows(campaign).filter(retry_at__gt=now).exists():
                campaign.finished_at = now
                campaign.save(update_fields=["finished_at"])
    return None


def _nsent_of_day(now: dt.datetime) -> int:
    """Count the day's mails, including refused ones, but not those that no mail server received."""
    of_day = SentMail.objects.filter(kind=Mail.LAPSED, sent_at__gt=now - _DAY)
    return of_day.exclude(retry_at__isnull=False, nrefused=0).count()


def _claim(campaign: MailCampaign, user: User, now: dt.datetime) -> bool:
    if claim(user, Mail.LAPSED, [_key(campaign)]):
        return True
    return bool(_rows(campaign).filter(user=user, retry_at__lte=now).update(retry_at=None, sent_at=now))


def _send(campaign: MailCampaign, user: User, now: dt.datetime) -> bool:
    row = MailCampaign.objects.filter(pk=campaign.pk)
    try:
        compose_for(campaign, user).send()
    except (OSError, SMTPException) as error:
        refusal = refusal_of(error)
        if refusal is Refusal.FOR_NOW and _try_later(campaign, user, now):
            log.warning("mail_put_off", kind="lapsed", user=user.pk)
            return False
        if refusal is not Refusal.NONE:
            row.update(nfailed=F("nfailed") + 1)
            log.error("mail_failed", kind="lapsed", user=user.pk, reason="refused for good")
            return False
        _rows(campaign).filter(user=user).update(retry_at=now + RETRY_AFTER[0])
        log.error("mail_failed", kind="lapsed", user=user.pk, reason=type(error).__name__)
        raise MailServerDown from error
    row.update(nsent=F("nsent") + 1)
    return True


def _try_later(campaign: MailCampaign, user: User, now: dt.datetime) -> bool:
    """Store when to try again; False after the last time."""
    sent = _rows(campaign).filter(user=user).first()
    if sent is None or sent.nrefused == len(RETRY_AFTER):
        return False
    sent.retry_at = now + RETRY_AFTER[sent.nrefused]
    sent.nrefused += 1
    sent.save(update_fields=["retry_at", "nrefused"])
    return True


def _rows(campaign: MailCampaign) -> QuerySet[SentMail]:
    return SentMail.objects.filter(kind=Mail.LAPSED, key=_key(campaign))


def _key(campaign: MailCampaign) -> str:
    return str(campaign.pk)

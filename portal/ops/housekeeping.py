"""Removes expired sessions, unused keys and unconfirmed changes of address."""

from __future__ import annotations

import datetime as dt
from typing import Final

import structlog
from allauth.account import app_settings
from allauth.account.models import EmailAddress
from django.db.models import F, Q
from django.utils import timezone

from portal.models import ApiToken, ClientKey, Session, User
from portal.ops.mail_choices import delete_old

log = structlog.get_logger("housekeeping")

# A key from an account look-up that no client has used by then was dropped by the program that asked for it.
UNUSED_LOOKUP_KEYS_KEPT: Final = dt.timedelta(days=30)
# How long the owner can see that a key was revoked.
REVOKED_KEYS_KEPT: Final = dt.timedelta(days=90)


def remove_expired() -> None:
    """Run one pass; safe to repeat and to interrupt."""
    now = timezone.now()
    sessions = Session.objects.filter(expire_date__lt=now).delete()[0]
    keys, addresses = _remove_keys(now), _remove_addresses(now)
    since = now - REVOKED_KEYS_KEPT
    ApiToken.objects.filter(Q(revoked_at__lt=since) | Q(expires_at__lt=since)).delete()
    delete_old()
    log.info("tidied", sessions=sessions, keys=keys, addresses=addresses)


def _remove_keys(now: dt.datetime) -> int:
    unused = Q(
        origin=ClientKey.Origin.LOOKUP, last_used_at=None, host=None, created_at__lt=now - UNUSED_LOOKUP_KEYS_KEPT
    )
    return ClientKey.objects.filter(unused | Q(revoked_at__lt=now - REVOKED_KEYS_KEPT)).delete()[0]


def _remove_addresses(now: dt.datetime) -> int:
    """Forget awaited addresses whose confirmation link has expired, so that others can sign up with them."""
    since = now - dt.timedelta(days=app_settings.EMAIL_CONFIRMATION_EXPIRE_DAYS)
    expired = Q(awaited_email_at__lt=since) | Q(awaited_email_at=None)
    waiting = EmailAddress.objects.filter(verified=False, user__in=User.objects.filter(expired))
    removed: int = waiting.exclude(email=F("user__email")).delete()[0]
    # If the awaited address has become the login, its password hash is the one in use.
    unused = User.objects.filter(expired).exclude(next_client_password_email__in=["", F("email")])
    unused.update(next_client_password="", next_client_password_email="", awaited_email_at=None)
    return removed

"""The security events of accounts; each is stored for its owner and logged for operators.

Logins, failures and changes by django-allauth arrive as signals (portal/people/login_events.py); client keys and API
tokens are recorded where they are made and revoked.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

import structlog
from django.http import HttpRequest
from django.utils import timezone

from portal.languages.messages import VERBATIM, Message
from portal.models import SecurityEvent, User

log = structlog.get_logger("security")

Kind = SecurityEvent.Kind
EVENTS_KEPT: Final = dt.timedelta(days=90)
FAILURES: Final = (Kind.LOGIN_FAILED, Kind.FACTOR_FAILED, Kind.CLIENT_LOGIN_FAILED)
_ADDRESS_CHARS: Final = 45
_TEXT_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Source:
    """Where a request came from: its IP address, and the program's user agent."""

    address: str = ""
    user_agent: str = ""


NOWHERE: Final = Source()
"""Not from the network: a command or a task."""
BY_SUPPORT: Final = Source(user_agent="support")
BY_OPERATOR: Final = Source(user_agent="an operator")


def source_of(request: HttpRequest | None) -> Source:
    """The source of a request for a page; behind a proxy, the middleware has put the visitor's address there."""
    if request is None:
        return NOWHERE
    return Source(request.META.get("REMOTE_ADDR", ""), request.META.get("HTTP_USER_AGENT", ""))


def record(user: User, kind: SecurityEvent.Kind, source: Source, detail: Message | str = "") -> None:
    """Store and log an event of this account. ``detail``: a message, or text that a person wrote."""
    address = source.address[:_ADDRESS_CHARS].replace("\0", "")
    SecurityEvent.objects.create(
        user=user,
        kind=kind,
        at=timezone.now(),
        detail=Message(VERBATIM, text=detail) if detail and isinstance(detail, str) else detail or None,
        address=address,
        user_agent=source.user_agent[:_TEXT_CHARS].replace("\0", ""),
    )
    log_event(kind, source, user.pk)


def log_event(kind: SecurityEvent.Kind, source: Source, user_id: int | None = None) -> None:
    """Log an event for operators; ``user_id`` is None for a login that names no account."""
    log.info("security_event", kind=kind.value, user=user_id, address=source.address[:_ADDRESS_CHARS])


def delete_old(now: dt.datetime) -> int:
    """Remove events older than EVENTS_KEPT; return how many."""
    return SecurityEvent.objects.filter(at__lt=now - EVENTS_KEPT).delete()[0]


def of_account(user: User, kinds_of_failure: bool, limit: int) -> list[SecurityEvent]:
    """The newest events, either failures or all others, so that a flood of failures does not hide the rest."""
    own = SecurityEvent.objects.filter(user=user, at__gte=timezone.now() - EVENTS_KEPT).order_by("-at", "-pk")
    events = own.filter(kind__in=FAILURES) if kinds_of_failure else own.exclude(kind__in=FAILURES)
    return list(events[:limit])

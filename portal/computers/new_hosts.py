"""How many computers an account may add: the limits of every account, its own one, and the places of join tokens."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db.models import Count, F, Q

from portal.languages.contact import operators
from portal.models import Host, JoinToken, User
from portal.wire.boinc_errors import ERR_GENERIC
from portal.wire.scanner import ProtocolError

DAY: Final = dt.timedelta(days=1)


class TooManyHosts(ProtocolError):
    """The account may not add another computer now; ``str`` is a sentence that clients show."""

    def __init__(self, sentence: str) -> None:
        super().__init__("host", sentence, ERR_GENERIC)

    def __str__(self) -> str:
        return str(self.reason)


@dataclass(frozen=True, slots=True)
class HostLimits:
    """An account's computers and limits: all records, and those that were added within 24 hours without a join token.

    ``next_at``: when one more may be added within the limit of a day; None: now.
    """

    hosts: int
    max_hosts: int
    new_hosts: int
    max_new_hosts: int
    next_at: dt.datetime | None

    @property
    def room(self) -> int:
        """How many computers can be added now, without a join token."""
        return max(0, min(self.max_hosts - self.hosts, self.max_new_hosts - self.new_hosts))


def read_limits(owner: User, now: dt.datetime) -> HostLimits:
    """Read an account's computers and limits; one statement, and one more if a day's limit is reached."""
    hosts = Host.objects.filter(owner_id=owner.pk)
    lately = Q(created_at__gt=now - DAY, join_token=None)
    counts = hosts.aggregate(all=Count("pk"), new=Count("pk", filter=lately))
    most = settings.NEW_HOSTS_PER_DAY if owner.new_hosts_per_day is None else owner.new_hosts_per_day
    next_at = None
    if most and counts["new"] >= most:
        newest_first = hosts.filter(lately).order_by("-created_at").values_list("created_at", flat=True)
        next_at = newest_first[most - 1] + DAY
    return HostLimits(counts["all"], settings.HOSTS_PER_ACCOUNT, counts["new"], most, next_at)


def check_limits(owner: User, now: dt.datetime, *, is_joining: bool = False) -> None:
    """Raise TooManyHosts if the account has HOSTS_PER_ACCOUNT, or has added as many within a day as it may.

    ``is_joining``: the computer uses a place of a join token, so the limit of a day does not apply.
    """
    limits = read_limits(owner, now)
    if limits.hosts >= limits.max_hosts:
        # A client that does not describe its computer is a new computer at each login.
        raise TooManyHosts(f"This account has {limits.max_hosts} computers, which is the limit. {_ask_for_more()}")
    if not limits.max_new_hosts:
        raise TooManyHosts(f"This account may add no computers. {_ask_for_more()}")
    if limits.next_at is None or is_joining:
        return
    raise TooManyHosts(
        f"This account has added {limits.new_hosts} of the {limits.max_new_hosts} computers that it may add within a "
        f"day. This one can be added from {limits.next_at:%Y-%m-%d %H:%M} UTC on, and BOINC keeps what it has done "
        f"until then. {_ask_for_more()}"
    )


def take_place(token_id: int, now: dt.datetime) -> JoinToken | None:
    """Count one more computer of a join token; None if it has no place left, or has ended. Locks the token's row.

    The condition is checked again after the wait for the lock, so that no two requests take the last place.
    """
    usable = JoinToken.objects.filter(pk=token_id, joined_hosts__lt=F("max_hosts"), revoked_at=None, expires_at__gt=now)
    if not usable.update(joined_hosts=F("joined_hosts") + 1, last_used_at=now):
        return None
    return JoinToken.objects.get(pk=token_id)


def _ask_for_more() -> str:
    if "account_manager" in settings.ROOMS:
        return f"Ask for more, or make a join token, at {settings.SITE_URL}computers/joining/"
    return f"To add more at once, write to {operators()}."

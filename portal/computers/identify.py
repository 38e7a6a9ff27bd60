"""Find the record of the computer that a client runs on, among those of its owner, or make one.

Source: BOINC protocol, finding user and host. A cross-project id is only a hint, as two computers can share one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Case, Count, Q, When

from portal.models import Host, User
from portal.wire.boinc_errors import ERR_GENERIC
from portal.wire.scanner import ProtocolError

DAY: Final = dt.timedelta(days=1)
_ASK_OPERATORS: Final = "To add more at once, write to those who run {}."
_NEVER: Final = Q(pk__in=())


@dataclass(frozen=True, slots=True)
class HostDescription:
    """The reported values that distinguish a client's computer from others."""

    token: str | None
    host_cpid: str
    domain_name: str
    os_name: str
    p_vendor: str
    p_model: str


SAME_NAME_AFTER: Final = dt.timedelta(days=10)
"""A computer with this name and another id is the same one, installed again, if the record has been silent so long.

A client in use reports several times a day, and one that is off now and then within a week or so. A computer that is
installed again sooner gets a second record, which its owner can merge: better than two computers in one record."""


class TooManyHosts(ProtocolError):
    """The account may not add another computer now; a sentence that clients show."""

    def __init__(self, sentence: str) -> None:
        super().__init__("host", sentence, ERR_GENERIC)

    def __str__(self) -> str:
        return self.limit_or_reason


def identify(
    user_id: int, described: HostDescription, now: dt.datetime, or_else: Callable[[], Host | None] = lambda: None
) -> tuple[Host, bool]:
    """The user's host for these values, created if there is none; and whether it was created. Raises TooManyHosts.

    ``or_else`` is asked for a host that is known by other facts before one is created.

    Runs inside the caller's transaction and locks the user's row, so two simultaneous first requests make one host.
    """
    owner = _lock_owner(user_id)
    host = _by_token(user_id, described) or _by_description(user_id, described, now) or or_else()
    if host is not None:
        return host, False
    return _create(owner, described, now), True


def new_host(user_id: int, described: HostDescription, now: dt.datetime) -> Host:
    """Create a record for an unknown computer. Locks the user's row, as `identify` does. Raises TooManyHosts."""
    return _create(_lock_owner(user_id), described, now)


def _lock_owner(user_id: int) -> User:
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("identify() needs the caller's transaction")
    return User.objects.select_for_update(no_key=True).only("pk", "new_hosts_per_day").get(pk=user_id)


def _create(owner: User, described: HostDescription, now: dt.datetime) -> Host:
    _check_quotas(owner, now)
    return Host.objects.create(
        owner_id=owner.pk,
        host_cpid=described.host_cpid,
        domain_name=described.domain_name,
        os_name=described.os_name,
        p_vendor=described.p_vendor,
        p_model=described.p_model,
        created_at=now,
        last_contact_at=now,
    )


def _check_quotas(owner: User, now: dt.datetime) -> None:
    """Raise TooManyHosts if the account has HOSTS_PER_ACCOUNT, or has added as many within a day as it may."""
    hosts = Host.objects.filter(owner_id=owner.pk)
    lately = hosts.filter(created_at__gt=now - DAY)
    most = settings.NEW_HOSTS_PER_DAY if owner.new_hosts_per_day is None else owner.new_hosts_per_day
    counts = hosts.aggregate(all=Count("pk"), new=Count("pk", filter=Q(created_at__gt=now - DAY)))
    if counts["all"] >= settings.HOSTS_PER_ACCOUNT:
        # A client that does not describe its computer is a new computer at each login.
        raise TooManyHosts(
            f"This account has {settings.HOSTS_PER_ACCOUNT} computers, which is the limit. To add more, write to "
            f"those who run {settings.SITE_NAME}."
        )
    if counts["new"] < most:
        return
    if not most:
        raise TooManyHosts(f"This account may add no computers. {_ASK_OPERATORS.format(settings.SITE_NAME)}")
    until = lately.order_by("-created_at").values_list("created_at", flat=True)[most - 1] + DAY
    raise TooManyHosts(
        f"This account has added {counts['new']} of the {most} computers that it may add within a day. This one can be "
        f"added from {until:%Y-%m-%d %H:%M} UTC on, and BOINC keeps what it has done until then. "
        f"{_ASK_OPERATORS.format(settings.SITE_NAME)}"
    )


def _by_token(user_id: int, described: HostDescription) -> Host | None:
    if described.token is None:
        return None
    host = Host.objects.filter(owner_id=user_id, token=described.token).first()
    # A computer whose record was merged into another keeps sending its old token.
    while host is not None and host.merged_into_id is not None:
        host = Host.objects.filter(owner_id=user_id, pk=host.merged_into_id).first()
    return host


def _by_description(user_id: int, described: HostDescription, now: dt.datetime) -> Host | None:
    """A host with the same operating system and processor, and the same cross-project id or name.

    The best match counts; among equals the host with the latest contact. A name does not suffice if the ids differ
    and the record reported recently: two computers may have one name.
    """
    same_cpid = Q(host_cpid=described.host_cpid) if described.host_cpid else _NEVER
    same_name = Q(domain_name=described.domain_name) if described.domain_name else _NEVER
    if described.host_cpid:
        same_name &= Q(host_cpid="") | Q(host_cpid=described.host_cpid) | Q(last_contact_at__lt=now - SAME_NAME_AFTER)
    if not (described.os_name and described.p_model):
        return None
    return (
        Host.objects.filter(
            same_cpid | same_name,
            owner_id=user_id,
            merged_into=None,
            os_name=described.os_name,
            p_vendor=described.p_vendor,
            p_model=described.p_model,
        )
        .order_by(Case(When(same_cpid & same_name, then=0), When(same_cpid, then=1), default=2), "-last_contact_at")
        .first()
    )

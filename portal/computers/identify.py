"""Find the record of the computer that a client runs on, among those of its owner, or make one.

Source: BOINC protocol, finding user and host. A cross-project id is only a hint, as two computers can share one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Case, Q, When

from portal.computers.new_hosts import TooManyHosts, check_limits, take_place
from portal.models import Host, JoinToken, User
from portal.wire.credentials import external_cpid

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
    former_number: int | None = None


SAME_NAME_AFTER: Final = dt.timedelta(days=10)
"""A computer that reports a record's name with another id, or its id with another name, was installed again or renamed
if the record has been silent for this long.

A client in use reports several times a day, or within about a week if its computer is off now and then. A computer that
is installed again sooner gets a second record, which its owner can merge: better than two computers in one record."""

RESET_AFTER: Final = dt.timedelta(minutes=10)
"""A computer that joins again with its token, under its name and with another id, was reset if its record has been
silent for this long. Several computers that an image made with one name start at about the same time."""


def identify(user_id: int, described: HostDescription, now: dt.datetime) -> tuple[Host, bool]:
    """The user's host for these values, created if there is none; and whether it was created. Raises TooManyHosts."""
    host = find_host(user_id, described, now)
    return (host, False) if host is not None else (new_host(user_id, described, now), True)


def find_host(
    user_id: int, described: HostDescription, now: dt.datetime, join_token_id: int | None = None
) -> Host | None:
    """The user's host for these values. ``join_token_id``: the token that the client sent.

    Runs inside the caller's transaction and locks the user's row, so two simultaneous first requests make one host.
    """
    owner = _lock_owner(user_id)
    return _by_id(user_id, described) or _by_description(owner, described, now, join_token_id)


def new_host(
    user_id: int,
    described: HostDescription,
    now: dt.datetime,
    *,
    join_token_id: int | None = None,
    like: Host | None = None,
) -> Host:
    """Create a record for an unknown computer. Locks the user's row, then a token's. Raises TooManyHosts.

    ``join_token_id``: the token that the client sent; it must have a place for the computer. ``like``: the computer
    whose data folder was copied. The new one gets its groups, and a place of its join token if there is one left.
    """
    owner = _lock_owner(user_id)
    if like is not None:
        token = take_place(like.join_token_id, now) if like.join_token_id is not None else None
        return _create(owner, described, now, token, like.groups)
    if join_token_id is None:
        return _create(owner, described, now, None, [])
    token = take_place(join_token_id, now)
    if token is None:
        raise TooManyHosts(
            "This join token has been used for all its computers. Make another one at "
            f"{settings.SITE_URL}computers/joining/"
        )
    return _create(owner, described, now, token, [token.group])


def _lock_owner(user_id: int) -> User:
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("a computer is looked for within the caller's transaction")
    return User.objects.select_for_update(no_key=True).only("pk", "email", "new_hosts_per_day").get(pk=user_id)


def _create(
    owner: User, described: HostDescription, now: dt.datetime, token: JoinToken | None, groups: Sequence[str]
) -> Host:
    check_limits(owner, now, is_joining=token is not None)
    return Host.objects.create(
        owner_id=owner.pk,
        host_cpid=described.host_cpid,
        domain_name=described.domain_name,
        os_name=described.os_name,
        p_vendor=described.p_vendor,
        p_model=described.p_model,
        groups=list(groups),
        join_token=token,
        created_at=now,
        last_contact_at=now,
    )


def _by_id(user_id: int, described: HostDescription) -> Host | None:
    """Find the host by what a site gave it: its token from this one, or its number if the project moved here.

    Numbers can be guessed, so they lead to computers of the same owner only.
    """
    own = Host.objects.filter(owner_id=user_id)
    if described.token is not None:
        host = own.filter(token=described.token).first()
    elif described.former_number is not None:
        host = own.filter(former_number=described.former_number).first()
    else:
        return None
    # A computer whose record was merged into another keeps sending the old one's token or number.
    while host is not None and host.merged_into_id is not None:
        host = Host.objects.filter(owner_id=user_id, pk=host.merged_into_id).first()
    return host


def _by_description(
    owner: User, described: HostDescription, now: dt.datetime, join_token_id: int | None
) -> Host | None:
    """Find a host with the same operating system and processor, and the same cross-project id or name.

    The best match counts; among equals the host with the latest contact. If the record reported recently, a matching
    id does not suffice if the names differ, nor a name if the ids do: two computers may have one name, and copies of a
    disk one id. The name of a computer that joined with the same token suffices sooner: it may be reset at each start.
    Of a computer from before the project moved here only the published id is known.
    """
    same_cpid = _NEVER
    if described.host_cpid:
        published = external_cpid(described.host_cpid, owner.email)
        same_cpid = Q(host_cpid=described.host_cpid) | Q(host_cpid="", published_cpid=published)
    same_name = Q(domain_name=described.domain_name) if described.domain_name else _NEVER
    is_silent = Q(last_contact_at__lt=now - SAME_NAME_AFTER)
    if described.host_cpid:
        is_reset = Q(last_contact_at__lt=now - RESET_AFTER, join_token=join_token_id) if join_token_id else _NEVER
        same_name &= Q(host_cpid="") | Q(host_cpid=described.host_cpid) | is_silent | is_reset
    if described.domain_name:
        same_cpid &= Q(domain_name="") | Q(domain_name=described.domain_name) | is_silent
    if not (described.os_name and described.p_model):
        return None
    return (
        Host.objects.filter(
            same_cpid | same_name,
            owner_id=owner.pk,
            merged_into=None,
            os_name=described.os_name,
            p_vendor=described.p_vendor,
            p_model=described.p_model,
        )
        .order_by(Case(When(same_cpid & same_name, then=0), When(same_cpid, then=1), default=2), "-last_contact_at")
        .first()
    )

"""Identifies the client's account and computer (BOINC protocol, host and user lookup).

A computer has one record on this site, shared by the account manager and the project: the number that the project
assigns is that of the `portal.Host`.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn

import structlog
from django.conf import settings
from django.db import connection, transaction

from credit.engine.rules import Rules
from portal.clients.effects import in_thread
from portal.computers.identify import HostDescription, identify, new_host
from portal.models import Host, User
from portal.people.accounts import (
    ClientAuthError,
    demand_confirmed_address,
    refuse_key_if_blocked,
    refuse_weak_key_if_blocked,
    weak_key_pepper,
)
from portal.wire import credentials
from portal.wire.boinc_errors import ERR_BAD_AUTHENTICATOR
from scheduler.engine import copies
from scheduler.engine.request import SchedulerRequest
from scheduler.rpc import reports, sql, store

log = structlog.get_logger("scheduler")

_WEAK_KEY: Final = re.compile(r"([1-9]\d{0,17})_([0-9a-f]{32})")


class IdentifiedClient(NamedTuple):
    """The client's account and computer."""

    account: store.Account
    host: store.KnownHost


@dataclass(frozen=True, slots=True)
class UnknownHost:
    """The client's number belongs to no computer of this account, or to a different one by now; `enrol` finds or
    creates the right one.
    """

    user_id: int
    is_copy: bool


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """No usable account has this account key; `refuse` tells the client."""

    authenticator: str


def refuse(unknown: UnknownKey) -> NoReturn:
    """Raise ClientAuthError for a client with this key, or AccountBlocked if that is why. Blocks."""
    weak = _WEAK_KEY.fullmatch(unknown.authenticator)
    if weak is None:
        refuse_key_if_blocked(credentials.key_hash(unknown.authenticator))
    else:
        refuse_weak_key_if_blocked(int(weak[1]), unknown.authenticator)
    raise ClientAuthError(
        ERR_BAD_AUTHENTICATOR,
        "Invalid or missing account key. Remove this project in BOINC and add it again; if the account manager "
        f"{settings.SITE_NAME} added it, let BOINC synchronise with it.",
    )


async def find_account(
    request: SchedulerRequest, host_id: int, *, locks: bool, trickle_downs: bool, is_enrolled: bool = False
) -> IdentifiedClient | UnknownHost | UnknownKey:
    """Find the account and the computer; with ``locks`` it is locked.

    ``trickle_downs``: whether any message to a running job waits. ``is_enrolled``: `enrol` has just found ``host_id``
    for this request.
    """
    reported = [result.name for result in request.results]
    names = {message.result_name for message in request.trickles} | (request.other_results or frozenset())
    key = _key(request.authenticator)
    account = await store.read(
        key,
        host_id,
        names,
        reported,
        request.preferences_at,
        sorted(request.held_files),
        locks=locks,
        trickle_downs=trickle_downs,
    )
    if account is None:
        return UnknownKey(request.authenticator)
    if account.host is None:
        return UnknownHost(account.user_id, is_copy=False)
    if settings.CONFIRMED_EMAIL_FOR_PROJECTS and account.host.rpc_seqno is None and not is_enrolled:
        # The account manager's record of a computer, whose number anybody can read on the site's pages.
        return UnknownHost(account.user_id, is_copy=False)
    if request.hostid == host_id and _is_copy(request, account, account.host):
        return UnknownHost(account.user_id, is_copy=True)
    return IdentifiedClient(account, account.host)


async def check_key(authenticator: str) -> None:
    """Look up the key before a long message is read. Raises ClientAuthError."""
    if await store.read(_key(authenticator), 0, (), (), 0.0, locks=False) is None:
        await in_thread(refuse, UnknownKey(authenticator))


def _is_copy(request: SchedulerRequest, account: store.Account, host: store.KnownHost) -> bool:
    """Whether another client has the computer's number, so that two would report under one."""
    if host.rpc_seqno is None:
        return False
    return copies.is_copy(
        request.rpc_seqno,
        request.host.host_cpid,
        host.rpc_seqno,
        host.cpids,
        host.repeats,
        knows_other_jobs=reports.knows_other_jobs(account, host, request),
    )


def enrol(unknown: UnknownHost, request: SchedulerRequest, now: dt.datetime) -> int:
    """Find the computer, which the account manager may know, or create a new one; return its number.

    Blocks. A separate transaction, so that the account is locked before the computer, as everywhere. A repeated call
    finds the same computer. Clients that share a machine are distinguished only by their cross-project ids. Raises
    ClientAuthError, also if the account's address has to be confirmed first: any key of the account comes here.
    """
    demand_confirmed_address(unknown.user_id)
    host = request.host
    name = "" if request.allows_multiple_clients else host.domain_name
    with transaction.atomic():
        if unknown.is_copy:
            copy = HostDescription(None, host.host_cpid, host.domain_name, host.os_name, host.p_vendor, host.p_model)
            unused = _given_before(unknown.user_id, copy, request.hostid)
            original = Host.objects.filter(pk=request.hostid, owner=unknown.user_id).first()
            computer, created = unused or new_host(unknown.user_id, copy, now, like=original), unused is None
            _move_reported(request, computer.pk, now)
        else:
            merged = _merged_into(unknown.user_id, request.hostid)
            if merged is not None:
                return merged
            appearance = HostDescription(None, host.host_cpid, name, host.os_name, host.p_vendor, host.p_model)
            try:
                computer, created = identify(unknown.user_id, appearance, now)
            except User.DoesNotExist:
                raise ClientAuthError(ERR_BAD_AUTHENTICATOR, "This account has just been deleted.") from None
    log.info("computer_attached" if created else "computer_recognised", host=computer.pk, user=unknown.user_id)
    return computer.pk


def _given_before(user_id: int, copy: HostDescription, original_id: int) -> Host | None:
    """Find the record that this copy was given with a lost reply: no client has used it yet.

    Locks the account, so that a request that arrives twice at once creates one record.
    """
    User.objects.select_for_update(no_key=True).filter(pk=user_id).first()
    same = Host.objects.filter(
        owner_id=user_id,
        host_cpid=copy.host_cpid,
        domain_name=copy.domain_name,
        os_name=copy.os_name,
        p_vendor=copy.p_vendor,
        p_model=copy.p_model,
        merged_into=None,
        pk__gt=original_id,
    )
    # With its first request the record gets a CPID.
    return same.filter(scheduler_record__rpc_seqno=0, scheduler_record__cpids=[]).order_by("pk").last()


def _move_reported(request: SchedulerRequest, copy_id: int, now: dt.datetime) -> None:
    """Assign to the copy the jobs that it reports as done with this request, so that they count.

    Other endings stay the original's: otherwise a client could get rid of unwanted jobs by pretending to be a copy.
    """
    names = [
        result.name for result in request.results if result.state == reports.CLIENT_DONE and result.exit_status == 0
    ]
    if not names:
        return
    values: dict[str, Any] = {"names": names, "original": request.hostid, "copy": copy_id, "now": now}
    values["weight"] = Rules.published().failing_weight
    with connection.cursor() as cursor:
        cursor.execute(sql.MOVE_REPORTED, values)


def _merged_into(user_id: int, host_id: int) -> int | None:
    """Return the computer that the one with this number was merged into, if it was."""
    host = Host.objects.filter(owner_id=user_id, pk=host_id).first() if host_id else None
    while host is not None and host.merged_into_id is not None:
        host = Host.objects.filter(owner_id=user_id, pk=host.merged_into_id).first()
    return host.pk if host is not None else None


def _key(authenticator: str) -> Mapping[str, str]:
    """Return the parameters by which the statement finds the key."""
    weak = _WEAK_KEY.fullmatch(authenticator)
    if weak is None:
        return {"key_hash": f"\\x{credentials.key_hash(authenticator).hex()}"}
    imported = credentials.weak_key_hash(authenticator).hex()
    return {"weak_user": weak[1], "weak_digest": weak[2], "pepper": weak_key_pepper(), "key_hash": f"\\x{imported}"}

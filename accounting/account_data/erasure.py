"""Erase accounts whose grace period is over: history, computers, notes, keys and settings, in one transaction each.

Only anonymous sums over all volunteers remain: the account's days are added to them before they are deleted. The admin
log still says which operator did something to the account's number, and when.
"""

from __future__ import annotations

import datetime as dt

import structlog
from django.db import DatabaseError, connection, transaction

from accounting.account_data import sql
from accounting.ledger.sql import LOCK_MONTHS
from accounting.models import BestDay, Day, HostLedger, Month
from portal.extras import site_apps
from portal.models import Host, User
from portal.people.deletion import due_for_erasure, forget_in_log
from portal.sign_in.sessions import end_sessions

log = structlog.get_logger("erasure")


def erase_due(now: dt.datetime) -> int:
    """Erase every account that is due, each in its own transaction; return how many. Safe to repeat and to interrupt.

    A failure is logged and retried next time, and does not hold up the other accounts.
    """
    nerased = 0
    for user_id in list(due_for_erasure(now).values_list("pk", flat=True)):
        try:
            nerased += _erase(user_id, now)
        except DatabaseError:
            log.exception("account_not_erased", user=user_id)
    return nerased


def _erase(user_id: int, now: dt.datetime) -> bool:
    """Erase one account, unless its owner has come back meanwhile.

    Locks in the order that merging uses: the user's row, the ledger rows by computer, the computers. A report or a
    request for work that arrives meanwhile waits, and then finds no account. A report being written holds its ledger
    row and then wants a share lock on its user's key, so the key is locked only by the deletion, when no such report is
    left.
    """
    with transaction.atomic():
        user = due_for_erasure(now).select_for_update(no_key=True).filter(pk=user_id).first()
        if user is None:
            return False
        hosts = Host.objects.filter(owner=user)
        list(HostLedger.objects.select_for_update().filter(host__in=hosts).order_by("pk").values_list("pk"))
        list(hosts.select_for_update(no_key=True).order_by("pk").values_list("pk"))
        end_sessions(user)
        for app in site_apps():
            app.account_erased(user_id, now)
        with connection.cursor() as cursor:
            cursor.execute(LOCK_MONTHS)
            cursor.execute(sql.KEEP_SUMS, [user_id])
        for history in (Day, Month, BestDay):
            history.objects.filter(user=user).delete()
        # A merged record is deleted before the one that it points to.
        hosts.exclude(merged_into=None).delete()
        hosts.delete()
        forget_in_log(user_id)
        User.objects.filter(pk=user_id).delete()
    log.info("account_erased", user=user_id)
    return True

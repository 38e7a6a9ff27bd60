"""General preferences: the newest that one of a volunteer's clients sent are passed on to the others.

Clients recognise newer ones by their time, and ignore them if an account manager's are in force (BOINC protocol,
scheduler request and reply). They are stored as sent: the format is BOINC's own, and only this person's computers read
it.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import connection

from portal.clients.effects import in_thread
from scheduler.engine.request import SchedulerRequest
from scheduler.rpc import sql as rpc_sql
from scheduler.rpc.store import Account

CLOCK_ERROR: Final = dt.timedelta(days=1)
"""Preferences from further in the future are not stored, because nothing could ever be newer."""


async def keep_newer(request: SchedulerRequest, account: Account, now: dt.datetime) -> None:
    """Store the client's preferences if they are newer than the stored ones, and this account's.

    Only from a strong key, as with the cross-project id: a computer that need not be trusted must not steer the others.
    """
    if request.preferences_at <= account.preferences_at or request.has_weak_key:
        return
    is_own = request.preferences_email_hash == account.email_hash
    if not is_own or request.preferences_at > (now + CLOCK_ERROR).timestamp():
        return
    try:
        text = request.preferences_raw.decode().strip()
    except UnicodeDecodeError:
        return
    if text and "\0" not in text:
        await in_thread(_keep, request.preferences_at, text, account.user_id)


def _keep(mod_time: float, text: str, user_id: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(rpc_sql.KEEP_PREFERENCES, {"mod_time": mod_time, "text": text, "user_id": user_id})

"""Trickle-up messages: acknowledged at once, stored once however often they are sent, handled by a task.

An app names the function that takes its messages, by its dotted path; it gets the message's row, and may raise
`TrickleError` to say why a message is of no use. Of two the project brings one: `grant_partial_credit`, for jobs that
run for months (credit document, "Peak FLOP Count").
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Callable
from typing import Any, Final

import structlog
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils.module_loading import import_string

from credit import partial_grants
from scheduler.messages import SchedulerRequest
from scheduler.models import Trickle
from scheduler.store import Account

log = structlog.get_logger("scheduler")

BATCH: Final = 500
Handler = Callable[[Trickle, dt.datetime], None]
_ELAPSED: Final = re.compile(r"<elapsed_time>\s*([0-9.eE+]{1,32})\s*</elapsed_time>")
_NAMED: Final = re.compile(r"<result_name>\s*([\w.-]{1,200})\s*</result_name>")


class TrickleError(ValueError):
    """Why a message is of no use; kept with it."""


def rows(request: SchedulerRequest, account: Account, host_id: int) -> list[dict[str, Any]]:
    """What is stored of the request's messages: those of jobs that are or were on this computer.

    The others are acknowledged all the same, else they come for ever.
    """
    found = []
    for message in request.messages:
        known = account.results.get(message.result_name)
        if known is None or known.host_id != host_id:
            continue
        said = "\n".join((message.result_name, repr(message.written_at), message.variety, message.text))
        found.append(
            {
                "result_id": known.id,
                "variety": message.variety,
                "text": message.text,
                "digest": hashlib.md5(said.encode()).hexdigest(),
                "written_at": dt.datetime.fromtimestamp(message.written_at, dt.UTC).isoformat(),
            }
        )
    return found


def handle_waiting(now: dt.datetime, limit: int = BATCH) -> int:
    """Hand the oldest messages that wait to the functions of their apps; how many there were. Safe to run twice.

    Each in a transaction of its own, so that one that fails leaves the others alone.
    """
    waiting = list(Trickle.objects.filter(handled_at=None).order_by("id").values_list("pk", flat=True)[:limit])
    for pk in waiting:
        with transaction.atomic():
            trickle = (
                Trickle.objects.select_for_update(skip_locked=True, of=("self",))
                .select_related("result__app")
                .filter(pk=pk, handled_at=None)
                .first()
            )
            if trickle is not None:
                _handle(trickle, now)
    return len(waiting)


def _handle(trickle: Trickle, now: dt.datetime) -> None:
    path = trickle.result.app.trickle_function if trickle.result is not None else ""
    try:
        with transaction.atomic():
            if path:
                handler: Handler = import_string(path)
                handler(trickle, now)
    except TrickleError as error:
        trickle.fault = str(error)[:200]
    except Exception as error:
        if isinstance(error, OperationalError | InterfaceError) and _is_ours(error):
            raise
        # A function of an app is not ours: its failure must not keep other messages waiting.
        log.exception("trickle function failed", function=path, trickle=trickle.pk)
        trickle.fault = "The function that takes this app's messages failed; see the log."
    trickle.handled_at = now
    trickle.save(update_fields=["handled_at", "fault"])


def _is_ours(error: Exception) -> bool:
    """Whether the fault is our database's, not that of one which the app's function uses: then the message comes again.

    A deadlock (SQLSTATE class 40) is gone the next time, whosever it is.
    """
    return not connection.is_usable() or str(getattr(error.__cause__, "sqlstate", "")).startswith("40")


def grant_partial_credit(trickle: Trickle, now: dt.datetime) -> None:
    """Grant credit for the run time that a message names: <elapsed_time> in seconds, and <result_name>, which must be
    the job that it comes from.
    """
    elapsed, named = _ELAPSED.search(trickle.text), _NAMED.search(trickle.text)
    if elapsed is None or named is None:
        raise TrickleError("There is no <elapsed_time> or no <result_name> in the message.")
    if trickle.result is None or named[1] != trickle.result.name:
        raise TrickleError("The message names another job than the one that it comes from.")
    try:
        secs = float(elapsed[1])
    except ValueError:
        raise TrickleError("<elapsed_time> is not a number.") from None
    if not partial_grants.grant_part(trickle.result.pk, secs, now):
        raise TrickleError("No credit is due: the job is over, or this run time has been credited.")

"""Trickle-up messages: acknowledged at once, stored once however often they are sent, handled by a task.

An app names the function that takes its messages by its dotted path. The function gets the message's row, and may raise
`TrickleError` to say why a message is unusable. A function that raises anything else, hangs, or ends the whole worker
does not keep other messages waiting (docs/reference/states.md). One function comes with the project:
`grant_partial_credit`, for jobs that run for months (credit document, "Peak FLOP Count").
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import Any, Final

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Q

from credit import functions
from credit.models import App
from credit.validator import partial_grants
from portal.languages.messages import Message, MessageError
from scheduler.engine import trickle_downs
from scheduler.engine.facts import AppFacts
from scheduler.engine.request import SchedulerRequest
from scheduler.engine.trickle_downs import RunningJob, TrickleDownPlan
from scheduler.models import Trickle
from scheduler.rpc.rows import KnownResult
from scheduler.rpc.store import Account

log = structlog.get_logger("scheduler")

BATCH: Final = 500
BEGIN_SECS: Final = 60
"""A task begins no further message after this."""
FUNCTION_SECS: Final = 100
"""The longest time of a query in a function."""
TASK_SECS: Final = BEGIN_SECS + FUNCTION_SECS + 20
"""The running function is interrupted then: well below the time (CELERY_TASK_TIME_LIMIT) that kills a worker."""
MAX_TRIES: Final = 3
# "tr", the first key of advisory locks; the second is the app's id.
LOCK: Final = 0x7472
# The fault stored for a message whose function was called this often and never returned.
_UNFINISHED: Final = "trickle_unfinished"
Handler = Callable[[Trickle, dt.datetime], None]
_ELAPSED: Final = re.compile(r"<elapsed_time>\s*([0-9.eE+]{1,32})\s*</elapsed_time>")
_NAMED: Final = re.compile(r"<result_name>\s*([\w.-]{1,200})\s*</result_name>")

SOME_DROPPED: Final = (
    "A task sent more messages than this project accepts from a task in a day. Some were dropped; the task continues."
)
SOME_UNREAD: Final = (
    "The tasks of this computer have sent more messages than this project reads at a time. The last ones were dropped; "
    "the tasks continue."
)


class TrickleError(MessageError, ValueError):
    """Why a message is unusable: the app's function's own words, or a message. It is stored with the message."""


def rows(request: SchedulerRequest, account: Account, host_id: int) -> list[dict[str, Any]]:
    """Return the rows for the request's messages: those of jobs that are or were on this computer.

    The others are acknowledged too; otherwise the client would send them for ever. The statement takes as many as a job
    may send in a day (`scheduler.rpc.sql.write`); the rest is dropped.
    """
    messages: list[dict[str, Any]] = []
    for message in request.trickles:
        result = account.results.get(message.result_name)
        if result is None or result.host_id != host_id:
            continue
        text = "\n".join((message.result_name, repr(message.written_at), message.variety, message.text))
        messages.append(
            {
                "result_id": result.id,
                "variety": message.variety,
                "text": message.text,
                "digest": hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
                "written_at": dt.datetime.fromtimestamp(message.written_at, dt.UTC).isoformat(),
                "number": len(messages),
                "most_nbytes": settings.TRICKLE_BYTES_PER_JOB_DAY,
            }
        )
    return messages


def plan_messages(
    request: SchedulerRequest,
    account: Account,
    running: Iterable[KnownResult],
    apps: Mapping[int, AppFacts],
    now: dt.datetime,
) -> TrickleDownPlan:
    """Plan what the reply says to running jobs; those that have just sent a message may get more time.

    Deadlines are those given to clients, who must not know that the project waits a little longer.
    """
    reporting = {message.result_name for message in request.trickles}
    if not (reporting or account.trickle_downs or request.named_deadlines):
        return TrickleDownPlan()
    grace = settings.REPORT_GRACE_SECS
    jobs = []
    for result in running:
        if result.deadline_at is None:
            continue
        app, later = apps.get(result.app_id), None
        if app is not None and result.name in reporting and result.sent_at is not None:
            # With the grace period, in which a job may still show progress
            secs = app.deadline_extension_secs
            later = trickle_downs.extended(
                result.deadline_at,
                result.sent_at,
                now.timestamp(),
                secs and secs + grace,
                trickle_downs.most_secs(app.max_extended_secs, result.delay_bound_secs, secs) + grace,
            )
            later = None if later is None else later - grace
        named_at = request.named_deadlines.get(result.name)
        jobs.append(
            RunningJob(result.id, result.name, result.deadline_at - grace, named_at, result.name in reporting, later)
        )
    return trickle_downs.plan_messages(jobs, account.trickle_downs)


def handle_waiting(now: dt.datetime, until: float = inf) -> int:
    """Pass waiting messages to the functions of their apps; return how many were examined. Safe to run twice.

    None is begun after ``until`` (of `time.monotonic`). Each has its own transactions, so that one that fails does not
    roll back the others. Only one pass at a time calls an app's function, so that one that hangs keeps only one worker
    waiting.
    """
    to_nobody = Q(result=None) | Q(result__app__trickle_function="")
    done = Trickle.objects.filter(to_nobody, handled_at=None).update(handled_at=now)
    # In random order: an app with more to do than fits into a pass must not always be the first.
    for app in App.objects.exclude(trickle_function="").order_by("?"):
        with _place(app) as is_free:
            for pk in _waiting(app) if is_free else ():
                if monotonic() >= until:
                    return done
                if _begin(pk, now):
                    _finish(pk, app.trickle_function, now)
                done += 1
    return done


@contextmanager
def _place(app: App) -> Iterator[bool]:
    """Yield whether no other pass handles the app's messages; the server frees the lock if this process dies."""
    key = [LOCK, app.pk % 2**31]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", key)
        is_free: bool = cursor.fetchone()[0]
    try:
        yield is_free
    finally:
        if is_free:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", key)


def _waiting(app: App) -> Iterator[int]:
    """Yield the app's messages, oldest first, and last those whose function did not return before."""
    waiting = Trickle.objects.filter(handled_at=None, result__app=app).order_by("id").values_list("pk", flat=True)
    last = 0
    while pks := list(waiting.filter(fault__isnull=True, pk__gt=last)[:BATCH]):
        yield from pks
        last = pks[-1]
    yield from list(waiting.filter(fault__isnull=False)[:BATCH])


def _lock(pk: int) -> Trickle | None:
    """Lock and return the message, unless it was handled or its account is being erased."""
    waiting = Trickle.objects.select_for_update(skip_locked=True, of=("self",)).select_related("result__app")
    return waiting.filter(pk=pk, handled_at=None).first()


@transaction.atomic
def _begin(pk: int, now: dt.datetime) -> bool:
    """Record that the function is about to be called, because that might end the worker; False if it must not be
    called.
    """
    trickle = _lock(pk)
    if trickle is None:
        return False
    fault = trickle.fault
    ntries = fault.args["number"] if fault is not None and fault.code == _UNFINISHED else 0
    if ntries == MAX_TRIES:
        log.error("trickle_given_up", trickle=pk)
        _end(trickle, now, Message("trickle_abandoned", number=MAX_TRIES))
        return False
    trickle.fault = Message(_UNFINISHED, number=ntries + 1)
    trickle.save(update_fields=["fault"])
    return True


def _finish(pk: int, path: str, now: dt.datetime) -> None:
    """Call the function for a message that was begun."""
    try:
        with transaction.atomic():
            trickle = _lock(pk)
            if trickle is not None:
                with connection.cursor() as cursor:
                    # An interrupted worker leaves its query behind, with its locks.
                    cursor.execute(f"SET LOCAL statement_timeout = '{FUNCTION_SECS}s'")
                _end(trickle, now, _fault_of(trickle, path, now))
    except SoftTimeLimitExceeded:
        log.exception("trickle_function_takes_too_long", function=path, trickle=pk)
        with transaction.atomic():
            trickle = _lock(pk)
            if trickle is not None:
                _end(trickle, now, Message("trickle_too_slow"))


def _end(trickle: Trickle, now: dt.datetime, fault: Message | None) -> None:
    trickle.handled_at, trickle.fault = now, fault
    trickle.save(update_fields=["handled_at", "fault"])


def _fault_of(trickle: Trickle, path: str, now: dt.datetime) -> Message | None:
    """Call the function; return its error, if there is one. SoftTimeLimitExceeded if the task's time is up."""
    try:
        with transaction.atomic():
            handler: Handler = functions.load(functions.FunctionKind.TRICKLE, path)
            handler(trickle, now)
    except TrickleError as error:
        return error.message
    except SoftTimeLimitExceeded:
        raise
    except Exception as error:
        if isinstance(error, OperationalError | InterfaceError) and _is_ours(error):
            raise
        # An app's function is not part of the site: its failure must not keep other messages waiting.
        log.exception("trickle_function_failed", function=path, trickle=trickle.pk)
        return Message("trickle_failed")
    return None


def _is_ours(error: Exception) -> bool:
    """Whether the fault is the site's database's, and not that of a database used by the app's function.

    If it is, the message is retried. A deadlock (SQLSTATE class 40) is gone the next time, whosever it is.
    """
    return not connection.is_usable() or str(getattr(error.__cause__, "sqlstate", "")).startswith("40")


def grant_partial_credit(trickle: Trickle, now: dt.datetime) -> None:
    """Grant credit for the run time in a message: <elapsed_time> in seconds, and <result_name>, which must be the job
    that sent it.
    """
    elapsed, named = _ELAPSED.search(trickle.text), _NAMED.search(trickle.text)
    if elapsed is None or named is None:
        raise TrickleError(Message("trickle_without_fields"))
    if trickle.result is None or named[1] != trickle.result.name:
        raise TrickleError(Message("trickle_of_other_job"))
    try:
        secs = float(elapsed[1])
    except ValueError:
        raise TrickleError(Message("trickle_no_number")) from None
    if not partial_grants.grant_part(trickle.result.pk, secs, now):
        raise TrickleError(Message("trickle_without_credit"))

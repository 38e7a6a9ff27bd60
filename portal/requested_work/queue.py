"""The queue of requested work: asking for a piece, taking the next one, finishing it, and its place.

PostgreSQL holds the queue. A message to a worker only says that something is waiting, so a lost or repeated message
does no harm, and whose turn it is is decided when a worker is free.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError

from portal.celery import app, queue_length
from portal.databases.clocks import database_now
from portal.extras import site_apps
from portal.models import RequestedWork
from portal.requested_work import sql

log = structlog.get_logger(__name__)

TASK: Final = "portal.tasks.carry_out_requested"
QUEUE: Final = "requested"
LOST_AFTER: Final = dt.timedelta(seconds=settings.CELERY_TASK_TIME_LIMIT + 300)
"""A worker that has had a piece for longer was lost: a task is killed after CELERY_TASK_TIME_LIMIT."""
MAX_TRIES: Final = 3
KEPT: Final = dt.timedelta(days=1)
"""How long finished work is kept, for estimates."""
# "rw", the key of an advisory lock.
_LOCK: Final = 0x7277
_MAX_MESSAGES: Final = 100


@cache
def kinds() -> dict[str, Callable[[int], None]]:
    """The functions that do each kind of work, given the number of its subject; safe to call twice."""
    return {kind: work for app in site_apps() for kind, work in app.requested_work().items()}


@dataclass(frozen=True, slots=True)
class Standing:
    """``place`` in the queue from 1, 0 if it runs; ``begins_secs``: until it is likely to begin, None if unknown."""

    place: int
    begins_secs: float | None


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of work that a worker has taken."""

    id: int
    kind: str
    subject: int


def ask(user_id: int, kind: str, subjects: Iterable[int]) -> None:
    """Queue the work, in the caller's transaction; work that was asked for already is not queued again."""
    rows = [RequestedWork(user_id=user_id, kind=kind, subject=subject) for subject in subjects]
    RequestedWork.objects.bulk_create(rows, ignore_conflicts=True)
    transaction.on_commit(partial(_tell_workers, min(len(rows), settings.REQUESTED_WORK_PER_PERSON)))


def withdraw(kind: str, subjects: Iterable[int]) -> None:
    """Take back work that is waiting."""
    RequestedWork.objects.filter(kind=kind, subject__in=subjects, started_at=None).delete()


def carry_out_next() -> bool:
    """Do the next piece, if one may begin; return whether there was one.

    A kind that this version does not know is skipped: during an upgrade, workers of the newer version do it.
    """
    piece = _take(database_now())
    if piece is None:
        return False
    try:
        kinds()[piece.kind](piece.subject)
    except Exception:  # any error: the work is retried, and the error goes to the task's log
        put_back(piece.kind, [piece.subject])
        raise
    else:
        RequestedWork.objects.filter(pk=piece.id).update(finished_at=timezone.now())
    finally:
        if _waiting().filter(kind__in=kinds()).exists():
            _tell_workers(1)
    return True


def _take(now: dt.datetime) -> Piece | None:
    """Take the next piece: the lock on the queue, then the piece's row."""
    values: dict[str, Any] = {"now": now, "per_person": settings.REQUESTED_WORK_PER_PERSON, "kinds": list(kinds())}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        cursor.execute(sql.TAKE, values)
        row = cursor.fetchone()
    return None if row is None else Piece(*row)


def standings(kind: str, subjects: Iterable[int], now: dt.datetime) -> dict[int, Standing]:
    """Where these stand in the queue; finished and given-up work is left out. One statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql.STANDINGS, {"kind": kind, "subjects": list(subjects), "now": now})
        return {subject: Standing(place, secs) for subject, place, secs in cursor.fetchall()}


def put_back(kind: str, subjects: Iterable[int]) -> set[int]:
    """Queue failed work again; return the subjects that are given up, after MAX_TRIES."""
    values: dict[str, Any] = {"kind": kind, "subjects": list(subjects), "max_tries": MAX_TRIES, "now": database_now()}
    with connection.cursor() as cursor:
        cursor.execute(sql.PUT_BACK, values)
        return {subject for subject, is_given_up in cursor.fetchall() if is_given_up}


def requeue_lost(now: dt.datetime) -> None:
    """Requeue lost workers' pieces, tell workers about waiting work, delete old finished work. Safe to repeat."""
    lost = RequestedWork.objects.filter(finished_at=None, started_at__lt=now - LOST_AFTER)
    for kind in lost.values_list("kind", flat=True).distinct():
        put_back(kind, lost.filter(kind=kind).values_list("subject", flat=True))
    RequestedWork.objects.filter(finished_at__lt=now - KEPT).delete()
    # Otherwise they would pile up at the broker while no worker takes them.
    _tell_workers(min(_waiting().count(), _MAX_MESSAGES) - queue_length(QUEUE))


def _waiting() -> QuerySet[RequestedWork]:
    return RequestedWork.objects.filter(started_at=None, finished_at=None)


def _tell_workers(nmessages: int) -> None:
    """Send messages about waiting work; if the broker is unreachable, `requeue_lost` sends others within a minute."""
    try:
        for _ in range(nmessages):
            app.send_task(TASK, queue=QUEUE, retry=False)
    except OperationalError as error:
        log.warning("requested_work_not_told", reason=str(error))

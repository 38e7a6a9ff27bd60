"""Asks for runs, carries them out, and reads the last ones. A job has one run at a time; its newest runs are kept.

A worker holds a session lock while it carries out a run, so that it is known at once if it was killed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import structlog
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from django.utils.translation import gettext
from kombu.exceptions import OperationalError

from portal.celery import app, queue_length
from portal.maintenance import sql
from portal.maintenance.jobs import Job, jobs
from portal.models import MaintenanceRun, User
from portal.requested_work.queue import QUEUE

log = structlog.get_logger(__name__)

TASK: Final = "portal.tasks.carry_out_maintenance"
TIME_LIMIT_SECS: Final = 6 * 3600
"""Reading all files of a large storage takes hours."""
LOST_AFTER: Final = dt.timedelta(seconds=TIME_LIMIT_SECS + 300)
"""A run that no worker has begun by then counts as lost."""
RESEND_AFTER: Final = dt.timedelta(seconds=60)
MAX_LINES: Final = 200
MAX_LINE_CHARS: Final = 500
KEPT_RUNS: Final = 10


class CannotStartError(Exception):
    """It is running already, or no worker can be reached; the message says which."""


@dataclass(frozen=True, slots=True)
class Row:
    """A job with its last runs, newest first."""

    job: Job
    runs: list[MaintenanceRun]

    @property
    def is_running(self) -> bool:
        return bool(self.runs) and self.runs[0].finished_at is None


def ask(name: str, user: User) -> MaintenanceRun:
    """Queue a run. Raises CannotStartError."""
    now = timezone.now()
    _end_lost(now)
    try:
        with transaction.atomic():
            run = MaintenanceRun.objects.create(job=name, asked_by=user, asked_at=now)
    except IntegrityError as error:
        raise CannotStartError(gettext("It is already waiting or running.")) from error
    try:
        app.send_task(TASK, [run.pk], retry=False)
    except OperationalError as error:
        run.delete()
        raise CannotStartError(
            gettext("No worker can be reached, as Valkey does not answer. Try again later.")
        ) from error
    return run


def carry_out(run_id: int) -> None:
    """Carry out a run; a second message does nothing."""
    waiting = MaintenanceRun.objects.filter(pk=run_id, started_at=None, finished_at=None)
    # The lock comes first, so that a run seen as begun is also seen to have a worker.
    with _held(run_id) as is_free:
        if is_free and waiting.update(started_at=timezone.now()):
            _do(MaintenanceRun.objects.get(pk=run_id))


def resend_lost(now: dt.datetime) -> None:
    """Send messages of runs that were lost again; a second one does nothing. Raises what the broker's library raises.

    Does nothing while messages wait at the broker: they may be those.
    """
    waiting = MaintenanceRun.objects.filter(started_at=None, finished_at=None, asked_at__lt=now - RESEND_AFTER)
    ids = list(waiting.order_by("pk").values_list("pk", flat=True))
    if ids and queue_length(QUEUE) == 0:
        for id_ in ids:
            app.send_task(TASK, [id_], retry=False)


@contextmanager
def _held(run_id: int) -> Iterator[bool]:
    """Try to take the run's lock, and yield whether it was free. PostgreSQL frees it if this process dies."""
    key = [_key(run_id)]
    with connection.cursor() as cursor:
        cursor.execute(sql.TRY_LOCK, key)
        is_free: bool = cursor.fetchone()[0]
    try:
        yield is_free
    finally:
        if is_free:
            with connection.cursor() as cursor:
                cursor.execute(sql.UNLOCK, key)


def _key(run_id: int) -> int:
    return run_id % 2**31


def _do(run: MaintenanceRun) -> None:
    lines: list[str] = []
    count = 0
    try:
        for line in jobs()[run.job].run():
            count += 1
            if count <= MAX_LINES:
                lines.append(line[:MAX_LINE_CHARS])
    except Exception as error:  # any error is reported to the operator who asked
        log.exception("maintenance_failed", job=run.job)
        _finish(run, lines, count, f"{type(error).__name__}: {error}"[:1000])
    else:
        _finish(run, lines, count)


def _finish(run: MaintenanceRun, lines: list[str], count: int, failure: str = "") -> None:
    now = timezone.now()
    MaintenanceRun.objects.filter(pk=run.pk).update(finished_at=now, lines=lines, nlines=count, failure=failure)
    newest = MaintenanceRun.objects.filter(job=run.job).order_by("-pk").values("pk")[:KEPT_RUNS]
    MaintenanceRun.objects.filter(job=run.job).exclude(pk__in=list(newest.values_list("pk", flat=True))).delete()


def _end_lost(now: dt.datetime) -> None:
    """End runs that no worker began or whose worker is gone. Two statements, or four while a run is under way."""
    unfinished = MaintenanceRun.objects.filter(finished_at=None)
    late = unfinished.filter(started_at=None, asked_at__lt=now - LOST_AFTER)
    late.update(finished_at=now, failure="No worker began it.")
    begun = list(unfinished.filter(started_at__isnull=False).values_list("pk", flat=True))
    if not begun:
        return
    with connection.cursor() as cursor:
        # Read after the runs: one that had begun had its lock by then.
        cursor.execute(sql.HELD)
        held = {key for (key,) in cursor.fetchall()}
    lost = unfinished.filter(pk__in=[id_ for id_ in begun if _key(id_) not in held])
    lost.update(finished_at=now, failure="The worker was stopped before it was done.")


def read_rows() -> list[Row]:
    """Read all jobs with their last runs. One statement, and those of `_end_lost`."""
    _end_lost(timezone.now())
    by_job: dict[str, list[MaintenanceRun]] = {name: [] for name in jobs()}
    for run in MaintenanceRun.objects.filter(job__in=list(jobs())).select_related("asked_by").order_by("-pk"):
        by_job[run.job].append(run)
    return [Row(job, by_job[name]) for name, job in jobs().items()]

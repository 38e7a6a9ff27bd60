"""Ask for a run, carry it out, read the last ones. One run of a job at a time; the newest of each are kept."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

import structlog
from django.db import IntegrityError, transaction
from django.utils import timezone
from kombu.exceptions import OperationalError

from portal.celery import app
from portal.maintenance.jobs import Job, jobs
from portal.models import MaintenanceRun, User

log = structlog.get_logger(__name__)

TASK: Final = "portal.tasks.carry_out_maintenance"
TIME_LIMIT_SECS: Final = 6 * 3600
"""Reading all files of a large storage takes hours."""
LOST_AFTER: Final = dt.timedelta(seconds=TIME_LIMIT_SECS + 300)
MAX_LINES: Final = 200
MAX_LINE_CHARS: Final = 500
KEPT_RUNS: Final = 10


class CannotStartError(Exception):
    """It runs already, or no worker can be told; the message says which."""


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
    _end_lost(timezone.now())
    try:
        with transaction.atomic():
            run = MaintenanceRun.objects.create(job=name, asked_by=user)
    except IntegrityError as error:
        raise CannotStartError("It is waiting or running already.") from error
    try:
        app.send_task(TASK, [run.pk], retry=False)
    except OperationalError as error:
        run.delete()
        raise CannotStartError("No worker can be told: Valkey cannot be reached. Try again later.") from error
    return run


def carry_out(run_id: int) -> None:
    """Do what was asked for; a second message does nothing."""
    waiting = MaintenanceRun.objects.filter(pk=run_id, started_at=None, finished_at=None)
    if not waiting.update(started_at=timezone.now()):
        return
    run = MaintenanceRun.objects.get(pk=run_id)
    lines: list[str] = []
    count = 0
    try:
        for line in jobs[run.job].run():
            count += 1
            if count <= MAX_LINES:
                lines.append(line[:MAX_LINE_CHARS])
    except Exception as error:  # whatever it is, the operator who asked is told
        log.exception("maintenance.failed", job=run.job)
        _finish(run, lines, count, f"{type(error).__name__}: {error}"[:1000])
    else:
        _finish(run, lines, count)


def _finish(run: MaintenanceRun, lines: list[str], count: int, failure: str = "") -> None:
    now = timezone.now()
    MaintenanceRun.objects.filter(pk=run.pk).update(finished_at=now, lines=lines, nlines=count, failure=failure)
    newest = MaintenanceRun.objects.filter(job=run.job).order_by("-pk").values("pk")[:KEPT_RUNS]
    MaintenanceRun.objects.filter(job=run.job).exclude(pk__in=list(newest.values_list("pk", flat=True))).delete()


def _end_lost(now: dt.datetime) -> None:
    """Runs that no worker finished: it was stopped, or never got the message."""
    lost = MaintenanceRun.objects.filter(finished_at=None, asked_at__lt=now - LOST_AFTER)
    lost.update(finished_at=now, failure="No worker finished it.")


def read_rows() -> list[Row]:
    """All jobs with their last runs. Two statements."""
    _end_lost(timezone.now())
    found: dict[str, list[MaintenanceRun]] = {name: [] for name in jobs}
    for run in MaintenanceRun.objects.filter(job__in=list(jobs)).select_related("asked_by").order_by("-pk"):
        found[run.job].append(run)
    return [Row(job, found[name]) for name, job in jobs.items()]

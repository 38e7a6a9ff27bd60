"""A validator's worker: runs passes until an app's queue is empty, in a limited number of slots, with metrics."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog
from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef, Q

from credit.models import App, Workunit
from credit.validator import metrics
from credit.validator.comparison import needs_files
from credit.validator.passes import PassReport, run_pass
from credit.validator.prepared import has_slow_function, prepare
from portal.databases.clocks import database_now

log = structlog.get_logger(__name__)

# The first key of advisory locks: "cv"; the second is built from app and slot.
_LOCK: Final = 0x6376
_SLOTS: Final = 64


def apps_to_validate(now: dt.datetime) -> list[App]:
    """Return the apps that have workunits to validate."""
    due = Q(validate_after=None) | Q(validate_after__lte=now)
    waits = Workunit.objects.filter(due, app=OuterRef("pk"), need_validate=True)
    return list(App.objects.filter(Exists(waits)))


def run_until_idle(app: App, run_secs: float) -> bool:
    """Run passes until nothing waits or the time is over; return whether there may be more to do.

    Does nothing if the app's limit of validators is reached. Otherwise at least one pass is run.
    """
    reads_files = needs_files(app)
    limit = settings.VALIDATOR_FILES_BATCH if reads_files else settings.VALIDATOR_BATCH
    deadline = time.monotonic() + run_secs
    with _slot(app) as is_free:
        while is_free:
            began = time.perf_counter()
            answers = prepare(app, limit, deadline) if reads_files else None
            if answers is not None and not answers.nworkunits:
                return False
            report = run_pass(app.pk, database_now(), limit, answers)
            if not report.nworkunits:
                return False
            secs = time.perf_counter() - began
            metrics.count(app.name, report, secs)
            _log(app, report, secs)
            if time.monotonic() >= deadline:
                return True
    return False


def _log(app: App, report: PassReport, secs: float) -> None:
    log.info(
        "validator_pass",
        app=app.name,
        workunits=report.nworkunits,
        results=report.nresults,
        credit=round(report.credit, 3),
        secs=round(secs, 3),
    )


@contextmanager
def _slot(app: App) -> Iterator[bool]:
    """Take one of the app's slots for validators; yield whether one was free.

    PostgreSQL frees it if this process dies.
    """
    first = app.pk * _SLOTS % 2**31
    # Several validators would each call a slow function for the same workunits.
    count = 1 if has_slow_function(app) else settings.VALIDATORS_PER_APP
    with connection.cursor() as cursor:
        for slot in range(first, first + count):
            cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_LOCK, slot])
            if cursor.fetchone()[0]:
                break
        else:
            yield False
            return
    try:
        yield True
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_LOCK, slot])

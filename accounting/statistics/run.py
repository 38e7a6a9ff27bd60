"""Import a project's statistics: ask for a new export, download it, read it, and store our volunteers' records.

Projects do not wait for each other, except for the few concurrent imports. Nothing is asked in a transaction. An error
is stored in the project's row, and the more attempts failed, the longer the next one waits.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import psycopg
import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from psycopg import Connection

from accounting.models import Project, StatisticsImport
from accounting.project_setup.accounts import web_rpc_base
from accounting.statistics import files, sql, store
from accounting.statistics.store import Source
from accounting.wire.statistics import (
    HOSTS,
    MAX_TABLES_BYTES,
    USERS,
    StatisticsError,
    Tables,
    read_tables,
)
from credit.export.granted import granted_to_all
from portal.databases.params import psycopg_params
from portal.fetch.errors import FetchError, TimeIsUp
from portal.fetch.fetcher import FetchLimits, Version, fetch
from portal.languages.messages import VERBATIM, Message, MessageError
from portal.maintenance.jobs import Job

log = structlog.get_logger("statistics")

AT_ONCE: Final = 2
"""Concurrent imports, of the whole site: workers have other things to do, too."""
READ_SECS: Final = 1_500
"""The time of one attempt, as a task: two downloads have four minutes each, and reading millions of records takes
minutes."""
RETRY: Final = dt.timedelta(minutes=10)
MAX_BACK_OFF: Final = dt.timedelta(days=1)
AHEAD: Final = dt.timedelta(hours=1)
"""Allowed clock skew of a project."""
_ATTEMPTS: Final = 30
"""Attempts for one download: two hours of transfer in all. After that, a slower server waits like one that fails."""
# Requests are spread: not all at once, nor at the same second each day.
_JITTER: Final = 0.1
_TABLES_LIMITS: Final = FetchLimits(wire_bytes=MAX_TABLES_BYTES, body_bytes=MAX_TABLES_BYTES)


def follow_projects(now: dt.datetime) -> None:
    """Begin to read the statistics of reachable projects; operators may change which."""
    with connection.cursor() as cursor:
        cursor.execute(sql.FOLLOW, {"now": now, "has_project": "project" in settings.ROOMS})


def daily_imports() -> QuerySet[StatisticsImport]:
    """Return the projects that are read daily."""
    return StatisticsImport.objects.filter(is_on=True, project__is_active=True)


def due(now: dt.datetime) -> list[int]:
    """Return the projects that are due, those that have waited longest first."""
    return list(daily_imports().filter(next_at__lte=now).order_by("next_at").values_list("pk", flat=True))


def import_project(project_id: int, *, at_once: bool = False) -> str:
    """Import from a project if it is due, or ``at_once``; return the result as a sentence. Blocks."""
    with psycopg.connect(**psycopg_params(), autocommit=True) as session, _place(session, project_id) as is_free:
        if not is_free:
            return "It is already being read or waits for its turn."
        now = timezone.now()
        row = _begin(project_id, now, at_once)
        if row is None:
            return "It is not due yet."
        try:
            outcome = _import(session, row, now)
        except (FetchError, StatisticsError, psycopg.Error, OSError) as error:
            # The database's errors: numbers that it cannot add up. The system's: no room for the files.
            return _note_trouble(row, error)
        except SoftTimeLimitExceeded:
            files.drop(project_id)
            return _note_trouble(row, StatisticsError("", "export_read_limit", secs=READ_SECS))
        _note_success(row)
    log.info("statistics_read", project=row.project.name, said=outcome)
    return outcome


@contextmanager
def _place(session: Connection[Any], project_id: int) -> Iterator[bool]:
    """Take the project's lock and one of the places; return False if they are taken."""
    session.execute(sql.SESSION)
    try:
        yield _lock(session, project_id) and any(_lock(session, -place) for place in range(1, AT_ONCE + 1))
    finally:
        # The server would notice the end of the session a moment later. A lost session holds no locks.
        with suppress(psycopg.OperationalError):
            session.execute(sql.UNLOCK)


def _lock(session: Connection[Any], key: int) -> bool:
    row = session.execute(sql.LOCK, {"project": key}).fetchone()
    return row is not None and bool(row[0])


def _begin(project_id: int, now: dt.datetime, at_once: bool) -> StatisticsImport | None:
    """Return the project's row, if it should be read. Its next time is set first: one that kills its worker is not
    retried at once.
    """
    row = StatisticsImport.objects.select_related("project__profile").filter(pk=project_id).first()
    if row is None or not (at_once or (row.is_on and row.next_at <= now)):
        return None
    next_at = now + _back_off(row.failures + 1)
    StatisticsImport.objects.filter(pk=project_id).update(asked_at=now, next_at=next_at)
    return row


def _back_off(failures: int) -> dt.timedelta:
    """Return how long to wait after this many failures in a row."""
    secs = min(RETRY.total_seconds() * 2.0 ** min(failures - 1, 10), MAX_BACK_OFF.total_seconds())
    return dt.timedelta(seconds=secs * random.uniform(1, 1 + _JITTER))


def url_of(row: StatisticsImport, project: Project) -> str:
    """Return the folder of the project's export."""
    url = row.url or f"{web_rpc_base(project)}stats/"
    return url if url.endswith("/") else f"{url}/"


def _import(session: Connection[Any], row: StatisticsImport, now: dt.datetime) -> str:
    if not is_own(row, row.project):
        return _read(session, row, _fetch(row, now))
    # Of everybody, published or not: volunteers see their own credit here, and nobody else's.
    with granted_to_all() as granted:
        tables = _in_time(Tables(granted.as_of, None, None), now)
        rows = store.source_of({USERS: granted.users, HOSTS: granted.hosts})
        return _read(session, row, _Export(tables, Version(), lambda: rows))


def _read(session: Connection[Any], row: StatisticsImport, export: _Export | None) -> str:
    if export is None or (row.update_time is not None and export.tables.update_time <= row.update_time.timestamp()):
        return "There is no new export."
    try:
        counts = store.keep(session, row, export.tables, export.version, export.source())
    except (StatisticsError, psycopg.DataError):
        # The same files would be wrong again.
        files.drop(row.project_id)
        raise
    files.drop(row.project_id)
    nodd = counts.hosts_odd + counts.users_odd
    return (
        f"{counts.hosts_kept} of {counts.hosts_read} computers and {counts.users_kept} of {counts.users_read} accounts "
        f"are of volunteers here; {counts.granted / 1e6:.2f} credits were granted."
        + (f" {nodd} odd records were left out or count in part." if nodd else "")
    )


@dataclass(frozen=True, slots=True)
class _Export:
    """``source``: reads the records, which may take long."""

    tables: Tables
    version: Version
    source: Callable[[], Source]


def _fetch(row: StatisticsImport, now: dt.datetime) -> _Export | None:
    """Fetch the project's export by HTTP; None if it is the one read last."""
    url = url_of(row, row.project)
    version = Version(row.etag, row.last_modified) if row.update_time is not None else None
    answer = fetch(f"{url}tables.xml", known=version, limits=_TABLES_LIMITS)
    if answer.is_unchanged:
        return None
    tables = _in_time(read_tables(answer.body), now)

    def download() -> Source:
        paths = {kind: files.download(row.project_id, f"{url}{kind.name}") for kind in (USERS, HOSTS)}
        # A project changes all of its files at once. If this one is unchanged, so are the others.
        again = _in_time(read_tables(fetch(f"{url}tables.xml", limits=_TABLES_LIMITS).body), now)
        if again.update_time != tables.update_time:
            raise StatisticsError("tables.xml", "export_replaced")
        return files.source_of(paths)

    return _Export(tables, answer.version, download)


def is_own(row: StatisticsImport, project: Project) -> bool:
    """Whether it is this site's own project: no request is needed, and its address may be a private one."""
    return project.is_served_here and not row.url


def _in_time(tables: Tables, now: dt.datetime) -> Tables:
    if tables.update_time > (now + AHEAD).timestamp():
        # All later exports would count as older.
        raise StatisticsError("tables.xml", "export_from_future")
    return tables


def _note_trouble(row: StatisticsImport, error: Exception) -> str:
    if isinstance(error, MessageError):
        message = error.message
    else:
        message = Message(VERBATIM, text=f"{type(error).__name__}: {error}")
    now = timezone.now()
    failures = row.failures + 1
    goes_on = isinstance(error, TimeIsUp) and failures <= _ATTEMPTS
    StatisticsImport.objects.filter(pk=row.pk).update(
        trouble=message,
        trouble_since=row.trouble_since or now,
        failures=failures,
        # The part received stays: a large file from a slow server takes several attempts.
        next_at=now + (RETRY if goes_on else _back_off(failures)),
    )
    log.info("statistics_not_read", project=row.project.name, reason=str(message))
    return str(message)


def _in_words() -> Iterator[str]:
    for row in daily_imports().select_related("project"):
        yield f"{row.project.name}: {import_project(row.pk, at_once=True)}"


IMPORT: Final = Job(
    "import_statistics",
    _("Statistics import"),
    _("Reads what projects granted, as the daily tasks do: all projects now, one after another."),
    _in_words,
    is_check=False,
)


def _note_success(row: StatisticsImport) -> None:
    every = dt.timedelta(seconds=settings.STATISTICS_IMPORT_EVERY_SECS)
    StatisticsImport.objects.filter(pk=row.pk).update(
        trouble=None,
        trouble_since=None,
        failures=0,
        next_at=timezone.now() + every * random.uniform(1 - _JITTER, 1),
    )

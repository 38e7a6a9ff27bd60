"""Makes an export: everything from one snapshot of the database, row by row, into files that are published together.

The snapshot is a separate connection that only reads. Meanwhile the export's row shows its progress.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psycopg
import structlog
from django.db import connection
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from psycopg import Connection, IsolationLevel

from credit.export import files, sql, writers
from credit.export.writers import FileKind, ProjectSums
from credit.models import GoneHost, GoneUser, StatisticsExport
from portal.databases.params import psycopg_params
from portal.maintenance.jobs import Job

log = structlog.get_logger("export")

GONE_KEPT: Final = dt.timedelta(days=60)
EXPORTS_KEPT: Final = dt.timedelta(days=60)
_PROGRESS_ROWS: Final = 50_000
_STATEMENTS: Final = {
    writers.USERS: sql.USERS,
    writers.TEAMS: sql.TEAMS,
    writers.HOSTS: sql.HOSTS,
    writers.GONE_USERS: sql.GONE_USERS,
    writers.GONE_HOSTS: sql.GONE_HOSTS,
}


def export() -> StatisticsExport | None:
    """Export everything, and publish it; None if another export is running. Raises errors, and records them.

    Safe to repeat and to interrupt: the published set changes in one step, when all files exist.
    """
    with psycopg.connect(**psycopg_params(), autocommit=True) as session, _lock(session) as is_free:
        if not is_free:
            return None
        made = _begin(timezone.now())
        try:
            _write(made)
        except BaseException as error:
            # Any kind of error, even the end of the process: operators see why there is no new export. The task fails.
            made.failure = f"{type(error).__name__}: {error}"[:200]
            raise
        finally:
            made.finished_at = timezone.now()
            made.save()
    log.info("statistics_exported", volunteers=made.nusers, computers=made.nhosts, nbytes=made.nbytes)
    return made


@contextmanager
def _lock(session: Connection[Any]) -> Iterator[bool]:
    """Take the lock of exports; yield False if another holds it. It ends with the session at the latest."""
    try:
        yield _first(session, sql.LOCK)[0]
    finally:
        # The server would notice the end of the session a moment later. A lost session holds no lock.
        with suppress(psycopg.OperationalError):
            session.execute(sql.UNLOCK)


@contextmanager
def read_snapshot() -> Iterator[Connection[Any]]:
    """Open a connection whose reads all see the same moment."""
    with psycopg.connect(**psycopg_params(connection), autocommit=True) as snapshot:
        snapshot.execute(sql.SESSION)
        snapshot.isolation_level = IsolationLevel.REPEATABLE_READ
        snapshot.read_only = True
        with snapshot.transaction():
            yield snapshot


def _in_words() -> Iterator[str]:
    made = export()
    if made is None:
        yield "Another export is running."
    else:
        yield f"{made.nusers} volunteers, {made.nteams} teams and {made.nhosts} computers, {made.nbytes} bytes."


EXPORT: Final = Job(
    "export_statistics",
    _("Statistics export"),
    _("Makes the files that other sites read, as the daily task does."),
    _in_words,
    is_check=False,
)


def _begin(now: dt.datetime) -> StatisticsExport:
    """Create the row of a new export. An earlier one that is still unfinished had a worker that was killed."""
    lost = StatisticsExport.objects.filter(finished_at=None)
    lost.update(finished_at=now, failure="The worker was ended.")
    StatisticsExport.objects.filter(started_at__lt=now - EXPORTS_KEPT, is_in_storage=False).delete()
    for model in (GoneUser, GoneHost):
        model.objects.filter(gone_at__lt=now - GONE_KEPT).delete()
    return StatisticsExport.objects.create(started_at=now)


def _write(made: StatisticsExport) -> None:
    made.nbytes = made.nrecords = 0
    with read_snapshot() as snapshot:
        taken_at, nusers, nhosts, total = _first(snapshot, sql.SUMS)
        with files.new_set(made, dt.datetime.fromtimestamp(taken_at, dt.UTC)) as folder:
            counts = {kind: _write_kind(snapshot, kind, folder, made) for kind in writers.KINDS}
            sums = ProjectSums(
                update_time=int(taken_at),
                nusers=nusers,
                nteams=counts[writers.TEAMS],
                nhosts=nhosts,
                nusers_deleted=counts[writers.GONE_USERS],
                nhosts_deleted=counts[writers.GONE_HOSTS],
                total_credit=total,
            )
            content = writers.tables(sums, [name for (name,) in snapshot.execute(sql.APPS)])
            made.nbytes += files.write(folder / writers.TABLES, [content], is_compressed=False)
    made.nusers, made.nteams, made.nhosts = (counts[kind] for kind in (writers.USERS, writers.TEAMS, writers.HOSTS))


def _write_kind(snapshot: Connection[Any], kind: FileKind, folder: Path, made: StatisticsExport) -> int:
    """Write one of the compressed files; return its number of records."""
    before = made.nrecords
    with snapshot.cursor() as cursor, cursor.copy(_STATEMENTS[kind]) as rows:
        parts = _records(kind, (bytes(row) for row in rows), lambda count: _report_progress(made, before + count))
        made.nbytes += files.write(folder / kind.name, parts, is_compressed=True)
    return made.nrecords - before


def _records(kind: FileKind, rows: Iterator[bytes], report: Callable[[int], None]) -> Iterator[bytes]:
    record = kind.record
    count = 0
    yield kind.begin
    for row in rows:
        yield record(row[:-1])  # without its line feed
        count += 1
        if not count % _PROGRESS_ROWS:
            report(count)
    yield kind.end
    report(count)


def _report_progress(made: StatisticsExport, nrecords: int) -> None:
    made.nrecords = nrecords
    StatisticsExport.objects.filter(pk=made.pk).update(nrecords=nrecords)


def _first(snapshot: Connection[Any], statement: Any) -> tuple[Any, ...]:
    row = snapshot.execute(statement).fetchone()
    assert row is not None  # each of these statements returns a row
    return tuple(row)

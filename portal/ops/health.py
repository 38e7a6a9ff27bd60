"""Reports whether this process is alive (/healthz) and ready (/readyz), for load balancers and process managers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic
from typing import Any, Final

import structlog
from django.conf import settings
from django.core.files.storage import FileSystemStorage, default_storage
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

from portal import __version__
from portal.databases import deadline
from portal.databases.clocks import WARN_SECS, WORST_SECS, ahead_secs
from portal.ops.cache import valkey

log = structlog.get_logger(__name__)

WRITE_EVERY_SECS: Final = 5.0
"""Each process tries to write at most this often, and reports the last result in between."""
_WRITTEN_NBYTES: Final = 256 * 1024
# The file of a temporary table is on the same disk as all other tables. Nobody else uses it, so it waits for no backup.
_MAKE_TABLE: Final = "CREATE TEMPORARY TABLE readyz (content text)"
_WRITE_ROWS: Final = "INSERT INTO readyz SELECT repeat('x', 1024) FROM generate_series(1, %s)"
_migrated = False
# By part: when it has to be tried again, and whether it worked.
_written: dict[str, tuple[float, bool]] = {}


class NotReady(Exception):
    """A part of the site cannot be used; the message says why."""


def healthz(_request: HttpRequest) -> HttpResponse:
    """Answer 200 with the version as long as this process works; checks nothing else."""
    return HttpResponse(f"ok {__version__}\n", content_type="text/plain")


def readyz(_request: HttpRequest) -> HttpResponse:
    """Answer 200 if all parts can be used, else 503; the body says which cannot, the log says why."""
    parts = {
        "database": _works("database", _check_database) and _can_write("database", _write_to_database),
        "cache": _works("cache", _check_cache),
        "files": _can_write("files", _write_files),
    }
    # An unreachable database is not asked again: that would only take longer.
    parts["clock"] = parts["database"] and _works("clock", _check_clock)
    parts["migrations"] = parts["database"] and _works("migrations", _check_migrations)
    ready = all(parts.values())
    words = {name: "ok" if works else "failed" for name, works in parts.items()}
    return JsonResponse({"ready": ready, "parts": words}, status=200 if ready else 503)


def _works(name: str, check: Callable[[], None]) -> bool:
    try:
        check()
    except Exception:
        # Any error: the part is not ready.
        log.warning("readiness_failed", part=name, exc_info=True)
        return False
    return True


def _can_write(name: str, write: Callable[[], None]) -> bool:
    until, works = _written.get(name, (0.0, False))
    if monotonic() >= until:
        works = _works(name, write)
        _written[name] = monotonic() + WRITE_EVERY_SECS, works
    return works


def _check_database() -> None:
    with _session() as session:
        session.execute("SELECT 1")


def _check_clock() -> None:
    with _session() as session:
        secs = ahead_secs(session)
    if abs(secs) > WORST_SECS:
        raise NotReady(f"this machine's clock is {secs:+.0f} s off the database's")
    if abs(secs) > WARN_SECS:
        log.warning("clock_is_off", ahead_secs=round(secs, 1))


def _session() -> Any:
    database = connections[DEFAULT_DB_ALIAS]
    assert isinstance(database, DatabaseWrapper)  # as in the settings
    pool = database.pool
    pool.open()
    with deadline.of_request() as request:
        return pool.connection(timeout=request.left_secs())


def _write_to_database() -> None:
    """Write to a temporary table, which is gone at the end of the transaction, with its space on the disk.

    Rolled back: otherwise the session would drop the table when it ends, and wait for a standby to confirm that, so
    that a primary which was cut off from all standbys could not be stopped.
    """
    with _session() as session, session.transaction(force_rollback=True):
        session.execute(_MAKE_TABLE)
        session.execute(_WRITE_ROWS, [_WRITTEN_NBYTES // 1024])


def _write_files() -> None:
    """Write to each folder that files are written to: they may be on different disks."""
    folders = {Path(settings.VAR_DIR)}
    if "project" in settings.ROOMS:
        folders.add(Path(settings.UPLOADS_DIR))
        if isinstance(default_storage, FileSystemStorage):
            folders.add(Path(default_storage.path("")))
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder, buffering=0) as file:
            if file.write(bytes(_WRITTEN_NBYTES)) < _WRITTEN_NBYTES:
                raise NotReady(f"{folder}: the disk is full")


def _check_cache() -> None:
    cache = valkey()
    cache.set("readyz", 1, timeout=60)
    if cache.get("readyz") != 1:
        raise NotReady("the cache does not keep what is put into it")


def _check_migrations() -> None:
    global _migrated
    # Applied migrations stay applied, and checking takes time.
    if not _migrated:
        executor = MigrationExecutor(connection)
        if waiting := executor.migration_plan(executor.loader.graph.leaf_nodes()):
            raise NotReady(f"{len(waiting)} migrations are not applied: manage.py migrate")
        _migrated = True

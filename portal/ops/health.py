"""Whether this process lives (/healthz) and can serve (/readyz), for load balancers and process managers."""

from __future__ import annotations

from collections.abc import Callable

import structlog
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

from portal.ops.cache import valkey

log = structlog.get_logger(__name__)

# A load balancer gives up after a few seconds.
DATABASE_LIMIT_SECS = 3.0
_migrated = False


class NotReady(Exception):
    """A part of the site cannot be used; the message says why."""


def healthz(_request: HttpRequest) -> HttpResponse:
    """200 as long as this process answers; it checks nothing else."""
    return HttpResponse("ok\n", content_type="text/plain")


def readyz(_request: HttpRequest) -> HttpResponse:
    """200 when all parts can be used, else 503; the body says which cannot, the log says why."""
    parts = {"database": _works("database", _check_database), "cache": _works("cache", _check_cache)}
    # A database that is down is not asked again: that would only take more time.
    parts["migrations"] = parts["database"] and _works("migrations", _check_migrations)
    ready = all(parts.values())
    words = {name: "ok" if works else "failed" for name, works in parts.items()}
    return JsonResponse({"ready": ready, "parts": words}, status=200 if ready else 503)


def _works(name: str, check: Callable[[], None]) -> bool:
    try:
        check()
    except Exception:
        # Of whatever kind: the part is not ready.
        log.warning("readiness.failed", part=name, exc_info=True)
        return False
    return True


def _check_database() -> None:
    pool = connection.pool  # type: ignore[attr-defined]
    pool.open()
    with pool.connection(timeout=DATABASE_LIMIT_SECS) as session:
        session.execute("SELECT 1")


def _check_cache() -> None:
    cache = valkey()
    cache.set("readyz", 1, timeout=60)
    if cache.get("readyz") != 1:
        raise NotReady("the cache does not keep what is put into it")


def _check_migrations() -> None:
    global _migrated
    # Once seen applied they stay applied, and looking takes time.
    if not _migrated:
        executor = MigrationExecutor(connection)
        if waiting := executor.migration_plan(executor.loader.graph.leaf_nodes()):
            raise NotReady(f"{len(waiting)} migrations are not applied: manage.py migrate")
        _migrated = True

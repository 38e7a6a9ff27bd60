"""The engine, under the module name that Django looks for."""

from __future__ import annotations

from typing import Any

from django.db.backends.postgresql import base
from django.db.backends.postgresql.psycopg_any import IsolationLevel

from portal.databases import deadline


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's wrapper for PostgreSQL; a request waits for a connection no longer than its deadline."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        request, pool = deadline.current(), self.pool
        if request is None or pool is None:
            return super().get_new_connection(conn_params)
        pool.open()
        with request.wait() as secs:
            connection = pool.getconn(secs)
        # Django's default.
        self.isolation_level = IsolationLevel.READ_COMMITTED
        return connection

"""Statements for the hottest paths: prepared on the server, sent by libpq directly, on Django's own connection.

Django's cursors put values into the SQL text, which PostgreSQL then plans anew each time, and a psycopg cursor costs
more than the statement's own round trip. Values and results are texts: each caller knows its columns.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

import psycopg
from django.db import connection
from psycopg import pq
from psycopg.errors import error_from_result

_PARAMETER = re.compile(r"%\((\w+)\)s")
_DONE: Final = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
# Which statements a connection has prepared already.
_prepared: WeakKeyDictionary[psycopg.Connection[Any], set[bytes]] = WeakKeyDictionary()


class Prepared:
    """One statement with named parameters, ``%(name)s``; each wants a cast in the SQL where its type is not obvious."""

    def __init__(self, sql: str) -> None:
        self.names = list(dict.fromkeys(_PARAMETER.findall(sql)))
        places = {name: f"${number}" for number, name in enumerate(self.names, 1)}
        self.sql = _PARAMETER.sub(lambda match: places[match[1]], sql).encode()
        self.name = b"cobblestone_" + hashlib.md5(self.sql).hexdigest().encode()

    def fetch_one(self, values: Mapping[str, str | None]) -> list[str | None] | None:
        """Run it in the present transaction, if there is one; the first row as texts, or None if there is none.

        On Django's connection if this thread has one, as it may be in a transaction; else on one of the pool's: what
        Django does at the begin and end of a connection's use costs more than the statement.
        Raises Django's database errors.
        """
        texts = [None if (value := values[name]) is None else value.encode() for name in self.names]
        # A context manager for each of these would cost as much as the rest.
        pool = getattr(connection, "pool", None) if connection.connection is None else None
        if pool is None:
            connection.ensure_connection()
            return self._fetch_one(connection.connection, texts)
        raw = pool.getconn()
        try:
            return self._fetch_one(raw, texts)
        finally:
            was_lost = raw.closed
            pool.putconn(raw)
            if was_lost:
                # After a restart of the database the others that wait are lost too: not each shall fail a request.
                pool.check()

    def _fetch_one(self, raw: psycopg.Connection[Any], texts: list[bytes | None]) -> list[str | None] | None:
        try:
            if not raw.autocommit and raw.pgconn.transaction_status == pq.TransactionStatus.IDLE:
                # psycopg begins a transaction with its first statement, which this one bypasses.
                raw.execute("SELECT 1")
            result = self._run(raw, texts)
        except psycopg.Error:
            with connection.wrap_database_errors:
                raise
        if result.ntuples == 0:
            return None
        row = [result.get_value(0, column) for column in range(result.nfields)]
        return [None if value is None else value.decode() for value in row]

    def _run(self, raw: psycopg.Connection[Any], texts: list[bytes | None]) -> pq.abc.PGresult:
        known = _prepared.setdefault(raw, set())
        if self.name not in known:
            _check(raw, raw.pgconn.prepare(self.name, self.sql))
            known.add(self.name)
        return _check(raw, raw.pgconn.exec_prepared(self.name, cast("list[bytes]", texts)))


def _check(raw: psycopg.Connection[Any], result: pq.abc.PGresult) -> pq.abc.PGresult:
    if result.status not in _DONE:
        raise error_from_result(result, encoding=raw.info.encoding)
    return result

"""Statements on the event loop's database connections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

import psycopg
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.generators import execute

from portal.clients.wants import Row, Statement, Step

Connection = psycopg.AsyncConnection[Row]

_DONE: Final = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
# What a connection knows each statement by, so far.
_prepared: WeakKeyDictionary[Connection, dict[Statement, bytes]] = WeakKeyDictionary()


async def fetch(connection: Connection, steps: Sequence[Step]) -> Sequence[Row]:
    """The rows of the last statement. Several go in one round trip, which is one transaction."""
    if len(steps) == 1:
        return await (await _execute(connection, steps[0])).fetchall()
    async with connection.pipeline():
        cursors = [await _execute(connection, step) for step in steps]
    # Committed only at the pipeline's end.
    return await cursors[-1].fetchall()


async def _execute(connection: Connection, step: Step) -> psycopg.AsyncRawCursor[Row]:
    cursor = psycopg.AsyncRawCursor(connection)
    return await cursor.execute(step.statement.text, step.statement.values(step.params), prepare=True)


async def fetch_prepared(connection: Connection, step: Step) -> Sequence[Row]:
    """The same for one statement, without a cursor, which costs as much again: 105 µs of the process, then 58.

    Only on a connection that never rolls back: psycopg then has the server forget what is prepared.
    """
    names = _prepared.setdefault(connection, {})
    name = names.get(step.statement)
    if name is None:
        name = b"clients_%d" % len(names)
        connection.pgconn.send_prepare(name, step.statement.text)
        await _result(connection)
        names[step.statement] = name
    transformer = Transformer(connection)
    values = step.statement.values(step.params)
    connection.pgconn.send_query_prepared(name, transformer.dump_sequence(values, [PyFormat.TEXT] * len(values)))
    result = await _result(connection)
    transformer.set_pgresult(result)
    return transformer.load_rows(0, result.ntuples, tuple)


async def _result(connection: Connection) -> pq.abc.PGresult:
    results: list[pq.abc.PGresult] = await connection.wait(execute(connection.pgconn))
    (result,) = results
    if result.status not in _DONE:
        raise error_from_result(result, encoding=connection.info.encoding)
    return result

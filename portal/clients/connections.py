"""Statements on the event loop's database connections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

import psycopg
from psycopg import pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.generators import execute, fetch_many, send
from psycopg.generators import fetch as fetch_one

from portal.clients.wants import Row, Statement, Step

Connection = psycopg.AsyncConnection[Row]

_DONE: Final = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
# What a connection knows each statement by, so far.
_prepared: WeakKeyDictionary[Connection, dict[Statement, bytes]] = WeakKeyDictionary()


async def fetch(connection: Connection, steps: Sequence[Step]) -> Sequence[Row]:
    """The rows of the last statement. Several go in one round trip, which is one transaction."""
    if len(steps) == 1:
        return await (await _execute(connection, steps[0])).fetchall()
    # Not by the pipeline's end alone: an error at the commit would then be told as one of the pipeline.
    async with connection.transaction(), connection.pipeline():
        cursors = [await _execute(connection, step) for step in steps]
    return await cursors[-1].fetchall()


def is_clean(connection: Connection) -> bool:
    """Whether the connection can be used again: it is idle, and nothing is on its way."""
    pgconn = connection.pgconn
    return (
        not connection.closed
        and pgconn.transaction_status == pq.TransactionStatus.IDLE
        and pgconn.pipeline_status == pq.PipelineStatus.OFF
    )


async def _execute(connection: Connection, step: Step) -> psycopg.AsyncRawCursor[Row]:
    cursor = psycopg.AsyncRawCursor(connection)
    return await cursor.execute(step.statement.text, step.statement.values(step.params), prepare=True)


async def fetch_prepared(connection: Connection, steps: Sequence[Step]) -> Sequence[Row]:
    """The same without cursors, which cost the process as much again (105 µs for a short statement, then 58).

    Only on a connection that never rolls back: psycopg then has the server forget what is prepared.
    """
    for step in steps:
        await _prepare(connection, step.statement)
    transformer = Transformer(connection)
    pgconn, names = connection.pgconn, _prepared[connection]
    values = [step.statement.values(step.params) for step in steps]
    texts = [transformer.dump_sequence(each, [PyFormat.TEXT] * len(each)) for each in values]
    if len(steps) == 1:
        pgconn.send_query_prepared(names[steps[0].statement], texts[0])
        (result,) = await connection.wait(execute(pgconn))
    else:
        pgconn.enter_pipeline_mode()
        for step, each in zip(steps, texts, strict=True):
            pgconn.send_query_prepared(names[step.statement], each)
        pgconn.pipeline_sync()
        await connection.wait(send(pgconn))
        results = [(await connection.wait(fetch_many(pgconn)))[0] for _ in steps]
        # The transaction is committed only now, and deferred constraints are checked.
        while (end := await connection.wait(fetch_one(pgconn))) is None or end.status != pq.ExecStatus.PIPELINE_SYNC:
            results += [end] if end is not None else []
        pgconn.exit_pipeline_mode()
        failed = (each for each in results if each.status not in _DONE)
        result = next(failed, results[len(steps) - 1])
    _check(connection, result)
    transformer.set_pgresult(result)
    return transformer.load_rows(0, result.ntuples, tuple)


async def _prepare(connection: Connection, statement: Statement) -> None:
    names = _prepared.setdefault(connection, {})
    if statement not in names:
        name = b"clients_%d" % len(names)
        connection.pgconn.send_prepare(name, statement.text)
        (result,) = await connection.wait(execute(connection.pgconn))
        _check(connection, result)
        names[statement] = name


def _check(connection: Connection, result: pq.abc.PGresult) -> None:
    if result.status not in _DONE:
        raise error_from_result(result, encoding=connection.info.encoding)

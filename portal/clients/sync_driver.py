"""Runs a use case at once, on Django's own connection: under any server, in tests, in commands and in threads.

It is slower than the event loop (`portal.clients.database.batching`); the results are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, cast

import psycopg
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections, transaction

from portal.clients.effects import (
    RUN_ALONE,
    Call,
    ExclusiveKey,
    Fetch,
    Query,
    ReadBody,
    Row,
    SingleFlight,
    Step,
    Steps,
    Then,
    Transaction,
    Value,
)

if TYPE_CHECKING:
    from django.db.backends.postgresql.base import DatabaseWrapper


def run(steps: Steps[Value], read_body: Callable[[int], bytes] | None = None) -> Value:
    """Run the steps and return their result; ``read_body(n)`` returns up to n bytes of the request's body."""
    sent: Any = None
    error: Exception | None = None
    while True:
        try:
            effect = steps.send(sent) if error is None else steps.throw(error)
        except StopIteration as end:
            result: Value = end.value
            return result
        sent = error = None
        try:
            sent = _get(effect, read_body)
        except Exception as raised:
            # Any error: it is raised in the use case, which awaited the effect.
            error = raised


def _get(effect: Any, read_body: Callable[[int], bytes] | None) -> Any:
    match effect:
        case Query():
            (result,) = effect.results([effect], fetch(effect.steps([effect], alone=True)))
            return None if result is RUN_ALONE else result
        case Fetch(steps):
            return fetch(steps)
        case Transaction(steps):
            try:
                with transaction.atomic():
                    return run(steps)
            finally:
                steps.close()  # it may never have begun
        case Call(function):
            return function()
        case SingleFlight(begin=begin):
            return run(begin())
        case ExclusiveKey():
            return None
        case ReadBody(nbytes):
            assert read_body is not None  # only use cases of streams ask for it
            if not _django().in_atomic_block:
                _django().close()  # a slow sender must not keep a connection of the pool
            return read_body(nbytes)
    raise TypeError(f"a use case awaited {type(effect).__name__}")


def _django() -> DatabaseWrapper:
    return cast("DatabaseWrapper", connections[DEFAULT_DB_ALIAS])


def fetch(steps: Sequence[Step | Then]) -> Sequence[Row]:
    """The rows of the last statement; several go in one round trip and are one transaction."""
    connection = _django()
    connection.ensure_connection()
    try:
        with connection.wrap_database_errors:
            with connection.connection.pipeline() if len(steps) > 1 else nullcontext():
                cursor = _execute(connection, steps[0])
                for step in steps[1:]:
                    cursor = _execute(connection, step.step(cursor.fetchall()) if isinstance(step, Then) else step)
            return cursor.fetchall()
    except OperationalError:
        if connection.connection.closed and connection.pool is not None:
            # After a restart of the database the other connections of the pool are lost too: none of them must fail a
            # request.
            connection.pool.check()
            if not connection.in_atomic_block:
                connection.close()
        raise


def _execute(connection: DatabaseWrapper, step: Any) -> psycopg.RawCursor[Row]:
    # Not Django's cursor, which returns other types. Not prepared: after a rollback psycopg drops all prepared
    # statements of the connection, those of `credit.validator.binary` too.
    statement = step.statement
    return psycopg.RawCursor(connection.connection).execute(
        statement.text, statement.values(step.params), prepare=False
    )

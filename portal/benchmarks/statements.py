"""What really goes to the database server: the statements of a piece of work, as libpq writes them down."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection
from psycopg import pq

from portal.prepared import next_connection

# "F" is from us to the server: a simple query, or the execution of a prepared statement.
_STATEMENT = re.compile(r"^F\t\d+\t(?:Query|Execute)\t.*$", re.MULTILINE)


def sent_by(action: Callable[[], object]) -> str:
    """What ``action`` sends on this thread's connection, then what on the pool's next; a message of libpq a line."""
    connection.ensure_connection()
    sent: list[str] = []
    with _traced(connection.connection, sent), _traced(next_connection(), sent):
        action()
    return "".join(reversed(sent))


@contextmanager
def _traced(used: psycopg.Connection[Any] | None, sent: list[str]) -> Iterator[None]:
    """Add what is sent on this connection in the block."""
    if used is None:
        yield
        return
    with tempfile.TemporaryFile() as file:
        descriptor = os.dup(file.fileno())
        used.pgconn.trace(descriptor)
        used.pgconn.set_trace_flags(pq.Trace.SUPPRESS_TIMESTAMPS)
        try:
            yield
        finally:
            used.pgconn.untrace()
            os.close(descriptor)
        file.seek(0)
        sent.append(file.read().decode())


def statements(action: Callable[[], object]) -> int:
    """How many statements ``action`` sends on these connections, BEGIN and COMMIT included."""
    return len(_STATEMENT.findall(sent_by(action)))

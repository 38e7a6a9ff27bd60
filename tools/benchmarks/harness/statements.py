"""The statements that a piece of work really sends to the database server, as libpq traces them."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection
from psycopg import pq

# "F" is from us to the server: a simple query, or the execution of a prepared statement.
_STATEMENT = re.compile(r"^F\t\d+\t(?:Query|Execute)\t.*$", re.MULTILINE)


def sent_by(action: Callable[[], object]) -> str:
    """Return the messages that ``action`` sends on this thread's connection, one per line."""
    connection.ensure_connection()
    sent: list[str] = []
    with traced(connection.connection.pgconn, sent):
        action()
    return sent[0]


@contextmanager
def traced(pgconn: pq.abc.PGconn, sent: list[str]) -> Iterator[None]:
    """Add the statements that are sent on this connection in the block."""
    with tempfile.TemporaryFile() as file:
        descriptor = os.dup(file.fileno())
        pgconn.trace(descriptor)
        pgconn.set_trace_flags(pq.Trace.SUPPRESS_TIMESTAMPS)
        try:
            yield
        finally:
            pgconn.untrace()
            os.close(descriptor)
        file.seek(0)
        sent.append(file.read().decode())


def statements(action: Callable[[], object]) -> int:
    """Count the statements that ``action`` sends, including BEGIN and COMMIT."""
    return count(sent_by(action))


def count(sent: str) -> int:
    """Count the statements in these messages."""
    return len(_STATEMENT.findall(sent))

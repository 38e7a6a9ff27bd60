"""What really goes to the database server: the statements of a piece of work, as libpq writes them down."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable

from django.db import connection
from psycopg import pq

# "F" is from us to the server: a simple query, or the execution of a prepared statement.
_STATEMENT = re.compile(r"^F\t\d+\t(?:Query|Execute)\t.*$", re.MULTILINE)


def sent_by(action: Callable[[], object]) -> str:
    """What ``action`` sends on this thread's connection, a message of libpq a line."""
    connection.ensure_connection()
    raw = connection.connection.pgconn
    with tempfile.TemporaryFile() as file:
        descriptor = os.dup(file.fileno())
        raw.trace(descriptor)
        raw.set_trace_flags(pq.Trace.SUPPRESS_TIMESTAMPS)
        try:
            action()
        finally:
            raw.untrace()
            os.close(descriptor)
        file.seek(0)
        return file.read().decode()


def statements(action: Callable[[], object]) -> int:
    """How many statements ``action`` sends on this thread's connection, BEGIN and COMMIT included."""
    return len(_STATEMENT.findall(sent_by(action)))

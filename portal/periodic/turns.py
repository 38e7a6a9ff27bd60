"""Decides whether a worker that received a periodic task's message carries it out.

Messages do not expire, as workers would compare the time with their own clocks. So after an outage many messages of one
task may be waiting, and beat may have sent one twice: the first is carried out, the others end at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, connections

# "pt", the first key of advisory locks; the second is derived from the task's name.
_TRY_LOCK: Final = "SELECT pg_try_advisory_xact_lock(28788, hashtext(%(name)s))"
# A time in the future comes from a clock that was ahead, on a machine that was the primary.
_WAS_DONE: Final = """
SELECT EXISTS (SELECT FROM portal_periodictask
                WHERE name = %(name)s AND done_at BETWEEN now() - %(rest_secs)s * interval '1 second' AND now())
"""
_DONE: Final = """
INSERT INTO portal_periodictask (name, done_at) VALUES (%(name)s, now())
ON CONFLICT (name) DO UPDATE SET done_at = excluded.done_at
"""


@contextmanager
def turn(name: str, rest_secs: float) -> Iterator[bool]:
    """Yield True if no other worker runs this task, and no successful run began within ``rest_secs``.

    The lock and the record are in a transaction on a separate connection, which lasts as long as the task, so the task
    commits when it wants.
    """
    own = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        own.ensure_connection()
        session: Any = own.connection
        values = {"name": name, "rest_secs": rest_secs}
        with session.transaction():
            (is_free,) = session.execute(_TRY_LOCK, values).fetchone()
            is_mine = is_free and not session.execute(_WAS_DONE, values).fetchone()[0]
            yield is_mine
            if is_mine:
                session.execute(_DONE, values)
    finally:
        own.close()

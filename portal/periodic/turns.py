"""Whether a worker that got the message of a periodic task is to carry it out.

Messages have no time of expiry, which workers would compare with their own clocks. So after an outage many of one task
may wait, and beat may have sent one twice: the first is carried out, the others end at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, connections

# "pt", the first key of advisory locks; the second is made of the task's name.
_TRY_LOCK: Final = "SELECT pg_try_advisory_xact_lock(28788, hashtext(%(name)s))"
# A time to come is that of a clock that was ahead, on a machine that was the primary.
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
    """True if no other worker is at this task, or began within ``rest_secs`` with a run that succeeded.

    The lock and the note are in a transaction on a connection of their own, which lasts as long as the task: the task
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

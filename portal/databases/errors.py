"""Which errors say that the database was lost, not that a statement was wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import psycopg
from psycopg.errors import DiskFull
from psycopg_pool import PoolTimeout

READ_ONLY: Final = "25006"
"""SQLSTATE of a write on a server that is no primary any more."""
_DISK_FULL: Final = "53100"
_LOST: Final = frozenset({READ_ONLY, _DISK_FULL, "57P01", "57P02", "57P03"})
"""Those two, and: ended by an operator, by a crash, and not ready yet (PostgreSQL's appendix on error codes)."""
_CONNECTION_CLASS: Final = "08"


def is_database_lost(error: BaseException) -> bool:
    """Whether the connection was lost, could not be made, or leads to a server that only reads or has no room.

    Nobody knows then whether the transaction was committed. What is safe to repeat may be done again.
    """
    return any(_is_lost(cause) for cause in _causes(error) if isinstance(cause, psycopg.Error))


def is_worth_repeating(error: BaseException) -> bool:
    """Whether the connection was lost in the middle. If none could be had, another try would wait as long; and a full
    disk stays full for longer.
    """
    is_vain = has_no_connection(error) or any(isinstance(cause, DiskFull) for cause in _causes(error))
    return is_database_lost(error) and not is_vain


def has_no_connection(error: BaseException) -> bool:
    """Whether none could be had in the time that there was."""
    return any(isinstance(cause, PoolTimeout) for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and those that led to it: Django's errors are raised from psycopg's."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__


def _is_lost(error: psycopg.Error) -> bool:
    if error.sqlstate:
        return error.sqlstate in _LOST or error.sqlstate.startswith(_CONNECTION_CLASS)
    # Errors without a number are those of libpq, psycopg and the pool: there was no server to answer.
    return isinstance(error, psycopg.OperationalError) or "connection" in str(error)

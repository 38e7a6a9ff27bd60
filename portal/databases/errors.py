"""Tells errors that mean that the database was lost from those of a wrong statement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import psycopg
from psycopg.errors import DiskFull
from psycopg_pool import PoolTimeout

READ_ONLY: Final = "25006"
"""SQLSTATE of a write on a server that is no longer the primary."""
_DISK_FULL: Final = "53100"
_LOST: Final = frozenset({READ_ONLY, _DISK_FULL, "57P01", "57P02", "57P03"})
"""These, and: ended by an operator, by a crash, and not ready yet (PostgreSQL's appendix on error codes)."""
_CONNECTION_CLASS: Final = "08"


def is_database_lost(error: BaseException) -> bool:
    """Whether the connection was lost or could not be made, or its server is read-only or out of disk space.

    It is then unknown whether the transaction was committed. What is safe to repeat may be done again.
    """
    return any(_is_lost(cause) for cause in _causes(error) if isinstance(cause, psycopg.Error))


def is_worth_repeating(error: BaseException) -> bool:
    """Whether the connection was lost midway. If there was none to be had, another try would wait as long; and a full
    disk stays full.
    """
    is_vain = has_no_connection(error) or any(isinstance(cause, DiskFull) for cause in _causes(error))
    return is_database_lost(error) and not is_vain


def has_no_connection(error: BaseException) -> bool:
    """Whether there was no connection to be had in time."""
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

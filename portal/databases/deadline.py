"""How long a request waits for the database: one deadline over all its waits, on the event loop and in threads.

A request that waited in vain once asks no more: whatever else it wants of the database fails at once. Outside of
requests, in tasks and commands, each wait has the pool's own limit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from psycopg_pool import PoolTimeout

WAIT_SECS: Final = 2.0
LEAST_SECS: Final = 0.1
"""What is left to a request that waited longer for a thread, as it does on a busy site: enough to take a connection."""


class Deadline:
    """One request's deadline, which starts again whenever it is given something. ``is_lost``: it has passed."""

    __slots__ = ("_by", "is_lost")

    def __init__(self) -> None:
        self.is_lost = False
        self.begin_again()

    def begin_again(self) -> None:
        self._by = time.monotonic() + WAIT_SECS

    def left_secs(self) -> float:
        return max(LEAST_SECS, self._by - time.monotonic())

    def give_up(self) -> PoolTimeout:
        """The error of a request for which there is no database."""
        self.is_lost = True
        return PoolTimeout("this request waited in vain for a connection")

    @contextmanager
    def wait(self) -> Iterator[float]:
        """How many seconds to wait for a connection, within the block."""
        if self.is_lost:
            raise self.give_up()
        try:
            yield self.left_secs()
        except PoolTimeout:
            self.is_lost = True
            raise
        self.begin_again()


_current: Final[ContextVar[Deadline | None]] = ContextVar("database_deadline", default=None)


def current() -> Deadline | None:
    """That of the request which is being answered here."""
    return _current.get()


@contextmanager
def of_request() -> Iterator[Deadline]:
    """That of the request, which begins here unless it has begun: threads and shared tasks work for a request."""
    if (deadline := _current.get()) is not None:
        yield deadline
        return
    deadline = Deadline()
    token = _current.set(deadline)
    try:
        yield deadline
    finally:
        _current.reset(token)

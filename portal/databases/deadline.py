"""How long a request waits for the database: one deadline over all its waits, on the event loop and in threads.

Once a request has waited too long, whatever else it asks of the database fails at once. Outside of requests, in tasks
and commands, each wait has the pool's own limit.
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
"""What is left for a request that waited long for a thread, as on a busy site: enough to take a connection."""


class Deadline:
    """A request's deadline, which starts again whenever the database answered. ``is_lost``: it has passed."""

    __slots__ = ("_by", "is_lost")

    def __init__(self) -> None:
        self.is_lost = False
        self.begin_again()

    def begin_again(self) -> None:
        self._by = time.monotonic() + WAIT_SECS

    def left_secs(self) -> float:
        return max(LEAST_SECS, self._by - time.monotonic())

    def give_up(self) -> PoolTimeout:
        """Mark the deadline as passed, and return the error to raise."""
        self.is_lost = True
        return PoolTimeout("this request waited too long for a connection")

    @contextmanager
    def wait(self) -> Iterator[float]:
        """Yield the seconds that the block may wait for a connection."""
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
    """The deadline of the request that is being answered here; None outside of requests."""
    return _current.get()


@contextmanager
def of_request() -> Iterator[Deadline]:
    """The request's deadline, which begins here unless it has begun: threads and shared tasks work for a request."""
    if (deadline := _current.get()) is not None:
        yield deadline
        return
    deadline = Deadline()
    token = _current.set(deadline)
    try:
        yield deadline
    finally:
        _current.reset(token)

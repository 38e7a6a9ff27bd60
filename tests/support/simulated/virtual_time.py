"""An event loop whose clock jumps to the next event: hours take milliseconds, and each run is like the one before."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
MOST_PASSES = 200_000


class Stuck(AssertionError):
    """Nothing can happen any more, and yet somebody waits; or it never ends."""


class VirtualLoop(asyncio.BaseEventLoop):
    """It has no sockets, so callbacks and timers are all there is, in an order that is always the same.

    ``faults``: what would have been logged, as exceptions that nobody fetched.
    """

    def __init__(self) -> None:
        super().__init__()
        self._now = 1.0
        self._npasses = 0
        self._selector = self
        self.faults: list[str] = []
        self.set_exception_handler(lambda _, context: self.faults.append(repr(context)))

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[Any]:
        """Where other loops wait for sockets."""
        self._npasses += 1
        if timeout is None:
            raise Stuck("nothing is under way, and somebody waits")
        if self._npasses > MOST_PASSES:
            raise Stuck(f"no end after {MOST_PASSES} passes")
        self._now += max(timeout, 0.0)
        return []

    def _process_events(self, _events: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        """There is no other thread that could have to wake it."""


def run(main: Coroutine[Any, Any, Result], loop: VirtualLoop) -> Result:
    try:
        return loop.run_until_complete(main)
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
            # What it raises now is of no interest.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()

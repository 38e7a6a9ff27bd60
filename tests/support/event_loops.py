"""Event loops in threads of their own, each as in a process of the site, for use cases to run on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import Any, Self, TypeVar

from django.db import close_old_connections

from portal.clients.database.batching import Batcher
from portal.clients.effects import Steps
from portal.clients.factory import connection_params

Result = TypeVar("Result")
PATIENCE_SECS = 60


class Loop:
    """A loop that runs until the block ends."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.batcher: Batcher = self._do(self._make())
        return self

    async def _make(self) -> Batcher:
        return Batcher(connection_params(), close_old_connections)

    def __exit__(self, *_: object) -> None:
        self._do(self.batcher.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE_SECS)

    def submit(self, steps: Steps[Result]) -> Future[Result]:
        return asyncio.run_coroutine_threadsafe(self.batcher.run(steps), self._loop)

    def run(self, steps: Steps[Result]) -> Result:
        return self.submit(steps).result(PATIENCE_SECS)

    def run_together(self, steps: Iterable[Steps[Result]]) -> list[Result | BaseException]:
        """What each returns or raises; they begin within one pass of the loop."""

        async def all_of_them() -> list[Result | BaseException]:
            return await asyncio.gather(*[self.batcher.run(step) for step in steps], return_exceptions=True)

        found: list[Result | BaseException] = self._do(all_of_them())
        return found


@contextmanager
def several(number: int) -> Iterator[list[Loop]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Loop()) for _ in range(number)]


def run_all(loops: Sequence[Loop], steps: Iterable[Steps[Result]]) -> list[Result | BaseException]:
    """What each use case returns or raises; they begin at the same moment, one after the other on each of the loops."""
    under_way = [loops[number % len(loops)].submit(each) for number, each in enumerate(steps)]
    return [each.exception(PATIENCE_SECS) or each.result() for each in under_way]

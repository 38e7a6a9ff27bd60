"""Two sessions, of which one waits for a lock of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from django.db import connection

from tests.support.wait import wait_until

Result = TypeVar("Result")


def nwaiting_for_locks() -> int:
    """How many sessions wait for one, also inside a transaction, where PostgreSQL would repeat its first answer."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        number: int = cursor.fetchone()[0]
        return number


@contextmanager
def meanwhile(run: Callable[[], Result]) -> Iterator[Callable[[], Future[Result]]]:
    """What is called begins ``run`` on another connection, and returns when that waits for a lock."""

    def there() -> Result:
        try:
            return run()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:

        def begin() -> Future[Result]:
            begun = pool.submit(there)
            wait_until(lambda: begun.done() or bool(nwaiting_for_locks()), "the second, or that it waits", 30)
            return begun

        yield begin

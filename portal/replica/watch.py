"""How far the replica is behind, as this process knows it.

Each second a thread asks the primary how far its log (WAL) goes, and the replica how far it has replayed it. The
replica has all that was committed before a moment once it has replayed what the primary's log had then. So only this
process's monotonic clock counts, no clock of a server, and neither a quiet primary nor a cut between the two looks like
a replica without lag. Requests ask nothing: they look at what the thread found.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import psycopg
import structlog

log = structlog.get_logger("replica")

EVERY_SECS: Final = 1.0
ANSWER_SECS: Final = 2.0
"""A server that does not answer within this time is away."""
_KEPT: Final = 1000
# Of what is inserted: with synchronous_commit = off, what was acknowledged may not be written yet.
PRIMARY_AT: Final = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"
# A server that was promoted is no replica any more.
REPLICA_AT: Final = "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() - '0/0'::pg_lsn END"


class Away(Exception):
    """The replica cannot be used; the message says why."""


async def _answer(connection: psycopg.AsyncConnection[Any], statement: str) -> Any:
    """The row. Raises TimeoutError where psycopg, to cancel it, would wait much longer for the server."""

    async def ask() -> Any:
        return await (await connection.execute(statement.encode())).fetchone()

    question = asyncio.ensure_future(ask())
    done, _ = await asyncio.wait({question}, timeout=ANSWER_SECS)
    if done:
        return question.result()
    shut_down(connection)
    await asyncio.wait({question})
    question.exception()
    raise TimeoutError


def shut_down(session: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """End a session without its server: whoever waits for an answer gets an error."""
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(session.fileno())) as other:
        other.shutdown(socket.SHUT_RDWR)


class Watch:
    """``primary`` and ``replica``: psycopg's parameters. ``lag_max_secs``: a replica further behind is not used.

    ``cut``: ends what waits for a replica that does not answer.
    """

    def __init__(
        self, primary: dict[str, Any], replica: dict[str, Any], lag_max_secs: float, cut: Callable[[], None]
    ) -> None:
        self._cut: Final = cut
        self._params: Final = {"primary": primary, "replica": replica}
        self._lag_max_secs: Final = lag_max_secs
        self._lock: Final = threading.Lock()
        self._pid = 0
        self._connections: dict[str, psycopg.AsyncConnection[Any]] = {}
        self._samples: deque[tuple[float, int]] = deque(maxlen=_KEPT)
        # The replica has all that was committed before; None: it cannot be used.
        self._has_all_before: float | None = None
        self._was_usable = False
        self._is_stopped = threading.Event()

    def is_usable(self) -> bool:
        """Whether the replica has all that was committed until ``lag_max_secs`` ago."""
        lag_secs = self.lag_secs()
        return lag_secs is not None and lag_secs <= self._lag_max_secs

    def lag_secs(self) -> float | None:
        """How far it is behind at most; None: it cannot be used, or nothing is known yet."""
        self.start()
        before = self._has_all_before
        return None if before is None else time.monotonic() - before

    def put_away(self) -> None:
        """It has just failed: it is not used until the next look finds that it answers."""
        self._has_all_before = None

    def start(self) -> None:
        """Start the thread, once in each process: a forked child has none."""
        if self._pid == os.getpid():
            return
        with self._lock:
            if self._pid != os.getpid():
                self._pid = os.getpid()
                self._connections.clear()
                self._has_all_before = None
                threading.Thread(target=self._run, name="replica", daemon=True).start()

    def stop(self) -> None:
        """End the thread soon; the replica is not used any more."""
        self._is_stopped.set()
        self._has_all_before = None

    def _run(self) -> None:
        asyncio.run(self._look_all_the_time())

    async def _look_all_the_time(self) -> None:
        while not self._is_stopped.is_set():
            begun = time.monotonic()
            reason = await self._look_safely()
            if self.is_usable() != self._was_usable:
                self._was_usable = not self._was_usable
                log.warning("replica_used_again" if self._was_usable else "replica_not_used", reason=reason)
            await asyncio.sleep(max(0.0, begun + EVERY_SECS - time.monotonic()))
        for connection in self._connections.values():
            connection.pgconn.finish()

    async def _look_safely(self) -> str:
        """One look; why the replica cannot be used."""
        try:
            await self._look_at_primary()
            await self._look_at_replica()
        except (psycopg.Error, OSError, TimeoutError, Away) as error:
            return type(error).__name__ if not isinstance(error, Away) else str(error)
        return "too far behind"

    async def _look_at_primary(self) -> None:
        """While the primary is away the replica gets older, as far as we know."""
        asked_at = time.monotonic()
        if (position := await self._ask("primary", PRIMARY_AT)) is not None:
            self._samples.append((asked_at, position))

    async def _look_at_replica(self) -> None:
        try:
            position = await self._ask("replica", REPLICA_AT)
        except BaseException:
            self._has_all_before = None
            self._cut()
            raise
        if position is None:
            self._has_all_before = None
            raise Away("it is no standby")
        reached = [asked_at for asked_at, primary in self._samples if primary <= position]
        self._has_all_before = max(reached, default=None)

    async def _ask(self, name: str, statement: str) -> int | None:
        try:
            connection = self._connections.get(name)
            if connection is None or connection.closed:
                connection = await psycopg.AsyncConnection.connect(**self._params[name], autocommit=True)
                self._connections[name] = connection
            row = await _answer(connection, statement)
        except BaseException:
            if (broken := self._connections.pop(name, None)) is not None:
                broken.pgconn.finish()
            raise
        return None if row is None or row[0] is None else int(row[0])

"""A database server that fails in all the ways that matter, and the loop's connections and pools to it.

What a connection sends is carried out by the server on its own: it goes on if the client gives up. A statement outside
a transaction is one, and is committed before it is answered. The answer may be lost before or after that.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg_pool import PoolTimeout, TooManyRequests

from portal.clients.database import batching
from portal.clients.effects import Row, Step, Then
from tests.support.simulated.store import Store, Transaction

Handler = Callable[[Transaction, Step], Awaitable[list[Row]]]

LOST_BEFORE = "lost before it was carried out"
REFUSED = "cancelled by the server"
ROLLED_BACK = "lost, and rolled back"
LOST_AFTER = "committed, and the answer lost"
COMMITTED_LATER = "lost, and committed later"
STALLED = "answered after a minute"
FAILOVER = "the server died"
FAULTS = (
    LOST_BEFORE,
    REFUSED,
    ROLLED_BACK,
    LOST_AFTER,
    LOST_AFTER,
    COMMITTED_LATER,
    COMMITTED_LATER,
    STALLED,
    FAILOVER,
)


class Server:
    """``handle``: carries out a statement. ``fault_rate``: of statements; 0 ends all faults."""

    def __init__(self, store: Store, handle: Handler, rng: random.Random, fault_rate: float, *, stalls: bool) -> None:
        self._faults = FAULTS if stalls else tuple(fault for fault in FAULTS if fault != STALLED)
        self.store = store
        self.rng = rng
        self.fault_rate = fault_rate
        self.nfaults = 0
        self.napart = 0
        self.trace: list[tuple[Any, ...]] = []
        self.connections: dict[FakeConnection, None] = {}
        self._handle = handle
        self._up_at = 0.0
        # asyncio keeps no reference to tasks.
        self._tasks: set[asyncio.Task[None]] = set()

    async def is_up(self) -> None:
        while (wait_secs := self._up_at - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(wait_secs)

    def fail_over(self) -> None:
        """The leader dies; another one has all that was acknowledged, and of the rest what was committed."""
        self.nfaults += 1
        self.store.end_all()
        for connection in list(self.connections):
            connection.lose()
        self._up_at = asyncio.get_running_loop().time() + self.rng.uniform(0.5, 15)

    async def _delay(self) -> None:
        secs = self.rng.choice((0.0, 0.0005, 0.001, 0.002, 0.005, 0.05))
        if secs:
            await asyncio.sleep(secs)

    def _fault(self) -> str | None:
        if self.rng.random() >= self.fault_rate:
            return None
        self.nfaults += 1
        return self.rng.choice(self._faults)

    def send(self, connection: FakeConnection, steps: Sequence[Step | Then] | None) -> asyncio.Future[list[Row]]:
        """What the server will answer; ``steps`` None: the end of a transaction."""
        answer: asyncio.Future[list[Row]] = asyncio.get_running_loop().create_future()
        task = asyncio.get_running_loop().create_task(self._serve(connection, steps, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return answer

    async def _serve(
        self, connection: FakeConnection, steps: Sequence[Step | Then] | None, answer: asyncio.Future[list[Row]]
    ) -> None:
        fault = self._fault()
        self.trace.append((asyncio.get_running_loop().time(), fault, len(steps or ())))
        transaction = connection.transaction_ or Transaction(self.store)
        commits = connection.transaction_ is None or steps is None
        try:
            await self._delay()
            if fault == FAILOVER:
                self.fail_over()
            if fault == REFUSED:
                raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")
            if fault == LOST_BEFORE or connection.is_lost:
                raise connection.lose()
            if fault == STALLED:
                await asyncio.sleep(self.rng.uniform(20, 90))
            rows: list[Row] = []
            for step in steps or ():
                rows = await self._handle(transaction, step.step(rows) if isinstance(step, Then) else step)
            await self._delay()
            if fault == ROLLED_BACK:
                raise connection.lose()
            if fault == COMMITTED_LATER:
                _fail(answer, connection.lose())
                await asyncio.sleep(self.rng.uniform(0, 6))
            if commits:
                transaction.commit()
            await self._delay()
            if fault == LOST_AFTER or connection.is_lost:
                raise connection.lose()
            if not answer.done():
                answer.set_result(rows)
        except Exception as error:
            # Of any kind: the request that waits must get it.
            commits = True
            _fail(answer, error)
        finally:
            if commits:
                transaction.rollback()
                connection.transaction_ = None


def _fail(answer: asyncio.Future[list[Row]], error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)
        answer.exception()  # the client may be gone


class FakeConnection:
    """The part of `psycopg.AsyncConnection` that the batcher uses."""

    def __init__(self, server: Server) -> None:
        self.server = server
        # Whether the client knows that it was lost, and whether it was
        self.closed = self.is_lost = False
        self.transaction_: Transaction | None = None
        self.unread: asyncio.Future[list[Row]] | None = None
        server.connections[self] = None

    def lose(self) -> psycopg.OperationalError:
        """The client notices it when it next waits for an answer."""
        self.is_lost = True
        self.server.connections.pop(self, None)
        if self.unread is not None:
            _fail(self.unread, psycopg.OperationalError("the connection was lost"))
        elif self.transaction_ is not None:
            self.transaction_.rollback()
        return psycopg.OperationalError("the connection was lost")

    async def close(self) -> None:
        self.lose()
        self.closed = True

    async def exchange(self, steps: Sequence[Step | Then] | None) -> list[Row]:
        if self.closed:
            raise psycopg.OperationalError("the connection is closed")
        if self.unread is None:
            if self.is_lost:
                self.closed = True
                raise psycopg.OperationalError("the connection was lost")
            self.unread = self.server.send(self, steps)
        # Else the next answer on this connection is that to the statement before.
        unread = self.unread
        try:
            return await asyncio.shield(unread)
        finally:
            if unread.done():
                self.unread = None
                self.closed = self.closed or self.is_lost

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        if self.transaction_ is not None:
            yield  # a savepoint
            return
        self.transaction_ = Transaction(self.server.store)
        try:
            await self.exchange(())
            yield
        except BaseException:
            # Which may have been refused, or be still waiting for its answer.
            if self.unread is not None:
                await self.close()
            elif self.transaction_ is not None:
                self.transaction_.rollback()
                self.transaction_ = None
            raise
        await self.exchange(None)


class FakeBatchConnection:
    """`portal.clients.database.connections.BatchConnection` over a connection of the fake server."""

    def __init__(self, connection: FakeConnection) -> None:
        self.connection = connection

    @property
    def is_clean(self) -> bool:
        return not self.connection.closed and self.connection.unread is None

    def release(self) -> FakeConnection:
        return self.connection

    async def fetch(self, steps: Sequence[Step | Then]) -> Sequence[Row]:
        return await self.connection.exchange(steps)


async def fetch(connection: FakeConnection, steps: Sequence[Step | Then]) -> Sequence[Row]:
    """`portal.clients.database.connections.fetch`"""
    connection.server.napart += 1
    return await connection.exchange(steps)


class FakePool:
    """The part of `psycopg_pool.AsyncConnectionPool` that the batcher uses. ``nused``: connections that are out."""

    def __init__(self, server: Server, size: int) -> None:
        self._server = server
        self._free = asyncio.Semaphore(size)
        self._idle: list[FakeConnection] = []
        self._nwaiting = 0
        self.nused = 0

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        for each in self._idle:
            await each.close()
        self._idle = []

    async def check(self) -> None:
        self._idle = [each for each in self._idle if not each.is_lost]

    async def getconn(self) -> FakeConnection:
        if self._nwaiting >= batching.MAX_WAITING_APART:
            raise TooManyRequests("too many wait")
        self._nwaiting += 1
        try:
            async with asyncio.timeout(batching.CONNECT_SECS):
                await self._free.acquire()
                try:
                    if not self._idle:
                        await self._server.is_up()
                except BaseException:
                    self._free.release()
                    raise
        except TimeoutError:
            raise PoolTimeout("couldn't get a connection") from None
        finally:
            self._nwaiting -= 1
        self.nused += 1
        # The pool does not look whether the server has ended it.
        return self._idle.pop() if self._idle else FakeConnection(self._server)

    async def putconn(self, connection: FakeConnection) -> None:
        self.nused -= 1
        if connection.unread is not None:
            await connection.close()
        if not connection.closed:
            self._idle.append(connection)
        self._free.release()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[FakeConnection]:
        connection = await self.getconn()
        try:
            yield connection
        finally:
            await self.putconn(connection)

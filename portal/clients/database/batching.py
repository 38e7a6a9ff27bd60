"""Runs use cases on an event loop: the queries of all waiting requests go to the database as one statement.

No query waits for a batch to fill: a connection that becomes free takes all queries that came meanwhile, and a query
that comes alone is sent at once. If a batch fails, each of its queries is run again alone, so that a fault affects only
the request that caused it; so is a query that the batch left out because others hold its rows. Such queries, and slow
ones, have connections of their own.

Everything here runs on the loop's thread. Queues are changed only in functions that do not await: an await in the
middle of a change would lose requests or do them twice (tests/portal/clients/test_batching.py checks it).
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import psycopg
from psycopg_pool import AsyncConnectionPool, TooManyRequests

from portal.clients.database.connections import BatchConnection, Connection, fetch
from portal.clients.effects import (
    RUN_ALONE,
    Busy,
    Call,
    ExclusiveKey,
    Fetch,
    Query,
    ReadBody,
    SingleFlight,
    Steps,
    Transaction,
    Value,
)
from portal.databases import deadline
from portal.databases.deadline import Deadline
from portal.databases.errors import has_no_connection

Pool = AsyncConnectionPool[Connection]
ReadPart = Callable[[int], Awaitable[bytes]]
_Batch = list[tuple[Query[Any], asyncio.Future[Any]]]
Held = dict[Hashable, Callable[[], None]]
"""The keys that a request holds, each with the function that releases it."""

MAX_BATCH_QUERIES: Final = 32
"""The most queries in a batch: a longer statement gains nothing, and the queries behind it wait longer."""
READERS: Final = 1
WRITERS: Final = 1
APART_CONNECTIONS: Final = 4
BATCH_SECS: Final = 45.0
"""Time limit of a batch; above the database's own statement timeout, which a hung server does not enforce."""
MAX_WAITING_APART: Final = 200
"""The most transactions and slow queries waiting for a connection; more are refused."""
CONNECT_SECS: Final = 1.4
"""How long all callers wait for a connection, except threads, which wait until the request's deadline."""
RECONNECT_SECS: Final = 2.0
"""A pool that tries to connect waits longer after each attempt; after this long it starts again with a short wait."""
THREADS: Final = 8
MAX_CALLS: Final = 200
"""The most slow calls under way or waiting for a thread; more are refused."""


_CONNECTION_IS_STALE: Final = (
    psycopg.errors.FeatureNotSupported,
    psycopg.errors.InvalidSqlStatementName,
    psycopg.errors.ReadOnlySqlTransaction,
)
"""After a migration a statement that was prepared before may return other types, or may be gone. And the server may no
longer be the primary that it was when the connection was made."""


_DATABASE_EFFECTS: Final = (Query, Fetch, Transaction)


class _QueryQueue:
    """Waiting queries, and connections that each carry out one batch of them at a time."""

    def __init__(self, size: int, pool: Pool, run_alone: Callable[[Query[Any]], Awaitable[Any]]) -> None:
        self._pool = pool
        self._run_alone = run_alone
        self._waiting: deque[tuple[Query[Any], asyncio.Future[Any]]] = deque()
        self._nfree = size
        self._kept: list[BatchConnection] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, query: Query[Any]) -> asyncio.Future[Any]:
        """Queue a query, and return the future of its result."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((query, future))
        if self._nfree:
            self._nfree -= 1
            self._start(self._work())
        return future

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _take(self) -> _Batch:
        """Take the queries that have waited longest and fit into one batch."""
        taken: _Batch = []
        left: _Batch = []
        owners: set[Hashable] = set()
        kind: Hashable = None
        while self._waiting and len(taken) < MAX_BATCH_QUERIES:
            query, future = self._waiting.popleft()
            if future.done():
                continue  # its request has ended, perhaps because it took too long
            kind = kind if taken else query.kind
            if query.kind != kind or query.owner in owners:
                left.append((query, future))
                continue
            taken.append((query, future))
            if query.owner is not None:
                owners.add(query.owner)
        self._waiting.extendleft(reversed(left))
        return taken

    async def _work(self) -> None:
        """Carry out batches until nothing is waiting."""
        try:
            while batch := self._take():
                try:
                    connection = await self._connection()
                except Exception as error:
                    # All queries that came meanwhile waited for a connection as well.
                    self._fail(batch, error)
                    continue
                await self._carry_out(connection, batch)
        finally:
            self._nfree += 1

    def _fail(self, batch: _Batch, error: Exception) -> None:
        batch.extend(self._waiting)
        self._waiting.clear()
        for _, future in batch:
            if not future.done():
                future.set_exception(error)

    async def close(self) -> None:
        while self._kept:
            await self._pool.putconn(self._kept.pop().release())

    async def _connection(self) -> BatchConnection:
        """The one used last, as its PostgreSQL process still has the data in its caches; else a new one."""
        while self._kept:
            connection = self._kept.pop()
            if not connection.connection.closed:
                return connection
            await self._pool.putconn(connection.release())  # which makes room for a new one
        return BatchConnection(await self._pool.getconn())

    async def _carry_out(self, connection: BatchConnection, batch: _Batch) -> None:
        queries = [query for query, _ in batch]
        try:
            async with asyncio.timeout(BATCH_SECS):
                rows = await connection.fetch(type(queries[0]).steps(queries, alone=False))
            results: Sequence[Any] = type(queries[0]).results(queries, rows)
            outcomes = list(zip(batch, results, strict=True))
        except Exception as error:
            # Any error: a single query may have caused it.
            outcomes = [(call, RUN_ALONE) for call in batch]
            if isinstance(error, _CONNECTION_IS_STALE) or not connection.is_clean:
                await connection.release().close()
        except BaseException:
            # The loop is ending.
            for _, future in batch:
                future.cancel()
            await connection.release().close()
            raise
        finally:
            self._kept.append(connection)
        for (query, future), its in outcomes:
            if its is RUN_ALONE:
                self._start(self._again(query, future))
            elif not future.done():
                future.set_result(its)

    async def _again(self, query: Query[Any], future: asyncio.Future[Any]) -> None:
        if future.done():
            return  # its request has ended
        try:
            result = await self._run_alone(query)
        except Exception as error:
            # Any kind of exception: otherwise the request that waits for this future would wait for ever.
            if not future.done():
                future.set_exception(error)
        else:
            if not future.done():
                future.set_result(result)


class Batcher:
    """Runs use cases on the event loop that it was made on.

    ``connection_params``: psycopg's for the database; ``thread_ended`` is called in the thread after each slow call.
    """

    def __init__(self, connection_params: dict[str, Any], thread_ended: Callable[[], None] = lambda: None) -> None:
        self._params = {**connection_params, "autocommit": True}
        # A separate pool, so that slow queries cannot take the connections of batches.
        self._batch_pool = self._make_pool(READERS + WRITERS)
        self._pool = self._make_pool(APART_CONNECTIONS)
        self._reads = _QueryQueue(READERS, self._batch_pool, self._run_alone)
        self._writes = _QueryQueue(WRITERS, self._batch_pool, self._run_alone)
        self._threads = ThreadPoolExecutor(THREADS, "slow-call")
        self._thread_ended = thread_ended
        self._calls = threading.BoundedSemaphore(MAX_CALLS)
        self._held: dict[Hashable, asyncio.Future[bool]] = {}
        self._shared: dict[Hashable, asyncio.Task[Any]] = {}
        self._checking: asyncio.Task[None] | None = None
        self._is_open = False

    def _make_pool(self, size: int) -> Pool:
        return AsyncConnectionPool(
            kwargs=self._params,
            min_size=0,
            max_size=size,
            max_waiting=MAX_WAITING_APART,
            timeout=CONNECT_SECS,
            # Otherwise the pool waits longer after each attempt, and refuses clients long after an outage has ended.
            reconnect_timeout=RECONNECT_SECS,
            open=False,
        )

    async def close(self) -> None:
        await self._reads.close()
        await self._writes.close()
        await self._batch_pool.close()
        await self._pool.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, steps: Steps[Value], read_part: ReadPart | None = None) -> Value:
        """Run the steps and return their result; ``read_part(n)`` returns up to n bytes of the request's body."""
        held: Held = {}
        with deadline.of_request() as request:

            def get(effect: Any) -> Awaitable[Any]:
                if request.is_lost and isinstance(effect, _DATABASE_EFFECTS):
                    raise request.give_up()
                return self._query(effect) if isinstance(effect, Query) else self._get(effect, held, read_part)

            try:
                await self._open()
                return await _drive(steps, get, request)
            finally:
                steps.close()
                for release in held.values():
                    release()

    async def _open(self) -> None:
        if not self._is_open:
            self._is_open = True
            await self._batch_pool.open()
            await self._pool.open()

    def _query(self, query: Query[Any]) -> Awaitable[Any]:
        if query.is_slow:
            return self._run_alone(query)
        return (self._writes if query.is_write else self._reads).submit(query)

    async def _get(self, effect: Any, held: Held, read_part: ReadPart | None) -> Any:
        match effect:
            case Call(function):
                return await self._call(function)
            case Transaction(steps):
                return await self._transaction(steps)
            case Fetch(steps):
                return await self._repeat_if_lost(partial(fetch, steps=steps))
            case ExclusiveKey(key):
                return await self._take_turn(key, held)
            case SingleFlight(key, begin):
                return await self._share(key, begin)
            case ReadBody(nbytes):
                assert read_part is not None  # only use cases of streams ask for it
                return await read_part(nbytes)
        raise TypeError(f"a use case awaited {type(effect).__name__}")

    @asynccontextmanager
    async def _own_connection(self) -> AsyncIterator[Connection]:
        """A connection for a query or transaction that is done separately."""
        try:
            async with self._pool.connection() as connection:
                try:
                    yield connection
                except _CONNECTION_IS_STALE:
                    await connection.close()
                    raise
                finally:
                    if connection.closed:
                        # It was lost, for instance when the database restarted, and others may be, too.
                        await self._check_pool()
        except TooManyRequests:
            raise Busy from None

    async def _check_pool(self) -> None:
        """Let the pool replace the connections that are lost."""
        if self._checking is None or self._checking.done():
            self._checking = asyncio.get_running_loop().create_task(self._pool.check())
        # Shielded: psycopg's check takes a cancellation for a connection's fault, and goes on.
        await asyncio.shield(self._checking)

    async def _run_alone(self, query: Query[Any]) -> Any:
        return await self._repeat_if_lost(partial(_execute_alone, query=query))

    async def _repeat_if_lost(
        self, do: Callable[[Connection], Awaitable[Value]], may_repeat: Callable[[], bool] = lambda: True
    ) -> Value:
        """Run ``do`` on a connection; again on another one if the first was lost, perhaps while nobody used it."""
        async with self._own_connection() as connection:
            try:
                return await do(connection)
            except _CONNECTION_IS_STALE:
                await connection.close()
                if not may_repeat():
                    raise
            except psycopg.OperationalError:
                if not (connection.closed and may_repeat()):
                    raise
        # A query whose connection was lost may have been carried out: use cases notice that, as they do when a client
        # repeats a request.
        async with self._own_connection() as connection:
            return await do(connection)

    async def _transaction(self, steps: Steps[Value]) -> Value:
        has_begun = False

        async def carry_out(connection: Connection) -> Value:
            nonlocal has_begun
            async with connection.transaction():
                has_begun = True
                return await _drive(steps, partial(_get_in_transaction, connection))

        # Once begun, the steps cannot be run again.
        try:
            return await self._repeat_if_lost(carry_out, lambda: not has_begun)
        finally:
            steps.close()

    async def _call(self, function: Callable[[], Any]) -> Any:
        if not self._calls.acquire(blocking=False):
            raise Busy
        # Log lines in the thread carry the request's id.
        future = self._threads.submit(contextvars.copy_context().run, self._called, function)
        # Not when the request ends, which may be before its thread does.
        future.add_done_callback(lambda _: self._calls.release())
        return await asyncio.wrap_future(future)

    def _called(self, function: Callable[[], Any]) -> Any:
        try:
            return function()
        finally:
            self._thread_ended()

    async def _take_turn(self, key: Hashable, held: Held) -> None:
        if key in held:
            return
        before = self._held.get(key)
        mine = asyncio.get_running_loop().create_future()
        request = deadline.current()
        self._held[key] = mine

        def release() -> None:
            mine.set_result(request is not None and request.is_lost)
            if self._held.get(key) is mine:
                del self._held[key]

        if before is not None:
            try:
                is_lost = await asyncio.shield(before)
            except asyncio.CancelledError:
                # The next request must still wait for the one before.
                before.add_done_callback(lambda _: release())
                raise
            if is_lost and request is not None:
                # Otherwise all that wait would wait as long for the database, one after the other.
                error = request.give_up()
                release()
                raise error
        held[key] = release

    async def _share(self, key: Hashable, begin: Callable[[], Steps[Any]]) -> Any:
        if key not in self._shared:
            task = asyncio.get_running_loop().create_task(self.run(begin()))
            self._shared[key] = task
            task.add_done_callback(partial(self._forget_shared, key))
        # Shielded: a request that is cancelled must not end it for the others.
        return await asyncio.shield(self._shared[key])

    def _forget_shared(self, key: Hashable, task: asyncio.Task[Any]) -> None:
        del self._shared[key]
        if not task.cancelled():
            task.exception()  # otherwise asyncio logs it as lost if all requests that waited for it were cancelled


async def _drive(steps: Steps[Value], get: Callable[[Any], Awaitable[Any]], request: Deadline | None = None) -> Value:
    """Run the steps and return their result; ``get`` carries out each effect. ``request``: whose steps these are."""
    sent: Any = None
    error: Exception | None = None
    try:
        while True:
            try:
                effect = steps.send(sent) if error is None else steps.throw(error)
            except StopIteration as end:
                result: Value = end.value
                return result
            sent = error = None
            try:
                sent = await get(effect)
                if request is not None:
                    request.begin_again()
            except Exception as raised:
                # Any error: it is raised in the use case, which awaited the effect.
                error = raised
                if request is not None and has_no_connection(raised):
                    request.is_lost = True
    finally:
        # Its traceback refers to this frame, which refers to it: the server would keep the connection until the
        # garbage collector finds that.
        error = None
        # If the request was cancelled, the use case must release what it holds.
        steps.close()


async def _get_in_transaction(connection: Connection, effect: Any) -> Any:
    if isinstance(effect, Query):
        return await _execute_alone(connection, effect)
    if isinstance(effect, Fetch):
        return await fetch(connection, effect.steps)
    raise TypeError(f"a transaction's steps awaited {type(effect).__name__}")


async def _execute_alone(connection: Connection, query: Query[Any]) -> Any:
    rows = await fetch(connection, query.steps([query], alone=True))
    (result,) = query.results([query], rows)
    return None if result is RUN_ALONE else result

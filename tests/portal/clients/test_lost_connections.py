"""The event loop's connections when the database restarts, hangs or is changed: requests are answered soon after."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psycopg
import pytest
import uvloop
from django.conf import settings
from django.db import connection
from psycopg_pool import PoolTimeout
from psycopg_pool.base import AttemptWithBackoff

from portal.clients.database import batching
from portal.clients.database.batching import Batcher
from portal.clients.effects import (
    Fetch,
    Row,
    Statement,
    Step,
)
from portal.clients.factory import connection_params
from tests.support.batch_queries import (
    PATIENCE_SECS,
    Calculate,
    in_transaction,
    on_loop,
    once,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_after_a_restart_of_the_database_nobody_sees_a_fault() -> None:
    async def work(made: Batcher) -> list[Any]:
        found = [await made.run(once(Calculate(1)))]
        found.append(await made.run(once(Calculate(1, slow=True))))
        await asyncio.to_thread(_end_all_connections)
        found += await asyncio.gather(*[made.run(once(Calculate(number, slow=number > 3))) for number in range(7)])
        return found

    found = on_loop(work)
    assert [result for result, _ in found] == [2, 2, 1, 2, 3, 4, 5, 6, 7]


def test_after_a_restart_of_the_database_transactions_and_statements_are_done_on_new_connections() -> None:
    async def work(made: Batcher) -> list[Any]:
        number = Calculate(1)
        ways = [in_transaction(once(number)), once(Fetch(number.steps([number], alone=True)))]
        found = [await made.run(steps) for steps in ways]
        await asyncio.to_thread(_end_all_connections)
        again = [once(Fetch(number.steps([number], alone=True))), in_transaction(once(number))]
        return [*found, *[await made.run(steps) for steps in again]]

    one, (row,), again, one_again = on_loop(work)
    assert one == one_again
    assert again == [row]


def _end_all_connections() -> None:
    parameters = connection_params()
    with psycopg.connect(**parameters) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'cobblestone-clients' AND pid <> pg_backend_pid()"
            " AND datname = current_database()"
        )


def test_without_a_database_all_who_wait_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "CONNECT_SECS", 0.5)

    async def work() -> list[Any]:
        made = Batcher({"host": "127.0.0.1", "port": 1, "dbname": "none"})
        try:
            return await asyncio.gather(*[made.run(once(Calculate(n))) for n in range(3)], return_exceptions=True)
        finally:
            await made.close()

    assert [type(error) for error in asyncio.run(work())] == [PoolTimeout] * 3


def test_a_connection_that_is_ended_under_a_query_holds_up_nobody() -> None:
    """With the loop that is used in production: it does not watch a socket any more that has had an error."""

    async def work() -> None:
        made = Batcher(connection_params())
        with psycopg.connect(**connection_params(), autocommit=True) as other:
            for _ in range(5):
                await made.run(once(Calculate(1)))
                (kept,) = made._reads._kept
                server = kept.connection.info.backend_pid
                os.kill(server, signal.SIGSTOP)
                other.execute("SELECT pg_terminate_backend(%s)", [server])
                asked = [asyncio.create_task(made.run(once(Calculate(number)))) for number in range(5)]
                while kept._ready is None:
                    await asyncio.sleep(0)
                # It says that it ends, and closes the connection with the query unread: the socket has an error.
                os.kill(server, signal.SIGCONT)
                async with asyncio.timeout(PATIENCE_SECS):
                    found = await asyncio.gather(*asked)
                assert [result for result, _ in found] == [1, 2, 3, 4, 5]
        await made.close()

    uvloop.run(work())


class SilentDatabase:
    """A port in front of the database, which takes connections and answers none of them until it is told to."""

    def __init__(self) -> None:
        self.is_silent = True
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> SilentDatabase:
        self._server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_raised: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*[writer.wait_closed() for writer in self._writers], return_exceptions=True)

    def params(self) -> dict[str, Any]:
        """The parameters with which the database is asked through it."""
        port = self._server.sockets[0].getsockname()[1]
        return {**connection_params(), "host": "127.0.0.1", "port": port, "sslmode": "disable", "gssencmode": "disable"}

    async def _handle(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        self._writers.append(to_client)
        if self.is_silent:
            return
        params = connection_params()
        folder = f"{params['host']}/.s.PGSQL.{params.get('port', 5432)}"
        is_folder = str(params["host"]).startswith("/")
        server, to_server = await (
            asyncio.open_unix_connection(folder)
            if is_folder
            else asyncio.open_connection(params["host"], params["port"])
        )
        self._writers.append(to_server)
        await asyncio.gather(self._pump(client, to_server), self._pump(server, to_client))

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while part := await source.read(65536):
                target.write(part)
        target.close()


def test_after_an_outage_in_which_connecting_hangs_all_is_answered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a machine is gone, or a firewall drops packets: a pool makes one connection at a time."""
    monkeypatch.setattr(batching, "CONNECT_SECS", 1.0)

    async def ask(made: Batcher) -> list[Any]:
        asked = [made.run(once(Calculate(number, slow=slow))) for number, slow in ((1, False), (2, True))]
        return await asyncio.gather(*asked, return_exceptions=True)

    async def run() -> list[Any]:
        async with SilentDatabase() as database:
            made = Batcher(database.params())
            assert [type(each) for each in await ask(made)] == [PoolTimeout, PoolTimeout]
            database.is_silent = False
            async with asyncio.timeout(PATIENCE_SECS):
                found = await ask(made)
                while any(isinstance(each, Exception) for each in found):
                    found = await ask(made)
            await made.close()
        return found

    assert asyncio.run(run()) == [(2, 1), (3, 1)]


@pytest.mark.parametrize("pool", ["pages", "clients"])
def test_during_an_outage_each_pool_tries_to_connect_again_within_seconds(pool: str) -> None:
    if pool == "pages":
        reconnect_secs = settings.DATABASES["default"]["OPTIONS"]["pool"]["reconnect_timeout"]
    else:
        reconnect_secs = Batcher({})._pool.reconnect_timeout
    # What the pool itself counts with; where it gives up, the next request starts again.
    attempt, now, delays = AttemptWithBackoff(timeout=reconnect_secs), 1000.0, []
    while not attempt.time_to_give_up(now):
        attempt.update_delay(now)
        delays.append(attempt.delay)
        now += attempt.delay
    # 1 s, 10 % longer at most, and the rest of the two.
    assert max(delays) < 2
    # An attempt that hangs ends too.
    assert int(connection_params()["connect_timeout"]) <= 5


def test_a_server_that_has_stopped_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "BATCH_SECS", 0.5)

    async def work(made: Batcher) -> Any:
        await made.run(once(Calculate(1)))
        (kept,) = made._reads._kept
        stopped = kept.connection.info.backend_pid
        os.kill(stopped, signal.SIGSTOP)
        try:
            # By itself, on another connection.
            return await asyncio.wait_for(made.run(once(Calculate(2))), PATIENCE_SECS)
        finally:
            os.kill(stopped, signal.SIGCONT)

    assert on_loop(work) == (3, 1)


def test_a_statement_that_a_migration_has_made_stale_is_prepared_anew() -> None:
    table = Statement("SELECT * FROM batching_stale, unnest(%(numbers)s::integer[]) n")

    def change(sql: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)
        connection.close()

    async def work(made: Batcher) -> list[Any]:
        nbatches = []
        for sql in ("CREATE TABLE batching_stale AS SELECT 7 AS n, 1 AS result", None):
            if sql:
                await asyncio.to_thread(change, sql)
            else:
                await asyncio.to_thread(change, "ALTER TABLE batching_stale ADD COLUMN more text")
                await made.run(once(Columns(1, table)))  # fails as a batch, and is done by itself
            (columns,) = [await made.run(once(Columns(1, table)))]
            nbatches.append((columns, len(made._reads._kept[0]._names)))
        return nbatches

    try:
        assert on_loop(work) == [(3, 1), (4, 1)]
    finally:
        change("DROP TABLE IF EXISTS batching_stale")


@pytest.mark.parametrize("way", ["slow query", "fetch", "transaction"])
def test_on_a_connection_for_single_queries_a_stale_statement_fails_once_at_most(way: str) -> None:
    table = Statement("SELECT * FROM batching_stale, unnest(%(numbers)s::integer[]) n")

    def change(sql: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql)
        connection.close()

    async def steps() -> int:
        if way == "slow query":
            ncolumns: int = await Columns(1, table, slow=True)
            return ncolumns
        rows = await Fetch([Step(table, {"numbers": [1]})])
        return len(rows[0])

    async def work(made: Batcher) -> list[Any]:
        async def ncolumns() -> Any:
            asked = in_transaction(steps()) if way == "transaction" else steps()
            return (await asyncio.gather(made.run(asked), return_exceptions=True))[0]

        before = [await ncolumns(), await ncolumns()]
        await asyncio.to_thread(change, "ALTER TABLE batching_stale ADD COLUMN more text")
        return [*before, await ncolumns(), await ncolumns()]

    change("CREATE TABLE batching_stale AS SELECT 7 AS n, 1 AS result")
    try:
        *before, first, second = on_loop(work)
    finally:
        change("DROP TABLE batching_stale")
    assert before == [3, 3] and second == 4
    # A transaction that has begun cannot be done again: its steps are taken once.
    assert isinstance(first, psycopg.errors.FeatureNotSupported) if way == "transaction" else first == 4


class Columns(Calculate):
    """How many columns the statement's row has."""

    @staticmethod
    def results(several: Sequence[Calculate], rows: Sequence[Row]) -> Sequence[Any]:
        return [len(rows[0])] * len(several)


def test_an_idle_connection_that_the_database_ends_does_not_keep_the_loop_busy() -> None:
    async def work(made: Batcher) -> tuple[int, Any]:
        await made.run(once(Calculate(1)))
        (kept,) = made._reads._kept
        await asyncio.to_thread(_end_all_connections)
        async with asyncio.timeout(PATIENCE_SECS):
            while kept._is_watched:
                await asyncio.sleep(0.01)
        return len(made._reads._kept), await made.run(once(Calculate(1)))

    assert on_loop(work) == (1, (2, 1))

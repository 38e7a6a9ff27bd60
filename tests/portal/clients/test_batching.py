"""Use cases on the event loop: queries that wait are sent together, and each request gets its own result or fault."""

from __future__ import annotations

import ast
import asyncio
import gc
import threading
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from portal.clients import sync_driver
from portal.clients.database import batching
from portal.clients.database.batching import Batcher
from portal.clients.effects import (
    Busy,
    Call,
    ExclusiveKey,
    Fetch,
    Query,
    Row,
    SingleFlight,
    Statement,
    Step,
    Steps,
    Then,
    in_thread,
)
from portal.clients.factory import connection_params
from portal.models import User
from tests.support.batch_queries import (
    ADD,
    INVERT,
    NPREPARED,
    PATIENCE_SECS,
    RENAME,
    Calculate,
    Rename,
    all_at_once,
    in_transaction,
    on_loop,
    once,
)
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_is_wanted_at_the_same_time_is_one_statement() -> None:
    found = all_at_once(*[once(Calculate(number)) for number in range(5)])
    assert found == [(number + 1, 5) for number in range(5)]


def test_who_comes_alone_is_served_at_once() -> None:
    assert all_at_once(once(Calculate(1))) == [(2, 1)]


def test_what_comes_while_the_connection_is_busy_goes_together_next() -> None:
    async def work(made: Batcher) -> list[Any]:
        first = asyncio.create_task(made.run(once(Calculate(1))))
        while made._reads._nfree:
            await asyncio.sleep(0)
        await asyncio.sleep(0)  # the first batch is taken
        others = [asyncio.create_task(made.run(once(Calculate(number)))) for number in (2, 3)]
        return [await each for each in (first, *others)]

    assert on_loop(work) == [(2, 1), (3, 2), (4, 2)]


def test_queries_of_different_kinds_are_different_batches() -> None:
    found = all_at_once(once(Calculate(1)), once(Calculate(2, INVERT)), once(Calculate(3)))
    assert found == [(2, 2), (6, 1), (4, 2)]


def test_a_batch_has_one_query_of_each_owner() -> None:
    found = all_at_once(*[once(Calculate(number, whose="alice")) for number in (1, 2)], once(Calculate(3)))
    assert [nbatch for _, nbatch in found] == [2, 1, 2]


def test_a_batch_has_no_more_than_the_most() -> None:
    found = all_at_once(*[once(Calculate(number)) for number in range(batching.MAX_BATCH_QUERIES + 1)])
    assert [nbatch for _, nbatch in found] == [batching.MAX_BATCH_QUERIES] * batching.MAX_BATCH_QUERIES + [1]


def test_a_fault_is_its_own_requests_alone() -> None:
    first, failed, third = all_at_once(*[once(Calculate(number, INVERT)) for number in (1, 0, 3)])
    assert (first, third) == ((12, 1), (4, 1))
    assert isinstance(failed, psycopg.errors.DivisionByZero)


def test_a_fault_in_preparing_a_batch_is_its_own_requests_alone() -> None:
    beyond = 10**400
    first, failed = all_at_once(once(Calculate(1)), once(Calculate(beyond)))
    assert first == (2, 1)
    assert isinstance(failed, psycopg.Error)


def test_what_a_batch_leaves_out_is_done_by_itself() -> None:
    found = all_at_once(once(Calculate(1)), once(Calculate(2, left_out=True)))
    assert found == [(2, 2), (3, 1)]


def test_what_cannot_be_done_by_itself_either_is_none() -> None:
    assert all_at_once(once(Rename(0))) == [None]


def test_a_slow_query_keeps_nobody_waiting() -> None:
    found = all_at_once(once(Calculate(1, slow=True)), once(Calculate(2)), once(Calculate(3)))
    assert found == [(2, 1), (3, 2), (4, 2)]


@pytest.mark.parametrize("way", ["slow query", "fetch", "transaction"])
def test_what_is_done_by_itself_is_prepared(way: str) -> None:
    query = Calculate(1, NPREPARED, slow=True)
    steps = {
        "slow query": lambda: once(query),
        "fetch": lambda: once(Fetch(query.steps([query], alone=True))),
        "transaction": lambda: in_transaction(once(query)),
    }
    (found,) = all_at_once(steps[way]())
    assert found == ([(1, 1, 1)] if way == "fetch" else (1, 1))


ECHO = Statement("SELECT %(text)s::text")


@dataclass(frozen=True, slots=True, eq=False)
class Echo(Query[Any]):
    """A text, sent and received in each of some statements."""

    text: str
    nsteps: int
    is_write: ClassVar[bool] = False

    @property
    def kind(self) -> Hashable:
        return Echo

    @staticmethod
    def steps(several: Sequence[Echo], *, alone: bool) -> Sequence[Step]:
        return [Step(ECHO, {"text": several[0].text})] * several[0].nsteps

    @staticmethod
    def results(several: Sequence[Echo], rows: Sequence[Row]) -> Sequence[Any]:
        return [text for (text,) in rows]


@pytest.mark.parametrize("nsteps", [1, 4])
def test_more_than_a_socket_holds_is_sent_and_received_while_others_go_on(nsteps: int) -> None:
    text = "0123456789abcdef" * 500_000  # 8 MB

    async def work(made: Batcher) -> list[Any]:
        long = asyncio.create_task(made.run(once(Echo(text, nsteps))))
        turns = 0
        while not long.done():
            await asyncio.sleep(0)
            turns += 1
        return [await long, turns, await made.run(once(Calculate(1)))]

    found, turns, after = on_loop(work)
    assert found == text
    assert turns > 10  # the loop was not held up
    assert after == (2, 1)


async def renames_then(user: User, error: Exception | None) -> str:
    name: str = await Rename(user.pk)
    rows = await Fetch([Step(Statement("SELECT name FROM portal_user WHERE id = %(id)s::bigint"), {"id": user.pk})])
    assert rows == [(name,)]  # it sees what it has written
    if error:
        raise error
    return name


@pytest.mark.parametrize("driver", ["loop", "plain"])
def test_a_transaction_is_done_whole_or_not_at_all(alice: User, bob: User, driver: str) -> None:
    def run(steps: Steps[Any]) -> Any:
        return all_at_once(steps)[0] if driver == "loop" else _plainly(steps)

    assert run(in_transaction(renames_then(alice, None))) == "renamed"
    assert isinstance(run(in_transaction(renames_then(bob, ValueError()))), ValueError)
    assert list(User.objects.order_by("pk").values_list("name", flat=True)) == ["renamed", "Bob"]


def _plainly(steps: Steps[Any]) -> Any:
    try:
        return sync_driver.run(steps)
    except Exception as error:
        return error


def test_several_statements_are_one_transaction(alice: User) -> None:
    failing = Fetch([Step(RENAME, {"id": alice.pk, "name": "x"}), Step(INVERT, {"numbers": [0]})])

    async def steps() -> Any:
        return await failing

    (error,) = all_at_once(steps())
    assert isinstance(error, psycopg.errors.DivisionByZero)
    assert isinstance(_plainly(steps()), Exception)
    alice.refresh_from_db()
    assert alice.name == "Alice"


def test_a_call_runs_in_a_thread_and_gives_djangos_connection_back(alice: User) -> None:
    def look() -> tuple[int, int]:
        return User.objects.count(), threading.get_ident()

    ((nusers, thread),) = all_at_once(in_thread(look))
    assert nusers == 1
    assert thread != threading.get_ident()


def test_too_many_calls_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batching, "MAX_CALLS", 2)
    goes_on = threading.Event()

    async def work(made: Batcher) -> list[Any]:
        under_way = [asyncio.create_task(made.run(in_thread(goes_on.wait, PATIENCE_SECS))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await made.run(in_thread(goes_on.wait, PATIENCE_SECS))
        # Who needs no thread goes on.
        found = [await made.run(once(Calculate(1)))]
        goes_on.set()
        return found + await asyncio.gather(*under_way)

    assert on_loop(work) == [(2, 1), True, True]


def test_what_is_wanted_once_is_done_once() -> None:
    calls: list[int] = []

    def call() -> int:
        calls.append(1)
        return len(calls)

    async def steps() -> Any:
        return await SingleFlight("same", lambda: in_thread(call))

    assert all_at_once(steps(), steps(), steps()) == [1, 1, 1]
    assert all_at_once(steps()) == [2]


def test_a_fault_that_nobody_waits_for_any_more_is_no_noise(caplog: pytest.LogCaptureFixture) -> None:
    goes_on = threading.Event()

    def fail() -> None:
        goes_on.wait(PATIENCE_SECS)
        raise ValueError("nobody hears this")

    async def work(made: Batcher) -> bool:
        asked = asyncio.create_task(made.run(once(SingleFlight("same", lambda: in_thread(fail)))))
        await asyncio.sleep(0.05)
        asked.cancel()
        goes_on.set()
        async with asyncio.timeout(PATIENCE_SECS):
            while made._shared:
                await asyncio.sleep(0.01)
        return asked.cancelled()

    assert on_loop(work)
    gc.collect()
    assert not caplog.records


def test_one_request_of_a_host_comes_after_the_other() -> None:
    under_way: list[str] = []

    async def steps(key: str) -> list[str]:
        await ExclusiveKey(key)
        under_way.append(key)
        await Calculate(1)
        seen = list(under_way)
        under_way.remove(key)
        return seen

    first, second, other = all_at_once(steps("a"), steps("a"), steps("b"))
    assert first.count("a") == second.count("a") == 1
    assert sorted(first) == ["a", "b"]
    assert other.count("b") == 1


def test_a_request_that_is_cancelled_lets_go_of_its_turn_and_of_what_it_holds() -> None:
    closed: list[bool] = []

    async def waits() -> None:
        try:
            await ExclusiveKey("a")
            await Call(lambda: goes_on.wait(PATIENCE_SECS))
        finally:
            closed.append(True)

    goes_on = threading.Event()

    async def next_one() -> str:
        await ExclusiveKey("a")
        return "its turn"

    async def work(made: Batcher) -> Any:
        first = asyncio.create_task(made.run(waits()))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(made.run(next_one()))
        await asyncio.sleep(0)
        first.cancel()
        try:
            return await asyncio.wait_for(second, PATIENCE_SECS)
        finally:
            goes_on.set()

    assert on_loop(work) == "its turn"
    assert closed == [True]


def test_a_request_that_is_cancelled_while_it_waits_gives_nobody_its_turn_too_soon() -> None:
    under_way: list[str] = []
    goes_on = threading.Event()

    async def steps(name: str, event: threading.Event | None = None) -> list[str]:
        await ExclusiveKey("a")
        under_way.append(name)
        seen = list(under_way)
        await Call(lambda: event is None or event.wait(PATIENCE_SECS))
        under_way.remove(name)
        return seen

    async def work(made: Batcher) -> list[list[str]]:
        first = asyncio.create_task(made.run(steps("first", goes_on)))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(made.run(steps("second")))
        await asyncio.sleep(0.05)
        third = asyncio.create_task(made.run(steps("third")))
        await asyncio.sleep(0.05)
        second.cancel()
        await asyncio.sleep(0.2)
        goes_on.set()
        return [await first, await third]

    assert on_loop(work) == [["first"], ["third"]]


def test_a_lock_that_others_hold_keeps_up_only_who_needs_it(alice: User) -> None:
    with psycopg.connect(**connection_params()) as other:
        other.execute("SELECT 1 FROM portal_user WHERE id = %s FOR UPDATE", [alice.pk])
        own = other.info.backend_pid

        async def work(made: Batcher) -> list[Any]:
            held = asyncio.create_task(made.run(once(Rename(alice.pk, slow=True))))
            await asyncio.to_thread(wait_until, lambda: _is_waited_for(own), "somebody to wait", PATIENCE_SECS)
            found = await asyncio.gather(*[made.run(once(Calculate(number))) for number in range(3)])
            other.rollback()
            return [*found, await held]

        assert on_loop(work) == [(1, 3), (2, 3), (3, 3), "renamed"]


def _is_waited_for(pid: int) -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))", [pid])
            return bool(cursor.fetchone()[0])
    finally:
        connection.close()


INSERT = Statement("INSERT INTO batching_child SELECT unnest(%(values)s::integer[]) RETURNING parent")


@dataclass(frozen=True, slots=True, eq=False)
class Insert(Query[Any]):
    """A row that must have a parent when the transaction is committed. ``before``: the statement that comes first,
    and whose rows the insert takes if it ``follows``.
    """

    parent: int
    before: Statement | None = None
    follows: bool = False
    is_write: ClassVar[bool] = True

    @property
    def kind(self) -> Hashable:
        return self.before

    @staticmethod
    def steps(several: Sequence[Insert], *, alone: bool) -> Sequence[Step | Then]:
        numbers, first = [each.parent for each in several], several[0]
        insert = Step(INSERT, {"values": numbers})
        if first.before is None:
            return [insert]
        before = Step(first.before, {"numbers": numbers})
        then = Then(INSERT, lambda rows: {"values": [number for number, *_ in rows]})
        return [before, then if first.follows else insert]

    @staticmethod
    def results(several: Sequence[Insert], rows: Sequence[Row]) -> Sequence[Any]:
        return [parent for (parent,) in rows]


@pytest.fixture
def parents() -> Iterator[None]:
    """Numbers below 100 are parents."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE batching_parent (id integer PRIMARY KEY)")
        cursor.execute("INSERT INTO batching_parent SELECT generate_series(0, 99)")
        cursor.execute(
            "CREATE TABLE batching_child (parent integer REFERENCES batching_parent DEFERRABLE INITIALLY DEFERRED)"
        )
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE batching_child, batching_parent")


@pytest.mark.parametrize(("before", "follows"), [(None, False), (ADD, False), (ADD, True)])
def test_what_fails_at_the_commit_is_its_own_requests_alone(
    before: Statement | None, follows: bool, parents: None
) -> None:
    async def work(made: Batcher) -> list[Any]:
        found: list[Any] = []
        for first in range(0, 60, 4):
            batch = [
                Insert(first, before, follows),
                Insert(first + 1, before, follows),
                Insert(first + 2, None if before else ADD),
            ]
            if first % 12 == 0:
                batch.insert(1, Insert(100 + first, before, follows))
            found += await asyncio.gather(*[made.run(once(each)) for each in batch], return_exceptions=True)
        return found

    found = on_loop(work)
    expected = [first + number for first in range(0, 60, 4) for number in range(3)]
    assert [each for each in found if isinstance(each, int)] == expected
    failed = [each for each in found if not isinstance(each, int)]
    assert [type(each) for each in failed] == [psycopg.errors.ForeignKeyViolation] * 5
    with connection.cursor() as cursor:
        cursor.execute("SELECT parent FROM batching_child ORDER BY parent")
        assert [parent for (parent,) in cursor.fetchall()] == expected


@pytest.mark.parametrize("driver", ["loop", "plain"])
def test_nothing_follows_a_statement_that_fails(driver: str, parents: None) -> None:
    numbers = (1, 0, 2)  # by which twelve is divided
    cases = [once(Insert(number, INVERT, follows=True)) for number in numbers]
    found = all_at_once(*cases) if driver == "loop" else [_plainly(case) for case in cases]
    assert [each if isinstance(each, int) else None for each in found] == [1, None, 2]
    with connection.cursor() as cursor:
        cursor.execute("SELECT parent FROM batching_child ORDER BY parent")
        assert cursor.fetchall() == [(1,), (2,)]


def test_no_queue_is_changed_across_an_await() -> None:
    """``self.queue += await …`` reads the queue, lets others change it, and then undoes what they did."""
    files = sorted(Path(settings.BASE_DIR, "portal", "clients").glob("*.py"))
    assert len(files) > 5
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            # A name is the function's own; an attribute is there for others too.
            if isinstance(node, ast.AugAssign) and not isinstance(node.target, ast.Name):
                assert not any(isinstance(inner, ast.Await) for inner in ast.walk(node.value)), (file, node.lineno)

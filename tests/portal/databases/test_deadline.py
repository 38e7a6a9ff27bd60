"""A request waits for the database within one deadline, wherever it waits: in a thread, on the loop, behind others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg_pool import PoolTimeout

from portal.clients.database import batching
from portal.clients.database.batching import Batcher
from portal.clients.effects import Call, ExclusiveKey, SingleFlight
from portal.databases import deadline
from portal.databases.deadline import LEAST_SECS, WAIT_SECS, Deadline
from portal.databases.postgresql.base import DatabaseWrapper
from tests.support.batch_queries import Calculate, once

NOWHERE = {"host": "127.0.0.1", "port": 1, "dbname": "none"}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


def test_a_client_is_answered_within_three_seconds() -> None:
    # A wait in vain is the last one: the longest is that of a thread for which the request had to wait as well.
    assert WAIT_SECS + LEAST_SECS < 3
    batcher = Batcher({})
    assert batcher._pool.timeout <= WAIT_SECS and batcher._batch_pool.timeout <= WAIT_SECS


def test_what_a_wait_has_taken_is_not_left_for_the_next(clock: Clock) -> None:
    request = Deadline()
    clock.now += 1.5
    assert request.left_secs() == pytest.approx(WAIT_SECS - 1.5)
    clock.now += 60
    # It had to wait for a thread, say: a connection that is free is still taken.
    assert request.left_secs() == LEAST_SECS


def test_it_begins_again_with_a_connection(clock: Clock) -> None:
    request = Deadline()
    with request.wait():
        clock.now += 2
    clock.now += 1
    assert request.left_secs() == pytest.approx(WAIT_SECS - 1)


def test_who_waited_in_vain_waits_for_nothing_more() -> None:
    request = Deadline()
    with pytest.raises(PoolTimeout), request.wait():
        raise PoolTimeout
    with pytest.raises(PoolTimeout, match="waited too long"), request.wait():
        pytest.fail("it waits again")


@pytest.fixture
def django_without_database() -> Iterator[DatabaseWrapper]:
    """Django's connection to a server that is not there, with the engine and the pool of the settings."""
    place = {"HOST": "127.0.0.1", "PORT": "1", "NAME": "none", "USER": "", "PASSWORD": ""}
    pool = settings.DATABASES[DEFAULT_DB_ALIAS]["OPTIONS"]["pool"]
    options = {**settings.DATABASES[DEFAULT_DB_ALIAS]["OPTIONS"], "pool": {**pool, "min_size": 0}}
    made = DatabaseWrapper({**connections[DEFAULT_DB_ALIAS].settings_dict, **place, "OPTIONS": options}, "nowhere")
    yield made
    made.close_pool()


def test_djangos_pool_is_waited_for_as_long_as_is_left(clock: Clock, django_without_database: DatabaseWrapper) -> None:
    with deadline.of_request():
        clock.now += 60
        with pytest.raises(PoolTimeout, match=f"after {LEAST_SECS:.2f} sec"):
            django_without_database.get_new_connection({})
        # The next view, middleware or template that asks the database waits no more.
        with pytest.raises(PoolTimeout, match="waited too long"):
            django_without_database.get_new_connection({})
    pool: Any = django_without_database.pool
    assert pool.get_stats()["requests_num"] == 1


def test_threads_and_what_requests_share_have_the_requests_deadline() -> None:
    async def ask() -> Any:
        in_thread = await Call(deadline.current)
        shared = await SingleFlight("shared", lambda: once(Call(deadline.current)))
        return deadline.current(), in_thread, shared

    async def work() -> Any:
        made = Batcher(NOWHERE)
        try:
            return await made.run(ask())
        finally:
            await made.close()

    own, in_thread, shared = asyncio.run(work())
    assert isinstance(own, Deadline) and own is in_thread is shared


async def _swallow() -> list[str]:
    """Two queries, of which the use case tolerates that they fail."""
    errors = []
    for _ in range(2):
        try:
            await Calculate(1)
        except PoolTimeout as error:
            errors.append(str(error))
    return errors


async def _in_turn() -> Any:
    await ExclusiveKey("one computer")
    return await Calculate(1)


@pytest.mark.system
@pytest.mark.parametrize(("nrequests", "steps"), [(1, _swallow), (5, _in_turn)])
def test_one_wait_in_vain_is_enough_for_a_request_and_for_those_behind_it(
    monkeypatch: pytest.MonkeyPatch, nrequests: int, steps: Any
) -> None:
    monkeypatch.setattr(batching, "CONNECT_SECS", 0.3)

    async def work() -> tuple[list[Any], int]:
        made = Batcher(NOWHERE)
        try:
            outcomes = await asyncio.gather(*[made.run(steps()) for _ in range(nrequests)], return_exceptions=True)
            return outcomes, made._batch_pool.get_stats()["requests_num"]
        finally:
            await made.close()

    outcomes, nwaits = asyncio.run(work())
    assert nwaits == 1
    if nrequests == 1:
        assert [["waited too long" in text for text in outcome] for outcome in outcomes] == [[False, True]]
    else:
        assert [type(outcome) for outcome in outcomes] == [PoolTimeout] * nrequests

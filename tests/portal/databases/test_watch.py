"""A process with several database hosts: it finds the primary, and waits for no server that is gone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from portal.databases import clock, watch
from portal.databases.connections import REGISTRY, WatchedConnection
from portal.databases.params import psycopg_params
from portal.databases.sockets import peer_of
from tests.support.cluster.links import Address, Link, Network, State

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_SECS = 20


class TwoHosts:
    """Two ways to the test's database, as if they were two servers of which the first that answers is the primary."""

    def __init__(self, network: Network) -> None:
        params = psycopg_params()
        host, port = str(params["host"]), int(params.get("port") or 5432)
        target: Address = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)
        self.links: list[Link] = [network.link(target) for _ in range(2)]
        self.made: list[psycopg.Connection[Any]] = []
        self.params: dict[str, Any] = {
            **params,
            "host": "127.0.0.1,127.0.0.1",
            "port": ",".join(str(link.port) for link in self.links),
            "target_session_attrs": "read-write",
            "connect_timeout": 2,
            "sslmode": "disable",
            "gssencmode": "disable",
        }

    def connect(self) -> psycopg.Connection[Any]:
        """A connection of the process's, without a watch's thread: the test looks by itself."""
        made = psycopg.connect(**self.params, autocommit=True)
        REGISTRY.add(made)
        self.made.append(made)
        return made

    def is_at(self, connection: psycopg.Connection[Any], number: int) -> bool:
        return bool(peer_of(connection)[1] == self.links[number].port)


@pytest.fixture
def hosts() -> Iterator[TwoHosts]:
    with Network() as network:
        made = TwoHosts(network)
        yield made
        for each in made.made:
            each.close()
    clock.forget()


@pytest.fixture
def looked_after(hosts: TwoHosts) -> Iterator[watch.Watch]:
    """A watch without its thread, which has found the first host."""
    made = watch.Watch(hosts.params, REGISTRY.cut)
    made.look()
    yield made
    made._close()


def test_who_waits_for_a_server_that_is_gone_gets_an_error_and_then_another_server(
    hosts: TwoHosts, looked_after: watch.Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "UNANSWERED_SECS", 0.3)
    waiting, idle = hosts.connect(), hosts.connect()
    assert hosts.is_at(waiting, 0)
    errors: list[Exception] = []

    def ask() -> None:
        try:
            waiting.execute("SELECT 1")
        except psycopg.Error as error:
            errors.append(error)

    hosts.links[0].set(State.DROPS)
    thread = threading.Thread(target=ask)
    thread.start()
    looked_after.look()
    thread.join(PATIENCE_SECS)
    assert [type(error) for error in errors] == [psycopg.OperationalError]
    with pytest.raises(psycopg.OperationalError):
        idle.execute("SELECT 1")
    assert not looked_after.is_down
    with hosts.connect() as other:
        assert hosts.is_at(other, 1)


def test_a_new_primary_ends_the_connections_to_the_old_one_and_no_others(
    hosts: TwoHosts, looked_after: watch.Watch
) -> None:
    old = hosts.connect()
    hosts.links[0].set(State.REFUSES)
    new = hosts.connect()
    hosts.links[0].set(State.PASSES)
    for _ in range(2):
        hosts.links[0].set(State.REFUSES)
        looked_after.look()
    assert new.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError):
        old.execute("SELECT 1")


def test_a_connection_that_alone_was_ended_costs_no_others(hosts: TwoHosts, looked_after: watch.Watch) -> None:
    with hosts.connect() as other:
        assert looked_after._connection is not None
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [looked_after._connection.info.backend_pid])
        looked_after.look()
        assert other.execute("SELECT 1").fetchone() == (1,)
    assert not looked_after.is_down


def test_the_primary_is_tried_first_and_a_silent_one_last(
    hosts: TwoHosts, looked_after: watch.Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (str(link.port) for link in hosts.links)
    assert looked_after.ordered(hosts.params)["port"] == f"{first},{second}"
    monkeypatch.setattr(watch, "UNANSWERED_SECS", 0.3)
    hosts.links[0].set(State.DROPS)
    hosts.links[1].set(State.REFUSES)
    looked_after.look()
    assert looked_after.is_down
    assert looked_after.ordered(hosts.params)["port"] == f"{second},{first}"
    hosts.links[1].set(State.PASSES)
    looked_after.look()
    assert looked_after.ordered(hosts.params)["port"] == f"{second},{first}"


def test_without_a_primary_nobody_waits_and_then_it_is_found(
    hosts: TwoHosts, looked_after: watch.Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    for link in hosts.links:
        link.set(State.REFUSES)
    looked_after.look()
    assert looked_after.is_down
    was_down: list[bool] = []
    monkeypatch.setattr(clock, "learn", lambda *_: was_down.append(looked_after.is_down))
    hosts.links[1].set(State.PASSES)
    looked_after.look()
    # Who goes on then has its time.
    assert was_down == [True]
    assert not looked_after.is_down


def test_a_primary_that_was_found_is_used_even_if_asking_it_failed(
    hosts: TwoHosts, looked_after: watch.Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    for link in hosts.links:
        link.set(State.REFUSES)
    looked_after.look()

    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    hosts.links[1].set(State.PASSES)
    with monkeypatch.context() as patch:
        patch.setattr(threading, "Timer", fail)
        looked_after.try_look()
    looked_after.try_look()
    assert not looked_after.is_down


def test_a_first_look_that_fails_is_followed_by_others(hosts: TwoHosts, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    looked_again = threading.Event()

    def look(_watch: watch.Watch) -> None:
        looks.append(1)
        if len(looks) == 1:
            raise RuntimeError("whatever it is")
        looked_again.set()

    monkeypatch.setattr(watch.Watch, "look", look)
    watch.ensure(hosts.params, REGISTRY.cut, looks_first=True)
    try:
        assert looked_again.wait(PATIENCE_SECS)
    finally:
        watch.end_all()


def test_a_primary_that_only_reads_now_loses_its_connections(hosts: TwoHosts, looked_after: watch.Watch) -> None:
    other = hosts.connect()
    assert looked_after._connection is not None
    # As a standby says it.
    looked_after._connection.execute("SET default_transaction_read_only = on")
    looked_after.look()
    with pytest.raises(psycopg.OperationalError):
        other.execute("SELECT 1")


def test_only_several_hosts_of_which_one_writes_are_watched(hosts: TwoHosts) -> None:
    assert watch.is_needed(hosts.params)
    assert not watch.is_needed(psycopg_params())
    assert not watch.is_needed({**hosts.params, "target_session_attrs": "prefer-standby"})
    before = threading.active_count()
    WatchedConnection.connect(**psycopg_params()).close()
    assert threading.active_count() == before and not watch.is_down()

"""Database connections that can be cut from outside, once their server is no primary any more.

A statement on a machine that was paused or cut off gets neither an answer nor an error, for minutes. So a process that
has several hosts to connect to knows its connections and their servers, and watches which of these is the primary.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final, Self
from weakref import WeakKeyDictionary

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections

from portal.databases import watch
from portal.databases.sockets import Connection, Peer, cut, peer_of

CONNECT_SECS: Final = 1.4
"""How long a request waits for a connection. One that needs two, as the second was lost, is still answered in 3 s."""


class Registry:
    """The connections of this process to several hosts."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, in a forked process: its parent's connections are not its own."""
        self._lock = threading.Lock()
        self._peers: WeakKeyDictionary[Connection, Peer] = WeakKeyDictionary()

    def add(self, connection: Connection) -> None:
        with self._lock:
            self._peers[connection] = peer_of(connection)

    def cut(self, is_meant: Callable[[Peer], bool]) -> int:
        """Cut the connections to such servers, also those that wait for an answer; how many there were."""
        with self._lock:
            meant = [(each, peer) for each, peer in self._peers.items() if is_meant(peer)]
        return sum(cut(each, peer) for each, peer in meant)


REGISTRY: Final = Registry()
os.register_at_fork(after_in_child=REGISTRY.forget)


class WatchedConnection(psycopg.Connection[Any]):
    """A connection of a thread. The first of a process to several hosts starts the watch over them."""

    @classmethod
    def connect(cls, conninfo: str = "", **params: Any) -> Self:
        made = super().connect(conninfo, **watch.ordered(params))
        _watch(made, params)
        return made


class WatchedAsyncConnection(psycopg.AsyncConnection[Any]):
    """The same for an event loop."""

    @classmethod
    async def connect(cls, conninfo: str = "", **params: Any) -> Self:
        made = await super().connect(conninfo, **watch.ordered(params))
        _watch(made, params)
        return made


def watch_from_the_start() -> None:
    """Let a process of the site begin with the primary's time, before it has a connection."""
    params = connections[DEFAULT_DB_ALIAS].get_connection_params()
    if watch.is_needed(params):
        watch.ensure(params, REGISTRY.cut, looks_first=True)


def _watch(made: Connection, params: dict[str, Any]) -> None:
    if watch.is_needed(params):
        REGISTRY.add(made)
        watch.ensure(params, REGISTRY.cut)

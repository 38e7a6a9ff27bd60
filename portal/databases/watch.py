"""Which of several database hosts is the primary: each process that uses them asks, in a thread with a connection.

If a server does not answer, reads only, or if there is a new primary, the process's connections to the others are cut:
who waits there gets an error at once, and pools make new connections. While there is no primary, requests are refused
without waiting (`is_down`). It is also asked for the time (`portal.databases.clock`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import psycopg
import structlog

from portal.databases import clock
from portal.databases.sockets import Peer, cut, peer_of

log = structlog.get_logger(__name__)

LOOK_SECS: Final = 2.0
FIND_SECS: Final = 0.5
"""Between two attempts to find a primary."""
UNANSWERED_SECS: Final = 8.0
"""A server that answers nothing for this long is given up. One that has just too much to do answers sooner."""
CONNECT_SECS: Final = 2
_ASK: Final = "SELECT current_setting('transaction_read_only') = 'off', clock_timestamp()"
# What psycopg adds to libpq's parameters, and what is no matter of the watch.
_NOT_OURS: Final = ("autocommit", "context", "cursor_factory", "options", "pool", "prepare_threshold", "row_factory")

CutAll = Callable[[Callable[[Peer], bool]], int]


class Watch:
    """The watch over some hosts. ``cut_all`` cuts this process's connections to such servers."""

    def __init__(self, params: dict[str, Any], cut_all: CutAll) -> None:
        ours = {key: value for key, value in params.items() if key not in _NOT_OURS}
        self._params: Final = ours | {"application_name": "cobblestone-watch", "connect_timeout": CONNECT_SECS}
        self._cut_all: Final = cut_all
        self._connection: psycopg.Connection[Any] | None = None
        self._primary: Peer = None
        # As the parameters name it: host and port.
        self._primary_name = ("", "")
        self._is_silent = False
        self._ended: Final = threading.Event()
        # Whoever has ended a watch learns no time from it any more.
        self._learning: Final = threading.Lock()
        self.is_down = False

    def run(self) -> None:
        """Look again and again, as long as this process lives: only asking tells what became of a server."""
        is_over = False
        while not is_over:
            self.try_look()
            is_over = self._ended.wait(FIND_SECS if self.is_down else LOOK_SECS)
        self._close()

    def end(self) -> None:
        """Let it end after its present look."""
        with self._learning:
            self._ended.set()

    def try_look(self) -> None:
        """Look, whatever comes of it."""
        try:
            self.look()
        except Exception:
            # Of whatever kind: if it ended the watch, requests could wait for a lost server for minutes.
            log.exception("database_watch_failed")

    def look(self) -> None:
        """Ask the primary whether it still is one; find the primary if not."""
        if self._connection is not None and not self._is_primary(self._connection):
            self._close()
        if self._connection is None:
            self._find()

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
        self._connection = None

    def _is_primary(self, connection: psycopg.Connection[Any]) -> bool:
        silent = threading.Event()

        def give_up() -> None:
            silent.set()
            cut(connection, self._primary)

        timer = threading.Timer(UNANSWERED_SECS, give_up)
        timer.daemon = True
        timer.start()
        asked_at = time.monotonic()
        try:
            row = connection.execute(_ASK).fetchone()
        except psycopg.Error:
            if silent.is_set():
                self._is_silent = True
                self._cut("does not answer", lambda peer: peer == self._primary)
            # Else only this connection may have been ended.
            return False
        finally:
            timer.cancel()
        if row is not None and row[0]:
            answered_at = time.monotonic()
            with self._learning:
                if not self._ended.is_set():
                    clock.learn(row[1], asked_at, answered_at)
            return True
        self._cut("reads only", lambda peer: peer == self._primary)
        return False

    def _find(self) -> None:
        try:
            found = psycopg.connect(**self.ordered(self._params), autocommit=True)
        except psycopg.Error as error:
            if not self.is_down:
                log.warning("database_no_primary", reason=str(error)[:500])
            self.is_down = True
            return
        before, self._connection, self._primary = self._primary, found, peer_of(found)
        self._is_silent = False
        self._primary_name = found.info.host, str(found.info.port)
        if before != self._primary:
            # Also at first: a connection may have been made, and its server lost, just before.
            self._cut("is no primary", lambda peer: peer != self._primary)
        if self.is_down or before != self._primary:
            log.warning("database_primary", host=found.info.host, port=found.info.port)
        try:
            # For its time, before anybody goes on; if it has ended since, the next look finds that out.
            self._is_primary(found)
        finally:
            self.is_down = False

    def ordered(self, params: dict[str, Any]) -> dict[str, Any]:
        """The same hosts, the primary first; if it did not answer, last: attempts at silent machines take seconds."""
        hosts, ports = str(params["host"]).split(","), str(params["port"]).split(",")
        pairs = sorted(zip(hosts, ports, strict=True), key=lambda pair: (pair == self._primary_name) == self._is_silent)
        return params | {
            "host": ",".join(host for host, _ in pairs),
            "port": ",".join(port for _, port in pairs),
        }

    def _cut(self, reason: str, is_meant: Callable[[Peer], bool]) -> None:
        if ncut := self._cut_all(is_meant):
            log.warning("database_cut", reason=reason, connections=ncut)


_lock = threading.Lock()
_watches: dict[tuple[str, str], Watch] = {}


def is_needed(params: dict[str, Any]) -> bool:
    """Whether these are several hosts of which one is wanted: the one that writes."""
    return "," in str(params.get("host", "")) and params.get("target_session_attrs") == "read-write"


def ensure(params: dict[str, Any], cut_all: CutAll, *, looks_first: bool = False) -> None:
    """Let this process have a watch over these hosts. ``looks_first``: wait for its first look."""
    key = _key(params)
    with _lock:
        if key not in _watches:
            made = _watches[key] = Watch(params, cut_all)
            if looks_first:
                made.try_look()
            threading.Thread(target=made.run, name="database-watch", daemon=True).start()


def ordered(params: dict[str, Any]) -> dict[str, Any]:
    """The hosts in the order in which they are best tried. Raises OperationalError if none is the primary just now."""
    looks_after = _watches.get(_key(params))
    if looks_after is None:
        return params
    if looks_after.is_down:
        raise psycopg.OperationalError("no database server is the primary just now")
    return looks_after.ordered(params)


def _key(params: dict[str, Any]) -> tuple[str, str]:
    return str(params.get("host")), str(params.get("port"))


def is_down() -> bool:
    """Whether there is no primary just now, as far as this process knows. Without several hosts nobody looks."""
    return any(each.is_down for each in _watches.values())


def end_all() -> None:
    """End all watches of this process, which goes on with another database, as tests do."""
    with _lock:
        for each in _watches.values():
            each.end()
        _watches.clear()
    clock.forget()


def _forget() -> None:
    """A forked process has no threads but its own, and none of the lock's holders."""
    global _lock
    _lock = threading.Lock()
    _watches.clear()


os.register_at_fork(after_in_child=_forget)

"""Which database reads go to. Code says what may be read from the replica; all else, and every write, is the primary's.

A volunteer's page reads the primary for some seconds after their own change (`portal.replica.own_changes`).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, ParamSpec, TypeVar
from weakref import WeakSet

import psycopg
import structlog
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.dispatch import receiver
from django.http import HttpRequest

from portal.replica.watch import PRIMARY_AT, REPLICA_AT, Watch, shut_down

P = ParamSpec("P")
Result = TypeVar("Result")

log = structlog.get_logger("replica")

ALIAS: Final = "replica"
_POLL_SECS: Final = 0.1
_FAULTS: Final = (OperationalError, InterfaceError)
_in_use: Final[WeakSet[psycopg.Connection[Any]]] = WeakSet()
_alias: ContextVar[str] = ContextVar("read_from", default=DEFAULT_DB_ALIAS)
_is_allowed: ContextVar[bool] = ContextVar("may_read_from_replica", default=False)


class Router:
    """Django's router: reads go where `reading` says, writes to the primary."""

    def db_for_read(self, model: object, **hints: Any) -> str:
        return _alias.get()

    def db_for_write(self, model: object, **hints: Any) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, one: object, other: object, **hints: Any) -> bool:
        """Both have the same rows."""
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db == DEFAULT_DB_ALIAS


def reading_connection() -> BaseDatabaseWrapper:
    """The connection for statements that only read, where they are not Django's."""
    return connections[_alias.get()]


def page(view: Callable[P, Result]) -> Callable[P, Result]:
    """A view that only reads, and may read from the replica. Goes below those decorators that look at who asks."""

    @functools.wraps(view)
    def answer(*args: P.args, **kwargs: P.kwargs) -> Result:
        request = args[0]
        assert isinstance(request, HttpRequest)
        if settings.CHANGED_COOKIE_NAME in request.COOKIES or request.method not in ("GET", "HEAD"):
            return view(*args, **kwargs)
        with _allowed():
            return _read(functools.partial(view, *args, **kwargs))

    return answer


def public(read: Callable[P, Result]) -> Callable[P, Result]:
    """A function that only reads, what nobody expects to be of this moment."""

    @functools.wraps(read)
    def answer(*args: P.args, **kwargs: P.kwargs) -> Result:
        with _allowed():
            return _read(functools.partial(read, *args, **kwargs))

    return answer


def step(read: Callable[P, Result]) -> Callable[P, Result]:
    """A function that only reads, a part of something long: another part may be read elsewhere."""

    @functools.wraps(read)
    def answer(*args: P.args, **kwargs: P.kwargs) -> Result:
        return _read(functools.partial(read, *args, **kwargs))

    return answer


def later(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Parts of an answer that are made after its view has returned: they are read as the view is."""
    if not _is_allowed.get():
        return iter(parts)
    return _later(iter(parts))


def _later(parts: Iterator[bytes]) -> Iterator[bytes]:
    end = object()
    while True:
        with _allowed():
            part = next(parts, end)
        if not isinstance(part, bytes):
            return
        yield part


def caught_up(work: Callable[[], Result]) -> Result:
    """Call what only reads, for a worker: from the replica once it has all that is committed now, or the primary.

    It may be called a second time, if the replica fails.
    """
    if ALIAS not in connections:
        return work()
    # Cuts off a replica that stops in the middle of it.
    watch().start()
    if not _catches_up():
        return work()
    return _on_replica(work)


@contextmanager
def from_primary() -> Iterator[None]:
    """Read from the primary inside, for what must not be older than what happened elsewhere."""
    token = _alias.set(DEFAULT_DB_ALIAS)
    try:
        yield
    finally:
        _alias.reset(token)


@contextmanager
def _allowed() -> Iterator[None]:
    token = _is_allowed.set(True)
    try:
        yield
    finally:
        _is_allowed.reset(token)


def _read(work: Callable[[], Result]) -> Result:
    if not _is_allowed.get() or ALIAS not in connections or not watch().is_usable():
        return work()
    return _on_replica(work)


def _on_replica(work: Callable[[], Result]) -> Result:
    """From the replica, or from the primary if that fails: it may go away, or cancel what its own work overtakes."""
    token = _alias.set(ALIAS)
    try:
        return work()
    except (*_FAULTS, psycopg.OperationalError, psycopg.InterfaceError) as error:
        _give_up(error)
    finally:
        _alias.reset(token)
    return work()


def _give_up(error: Exception) -> None:
    """Leave the replica alone until it answers again; this thread's session there may be broken."""
    log.warning("replica_failed", reason=type(error).__name__)
    watch().put_away()
    with suppress(*_FAULTS):
        connections[ALIAS].close()


@functools.cache
def watch() -> Watch:
    """What this process knows of the replica."""
    return Watch(_params(DEFAULT_DB_ALIAS), _params(ALIAS), settings.REPLICA_LAG_MAX_SECS, _cut)


@receiver(connection_created)
def _note(connection: BaseDatabaseWrapper, **_: object) -> None:
    if connection.alias == ALIAS:
        _in_use.add(connection.connection)


def _cut() -> None:
    """End this process's sessions at the replica: whoever waits for an answer reads from the primary instead."""
    for session in list(_in_use):
        shut_down(session)


def _params(alias: str) -> dict[str, Any]:
    """psycopg's parameters, without Django's own."""
    params = connections[alias].get_connection_params()
    djangos = ("pool", "context", "cursor_factory", "prepare_threshold")
    return {name: value for name, value in params.items() if name not in djangos} | {"connect_timeout": 2}


def _catches_up() -> bool:
    """Whether the replica has all that is committed now, within REPLICA_LAG_MAX_SECS."""
    wanted = _one(DEFAULT_DB_ALIAS, PRIMARY_AT)
    until = time.monotonic() + settings.REPLICA_LAG_MAX_SECS
    try:
        while (found := _one(ALIAS, REPLICA_AT)) is not None and wanted is not None:
            if found >= wanted:
                return True
            if time.monotonic() > until:
                return False
            # The replica gives no sign: ask again.
            time.sleep(_POLL_SECS)
    except _FAULTS as error:
        _give_up(error)
    return False


def _one(alias: str, statement: str) -> int | None:
    with connections[alias].cursor() as cursor:
        cursor.execute(statement)
        row = cursor.fetchone()
    return None if row is None or row[0] is None else int(row[0])

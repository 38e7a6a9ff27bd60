"""Statements for the hottest paths: prepared on the server, sent by libpq directly, on Django's own connection.

Django's cursors put values into the SQL text, which PostgreSQL then plans anew each time, and a psycopg cursor costs
more than the statement's own round trip. Values and results are texts: each caller knows its columns.
"""

from __future__ import annotations

import hashlib
import re
import select
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast
from weakref import WeakKeyDictionary

import orjson
import psycopg
from django.db import DEFAULT_DB_ALIAS, DatabaseError, connections, transaction
from psycopg import pq
from psycopg.errors import error_from_result

if TYPE_CHECKING:
    from django.db.backends.postgresql.base import DatabaseWrapper
    from psycopg_pool import ConnectionPool

KEPT_SECS: Final = 300
"""After this a connection goes back to the pool, which ends old ones."""
_PARAMETER = re.compile(r"%\((\w+)\)s")
_DONE: Final = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)
# Which statements a connection has prepared already.
_prepared: WeakKeyDictionary[psycopg.Connection[Any], set[bytes]] = WeakKeyDictionary()


class _Link:
    """A connection in use, and what is known of it.

    Of a transaction of `one_transaction`: whether its BEGIN has yet to go with the first statement, and whether it is
    one that a statement may end with its COMMIT. Of one that is kept: whose it is, and until when.
    """

    __slots__ = ("begins", "is_ours", "known", "pool", "raw", "until")

    def __init__(self, raw: psycopg.Connection[Any], pool: ConnectionPool | None = None) -> None:
        self.raw = raw
        self.known = _prepared.setdefault(raw, set())
        self.begins = False
        self.is_ours = False
        self.pool = pool
        self.until = time.monotonic() + KEPT_SECS if pool else 0.0


class _Thread(threading.local):
    """This thread's link while it is in `one_connection`; and Django's connection, which is slow to get at."""

    link: _Link | None = None

    def __init__(self) -> None:
        self.django = cast("DatabaseWrapper", connections[DEFAULT_DB_ALIAS])


_thread = _Thread()
_kept: list[_Link] = []


def is_in_transaction() -> bool:
    """Whether this thread is in a transaction of Django's."""
    return _thread.django.in_atomic_block


def give_back_djangos() -> None:
    """This thread's connection of Django's, if it is of a pool: before it waits for others who need one as well."""
    if _thread.django.connection is not None and _thread.django.pool is not None:
        _thread.django.close()


@contextmanager
def one_connection(*, is_djangos: bool = True) -> Iterator[None]:
    """Run the statements in this block on one connection, which may not be in a transaction that begins in the block.

    Django's if this thread has one, as it may be in a transaction already; else one of the pool's: what Django does at
    the begin and end of a connection's use costs more than a statement. ``is_djangos`` False: never Django's if there
    is a pool.
    """
    django = _thread.django
    pool = django.pool if django.connection is None or not is_djangos else None
    if pool is None:
        django.ensure_connection()
    before, _thread.link = _thread.link, _borrow(pool) if pool else _Link(django.connection)
    try:
        yield
    finally:
        link, _thread.link = _thread.link, before
        if pool is not None:
            assert link is not None  # it is this block's
            _give_back(link)


def _borrow(pool: ConnectionPool) -> _Link:
    """The connection of the pool's that was used last: what PostgreSQL's process needs is still in the caches.

    The pool itself hands out all of its connections in turn, and takes a while for it.
    """
    while link := _pop_kept():
        if link.pool is pool and not link.raw.closed and time.monotonic() < link.until:
            return link
        _put_back(link)
    raw = pool.getconn()
    if not raw.autocommit:
        # Django gave it back in the middle of a transaction of its own: nothing here would ever be committed.
        raw.autocommit = True
    return _Link(raw, pool)


def _pop_kept(at: int = -1) -> _Link | None:
    try:
        return _kept.pop(at)
    except IndexError:
        # There is none, or another thread was faster.
        return None


def _give_back(link: _Link) -> None:
    pool, is_lost = link.pool, link.raw.closed
    assert pool is not None  # one of Django's own is never given back
    link.begins = link.is_ours = False
    is_idle = not is_lost and link.raw.pgconn.transaction_status == pq.TransactionStatus.IDLE
    if is_idle and len(_kept) < pool.max_size // 4:
        _kept.append(link)
        # Those below were not wanted for a while.
        if _kept[:1] and _kept[0].until < time.monotonic() and (oldest := _pop_kept(0)):
            _put_back(oldest)
        return
    _put_back(link)
    if is_lost:
        # After a restart of the database the others that wait are lost too: not each shall fail a request.
        put_back_kept()
        pool.check()


def _put_back(link: _Link) -> None:
    assert link.pool is not None  # as above
    link.pool.putconn(link.raw)


def next_connection() -> psycopg.Connection[Any] | None:
    """The pool's connection that is taken next, if there is a pool: for whoever watches what is sent on it."""
    pool = _thread.django.pool
    if pool is None:
        return None
    link = _borrow(pool)
    _give_back(link)
    return link.raw


def put_back_kept() -> None:
    """Return the connections that are kept to the pool: before it is closed, say."""
    while link := _pop_kept():
        _put_back(link)


@contextmanager
def one_transaction() -> Iterator[None]:
    """Run the prepared statements in this block in one transaction: all or nothing.

    In Django's, if this thread has a connection of its; else in one on a connection of the pool's, for the same reason
    as in `one_connection`. What uses Django's connection in the block may not be part of it.
    """
    if _thread.django.connection is not None:
        with transaction.atomic(), one_connection():
            yield
        return
    with one_connection():
        link = _thread.link
        assert link is not None  # one_connection has just made it
        link.begins = link.is_ours = True
        try:
            yield
        except BaseException:
            if not link.raw.closed and link.raw.pgconn.transaction_status != pq.TransactionStatus.IDLE:
                link.raw.pgconn.exec_(b"ROLLBACK")
            raise
        if link.raw.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            _execute(link.raw, b"COMMIT")


def _execute(raw: psycopg.Connection[Any], sql: bytes) -> None:
    try:
        _check(raw, raw.pgconn.exec_(sql))
    except psycopg.Error:
        with _thread.django.wrap_database_errors:
            raise


class Prepared:
    """One statement with named parameters, ``%(name)s``; each wants a cast in the SQL where its type is not obvious."""

    def __init__(self, sql: str) -> None:
        self.names = list(dict.fromkeys(_PARAMETER.findall(sql)))
        places = {name: f"${number}" for number, name in enumerate(self.names, 1)}
        self.sql = _PARAMETER.sub(lambda match: places[match[1]], sql).encode()
        self.name = b"cobblestone_" + hashlib.md5(self.sql).hexdigest().encode()

    def fetch_one(self, values: Mapping[str, str | None]) -> list[str | None] | None:
        """Run it in the present transaction, if there is one; the first row as texts, or None if there is none.

        On the connection of `one_connection`. Raises Django's database errors.
        """
        link = _thread.link
        if link is None:
            with one_connection():
                return self.fetch_one(values)
        if link.begins:
            rows = fetch_last([(self, values)])
            return rows[0] if rows else None
        try:
            self.prepare(link)
            result = _check(link.raw, link.raw.pgconn.exec_prepared(self.name, self.texts(values)))
        except psycopg.Error:
            with _thread.django.wrap_database_errors:
                raise
        return _row(result, 0) if result.ntuples else None

    def texts(self, values: Mapping[str, str | None]) -> list[bytes]:
        """The values in the statement's order, as libpq takes them."""
        texts = [None if (value := values[name]) is None else value.encode() for name in self.names]
        return cast("list[bytes]", texts)

    def prepare(self, link: _Link) -> None:
        """Have the connection know the statement."""
        raw, pgconn = link.raw, link.raw.pgconn
        if not raw.autocommit and not link.is_ours and pgconn.transaction_status == pq.TransactionStatus.IDLE:
            # psycopg begins a transaction with its first statement, which this one bypasses.
            _check(raw, pgconn.exec_(b"BEGIN"))
        if self.name not in link.known:
            _check(raw, pgconn.prepare(self.name, self.sql))
            link.known.add(self.name)


Step = tuple[Prepared, Mapping[str, str | None]]
"""A statement and its values."""
Rows = list[list[str | None]]


def fetch_last(steps: Sequence[Step], *, is_end: bool = False) -> Rows:
    """Run the statements one after the other in one round trip; the rows of the last one, as texts.

    Each sees what was committed before it began, as if it were sent by itself. In `one_transaction` its BEGIN goes
    with them if they are the first, and its COMMIT with those that are its end (``is_end``). Each trip that is spared
    is twice a switch of process here and in the database.
    """
    link = _thread.link
    if link is None:
        with one_connection():
            return fetch_last(steps, is_end=is_end)
    is_end = is_end and link.is_ours
    try:
        (results,) = _in_one_trip(link, [steps], is_end=is_end)
        return _rows_of_last(link, results, is_end=is_end)
    except psycopg.Error:
        with _thread.django.wrap_database_errors:
            raise


def fetch_each(transactions: Sequence[Sequence[Step]]) -> list[Rows | Exception]:
    """Run each of these as `fetch_last` does, all in one round trip, each in a transaction of its own.

    The rows of the last statement of each, or the database error for which all of it is undone. PostgreSQL makes one
    transaction of what it is sent in one go, so neither BEGIN nor COMMIT is needed. Within a transaction of Django's
    it can be only one, which is a savepoint of that.
    """
    if is_in_transaction():
        (steps,) = transactions
        try:
            with transaction.atomic():
                return [fetch_last(steps)]
        except DatabaseError as error:
            return [error]
    # Whose thread this is, and what its own connection has been through, is nobody else's business.
    with one_connection(is_djangos=False):
        link = _thread.link
        assert link is not None  # one_connection has just made it
        try:
            found = _in_one_trip(link, transactions)
        except psycopg.Error as error:
            return [_as_djangos(error)] * len(transactions)
        return [_rows_or_error(link, results) for results in found]


def _rows_or_error(link: _Link, results: Sequence[pq.abc.PGresult]) -> Rows | Exception:
    try:
        return _rows_of_last(link, results)
    except psycopg.Error as error:
        return _as_djangos(error)


def _as_djangos(error: psycopg.Error) -> Exception:
    try:
        with _thread.django.wrap_database_errors:
            raise error
    except DatabaseError as wrapped:
        return wrapped


def _rows_of_last(link: _Link, results: Sequence[pq.abc.PGresult], *, is_end: bool = False) -> Rows:
    if not results:
        raise psycopg.OperationalError("the connection is lost")
    for result in results:
        _check(link.raw, result)
    last = results[-2 if is_end else -1]
    return [_row(last, number) for number in range(last.ntuples)]


def _in_one_trip(
    link: _Link, transactions: Sequence[Sequence[Step]], *, is_end: bool = False
) -> list[list[pq.abc.PGresult]]:
    """The results of the statements of each, of BEGIN and of COMMIT, up to the first that failed.

    Each call that lets other threads run meanwhile costs two switches of thread if one wants to, so there are few:
    psycopg's `is_busy` is one, and its pipelines ask it twice for each result.
    """
    pgconn = link.raw.pgconn
    for statement in {statement.name: statement for steps in transactions for statement, _ in steps}.values():
        statement.prepare(link)
    texts = [[(statement.name, statement.texts(values)) for statement, values in steps] for steps in transactions]
    if len(texts) == len(texts[0]) == 1 and not (link.begins or is_end):
        return [[pgconn.exec_prepared(*texts[0][0])]]
    pgconn.enter_pipeline_mode()
    if link.begins:
        pgconn.send_query_params(b"BEGIN", None)
        link.begins = False
    for each in texts:
        for name, values in each:
            pgconn.send_query_prepared(name, values)
        if is_end:
            pgconn.send_query_params(b"COMMIT", None)
        pgconn.pipeline_sync()
    _wait(pgconn)
    # What was done before a connection was lost is done.
    found = [_results(pgconn) for _ in texts]
    if pgconn.status != pq.ConnStatus.BAD:
        pgconn.exit_pipeline_mode()
    return found


def _results(pgconn: pq.abc.PGconn) -> list[pq.abc.PGresult]:
    """Those of the next transaction, with what it failed for; none if the connection was lost before its end."""
    results: list[pq.abc.PGresult] = []
    try:
        while (result := _next_result(pgconn)) is not None:
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                return results
            results.append(result)
            # None, which ends a statement's results and is here already.
            pgconn.get_result()
    except psycopg.OperationalError:
        return []
    return results if results and results[-1].status not in _DONE else []


def _wait(pgconn: pq.abc.PGconn) -> None:
    """Wait for input where other threads can run meanwhile: libpq's own waiting holds the interpreter's lock."""
    is_unsent = bool(pgconn.flush())
    poll = select.poll()
    poll.register(pgconn.socket, select.POLLIN | (select.POLLOUT if is_unsent else 0))
    poll.poll()
    pgconn.consume_input()


def _next_result(pgconn: pq.abc.PGconn) -> pq.abc.PGresult | None:
    """None if there is none any more: the connection is lost."""
    while pgconn.is_busy():
        _wait(pgconn)
    return pgconn.get_result()


def _row(result: pq.abc.PGresult, number: int) -> list[str | None]:
    get = result.get_value
    return [None if (value := get(number, column)) is None else value.decode() for column in range(result.nfields)]


def _check(raw: psycopg.Connection[Any], result: pq.abc.PGresult) -> pq.abc.PGresult:
    if result.status not in _DONE:
        raise error_from_result(result, encoding=raw.info.encoding)
    return result


def array(values: Sequence[int]) -> str:
    """A PostgreSQL array literal of whole numbers of 64 bits, or of booleans; cheaper than a list parameter."""
    return f"{{{orjson.dumps(values).decode()[1:-1]}}}"

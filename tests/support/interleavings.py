"""Sessions with PostgreSQL whose statements are carried out in a chosen order, as its own isolation tester does.

A session is a function that uses the database; its steps are its statements and commits. One session is let go on for
one step at a time. If its step waits for a lock (PostgreSQL says so: pg_blocking_pids), the others go on, and it goes
on by itself when it can. So nothing depends on how fast anything is.
"""

from __future__ import annotations

import itertools
import math
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from django.db import Error, connection

from credit.validator import binary
from portal.clients import sync_driver
from portal.clients.factory import connection_params

PATIENCE_SECS = 30
LOOK_SECS = 0.005
MOST = int(os.environ.get("INTERLEAVINGS", "4"))
"""Orders of each scenario; `make faults` has 60. Where there are more, they are drawn."""
Work = Callable[[], Any]
_current = threading.local()


@dataclass(eq=False)
class Session:
    """A thread that does its work one step at a time. ``outcome``: what it returned, or raised."""

    work: Work
    outcome: Any = None
    nsteps: int = 0
    is_over: bool = False
    _may_go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _has_stopped: threading.Event = field(default_factory=threading.Event)
    _pids: list[int] = field(default_factory=list)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self._wait_for_stop(None)

    def _run(self) -> None:
        _current.session = self
        try:
            connection.ensure_connection()
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid(), set_config('deadlock_timeout', '30ms', false)")
                self._pids.append(cursor.fetchone()[0])
            database: Any = connection
            commit = database._commit

            def commit_as_a_step() -> None:
                _step()
                commit()

            database._commit = commit_as_a_step
            try:
                with connection.execute_wrapper(_before_each):
                    _step()
                    self.outcome = self.work()
            finally:
                database._commit = commit
        except Exception as error:
            # Of any kind: the scene says which errors it expects.
            self.outcome = error
        finally:
            _current.session = None
            with connection.cursor() as cursor:
                cursor.execute("RESET deadlock_timeout")
            connection.close()
            self.is_over = True
            self._has_stopped.set()

    def stop(self) -> None:
        """Called by the session's own thread, before its next step."""
        self.nsteps += 1
        self._has_stopped.set()
        assert self._may_go.acquire(timeout=PATIENCE_SECS)

    @property
    def is_under_way(self) -> bool:
        return not self._has_stopped.is_set()

    def go_on(self, monitor: psycopg.Connection[Any]) -> None:
        """One step, until it is done or waits for a lock."""
        if not self.is_over and not self.is_under_way:
            self._has_stopped.clear()
            self._may_go.release()
        self._wait_for_stop(monitor)

    def settle(self, monitor: psycopg.Connection[Any]) -> None:
        """If it waited for a lock that is free now, let it end its step."""
        self._wait_for_stop(monitor)

    def _wait_for_stop(self, monitor: psycopg.Connection[Any] | None) -> None:
        until = time.monotonic() + PATIENCE_SECS
        while not self._has_stopped.wait(LOOK_SECS):
            if monitor is not None and _is_blocked(monitor, self._pids):
                return
            assert time.monotonic() < until, "a step takes too long"


def _is_blocked(monitor: psycopg.Connection[Any], pids: list[int]) -> bool:
    blocked = "SELECT EXISTS (SELECT FROM unnest(%s::int[]) AS pid WHERE cardinality(pg_blocking_pids(pid)) > 0)"
    row = monitor.execute(blocked, [pids]).fetchone()
    return row is not None and bool(row[0])


def _step() -> None:
    session: Session | None = getattr(_current, "session", None)
    if session is not None:
        session.stop()


@contextmanager
def connection_of_its_own() -> Iterator[psycopg.Connection[Any]]:
    """For a session whose work has a connection beside Django's, as imports have."""
    session: Session | None = getattr(_current, "session", None)
    with psycopg.connect(**connection_params(), autocommit=True) as own:
        if session is not None:
            session._pids.append(own.info.backend_pid)
            own.execute("SET deadlock_timeout = '30ms'")
        yield own


def _before_each(execute: Callable[..., Any], *args: Any) -> Any:
    _step()
    return execute(*args)


@contextmanager
def _every_way_to_the_database() -> Iterator[None]:
    """What goes past Django's cursors: statements of clients' use cases, of the validator, and of imports, whose
    transactions are psycopg's own.
    """

    def stepping(function: Callable[..., Any]) -> Callable[..., Any]:
        def step_then(*args: Any, **kwargs: Any) -> Any:
            _step()
            return function(*args, **kwargs)

        return step_then

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sync_driver, "fetch", stepping(sync_driver.fetch))
        patch.setattr(binary.Statement, "_result", stepping(binary.Statement._result))
        patch.setattr(binary, "_drain", stepping(binary._drain))
        patch.setattr(psycopg.Connection, "execute", stepping(psycopg.Connection.execute))
        patch.setattr(psycopg.Transaction, "__exit__", stepping(psycopg.Transaction.__exit__))
        yield


def run(works: Sequence[Work], order: Sequence[int]) -> list[Any]:
    """What each session returns or raises, if their steps are done in this order; what is left, one after the other."""
    sessions = [Session(work) for work in works]
    with ExitStack() as stack:
        stack.enter_context(_every_way_to_the_database())
        monitor = stack.enter_context(psycopg.connect(**connection_params(), autocommit=True))
        for session in sessions:
            session.start()
        until = time.monotonic() + PATIENCE_SECS
        for number in itertools.chain(order, itertools.cycle(range(len(sessions)))):
            sessions[number].go_on(monitor)
            for session in sessions:
                session.settle(monitor)
            if all(session.is_over for session in sessions):
                break
            assert time.monotonic() < until, "sessions wait for one another"
        for session in sessions:
            session._thread.join()
    return [session.outcome for session in sessions]


def count_steps(work: Work) -> int:
    """How many steps it has by itself."""
    session = Session(work)
    with _every_way_to_the_database(), psycopg.connect(**connection_params(), autocommit=True) as monitor:
        session.start()
        while not session.is_over:
            session.go_on(monitor)
        session._thread.join()
    if isinstance(session.outcome, Exception):
        raise session.outcome
    return session.nsteps


def orders(nsteps: Sequence[int], most: int = MOST) -> list[tuple[int, ...]]:
    """All orders of the sessions' steps; if there are more than ``most``, this many of them, always the same."""
    steps = [number for number, n in enumerate(nsteps) for _ in range(n)]
    total = math.factorial(len(steps)) // math.prod(math.factorial(n) for n in nsteps)
    if total <= most:
        return sorted(_permutations(list(nsteps)))
    rng = random.Random(f"{nsteps}")
    # Drawn ones seldom cut a session in two near its end.
    found = {tuple(_cut(nsteps, number, rng)) for number in range(most // 2)}
    while len(found) < most:
        rng.shuffle(steps)
        found.add(tuple(steps))
    return sorted(found)


def _permutations(left: list[int]) -> Iterator[tuple[int, ...]]:
    if not any(left):
        yield ()
    for number, n in enumerate(left):
        if n:
            rest = [*left[:number], n - 1, *left[number + 1 :]]
            yield from ((number, *more) for more in _permutations(rest))


def _cut(nsteps: Sequence[int], number: int, rng: random.Random) -> Iterator[int]:
    """One session is cut at one place, and the others are done there as a whole. First, each is cut at its commit."""
    outer = number % len(nsteps)
    before = nsteps[outer] - 1 if number < len(nsteps) else rng.randrange(1, nsteps[outer] + 1)
    yield from [outer] * before
    others = [each for each in range(len(nsteps)) if each != outer]
    rng.shuffle(others)
    for other in others:
        yield from [other] * nsteps[other]
    yield from [outer] * (nsteps[outer] - before)


@dataclass
class Scene:
    """Sessions on rows of their own; ``check`` is given what they returned or raised."""

    works: Sequence[Work]
    check: Callable[[list[Any]], None]


def try_all(make: Callable[[], Scene], most: int = MOST) -> int:
    """Play the scene, each time made again, in all orders of its steps; how many those were."""
    nsteps = [count_steps(make().works[number]) for number in range(len(make().works))]
    played = orders(nsteps, most)
    for order in played:
        scene = make()
        outcomes = run(scene.works, order)
        try:
            assert not [outcome for outcome in outcomes if isinstance(outcome, (Error, psycopg.Error))], outcomes
            scene.check(outcomes)
        except AssertionError as error:
            places = " ".join(f"{len(list(steps))}×{number}" for number, steps in itertools.groupby(order))
            raise AssertionError(f"in the order {places}: {error}") from error
    return len(played)

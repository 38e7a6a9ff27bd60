"""Do in one go what several threads want of the database at the same time.

To begin and end a statement costs PostgreSQL and this process more than its work on one more row. So whoever comes
while another thread's statement runs waits for its end, and what has come by then is done by one of those threads, in
one statement. Who comes alone is served at once. What fails together is done again, each by itself, as it would have
been done alone: a fault concerns only the one who brought it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from psycopg_pool import PoolTimeout

from portal.prepared import is_in_transaction

MOST: Final = 16
"""What is done together at most."""

Wanted = TypeVar("Wanted")
Found = TypeVar("Found")


@dataclass(slots=True, eq=False)
class _Place(Generic[Wanted, Found]):
    """One thread's place in the queue. ``turn`` is locked until it is done, or is the first and has to do it."""

    wanted: Wanted
    kind: Hashable
    owner: Hashable
    turn: threading.Lock = field(default_factory=threading.Lock)
    is_first: bool = False
    is_left: bool = False
    found: list[Found] = field(default_factory=list)
    error: PoolTimeout | None = None


class Together(Generic[Wanted, Found]):
    """``run(several)``: the results in the same order, in a transaction of its own."""

    def __init__(self, run: Callable[[Sequence[Wanted]], Sequence[Found]]) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._queue: list[_Place[Wanted, Found]] = []
        self._is_running = False

    def get(self, wanted: Wanted, kind: Hashable = None, owner: Hashable = None) -> Found:
        """Its result. Only what is of one kind is done together, and of an owner only one at a time.

        In a transaction of Django's it is done by itself, as part of that.
        """
        if is_in_transaction():
            return self._run([wanted])[0]
        place: _Place[Wanted, Found] = _Place(wanted, kind, owner)
        place.turn.acquire()
        with self._lock:
            self._queue.append(place)
            waits, self._is_running = self._is_running, True
        if waits:
            self._wait(place)
        if not place.is_left:
            self._run_first()
        if place.error is not None:
            raise PoolTimeout(*place.error.args) from place.error
        return place.found[0] if place.found else self._run([wanted])[0]

    def _wait(self, place: _Place[Wanted, Found]) -> None:
        try:
            place.turn.acquire()
        except BaseException:
            # Interrupted: it must not be waited for.
            with self._lock:
                self._queue = [each for each in self._queue if each is not place]
            if place.is_first and not place.is_left:
                self._begin_next()
            raise

    def _run_first(self) -> None:
        """Do what is first in the queue, this thread's, and what goes with it; then it is the next one's turn."""
        with self._lock:
            batch = self._leave()
        try:
            for place, found in zip(batch, self._run([place.wanted for place in batch]), strict=True):
                place.found.append(found)
        except PoolTimeout as error:
            # All the others have waited for a connection as well.
            with self._lock:
                batch += self._queue
                self._queue = []
            for place in batch:
                place.is_left, place.error = True, error
        except Exception:
            # Of whatever kind, it may be the fault of one: each is done again by itself, and gets what is its own.
            if len(batch) == 1:
                raise
        finally:
            self._begin_next()
            for place in batch[1:]:
                place.turn.release()

    def _begin_next(self) -> None:
        with self._lock:
            following = self._queue[:1]
            self._is_running = bool(following)
            for place in following:
                place.is_first = True
                place.turn.release()

    def _leave(self) -> list[_Place[Wanted, Found]]:
        """Take the first out of the queue, and what goes with it."""
        first = self._queue[0]
        batch: list[_Place[Wanted, Found]] = []
        owners = set()
        for place in self._queue:
            if len(batch) < MOST and place.kind == first.kind and place.owner not in owners:
                batch.append(place)
                place.is_left = True
                if place.owner is not None:
                    owners.add(place.owner)
        self._queue = [place for place in self._queue if not place.is_left]
        return batch

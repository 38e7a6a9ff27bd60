"""Answer requests that come at the same time in step, and do in one go what they want of the database.

A trip to the database costs it and this process more than its work on one more row, and so does each change of thread.
So an answer is a generator that yields what it wants and is sent what was found. Whoever comes first leads: it takes
its own answer and those of all who come meanwhile as far as they get by themselves, does what they then want in one
trip, and so on; the others' threads sleep until theirs is ready. When the leader's own is ready, another one leads. Who
comes alone is served at once. What fails together is done again, each by itself, as it would have been done alone: a
fault concerns only the one who brought it.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from psycopg_pool import PoolTimeout

from portal.prepared import give_back_djangos, is_in_transaction

MOST: Final = 16
"""Answers that are under way together at most."""


class Want(Protocol):
    """What an answer wants. If it ``may_wait``, for a lock say, it is done apart: nobody else shall wait with it."""

    @property
    def may_wait(self) -> bool: ...


Wanted = TypeVar("Wanted", bound=Want)
Wanted_contra = TypeVar("Wanted_contra", bound=Want, contravariant=True)
Answer = TypeVar("Answer")


class Run(Protocol[Wanted_contra]):
    def __call__(self, several: Sequence[Wanted_contra], *, apart: bool = False) -> Sequence[Any]: ...


@dataclass(slots=True, eq=False)
class _Place(Generic[Wanted]):
    """One thread's answer. ``turn`` is locked until it ``is_left`` to its thread, or its thread has to lead.

    ``wanted``: what it waits for; None if it can go on, with what was found.
    """

    steps: Generator[Wanted, Any, Any]
    turn: threading.Lock = field(default_factory=threading.Lock)
    leads: bool = False
    wanted: Wanted | None = None
    found: Any = None
    answer: Any = None
    error: BaseException | None = None
    is_done: bool = False
    is_left: bool = False
    is_abandoned: bool = False

    def go_on(self) -> None:
        """As far as it gets with what was found."""
        found, self.found = self.found, None
        try:
            self.wanted = self.steps.throw(found) if isinstance(found, Exception) else self.steps.send(found)
        except StopIteration as end:
            self.is_done, self.answer = True, end.value
        except BaseException as error:
            # Of whatever kind, it is its own thread's.
            self.is_done, self.error = True, error

    def take(self, found: object) -> None:
        """What was found, or the fault that it was refused for."""
        self.found, self.wanted = found, None

    def result(self) -> Any:
        error, self.error = self.error, None
        if error is None:
            return self.answer
        try:
            raise error
        finally:
            # Its traceback holds this frame: else all of the request would stay until garbage is collected.
            del error


class Together(Generic[Wanted]):
    """``run(several)``: what was found for each, in the same order, or its fault. With ``apart`` the fault of one is
    never that of another; without, they may share a transaction.
    """

    def __init__(self, run: Run[Wanted]) -> None:
        self._run = run
        self._lock = threading.Lock()
        # Under this lock: who came and has not begun, and whether somebody leads. Under way is the leader's own.
        self._came: list[_Place[Wanted]] = []
        self._is_led = False
        self._under_way: list[_Place[Wanted]] = []

    def answer(self, steps: Generator[Wanted, Any, Answer]) -> Answer:
        """What it returns or raises. In a transaction of Django's it is done by itself, as part of that."""
        if is_in_transaction():
            return self.alone(steps)
        # Else, with as many new computers at once as there are connections, each would hold one and wait for another.
        give_back_djangos()
        place = _Place(steps)
        place.turn.acquire()
        with self._lock:
            self._came.append(place)
            place.leads, self._is_led = not self._is_led, True
        if not place.leads:
            self._wait(place)
        if not place.is_left:
            self._lead(place)
        return cast("Answer", place.result() if place.is_done else self._finish(place))

    def alone(self, steps: Generator[Wanted, Any, Answer]) -> Answer:
        """The same, by itself."""
        place = _Place(steps)
        place.go_on()
        return cast("Answer", self._finish(place))

    def _finish(self, place: _Place[Wanted]) -> Any:
        while not place.is_done:
            assert place.wanted is not None  # it is not done
            try:
                (found,) = self._run([place.wanted])
            except Exception as error:
                # Of whatever kind, it is raised where it is wanted.
                found = error
            place.take(found)
            place.go_on()
        return place.result()

    def _wait(self, place: _Place[Wanted]) -> None:
        try:
            place.turn.acquire()
        except BaseException:
            with self._lock:
                place.is_abandoned = True
            if place.leads:
                self._pass_on()
            raise

    def _lead(self, own: _Place[Wanted]) -> None:
        try:
            while True:
                self._go_on()
                if own.is_left:
                    return
                self._make_trip()
        finally:
            # If it was interrupted, nobody waits for it.
            own.is_abandoned = not own.is_left
            self._pass_on()

    def _go_on(self) -> None:
        """Take in who came, and have all go on that can; wake the threads to whom an answer is left."""
        with self._lock:
            room = MOST - len(self._under_way)
            self._under_way += self._came[:room]
            del self._came[:room]
        try:
            for each in self._under_way:
                if each.wanted is None:
                    each.go_on()
                each.is_left = each.is_done or (each.wanted is not None and each.wanted.may_wait)
                if each.is_left and not each.leads:
                    each.turn.release()
        finally:
            self._under_way = [each for each in self._under_way if not each.is_left]

    def _make_trip(self) -> None:
        """Do what those under way want; what failed is done again, each by itself."""
        several = [(each, each.wanted) for each in self._under_way if each.wanted is not None]
        found = self._found([wanted for _, wanted in several])
        failed = [at for at, its in enumerate(found) if isinstance(its, Exception) and not isinstance(its, PoolTimeout)]
        if failed and len(several) > 1:
            again = self._found([several[at][1] for at in failed], apart=True)
            for at, its in zip(failed, again, strict=True):
                found[at] = its
        for (each, _), its in zip(several, found, strict=True):
            each.take(its)

    def _found(self, several: Sequence[Wanted], *, apart: bool = False) -> list[Any]:
        try:
            return list(self._run(several, apart=apart))
        except PoolTimeout as error:
            self._refuse_waiting(error)
            return [PoolTimeout(*error.args) for _ in several]
        except Exception as error:
            # Of whatever kind, it is raised where it is wanted.
            return [error] * len(several)

    def _refuse_waiting(self, error: PoolTimeout) -> None:
        """No connection was to be had: all who came meanwhile have waited for one as well."""
        with self._lock:
            came, self._came = self._came, []
        for each in came:
            each.error, each.is_done, each.is_left = PoolTimeout(*error.args), True, True
            each.turn.release()

    def _pass_on(self) -> None:
        """Let another one lead: who has not begun yet, and so has the longest way to go, or one under way."""
        with self._lock:
            following = next((each for each in (*self._came, *self._under_way) if not each.is_abandoned), None)
            self._is_led = following is not None
            if following is not None:
                following.leads = True
                following.turn.release()

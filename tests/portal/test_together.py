"""What several threads want at the same time is done in one go, and each gets its own result, or its own fault."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import cast

import pytest
from django.db import transaction
from psycopg_pool import PoolTimeout

from portal import together
from portal.together import Together
from tests.waiting import wait_until

PATIENCE_SECS = 20


class Refused(Exception):
    pass


@dataclass
class Doubling:
    """Doubles numbers; what comes first waits until it is let go. Fails if there is a negative one among them."""

    batches: list[list[int]] = field(default_factory=list)
    has_begun: threading.Event = field(default_factory=threading.Event)
    goes_on: threading.Event = field(default_factory=threading.Event)

    def __call__(self, numbers: Sequence[int]) -> list[int]:
        self.batches.append(list(numbers))
        if not self.has_begun.is_set():
            self.has_begun.set()
            assert self.goes_on.wait(PATIENCE_SECS)
        if min(numbers) < 0:
            raise Refused(min(numbers))
        return [2 * number for number in numbers]


def _await_waiting(doubled: Together[int, int], nwaiting: int) -> None:
    wait_until(lambda: len(doubled._queue) == nwaiting, f"{nwaiting} to wait", PATIENCE_SECS, poll_secs=0.001)


def _while_first_runs(
    work: Doubling, wanted: Sequence[tuple[int, str, str | None]], first: int = 1
) -> list[Future[int]]:
    """One begins, the others come in this order while it runs; all results."""
    doubled: Together[int, int] = Together(work)
    with ThreadPoolExecutor(len(wanted) + 1) as threads:
        found = [threads.submit(doubled.get, first)]
        assert work.has_begun.wait(PATIENCE_SECS)
        for nwaiting, (each, kind, owner) in enumerate(wanted, 1):
            found.append(threads.submit(doubled.get, each, kind, owner))
            _await_waiting(doubled, nwaiting)
        work.goes_on.set()
    return found


def test_one_that_comes_alone_is_done_at_once() -> None:
    work = Doubling()
    work.goes_on.set()
    assert Together(work).get(21) == 42
    assert work.batches == [[21]]


def test_those_that_come_meanwhile_are_done_in_one_go() -> None:
    work = Doubling()
    found = _while_first_runs(work, [(2, "", None), (3, "", None), (4, "", None)])
    assert [each.result() for each in found] == [2, 4, 6, 8]
    assert work.batches == [[1], [2, 3, 4]]


def test_only_what_is_of_one_kind_goes_together() -> None:
    work = Doubling()
    found = _while_first_runs(work, [(2, "a", None), (3, "b", None), (4, "a", None), (5, "b", None)])
    assert [each.result() for each in found] == [2, 4, 6, 8, 10]
    assert work.batches == [[1], [2, 4], [3, 5]]


def test_of_one_owner_only_one_at_a_time() -> None:
    work = Doubling()
    found = _while_first_runs(work, [(2, "", "Ada"), (3, "", "Ada"), (4, "", "Bob"), (5, "", "Ada")])
    assert [each.result() for each in found] == [2, 4, 6, 8, 10]
    assert work.batches == [[1], [2, 4], [3], [5]]


def test_there_is_a_limit_to_what_goes_together() -> None:
    work = Doubling()
    found = _while_first_runs(work, [(number, "", None) for number in range(together.MOST + 2)])
    assert [each.result() for each in found] == [2] + [2 * number for number in range(together.MOST + 2)]
    assert [len(batch) for batch in work.batches] == [1, together.MOST, 2]


def test_a_fault_concerns_only_the_one_who_brought_it() -> None:
    work = Doubling()
    good, bad, other = _while_first_runs(work, [(2, "", None), (-3, "", None), (4, "", None)])[1:]
    assert (good.result(), other.result()) == (4, 8)
    with pytest.raises(Refused, match="-3"):
        bad.result()
    # Together first, then each by itself.
    assert work.batches[1] == [2, -3, 4]
    assert sorted(work.batches[2:]) == [[-3], [2], [4]]


def test_after_one_that_fails_alone_the_next_one_is_served() -> None:
    work = Doubling()
    bad, good = _while_first_runs(work, [(2, "", None)], first=-1)
    with pytest.raises(Refused):
        bad.result()
    assert good.result() == 4


def test_without_a_connection_to_be_had_nobody_waits_twice_for_one() -> None:
    ntries = 0
    has_begun, goes_on = threading.Event(), threading.Event()

    def waits_for_a_connection(numbers: Sequence[int]) -> list[int]:
        nonlocal ntries
        ntries += 1
        has_begun.set()
        assert goes_on.wait(PATIENCE_SECS)
        raise PoolTimeout("couldn't get a connection")

    wanted: Together[int, int] = Together(waits_for_a_connection)
    with ThreadPoolExecutor(3) as threads:
        found = [threads.submit(wanted.get, 1)]
        assert has_begun.wait(PATIENCE_SECS)
        found += [threads.submit(wanted.get, number) for number in (2, 3)]
        _await_waiting(wanted, 2)
        goes_on.set()
    for each in found:
        with pytest.raises(PoolTimeout, match="couldn't get a connection"):
            each.result()
    assert ntries == 1


@pytest.mark.parametrize("is_first", [True, False])
def test_one_that_is_interrupted_is_not_waited_for(is_first: bool) -> None:
    class Interrupted:
        def acquire(self) -> None:
            raise KeyboardInterrupt

    doubled: Together[int, int] = Together(Doubling())
    place = together._Place[int, int](1, None, None, turn=cast("threading.Lock", Interrupted()), is_first=is_first)
    other = together._Place[int, int](2, None, None)
    other.turn.acquire()
    doubled._queue = [place, other]
    with pytest.raises(KeyboardInterrupt):
        doubled._wait(place)
    assert doubled._queue == [other]
    # If it was its turn, it is the next one's now.
    assert other.turn.locked() is not is_first


@pytest.mark.django_db
def test_in_a_transaction_it_is_done_by_itself() -> None:
    work = Doubling()
    doubled: Together[int, int] = Together(work)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(doubled.get, 1)
        assert work.has_begun.wait(PATIENCE_SECS)
        with transaction.atomic():
            assert doubled.get(2) == 4
        work.goes_on.set()
        assert running.result(PATIENCE_SECS) == 2
    assert sorted(work.batches) == [[1], [2]]


def test_many_threads_each_get_their_own() -> None:
    work = Doubling()
    work.goes_on.set()
    doubled: Together[int, int] = Together(work)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(doubled.get, range(2_000))) == [2 * number for number in range(2_000)]
    assert sorted(number for batch in work.batches for number in batch) == list(range(2_000))

"""Answers that come at the same time go in step, and each gets its own, or its own fault."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Generator, Sequence
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


@dataclass(frozen=True)
class Number:
    value: int
    may_wait: bool = False


@dataclass
class Doubling:
    """Doubles numbers; what comes first waits until it is let go. Fails if there is a negative one among them."""

    batches: list[list[int]] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    has_begun: threading.Event = field(default_factory=threading.Event)
    goes_on: threading.Event = field(default_factory=threading.Event)

    def __call__(self, several: Sequence[Number], *, apart: bool = False) -> list[int | Exception]:
        numbers = [each.value for each in several]
        self.batches.append(numbers)
        self.threads.append(threading.get_ident())
        if not self.has_begun.is_set():
            self.has_begun.set()
            assert self.goes_on.wait(PATIENCE_SECS)
        if min(numbers) < 0 and not apart:
            raise Refused(min(numbers))
        return [2 * number if number >= 0 else Refused(number) for number in numbers]


Steps = Generator[Number, int, int]


def once(number: int, *, may_wait: bool = False) -> Steps:
    return (yield Number(number, may_wait))


def twice(number: int) -> Steps:
    return (yield Number((yield Number(number))))


def await_waiting(doubled: Together[Number], nwaiting: int) -> None:
    wait_until(lambda: len(doubled._came) == nwaiting, f"{nwaiting} to wait", PATIENCE_SECS, poll_secs=0.001)


def while_first_runs(work: Doubling, others: Sequence[Steps], first: Steps) -> list[Future[int]]:
    """One begins, the others come in this order while it runs; all results."""
    doubled = Together(work)
    with ThreadPoolExecutor(len(others) + 1) as threads:
        found = [threads.submit(doubled.answer, first)]
        assert work.has_begun.wait(PATIENCE_SECS)
        for nwaiting, each in enumerate(others, 1):
            found.append(threads.submit(doubled.answer, each))
            await_waiting(doubled, nwaiting)
        work.goes_on.set()
    return found


@pytest.fixture
def work() -> Doubling:
    return Doubling()


@pytest.fixture
def free_work(work: Doubling) -> Doubling:
    """That waits for nobody."""
    work.has_begun.set()
    return work


def test_one_that_comes_alone_is_done_at_once(free_work: Doubling) -> None:
    assert Together(free_work).answer(twice(21)) == 84
    assert free_work.batches == [[21], [42]]


def test_those_that_come_meanwhile_are_done_in_one_go(work: Doubling) -> None:
    found = while_first_runs(work, [once(2), once(3), once(4)], once(1))
    assert [each.result() for each in found] == [2, 4, 6, 8]
    assert work.batches == [[1], [2, 3, 4]]


def test_they_go_in_step_with_those_under_way(work: Doubling) -> None:
    found = while_first_runs(work, [twice(10), once(3)], twice(1))
    assert [each.result() for each in found] == [4, 40, 6]
    # What the first one wants second goes with what the others want first.
    assert work.batches == [[1], [2, 10, 3], [20]]


def test_there_is_a_limit_to_how_many_go_together(work: Doubling) -> None:
    found = while_first_runs(work, [once(number) for number in range(together.MOST + 2)], once(1))
    assert [each.result() for each in found] == [2] + [2 * number for number in range(together.MOST + 2)]
    assert [len(batch) for batch in work.batches] == [1, together.MOST, 2]


def test_what_may_wait_for_others_is_done_apart_by_its_own_thread(work: Doubling) -> None:
    def of_own_thread() -> Steps:
        return (yield from once(2, may_wait=True))

    found = while_first_runs(work, [of_own_thread(), once(3)], once(1))
    assert [each.result() for each in found] == [2, 4, 6]
    assert sorted(work.batches) == [[1], [2], [3]]
    assert work.threads[work.batches.index([2])] != work.threads[work.batches.index([3])]


def test_a_leader_whose_own_may_wait_lets_another_one_lead(free_work: Doubling) -> None:
    assert Together(free_work).answer(once(21, may_wait=True)) == 42


def test_a_fault_concerns_only_the_one_who_brought_it(work: Doubling) -> None:
    good, bad, other = while_first_runs(work, [once(2), once(-3), once(4)], once(1))[1:]
    assert (good.result(), other.result()) == (4, 8)
    with pytest.raises(Refused, match="-3"):
        bad.result()
    # Together first, then each by itself, but in one go.
    assert work.batches == [[1], [2, -3, 4], [2, -3, 4]]


def test_only_those_that_failed_are_done_again() -> None:
    batches = []

    def refuses_some(several: Sequence[Number], *, apart: bool = False) -> list[int | Exception]:
        batches.append(([each.value for each in several], apart))
        return [Refused() if each.value < 0 else each.value for each in several]

    table = Together(refuses_some)
    places = [together._Place(once(number)) for number in (1, -2, 3)]
    table._came = list(places)
    table._go_on()
    table._make_trip()
    assert batches == [([1, -2, 3], False), ([-2], True)]
    assert [type(place.found) for place in places] == [int, Refused, int]


def test_a_fault_is_raised_where_it_was_wanted(free_work: Doubling) -> None:
    def forgives() -> Steps:
        try:
            yield Number(-1)
        except Refused:
            return (yield Number(4))
        raise AssertionError("it was not refused")

    assert Together(free_work).answer(forgives()) == 8


def test_an_answer_that_fails_by_itself_fails_alone(work: Doubling) -> None:
    def broken() -> Steps:
        yield Number(2)
        raise Refused("broken")

    bad, good = while_first_runs(work, [broken(), once(3)], once(1))[1:]
    assert good.result() == 6
    with pytest.raises(Refused, match="broken"):
        bad.result()


def test_after_one_that_fails_the_next_one_is_served(work: Doubling) -> None:
    bad, good = while_first_runs(work, [once(2)], once(-1))
    with pytest.raises(Refused):
        bad.result()
    assert good.result() == 4


def test_without_a_connection_to_be_had_nobody_waits_twice_for_one() -> None:
    ntries = 0
    has_begun, goes_on = threading.Event(), threading.Event()

    def waits_for_a_connection(several: Sequence[Number], *, apart: bool = False) -> list[int]:
        nonlocal ntries
        ntries += 1
        has_begun.set()
        assert goes_on.wait(PATIENCE_SECS)
        raise PoolTimeout("couldn't get a connection")

    table = Together(waits_for_a_connection)
    with ThreadPoolExecutor(3) as threads:
        found = [threads.submit(table.answer, once(1))]
        assert has_begun.wait(PATIENCE_SECS)
        found += [threads.submit(table.answer, once(number)) for number in (2, 3)]
        await_waiting(table, 2)
        goes_on.set()
    for each in found:
        with pytest.raises(PoolTimeout, match="couldn't get a connection"):
            each.result()
    assert ntries == 1


def test_nor_when_what_failed_is_done_again() -> None:
    ntries = []

    def loses_its_connection(several: Sequence[Number], *, apart: bool = False) -> list[int | Exception]:
        ntries.append(len(several))
        if apart:
            raise PoolTimeout("couldn't get a connection")
        return [1, Refused(), Refused()]

    table = Together(loses_its_connection)
    places = [together._Place(once(number)) for number in (1, 2, 3)]
    table._came = list(places)
    table._go_on()
    table._make_trip()
    assert ntries == [3, 2]
    assert [type(place.found) for place in places] == [int, PoolTimeout, PoolTimeout]


def test_one_that_ends_its_thread_ends_no_other(work: Doubling) -> None:
    def ends() -> Steps:
        yield Number(2)
        raise SystemExit("ended")

    doubled = Together(work)
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(doubled.answer, once(1))
        assert work.has_begun.wait(PATIENCE_SECS)
        others = []
        for nwaiting, each in enumerate((once(3), ends(), twice(4)), 1):
            others.append(threads.submit(doubled.answer, each))
            await_waiting(doubled, nwaiting)
        work.goes_on.set()
        assert [first.result(PATIENCE_SECS), others[0].result(PATIENCE_SECS), others[2].result(PATIENCE_SECS)] == [
            2,
            6,
            16,
        ]
        with pytest.raises(SystemExit, match="ended"):
            others[1].result(PATIENCE_SECS)
    assert doubled.answer(once(5)) == 10


def test_a_request_that_failed_is_not_kept_in_memory(free_work: Doubling) -> None:
    def fails() -> Steps:
        yield Number(1)
        raise Refused

    steps = fails()
    kept = weakref.ref(steps)
    gc.disable()
    try:
        with pytest.raises(Refused):
            Together(free_work).answer(steps)
        del steps
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("leads", [True, False])
def test_one_that_is_interrupted_is_not_waited_for(leads: bool, work: Doubling) -> None:
    class Interrupted:
        def acquire(self) -> None:
            raise KeyboardInterrupt

    table = Together(work)
    place = together._Place(once(1), turn=cast("threading.Lock", Interrupted()), leads=leads)
    other = together._Place(once(2))
    other.turn.acquire()
    table._came = [place, other]
    with pytest.raises(KeyboardInterrupt):
        table._wait(place)
    # If it was to lead, another one does now.
    assert other.leads is leads
    assert other.turn.locked() is not leads


def test_a_leader_that_is_interrupted_lets_another_one_lead() -> None:
    def interrupted(several: Sequence[Number], *, apart: bool = False) -> list[int]:
        raise KeyboardInterrupt

    table = Together(interrupted)
    other = together._Place(once(2))
    other.turn.acquire()
    table._came = [other]
    with pytest.raises(KeyboardInterrupt):
        table.answer(once(1))
    assert other.leads and not other.turn.locked()
    # What it was about to do is done by the next one.
    assert [place.wanted for place in table._under_way if not place.is_abandoned] == [Number(2)]


@pytest.mark.django_db
def test_in_a_transaction_it_is_done_by_itself(work: Doubling) -> None:
    doubled = Together(work)
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(doubled.answer, once(1))
        assert work.has_begun.wait(PATIENCE_SECS)
        with transaction.atomic():
            assert doubled.answer(once(2)) == 4
        work.goes_on.set()
        assert running.result(PATIENCE_SECS) == 2
    assert work.batches == [[1], [2]]


def test_many_threads_each_get_their_own(free_work: Doubling) -> None:
    doubled = Together(free_work)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: doubled.answer(twice(number)), range(2_000)))
    assert found == [4 * number for number in range(2_000)]
    assert sum(map(len, free_work.batches)) == 4_000

"""Work that volunteers ask for: fair turns, few at once for each, estimates, and workers of its own."""

from __future__ import annotations

import datetime as dt
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest
from django.db import close_old_connections, connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from credit.models import Workunit
from emulator.models import Run, RunState
from portal.celery import app, queue_length
from portal.models import RequestedWork, User
from portal.requested_work import queue
from scheduler import tasks as project_tasks
from tests.support.credit_factories import make_app, make_workunit
from tests.support.emulator_experiments import begin, trial
from tests.support.guarded_program import GuardedProgram
from tests.support.lock_waits import nwaiting_for_locks
from tests.support.page_reader import page_of
from tests.support.site_process import CHECKOUT, environment
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db
NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The subjects of a kind of work that is done at once, in the order in which they are begun."""
    numbers: list[int] = []
    monkeypatch.setitem(queue.kinds(), "test", numbers.append)
    return numbers


def ask(user: User, *subjects: int) -> None:
    queue.ask(user.pk, "test", subjects)


def running(user: User, subject: int, since: dt.datetime = NOW) -> RequestedWork:
    return RequestedWork.objects.create(user=user, kind="test", subject=subject, started_at=since, ntries=1)


def finished(user: User, subject: int, secs: float, kind: str = "test") -> None:
    end = NOW - dt.timedelta(hours=1)
    RequestedWork.objects.create(
        user=user, kind=kind, subject=subject, started_at=end - dt.timedelta(seconds=secs), finished_at=end
    )


def test_people_take_turns(alice: User, bob: User, begun: list[int]) -> None:
    ask(alice, 1, 2, 3, 4)
    ask(bob, 11, 12)
    while queue.carry_out_next():
        pass
    assert begun == [1, 11, 2, 12, 3, 4]


def test_one_who_comes_late_waits_for_one_piece_of_each_other(
    alice: User, bob: User, operator: User, begun: list[int]
) -> None:
    ask(alice, *range(1, 30))
    ask(bob, *range(101, 130))
    for _ in range(6):
        queue.carry_out_next()
    ask(operator, 201)
    # All have nothing running, and the operator was never served.
    queue.carry_out_next()
    assert begun[-1] == 201


def test_a_person_has_few_running_at_once(alice: User, bob: User, begun: list[int], settings: Settings) -> None:
    settings.REQUESTED_WORK_PER_PERSON = 2
    mine = [running(alice, number) for number in (1, 2)]
    ask(alice, 3, 4)
    assert not queue.carry_out_next()
    ask(bob, 11)
    assert queue.carry_out_next() and not queue.carry_out_next()
    RequestedWork.objects.filter(pk=mine[0].pk).update(finished_at=NOW)
    assert queue.carry_out_next()
    assert begun == [11, 3]


def test_work_of_a_kind_that_only_a_newer_version_does_is_left(
    alice: User, bob: User, begun: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.ask(alice.pk, "newer", [1])
    ask(bob, 2)
    assert queue.carry_out_next()
    assert not queue.carry_out_next()
    assert begun == [2]
    left = RequestedWork.objects.get(kind="newer")
    assert (left.started_at, left.ntries) == (None, 0)
    monkeypatch.setitem(queue.kinds(), "newer", begun.append)
    assert queue.carry_out_next()
    assert begun == [2, 1]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("begun")
def test_workers_that_ask_at_once_keep_to_the_limit(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "_tell_workers", lambda _: None)
    running(alice, 100)
    ask(alice, *range(20))
    others: list[queue.Piece | None] = []

    def take() -> None:
        try:
            others.append(queue._take(timezone.now()))
        finally:
            close_old_connections()

    threads = [Thread(target=take) for _ in range(5)]
    with transaction.atomic():
        assert queue._take(timezone.now()) is not None
        for thread in threads:
            thread.start()
        wait_until(lambda: len(others) + nwaiting_for_locks() == 5, "the others, or that they wait", 30)
    for thread in threads:
        thread.join()
    # One runs already, so only one of these six may begin.
    assert others == [None] * 5


def test_the_place_counts_what_will_begin_before(alice: User, bob: User) -> None:
    running(alice, 1)
    ask(alice, 2, 3)
    ask(bob, 11, 12)
    places = {each: found.place for each, found in queue.standings("test", [1, 2, 3, 11, 12], NOW).items()}
    # Bob has nothing running: his first goes before all of Alice's, his second beside her first, who was served before.
    assert places == {1: 0, 11: 1, 12: 2, 2: 3, 3: 4}


def test_the_estimate_is_what_such_work_took(alice: User, bob: User) -> None:
    finished(alice, 91, 100)
    finished(alice, 92, 200)
    running(alice, 1, NOW - dt.timedelta(seconds=30))
    running(bob, 11, NOW - dt.timedelta(seconds=500))
    ask(alice, 2, 3)
    found = queue.standings("test", [1, 2, 3], NOW)
    # Two run: 150 - 30 = 120 s are left of one, nothing of the other. 120 / 2; and 150 s more, (120 + 150) / 2.
    assert [found[each].begins_secs for each in (1, 2, 3)] == [0, 60, 135]


def test_where_nothing_is_known_there_is_no_estimate(alice: User) -> None:
    ask(alice, 2)
    assert queue.standings("test", [2], NOW)[2] == queue.Standing(1, None)
    running(alice, 1)
    assert queue.standings("test", [2], NOW)[2] == queue.Standing(1, None)
    finished(alice, 91, 100, "another kind")
    assert queue.standings("test", [2], NOW)[2] == queue.Standing(1, None)


def test_what_fails_is_tried_three_times(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def fail(subject: int) -> None:
        tried.append(subject)
        raise ValueError

    monkeypatch.setitem(queue.kinds(), "test", fail)
    ask(alice, 1)
    for _ in range(3):
        with pytest.raises(ValueError):
            queue.carry_out_next()
    assert not queue.carry_out_next()
    assert tried == [1, 1, 1]
    assert queue.standings("test", [1], NOW) == {}


@pytest.mark.usefixtures("begun")
def test_what_is_put_back_may_be_taken_at_once(alice: User) -> None:
    running(alice, 1)
    taken: list[queue.Piece] = []

    def take_after(execute: Callable[..., object], *statement: object) -> object:
        """Another worker looks after each statement."""
        done = execute(*statement)
        if not is_other.is_set():
            is_other.set()
            taken.extend(filter(None, [queue._take(NOW)]))
            is_other.clear()
        return done

    is_other = Event()
    with connection.execute_wrapper(take_after):
        assert queue.put_back("test", [1]) == set()
    row = RequestedWork.objects.get()
    assert ([each.subject for each in taken], row.started_at, row.finished_at, row.ntries) == ([1], NOW, None, 2)


def test_what_a_lost_worker_had_comes_again(alice: User, begun: list[int]) -> None:
    running(alice, 1, NOW - queue.LOST_AFTER - dt.timedelta(seconds=1))
    running(alice, 2, NOW - queue.LOST_AFTER + dt.timedelta(seconds=1))
    queue.requeue_lost(NOW)
    while queue.carry_out_next():
        pass
    assert begun == [1]


@pytest.fixture
def own_queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A queue on the real broker that nobody else uses."""
    name = f"test-requested-{os.getpid()}"
    monkeypatch.setattr(queue, "QUEUE", name)
    yield name
    with app.connection_for_write() as connection, connection.SimpleQueue(name) as mine:
        mine.queue.delete()


def test_messages_that_no_worker_takes_do_not_pile_up(alice: User, own_queue: str) -> None:
    RequestedWork.objects.bulk_create(RequestedWork(user=alice, kind="test", subject=each) for each in range(40))
    for _ in range(5):
        queue.requeue_lost(NOW)
    assert queue_length(own_queue) == 40


def test_what_was_over_a_day_ago_is_forgotten(alice: User) -> None:
    finished(alice, 1, 10)
    queue.requeue_lost(NOW + dt.timedelta(hours=22))
    assert RequestedWork.objects.count() == 1
    queue.requeue_lost(NOW + dt.timedelta(hours=24))
    assert RequestedWork.objects.count() == 0


def test_the_page_says_where_the_runs_stand(signed_in: Client, alice: User, bob: User) -> None:
    finished(bob, 91, 600, "emulator run")
    RequestedWork.objects.create(user=bob, kind="emulator run", subject=92, started_at=timezone.now())
    RequestedWork.objects.create(user=bob, kind="emulator run", subject=93, started_at=timezone.now())
    experiment = begin(signed_in)
    address = reverse("experiment", args=[experiment.pk])
    signed_in.post(address, trial(experiment, nseeds="3"))
    words = page_of(signed_in, address).words.replace("\N{NO-BREAK SPACE}", " ")
    # Two have just begun and take ten minutes each: then two places are free, and ten minutes later two more.
    said = (
        "3 runs are waiting. The first is number 1 in the queue. "
        "The first starts in about 10 minutes and the last in about 20 minutes"
    )
    assert said in words


def make_run(name: str) -> list[str]:
    """A worker of make run, with this Python."""
    lines = (CHECKOUT / "Procfile").read_text().splitlines()
    command = next(line.partition(":")[2] for line in lines if line.startswith(f"{name}:"))
    return [sys.executable if word == "python" else word for word in shlex.split(command)]


@pytest.mark.django_db(transaction=True)
def test_no_other_task_waits_for_requested_work(signed_in: Client, tmp_path: Path) -> None:
    """A volunteer asks for runs, and no worker for them is there; then one is."""
    variables = environment(tmp_path)
    experiment = begin(signed_in)
    form = trial(experiment, days="1", nseeds="2")
    signed_in.post(reverse("experiment", args=[experiment.pk]), form)
    queue._tell_workers(40)

    def all_done() -> bool:
        # As `requeue_lost` does each minute: the messages above may be too old by then.
        queue._tell_workers(1)
        return not Run.objects.exclude(state=RunState.DONE).exists()

    assert RequestedWork.objects.filter(started_at=None).count() == Run.objects.count() == 2
    workunit = make_workunit(make_app(), transition_at=timezone.now())
    with GuardedProgram("the worker", make_run("worker"), tmp_path / "worker.log", variables, CHECKOUT):
        project_tasks.transition.delay()
        wait_until(lambda: Workunit.objects.get(pk=workunit.pk).results.exists(), "the transitioner", 60)
    assert not RequestedWork.objects.exclude(started_at=None).exists()
    with GuardedProgram("the other worker", make_run("requested"), tmp_path / "other.log", variables, CHECKOUT):
        wait_until(all_done, "the runs", 60)

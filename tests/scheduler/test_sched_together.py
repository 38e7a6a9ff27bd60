"""Requests that come at the same time are read and written in one go, and answered as each would be by itself."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from django.db import connection, connections, transaction

from credit.models import HostAppVersion, Result, ServerState
from portal.models import Host, User
from portal.prepared import Step, fetch_each, put_back_kept
from scheduler import catalogue, shelf, store, trips
from scheduler.writing import Writing
from tests.credit.factories import make_app, make_result, make_version, make_workunit
from tests.scheduler.clients import Computer, computer_of, key_of
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_SECS = 20
FLEET = 5


class Held:
    """Writes as the site does, but the first time waits until the others have come; who was written in each trip.

    ``meanwhile``: before the others are written, this computer's row is.
    """

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.goes_on = threading.Event()
        self.trips: list[list[int]] = []
        self.nreadings: list[int] = []
        self.meanwhile: Host | None = None

    def __call__(self, several: Sequence[trips.Wanted], *, apart: bool = False) -> list[Any]:
        writings = [each.host_id for each in several if isinstance(each, Writing)]
        if writings:
            self.trips.append(writings)
        if nreadings := sum(isinstance(each, store.Reading) for each in several):
            self.nreadings.append(nreadings)
        if writings and not self.has_begun.is_set():
            self.has_begun.set()
            assert self.goes_on.wait(PATIENCE_SECS)
        elif writings and self.meanwhile is not None:
            Host.objects.filter(pk=self.meanwhile.pk).update(venue="home")
            self.meanwhile = None
        return trips.run(several, apart=apart)


@pytest.fixture
def fleet() -> list[Computer]:
    """Known computers of different people, and enough jobs at hand for all."""
    app = make_app(max_jobs_per_day_init=1000)
    make_version(app)
    for _ in range(4 * FLEET):
        make_result(make_workunit(app, output_files=[]))
    people = [User.objects.create_user(f"cruncher{number}@example.org") for number in range(FLEET)]
    computers = [computer_of(person) for person in people]
    for computer in computers:
        computer.ask(0, 1)
    shelf.fill(catalogue.current())
    return computers


@pytest.fixture
def held(fleet: list[Computer], monkeypatch: pytest.MonkeyPatch) -> Held:
    held = Held()
    monkeypatch.setattr(trips.together, "_run", held)
    return held


def ask(computer: Computer) -> None:
    """For two jobs, in a thread of its own."""
    try:
        computer.ask(0, 2)
    finally:
        connections.close_all()


def all_ask_at_once(held: Held, fleet: Sequence[Computer]) -> None:
    """The first one's write begins, the others come, and all go on."""
    with ThreadPoolExecutor(len(fleet)) as threads:
        asked = [threads.submit(ask, fleet[0])]
        assert held.has_begun.wait(PATIENCE_SECS)
        asked += [threads.submit(ask, computer) for computer in fleet[1:]]
        wait_until(lambda: len(trips.together._came) == len(fleet) - 1, "the others", PATIENCE_SECS, poll_secs=0.01)
        held.goes_on.set()
        for each in asked:
            each.result()


def sent(computer: Computer) -> list[str]:
    found = Result.objects.filter(host=computer.hostid, server_state=ServerState.IN_PROGRESS)
    return list(found.order_by("id").values_list("name", flat=True))


def test_requests_that_come_at_once_are_written_in_one_go(held: Held, fleet: list[Computer]) -> None:
    all_ask_at_once(held, fleet)
    first, *others = [computer.hostid for computer in fleet]
    assert held.trips[0] == [first]
    assert [sorted(trip) for trip in held.trips[1:]] == [sorted(others)]
    for computer in fleet:
        # One of the first contact, and two now; its own and nobody else's.
        assert len(computer.jobs) == 3
        assert sorted(sent(computer)) == sorted(computer.jobs)


def test_if_one_of_them_is_outdated_only_that_one_is_answered_anew(held: Held, fleet: list[Computer]) -> None:
    held.meanwhile = changed = Host.objects.get(pk=fleet[2].hostid)
    all_ask_at_once(held, fleet)
    together = held.trips[1]
    assert len(together) == len(fleet) - 1
    # Each by itself, but in one trip; then the one that was changed with its lock, which is not done together.
    assert held.trips[2:] == [together]
    for computer in fleet:
        assert len(computer.jobs) == 3
        assert sorted(sent(computer)) == sorted(computer.jobs)
    assert Host.objects.get(pk=changed.pk).venue == "home"


def test_two_computers_of_one_person_are_written_one_after_the_other(
    held: Held, fleet: list[Computer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a statement sends it does not see itself: it would send a person two copies of a workunit."""
    owner = Host.objects.get(pk=fleet[1].hostid).owner
    second = computer_of(owner)
    held.has_begun.set()
    second.ask(0, 1)
    shelf.fill(catalogue.current())
    held.has_begun.clear()
    held.trips.clear()
    ntransactions = []

    def counted(transactions: Sequence[Sequence[Step]]) -> list[Any]:
        ntransactions.append(len(transactions))
        return fetch_each(transactions)

    monkeypatch.setattr(trips, "fetch_each", counted)
    all_ask_at_once(held, [fleet[0], fleet[1], second])
    # In one trip, in two transactions.
    assert [len(trip) for trip in held.trips] == [1, 2]
    assert ntransactions[-1] == 2
    workunits = Result.objects.filter(user=owner).values_list("workunit", flat=True)
    assert len(workunits) == len(set(workunits)) == 6


def test_who_writes_an_account_for_a_while_keeps_nobody_elses_requests_waiting(
    held: Held, fleet: list[Computer]
) -> None:
    """A job refers to its owner's account, which cannot be while that is locked: to be deleted, say."""
    with ThreadPoolExecutor(FLEET) as threads, transaction.atomic():
        User.objects.select_for_update().get(hosts=fleet[1].hostid)
        asked = [threads.submit(ask, fleet[0])]
        assert held.has_begun.wait(PATIENCE_SECS)
        asked += [threads.submit(ask, computer) for computer in fleet[1:]]
        wait_until(lambda: len(trips.together._came) == len(fleet) - 1, "the others", PATIENCE_SECS, poll_secs=0.01)
        held.goes_on.set()
        for each in asked[:1] + asked[2:]:
            each.result(PATIENCE_SECS)
        assert not asked[1].done()
        transaction.set_rollback(True)
    asked[1].result(PATIENCE_SECS)
    assert [len(computer.jobs) for computer in fleet] == [3] * FLEET


def test_who_names_very_many_jobs_is_read_apart(held: Held, fleet: list[Computer]) -> None:
    fleet[1].jobs += [f"unknown_{number}" for number in range(store.FEW_NAMES)]
    all_ask_at_once(held, fleet)
    assert sorted(held.nreadings) == [1, 1, len(fleet) - 2]
    assert [len(sent(computer)) for computer in fleet] == [3] * FLEET


def test_what_may_wait_for_a_lock_keeps_nobody_else_waiting(fleet: list[Computer]) -> None:
    """The first job of a spell of probation is noted in a record that a validator has locked."""
    record = HostAppVersion.objects.get(host=fleet[0].hostid)
    HostAppVersion.objects.filter(pk=record.pk).update(scale_probation=True, host_scale_at=None)
    with ThreadPoolExecutor(2) as threads, transaction.atomic():
        HostAppVersion.objects.select_for_update().get(pk=record.pk)
        waits = threads.submit(ask, fleet[0])
        threads.submit(ask, fleet[1]).result(PATIENCE_SECS)
        assert len(fleet[1].jobs) == 3
        assert not waits.done()
        transaction.set_rollback(True)
    waits.result(PATIENCE_SECS)
    assert len(fleet[0].jobs) == 3
    record.refresh_from_db()
    assert record.host_scale_at is not None


def test_more_new_computers_at_once_than_there_are_connections() -> None:
    """None holds one connection while it waits for another."""
    make_version(make_app())
    put_back_kept()
    nnew = cast("Any", connection).pool.max_size + 4
    newcomers = [Computer(key_of(User.objects.create_user(f"new{n}@example.org"))) for n in range(nnew)]
    connection.close()
    at_once = threading.Barrier(nnew)

    def enrol(computer: Computer) -> None:
        at_once.wait(PATIENCE_SECS)
        try:
            computer.ask(0, 0)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(nnew) as threads:
        list(threads.map(enrol, newcomers))
    assert Host.objects.count() == nnew
    put_back_kept()


def test_what_cannot_be_asked_of_the_database_fails_by_itself() -> None:
    asker = {"key_hash": "0" * 64, "host_id": 1, "reported": [], "preferences_at": 0.0}
    good, bad = (store.Reading(asker | {"names": names}) for names in ([], ["\ud800"]))
    found, fault = trips.run([good, bad], apart=True)
    assert found is None  # nobody has this key
    assert isinstance(fault, TypeError)  # no JSON can say this name

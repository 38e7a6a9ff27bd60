"""Requests that come at the same time are read and written in one go, and answered as each would be by itself."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections

from credit.models import Result, ServerState
from portal.models import Host, User
from scheduler import catalogue, shelf, writing
from scheduler.writing import Writing
from tests.credit.factories import make_app, make_result, make_version, make_workunit
from tests.scheduler.clients import Computer, computer_of
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_SECS = 20
FLEET = 5


class Held:
    """Writes as the site does, but the first time waits until the others have come; who was written together."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.goes_on = threading.Event()
        self.batches: list[list[int]] = []

    def __call__(self, writings: Sequence[Writing]) -> list[set[int]]:
        self.batches.append([each.host_id for each in writings])
        if not self.has_begun.is_set():
            self.has_begun.set()
            assert self.goes_on.wait(PATIENCE_SECS)
        return writing._write_together(writings)


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
    monkeypatch.setattr(writing._writings, "_run", held)
    return held


def all_ask_at_once(held: Held, fleet: Sequence[Computer], meanwhile: Host | None = None) -> None:
    """The first one's write begins, the others come; then, if told, one of their rows is written, and all go on."""

    def ask(computer: Computer) -> None:
        try:
            computer.ask(0, 2)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(fleet)) as threads:
        asked = [threads.submit(ask, fleet[0])]
        assert held.has_begun.wait(PATIENCE_SECS)
        asked += [threads.submit(ask, computer) for computer in fleet[1:]]
        wait_until(lambda: len(writing._writings._queue) == len(fleet) - 1, "the others", PATIENCE_SECS, poll_secs=0.01)
        if meanwhile is not None:
            Host.objects.filter(pk=meanwhile.pk).update(venue="home")
        held.goes_on.set()
        for each in asked:
            each.result()


def sent(computer: Computer) -> list[str]:
    found = Result.objects.filter(host=computer.hostid, server_state=ServerState.IN_PROGRESS)
    return list(found.order_by("id").values_list("name", flat=True))


def test_requests_that_come_at_once_are_written_in_one_go(held: Held, fleet: list[Computer]) -> None:
    all_ask_at_once(held, fleet)
    first, *others = [computer.hostid for computer in fleet]
    assert held.batches[0] == [first]
    assert [sorted(batch) for batch in held.batches[1:]] == [sorted(others)]
    for computer in fleet:
        # One of the first contact, and two now; its own and nobody else's.
        assert len(computer.jobs) == 3
        assert sorted(sent(computer)) == sorted(computer.jobs)


def test_if_one_of_them_is_outdated_only_that_one_is_answered_anew(held: Held, fleet: list[Computer]) -> None:
    changed = Host.objects.get(pk=fleet[2].hostid)
    all_ask_at_once(held, fleet, meanwhile=changed)
    together = held.batches[1]
    assert len(together) == len(fleet) - 1
    # Each by itself; then the one that was changed once more, with its lock, which is not done together.
    assert sorted(held.batches[2:]) == sorted([host_id] for host_id in together)
    for computer in fleet:
        assert len(computer.jobs) == 3
        assert sorted(sent(computer)) == sorted(computer.jobs)
    assert Host.objects.get(pk=changed.pk).venue == "home"


def test_two_computers_of_one_person_are_not_written_in_one_go(held: Held, fleet: list[Computer]) -> None:
    """What a statement sends it does not see itself: it would send a person two copies of a workunit."""
    owner = Host.objects.get(pk=fleet[1].hostid).owner
    second = computer_of(owner)
    held.has_begun.set()
    second.ask(0, 1)
    shelf.fill(catalogue.current())
    held.has_begun.clear()
    held.batches.clear()
    all_ask_at_once(held, [fleet[0], fleet[1], second])
    assert [len(batch) for batch in held.batches] == [1, 1, 1]

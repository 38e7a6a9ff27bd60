"""Simultaneous requests are read and written together, and answered as each would be separately."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction

from credit.models import HostAppVersion, Outcome, Result, ServerState
from portal.clients.database import batching
from portal.clients.effects import Query, Step, Then
from portal.models import Host, User
from scheduler.programs import catalogue
from scheduler.rpc import store, writes
from scheduler.rpc.store import KnownHost, ReadQuery
from scheduler.rpc.writes import WriteQuery
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import (
    Computer,
    at_once,
    computer_of,
    elsewhere,
    fill_ready_jobs,
    key_of,
    result_xml,
)
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE_SECS = 20
FLEET = 5


@pytest.fixture
def fleet(filled_once: None, monkeypatch: pytest.MonkeyPatch) -> list[Computer]:
    """Known computers of different people, and enough ready jobs for all.

    The first request to come must not fill the job cache, or it would be written after the others.
    """
    monkeypatch.setattr(catalogue.cache, "kept_secs", 600.0)
    app = make_app(max_jobs_per_day_init=1000)
    make_version(app)
    for _ in range(4 * FLEET):
        make_result(make_workunit(app, output_files=[]))
    people = [User.objects.create_user(f"cruncher{number}@example.org") for number in range(FLEET)]
    computers = [computer_of(person) for person in people]
    for computer in computers:
        computer.ask(0, 1)
    fill_ready_jobs()
    return computers


def batches_of(
    query: type[ReadQuery | WriteQuery], monkeypatch: pytest.MonkeyPatch, before: Callable[[int], None] = lambda _: None
) -> list[list[Any]]:
    """The batches that are carried out from now on; ``before`` each is called with its number."""
    seen: list[list[Any]] = []
    really_steps: Callable[..., Sequence[Step | Then]] = query.steps

    def steps(several: Sequence[Any], *, alone: bool) -> Sequence[Step | Then]:
        before(len(seen))
        seen.append(list(several))
        return really_steps(several, alone=alone)

    monkeypatch.setattr(query, "steps", staticmethod(steps))
    return seen


def answered_again(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The computers that are locked before they are read, from now on."""
    seen: list[int] = []
    really_write = writes.write_locked

    async def write_locked(host: KnownHost, *args: Any) -> Any:
        seen.append(host.id)
        return await really_write(host, *args)

    monkeypatch.setattr(writes, "write_locked", write_locked)
    return seen


def hosts(batches: list[list[WriteQuery]]) -> list[list[int]]:
    return [sorted(each.host_id for each in batch) for batch in batches]


def all_ask_at_once(fleet: Sequence[Computer]) -> None:
    """Each for two jobs."""
    replies = at_once(*[computer.asks(0, 2) for computer in fleet])
    assert all(isinstance(reply, str) for reply in replies), replies


def sent(computer: Computer) -> list[str]:
    results = Result.objects.filter(host=computer.hostid, server_state=ServerState.IN_PROGRESS)
    return list(results.order_by("id").values_list("name", flat=True))


def test_requests_that_come_at_once_are_written_in_one_go(
    fleet: list[Computer], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, written = batches_of(ReadQuery, monkeypatch), batches_of(WriteQuery, monkeypatch)
    all_ask_at_once(fleet)
    assert [len(batch) for batch in read] == [FLEET]
    assert hosts(written) == [sorted(computer.hostid for computer in fleet)]
    for computer in fleet:
        # One of the first contact, and two now; its own and nobody else's.
        assert len(computer.jobs) == 3
        assert sorted(sent(computer)) == sorted(computer.jobs)


def test_if_one_of_them_is_outdated_only_that_one_is_answered_anew(
    fleet: list[Computer], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = fleet[2].hostid

    def change(nbefore: int) -> None:
        if not nbefore:
            elsewhere(lambda: Host.objects.filter(pk=changed).update(venue="home"))

    written, again = batches_of(WriteQuery, monkeypatch, change), answered_again(monkeypatch)
    all_ask_at_once(fleet)
    assert hosts(written) == [sorted(computer.hostid for computer in fleet)]
    assert again == [changed]
    for computer in fleet:
        assert len(computer.jobs) == 3
        assert sorted(sent(computer)) == sorted(computer.jobs)
    assert Host.objects.get(pk=changed).venue == "home"


def test_if_a_job_is_not_to_be_had_only_who_was_given_it_is_answered_anew(
    fleet: list[Computer], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Result.objects.filter(server_state=ServerState.UNSENT).earliest("id")
    Result.objects.filter(pk=first.pk).update(server_state=ServerState.OVER, outcome=5)
    written, again = batches_of(WriteQuery, monkeypatch), answered_again(monkeypatch)
    all_ask_at_once(fleet)
    assert [len(batch) for batch in written] == [FLEET]
    assert again == [fleet[0].hostid]
    for computer in fleet:
        assert len(computer.jobs) == 3
        assert sorted(sent(computer)) == sorted(computer.jobs)


def test_who_reports_waits_for_no_job_that_others_have_locked_and_gets_another(fleet: list[Computer]) -> None:
    first = Result.objects.filter(server_state=ServerState.UNSENT).earliest("id")
    results = result_xml(fleet[0].jobs[0])
    with ThreadPoolExecutor(1) as threads, transaction.atomic():
        Result.objects.select_for_update().get(pk=first.pk)
        threads.submit(at_once, fleet[0].asks(0, 2, results=results)).result(PATIENCE_SECS)
    assert len(fleet[0].jobs) == 2
    assert first.name not in fleet[0].jobs


def test_a_computer_that_has_lost_a_job_for_good_is_locked_before_that_is_stored(
    fleet: list[Computer], monkeypatch: pytest.MonkeyPatch
) -> None:
    again = answered_again(monkeypatch)
    lost = Result.objects.get(name=fleet[0].jobs.pop())
    assert lost.deadline_at is not None
    at_once(fleet[0].asks(now=lost.deadline_at))
    lost.refresh_from_db()
    assert (again, lost.outcome) == ([fleet[0].hostid], Outcome.CLIENT_DETACHED)


def test_two_computers_of_one_person_are_written_one_after_the_other(
    fleet: list[Computer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a statement sends it does not see itself: it would send a person two copies of a workunit."""
    owner = Host.objects.get(pk=fleet[1].hostid).owner
    second = computer_of(owner)
    second.ask(0, 1)
    fill_ready_jobs()
    written = batches_of(WriteQuery, monkeypatch)
    all_ask_at_once([fleet[0], fleet[1], second])
    assert hosts(written) == [sorted([fleet[0].hostid, fleet[1].hostid]), [second.hostid]]
    workunits = Result.objects.filter(user=owner).values_list("workunit", flat=True)
    assert len(workunits) == len(set(workunits)) == 6


@contextmanager
def while_locked(lock: Callable[[], object], fleet: Sequence[Computer]) -> Iterator[Future[None]]:
    """All ask while these rows are locked by another transaction; all but the first are answered meanwhile."""
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            lock()
            asked = threads.submit(all_ask_at_once, fleet)
            wait_until(lambda: all(len(each.jobs) == 3 for each in fleet[1:]), "the others", PATIENCE_SECS, 0.01)
            assert len(fleet[0].jobs) == 1
            yield asked
            transaction.set_rollback(True)
        asked.result(PATIENCE_SECS)
    assert [len(computer.jobs) for computer in fleet] == [3] * len(fleet)


def test_who_writes_a_computer_for_a_while_keeps_no_other_computers_waiting(fleet: list[Computer]) -> None:
    with while_locked(lambda: Host.objects.select_for_update().get(pk=fleet[0].hostid), fleet) as asked:
        assert not asked.done()


def test_who_writes_an_account_for_a_while_keeps_nobody_elses_requests_waiting(fleet: list[Computer]) -> None:
    """A job refers to its owner's account, which cannot be while that is locked: to be deleted, say."""
    with while_locked(lambda: User.objects.select_for_update().get(hosts=fleet[0].hostid), fleet) as asked:
        assert not asked.done()


def test_what_may_wait_for_a_lock_keeps_nobody_else_waiting(
    fleet: list[Computer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first job of a spell of probation is noted in a record that a validator has locked."""
    together: list[int] = []
    really_steps = WriteQuery.steps

    def steps(several: Sequence[WriteQuery], *, alone: bool) -> Sequence[Step | Then]:
        together.extend(query.host_id for query in several if not alone)
        return really_steps(several, alone=alone)

    monkeypatch.setattr(WriteQuery, "steps", staticmethod(steps))
    record = HostAppVersion.objects.get(host=fleet[0].hostid)
    HostAppVersion.objects.filter(pk=record.pk).update(scale_probation=True, host_scale_at=None)
    with while_locked(lambda: HostAppVersion.objects.select_for_update().get(pk=record.pk), fleet) as asked:
        assert not asked.done()
    record.refresh_from_db()
    assert record.host_scale_at is not None
    # From the beginning, and not only after a batch with the others has waited too long.
    assert fleet[0].hostid not in together


def test_who_names_very_many_jobs_is_read_apart(fleet: list[Computer], monkeypatch: pytest.MonkeyPatch) -> None:
    fleet[1].jobs += [f"unknown_{number}" for number in range(store.FEW_NAMES)]
    read = batches_of(ReadQuery, monkeypatch)
    all_ask_at_once(fleet)
    assert sorted(len(batch) for batch in read) == [1, FLEET - 1]
    assert [len(sent(computer)) for computer in fleet] == [3] * FLEET


def test_more_new_computers_at_once_than_there_are_threads_or_connections() -> None:
    make_version(make_app())
    nnew = batching.THREADS + batching.APART_CONNECTIONS + 4
    newcomers = [Computer(key_of(User.objects.create_user(f"new{n}@example.org"))) for n in range(nnew)]
    replies = at_once(*[computer.asks(0, 0) for computer in newcomers])
    assert [f"<hostid>{computer.hostid}</hostid>" in reply for computer, reply in zip(newcomers, replies, strict=True)]
    assert Host.objects.count() == nnew


def test_a_fault_is_its_own_requests_alone(fleet: list[Computer]) -> None:
    async def wanted(query: Query[Any]) -> Any:
        return await query

    asker = {"key_hash": "0" * 64, "host_id": 1, "reported": [], "held_files": [], "preferences_at": 0.0}
    # No JSON can say the first name, and PostgreSQL takes the second for no text.
    readings = [store.ReadQuery(asker | {"names": names}, trickle_downs=False) for names in (["\ud800"], [], ["\0"])]
    unsaid, found, refused, reply = at_once(*map(wanted, readings), fleet[0].asks(0, 2))
    assert isinstance(unsaid, TypeError)
    assert found is None  # nobody has this key
    assert "Unicode" in str(refused)
    assert len(fleet[0].jobs) == 3 and "<scheduler_reply>" in reply

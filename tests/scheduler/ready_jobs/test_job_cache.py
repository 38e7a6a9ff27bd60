"""Ready jobs: which are leased, who gets them, and what happens if they are no longer available."""

from __future__ import annotations

import datetime as dt
import random
import time
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from credit.models import App, Result, ServerState, Workunit
from portal.clients import sync_driver
from portal.clients.effects import SingleFlight
from portal.models import User
from scheduler.engine.facts import Job, JobQuery
from scheduler.lifecycle import host_merge
from scheduler.models import HostRecord, JobLease
from scheduler.programs import catalogue
from scheduler.programs.catalogue import BEFORE_ALL
from scheduler.ready_jobs import job_cache, ready_queue
from scheduler.ready_jobs.job_cache import JobCache, TakenJobs
from scheduler.ready_jobs.ready_queue import FILL_NJOBS_NEAR_END, Place, ReadyJob
from scheduler.ready_jobs.sql import BLOCK
from scheduler.rpc import answer as rpc_answer
from scheduler.rpc import store
from scheduler.rpc.choice.job_queries import NO_LIMIT
from scheduler.rpc.writes import WriteQuery
from scheduler.wire.requests import parse_request
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import (
    Computer,
    at_once,
    computer_of,
    elsewhere,
    fill_ready_jobs,
    key_of,
    known_apps,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def app(db: None) -> App:
    app = make_app(max_jobs_per_day_init=1000)
    make_version(app)
    return app


def queue(app: App, nworkunits: int, ncopies: int = 1) -> list[Result]:
    workunits = [make_workunit(app, output_files=[]) for _ in range(nworkunits)]
    return [make_result(workunit) for workunit in workunits for _ in range(ncopies)]


def asked(app: App, most: int) -> JobQuery:
    return JobQuery(app.pk, most, 1e10, 0.0, NO_LIMIT, NO_LIMIT, True, *BEFORE_ALL)


def filled(app: App) -> tuple[JobCache, catalogue.Catalogue]:
    catalogue.forget()
    known = known_apps()
    mine = JobCache(app.pk)
    sync_driver.run(mine.fill_if_low(known))
    return mine, known


def lease_jobs(
    app_id: int, holder: int, place: Place, most: int, lease_secs: float
) -> tuple[list[ReadyJob], Place | None, bool]:
    return sync_driver.run(ready_queue.lease_jobs(app_id, holder, place, most, lease_secs))


def with_ready_jobs(user: User, **fields: int) -> Computer:
    """A computer whose next request is served from ready jobs."""
    computer = computer_of(user, **fields)
    computer.ask(0, 1)
    fill_ready_jobs()
    return computer


def names(jobs: list[Job]) -> list[str]:
    return [job.name for job in jobs]


def test_jobs_are_handed_out_in_the_order_of_the_queue(app: App, alice: User) -> None:
    first, second = queue(app, 2)
    urgent = make_result(make_workunit(app, output_files=[]), priority=1)
    mine, known = filled(app)
    assert names(mine.take(asked(app, 2), alice.pk, known)) == [urgent.name, first.name]
    assert names(mine.take(asked(app, 1), alice.pk, known)) == [second.name]
    assert mine.take(asked(app, 1), alice.pk, known) == []


def test_no_job_is_handed_out_if_there_are_fewer_than_asked_for(app: App, alice: User) -> None:
    queue(app, 2)
    mine, known = filled(app)
    assert mine.take(asked(app, 3), alice.pk, known) == []
    assert len(mine.take(asked(app, 2), alice.pk, known)) == 2


@pytest.mark.parametrize(
    "limit",
    [{"memory_bytes": 1.0}, {"disk_bytes": 1.0}, {"flops": 1.0}, {"delay_secs": 1e9}],
    ids=lambda x: next(iter(x)),
)
def test_only_jobs_that_suit_are_handed_out(app: App, alice: User, limit: dict[str, float]) -> None:
    queue(app, 1)
    mine, known = filled(app)
    ask = asked(app, 1)
    for name, value in limit.items():
        setattr(ask, name, value)
    assert mine.take(ask, alice.pk, known) == []
    assert mine.take(asked(app, 1), alice.pk, known)


def test_a_person_gets_one_copy_of_a_workunit_and_others_the_rest(app: App, alice: User, bob: User) -> None:
    queue(app, 1, ncopies=2)
    mine, known = filled(app)
    (job,) = mine.take(asked(app, 1), alice.pk, known)
    # While it is taken its workunit is locked, for bob too.
    assert mine.take(asked(app, 1), bob.pk, known) == []
    mine.forget([job])
    assert mine.take(asked(app, 1), alice.pk, known) == []
    assert len(mine.take(asked(app, 1), bob.pk, known)) == 1


def test_who_had_a_copy_before_the_jobs_were_leased_gets_none(app: App, alice: User, bob: User) -> None:
    first, _ = queue(app, 1, ncopies=2)
    now = timezone.now()
    Result.objects.filter(pk=first.pk).update(
        server_state=ServerState.IN_PROGRESS, user=alice, sent_at=now, deadline_at=now
    )
    mine, known = filled(app)
    assert mine.take(asked(app, 1), alice.pk, known) == []
    assert len(mine.take(asked(app, 1), bob.pk, known)) == 1


def test_what_is_put_back_is_the_first_again(app: App, alice: User) -> None:
    first, second, third = queue(app, 3)
    mine, known = filled(app)
    jobs = mine.take(asked(app, 2), alice.pk, known)
    mine.put_back(jobs)
    assert names(mine.take(asked(app, 3), alice.pk, known)) == [first.name, second.name, third.name]


def test_a_taken_job_is_not_added_again(app: App, alice: User, bob: User) -> None:
    queue(app, 1, ncopies=2)
    mine, known = filled(app)
    (job,) = mine.take(asked(app, 1), alice.pk, known)
    catalogue.forget()
    newer = known_apps()
    sync_driver.run(mine.fill_if_low(newer))
    # The row still waits as it was read; nor is the other copy for alice, though no row says yet that she has one.
    mine.forget([job])
    assert mine.take(asked(app, 1), alice.pk, newer) == []
    assert len(mine.take(asked(app, 1), bob.pk, newer)) == 1
    assert mine.take(asked(app, 1), bob.pk, newer) == []


def test_what_somebody_else_found_in_the_queue_is_not_put_back(app: App, alice: User) -> None:
    queue(app, 1)
    mine, known = filled(app)
    jobs = mine.take(asked(app, 1), alice.pk, known)
    mine.forget(jobs)
    mine.put_back(jobs)
    assert mine.take(asked(app, 1), alice.pk, known) == []


def test_copies_added_one_after_the_other_know_of_each_other(app: App, alice: User, bob: User) -> None:
    queue(app, 1)
    mine, known = filled(app)
    mine.forget(mine.take(asked(app, 1), alice.pk, known))
    make_result(Workunit.objects.get())
    mine.queues[0]._not_before = 0.0  # not a second later, as it would be at the end of the queue
    sync_driver.run(mine.fill_if_low(known))
    assert mine.take(asked(app, 1), alice.pk, known) == []
    assert len(mine.take(asked(app, 1), bob.pk, known)) == 1


def test_of_two_apps_nothing_is_taken_if_one_has_too_few(
    app: App, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_app(name="other")
    queue(app, 2)
    mine, known = filled(app)
    monkeypatch.setattr(job_cache, "_caches", {app.pk: mine})
    taken = TakenJobs(known)
    assert not taken.take([asked(app, 2), asked(other, 1)], alice.pk)
    assert taken.jobs == []
    assert taken.take([asked(app, 2)], alice.pk)
    assert len(taken.jobs) == 2


def test_the_most_urgent_jobs_are_leased_first_wherever_their_workunits_are(app: App) -> None:
    workunits = [make_workunit(app, output_files=[]) for _ in range(2 * BLOCK)]
    for number, workunit in enumerate(workunits):
        make_result(workunit, priority=number % 4)
    ready, place, _ = lease_jobs(app.pk, 1, BEFORE_ALL, BLOCK, 10.0)
    # A quarter of the jobs has each priority: all of priority 3, then all of priority 2.
    assert [each.place[0] for each in ready] == [-3] * (BLOCK // 2) + [-2] * (BLOCK // 2)
    assert place == (-2, ready[-1].job.id + 1)


def test_reading_on_brings_all_jobs_of_the_queue(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready_queue, "NEAR_END_NJOBS", 25)
    waiting = queue(app, 30)
    first, place, is_near_end = lease_jobs(app.pk, 1, BEFORE_ALL, 20, 10.0)
    assert place is not None and not is_near_end
    rest, end, is_near_end = lease_jobs(app.pk, 1, place, 20, 10.0)
    assert [each.job.id for each in first + rest] == [result.pk for result in waiting]
    assert end is None and is_near_end


def test_of_a_short_queue_each_process_leases_a_part(app: App) -> None:
    queue(app, 4 * FILL_NJOBS_NEAR_END)
    caches = [filled(app)[0] for _ in range(3)]
    for mine in caches:
        sync_driver.run(mine.fill_if_low(known_apps()))
    assert [len(mine.queues[0]._jobs) for mine in caches] == [FILL_NJOBS_NEAR_END] * 3


def test_of_a_short_queue_more_is_leased_if_requests_want_more(app: App, alice: User) -> None:
    queue(app, 5 * FILL_NJOBS_NEAR_END)
    mine, known = filled(app)
    for _ in range(4):
        mine.take(asked(app, 10), alice.pk, known)
    sync_driver.run(mine.fill_if_low(known))
    # 24 of 64 are left, and the first filling did not know that 10 at a time are wanted.
    assert len(mine.queues[0]._jobs) == 24 + 64
    sync_driver.run(mine.fill_if_low(known))
    # Now up to 25 × 10 are fetched: the other 192.
    assert len(mine.queues[0]._jobs) == 24 + 64 + 192


@pytest.mark.parametrize(("nnew", "pause_secs"), [(0, 1.0), (7, 1.0), (8, 0.1)])
def test_at_the_queues_end_it_is_soon_read_again_if_that_brings_new_jobs(
    app: App, monkeypatch: pytest.MonkeyPatch, nnew: int, pause_secs: float
) -> None:
    monkeypatch.setattr(ready_queue, "time", SimpleNamespace(monotonic=lambda: 1000.0))
    queue(app, nnew)
    mine, _ = filled(app)
    assert mine.queues[0]._not_before == 1000.0 + pause_secs


def test_jobs_are_ready_no_longer_than_the_catalogue_is_kept(app: App, alice: User) -> None:
    queue(app, 1)
    mine, _ = filled(app)
    catalogue.forget()
    assert mine.take(asked(app, 1), alice.pk, known_apps()) == []


def test_no_two_processes_lease_the_same_jobs(app: App) -> None:
    waiting = queue(app, 3 * BLOCK)
    found = [lease_jobs(app.pk, holder, BEFORE_ALL, BLOCK, 10.0)[0] for holder in (1, 2, 3)]
    leased = Counter(job.job.id for jobs in found for job in jobs)
    assert set(leased.values()) == {1}
    assert set(leased) <= {result.pk for result in waiting}
    # Blocks do not begin with the first workunit: there are three or four of them, for three processes.
    assert len(leased) >= 2 * BLOCK


def test_a_process_that_died_leaves_its_jobs_to_others_when_the_lease_expires(app: App) -> None:
    queue(app, 2)
    assert len(lease_jobs(app.pk, 1, BEFORE_ALL, 2, 10.0)[0]) == 2
    assert lease_jobs(app.pk, 2, BEFORE_ALL, 2, 10.0)[0] == []
    JobLease.objects.update(until=timezone.now() - dt.timedelta(seconds=1))
    assert len(lease_jobs(app.pk, 2, BEFORE_ALL, 2, 10.0)[0]) == 2
    assert set(JobLease.objects.values_list("holder", flat=True)) == {2}


def test_a_lease_made_while_the_clock_was_wrong_is_over(app: App) -> None:
    queue(app, 2)
    lease_jobs(app.pk, 1, BEFORE_ALL, 2, 10.0)
    JobLease.objects.update(until=timezone.now() + dt.timedelta(days=1))
    assert len(lease_jobs(app.pk, 2, BEFORE_ALL, 2, 10.0)[0]) == 2


def test_leases_whose_jobs_are_gone_are_deleted(app: App) -> None:
    JobLease.objects.create(app=app, block=-1, holder=1, until=timezone.now() - dt.timedelta(minutes=2))
    queue(app, 1)
    lease_jobs(app.pk, 2, BEFORE_ALL, 2, 10.0)
    assert not JobLease.objects.filter(block=-1).exists()


def test_what_one_computer_finds_in_the_queue_is_known_when_the_same_person_asks_with_another(
    app: App, alice: User
) -> None:
    results = queue(app, 3, ncopies=2)
    first, second = with_ready_jobs(alice, ncpus=16), Computer(key_of(alice))
    # More than are ready for her: she has a copy of the first workunit. So both are picked from the queue.
    first.ask(0, 3)
    assert set(first.jobs) == {results[0].name, results[2].name, results[4].name}
    assert "No tasks sent" in second.ask(0, 1)
    assert second.jobs == []
    assert HostRecord.objects.get(host=second.hostid).jobs_of_day == []


def test_a_ready_job_that_was_cancelled_is_not_sent_and_others_are(app: App, alice: User) -> None:
    results = queue(app, 5)
    computer = with_ready_jobs(alice, ncpus=16)
    Workunit.objects.filter(pk=results[1].workunit_id).update(error_mask=16)
    Result.objects.filter(pk=results[1].pk).update(server_state=ServerState.OVER, outcome=5)
    computer.ask(0, 2)
    assert computer.jobs == [results[0].name, results[3].name, results[4].name]


def test_a_ready_job_that_somebody_else_was_sent_is_not_sent_twice(app: App, alice: User, bob: User) -> None:
    results = queue(app, 2)
    computer = with_ready_jobs(alice, ncpus=16)
    other = Computer(key_of(bob))
    other.ask()
    now = timezone.now()
    Result.objects.filter(pk=results[1].pk).update(
        server_state=ServerState.IN_PROGRESS, host=other.hostid, user=bob, sent_at=now, deadline_at=now
    )
    reply = computer.ask(0, 1)
    assert computer.jobs == [results[0].name]
    assert "No tasks sent" in reply


@pytest.mark.django_db(transaction=True)
def test_a_request_is_answered_anew_if_the_computer_was_written_since_it_was_read(
    app: App, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue(app, 5)
    computer = with_ready_jobs(alice, ncpus=16)
    body = computer.request(0, 1, ncpus=8)
    really_read = store.read
    nreads = 0

    async def read_while_another_request_is_answered(*args: Any, **kwargs: Any) -> Any:
        nonlocal nreads
        nreads += 1
        account = await really_read(*args, **kwargs)
        if nreads == 1:
            elsewhere(lambda: sync_driver.run(rpc_answer.answer(parse_request(body), now=timezone.now())))
        return account

    monkeypatch.setattr(store, "read", read_while_another_request_is_answered)
    computer.read(sync_driver.run(rpc_answer.answer(parse_request(body), now=timezone.now())).decode())
    # The second of them and, once it saw the first one's job, no new one: the same job is sent again.
    assert nreads == 3
    assert Result.objects.filter(server_state=ServerState.IN_PROGRESS).count() == len(computer.jobs) == 2


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_to_delete_a_lease_that_another_process_is_deleting(app: App) -> None:
    JobLease.objects.create(app=app, block=-1, holder=1, until=timezone.now() - dt.timedelta(minutes=2))
    queue(app, 1)
    with transaction.atomic():
        JobLease.objects.select_for_update().get()
        found: list[object] = []
        elsewhere(lambda: found.extend(lease_jobs(app.pk, 2, BEFORE_ALL, 2, 10.0)[0]))
        assert len(found) == 1


@pytest.mark.django_db(transaction=True)
def test_a_merge_is_noticed_by_a_request_that_has_read_the_record_that_stays(app: App, alice: User) -> None:
    queue(app, 5)
    older, newer = with_ready_jobs(alice), with_ready_jobs(alice)

    def version() -> object:
        with connection.cursor() as cursor:
            cursor.execute("SELECT xmin FROM portal_host WHERE id = %s", [newer.hostid])
            return cursor.fetchone()

    before = version()
    host_merge.merge_records(older.hostid, newer.hostid)
    assert version() != before


def test_an_app_without_ready_jobs_gets_its_share(app: App, alice: User) -> None:
    other = make_app(name="other", max_jobs_per_day_init=1000)
    make_version(other)
    for each in (app, other):
        queue(each, 40)
    sent = []
    for is_leased_elsewhere in (False, True):
        if is_leased_elsewhere:
            JobLease.objects.all().delete()
            lease_jobs(other.pk, 1, BEFORE_ALL, 40, 10.0)
        computer = computer_of(alice, ncpus=64)
        computer.ask(0, 1)
        for number in range(12):
            computer.ask(0, 1, draw=random.Random(number))
        apps = dict(Result.objects.filter(name__in=computer.jobs).values_list("name", "app_id"))
        sent.append([apps[name] for name in computer.jobs[1:]])
    # The same draws, the same apps
    assert sent[0] == sent[1]
    assert set(sent[0]) == {app.pk, other.pk}


def test_a_catalogue_is_used_a_moment_longer_while_another_request_reads_it_but_not_after_a_pause(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = catalogue.cache
    known = known_apps()
    kept = cache._kept
    assert kept is not None
    monkeypatch.setattr(cache, "_kept", kept._replace(read_at=time.monotonic() - cache.kept_secs - 1))
    assert isinstance(catalogue.fresh().send(None), SingleFlight)
    assert known_apps() is known
    monkeypatch.setattr(cache, "_kept", kept._replace(read_at=time.monotonic() - 2 * cache.kept_secs - 1))
    assert known_apps() is not known


def test_a_request_that_is_given_up_lets_go_of_its_jobs(app: App, alice: User) -> None:
    queue(app, 3)
    computer = with_ready_jobs(alice)
    steps = computer.asks(0, 1)

    async def done(want: Any) -> Any:
        return await want

    want = steps.send(None)
    while not isinstance(want, WriteQuery):
        want = steps.send(sync_driver.run(done(want)))
    assert len(job_cache._caches[app.pk].queues[0]._taken) == len(want.ready_jobs) == 1
    steps.close()
    assert job_cache._caches[app.pk].queues[0]._taken == {}


@pytest.mark.django_db(transaction=True)
def test_requests_that_find_no_ready_jobs_wait_for_the_same_filling(
    app: App, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue(app, 20)
    computers = [with_ready_jobs(alice) for _ in range(4)]
    job_cache._caches[app.pk].queues[0]._jobs.clear()
    job_cache._caches[app.pk].queues[0]._not_before = 0.0
    nfillings = 0
    really_lease = ready_queue.lease_jobs

    async def counted(*args: Any) -> Any:
        nonlocal nfillings
        nfillings += 1
        return await really_lease(*args)

    monkeypatch.setattr(ready_queue, "lease_jobs", counted)
    at_once(*[computer.asks(0, 2) for computer in computers])
    assert nfillings == 1
    assert [len(computer.jobs) for computer in computers] == [3] * 4

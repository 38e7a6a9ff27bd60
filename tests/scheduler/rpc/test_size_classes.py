"""Apps with jobs of several sizes: the census, which computers get which jobs, and what submitters may say."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from credit.models import App, Batch, HostAppVersion, Outcome, Result, ServerState, Workunit
from portal.models import User
from scheduler.engine.lanes import Lane
from scheduler.lanes.reads import read_sizes
from scheduler.lifecycle import size_census, transitioner
from scheduler.models import HostRecord, SubmitterPlace
from scheduler.programs import catalogue
from scheduler.ready_jobs import job_cache
from scheduler.submission import batches
from scheduler.submission.submit import submit
from scheduler.wire.job_fields import JobError
from tests.support.credit_factories import make_app, make_version
from tests.support.scheduler_clients import Computer, computer_of, fill_ready_jobs, result_xml
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db
SIZES = {0: 1e11, 1: 1e12, 2: 1e13}


@pytest.fixture
def app(db: None) -> App:
    app = make_app(max_jobs_per_day_init=1000, n_size_classes=3)
    make_version(app)
    return app


@pytest.fixture(params=[True, False], ids=["from ready jobs", "from the queue"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(job_cache, "has_jobs", lambda known: False)
        monkeypatch.setattr(job_cache.JobCache, "take", lambda *args: [])


def wait(app: App, size_class: int | None, njobs: int, owner: User | None = None, **fields: Any) -> Batch:
    said = {"fpops_est": SIZES[size_class or 0], "min_quorum": 1, "output_files": [], "size_class": size_class}
    return submit(app, said | fields, [{}] * njobs, owner=owner, now=timezone.now())[0]


def measured(user: User, flops: float, **fields: float) -> Computer:
    """A computer that has done ten jobs at this speed."""
    computer = computer_of(user, p_fpops=1e12)
    computer.ask()
    app = App.objects.get()
    HostAppVersion.objects.create(
        host_id=computer.hostid, app=app, app_version=app.versions.get(), et_n=10, et_avg=1 / flops
    )
    HostRecord.objects.filter(host=computer.hostid).update(**fields)
    return computer


def three(user: User) -> list[Computer]:
    """A slow, a middling and a fast computer; the census has counted them."""
    computers = [measured(user, flops) for flops in (1e9, 5e9, 2e10)]
    size_census.run(timezone.now())
    catalogue.forget()
    return computers


def sizes(computer: Computer) -> Counter[int | None]:
    workunits = Result.objects.filter(name__in=computer.jobs).values_list("workunit__size_class", flat=True)
    return Counter(workunits)


@pytest.mark.usefixtures("way")
def test_each_computer_gets_jobs_of_its_size_and_others_only_when_there_are_none_left(app: App, alice: User) -> None:
    computers = three(alice)
    # The jobs for fast computers came first, and are more than any request looks at; yet they do not hide the others.
    for size_class, njobs in ((2, 300), (1, 20), (0, 6)):
        wait(app, size_class, njobs)
    for computer in computers:
        computer.ask(0, 1)
        fill_ready_jobs()
        computer.ask(0, 4)
    assert [dict(sizes(computer)) for computer in computers] == [{0: 5}, {1: 5}, {2: 5}]
    slow, middling, fast = computers
    # One small job is left: the slow computer goes on with the next size; the middling one has enough of its own.
    slow.ask(0, 4)
    assert sizes(slow) == {0: 6, 1: 3}
    middling.ask(0, 16)
    assert sizes(middling) == {1: 17, 2: 4}
    fast.ask(0, 4)
    assert sizes(fast) == {2: 9}


@pytest.mark.usefixtures("way")
def test_priority_goes_before_size_and_a_job_without_a_size_is_for_all(app: App, alice: User) -> None:
    computers = three(alice)
    wait(app, 1, 30)
    wait(app, 2, 1, priority=1)
    plain = wait(app, None, 30)
    for computer in reversed(computers):
        computer.ask(0, 1)
    _, middling, fast = computers
    assert sizes(fast) == {2: 1}
    fill_ready_jobs()
    middling.ask(0, 19)
    # Jobs without a size and jobs of its own size come in the order of their places: both began at the head.
    assert set(sizes(middling)) == {1, None}
    assert plain.workunits.filter(lane=0).count() == 30


@pytest.mark.usefixtures("way")
def test_jobs_of_a_class_that_there_is_no_more_do_not_wait_until_all_others_are_done(app: App, alice: User) -> None:
    wait(app, 2, 2)
    App.objects.update(n_size_classes=2)
    slow, _, fast = three(alice)
    wait(app, 1, 30)
    slow.ask(0, 1)
    for _ in range(3):
        fill_ready_jobs()
        fast.ask(0, 1)
    assert (sizes(slow), sizes(fast)) == ({1: 1}, {2: 2, 1: 1})


@pytest.mark.parametrize("priority", [0, 5])
def test_ready_jobs_of_a_size_begin_before_those_for_all_computers(app: App, alice: User, priority: int) -> None:
    wait(app, 0, 1, priority=priority)
    plain = wait(app, None, 20)
    # Whatever was drawn, all of them lie behind the one of the first class.
    Result.objects.filter(workunit__batch=plain).update(queue_shift=10_000)
    slow, *_ = three(alice)
    # Its queues are filled once they are in use.
    job_cache._caches.setdefault(app.pk, job_cache.JobCache(app.pk))
    for lane in (0, Lane(size_class=0).number):
        job_cache._caches[app.pk]._queue(lane)
    fill_ready_jobs()
    slow.ask(0, 1)
    assert sizes(slow) == {0: 1}


def test_the_census_counts_each_active_computer_once_by_what_it_does_in_all(app: App, alice: User) -> None:
    measured(alice, 8e9, on_frac=0.5)
    measured(alice, 3e9)
    gpu, gone = measured(alice, 1e9, gpu_active_frac=0.5), measured(alice, 7e9)
    version = make_version(app, version_num=200, processor_type="NVIDIA", gpu_usage=1)
    HostAppVersion.objects.create(
        host_id=gpu.hostid, app=app, app_version=version, processor_type="NVIDIA", et_n=1, et_avg=1 / 1e11
    )
    long_ago = timezone.now() - dt.timedelta(days=31)
    HostRecord.objects.filter(host=gone.hostid).update(last_rpc_at=long_ago)
    size_census.run(timezone.now())
    app.refresh_from_db()
    # The speeds in order are 3e9 (always on), 8e9 · 0.5 and 1e11 · 0.5; the limits are the second and the third.
    assert app.size_limits == pytest.approx([4e9, 5e10])
    assert app.size_nhosts == [1, 1, 1]


@pytest.mark.parametrize(
    ("fields", "where", "what"),
    [
        ({"size_class": 3}, "jobs[0].size_class", "the app has 3 size classes"),
        ({"size_class": -1}, "jobs[0].size_class", "whole number"),
        ({"size_class": 0, "app_version_num": 100}, "jobs[0].size_class", "not together with app_version_num"),
        ({"size_class": 0, "target_host": 1}, "jobs[0].size_class", "not together with target_host"),
        ({"size_class": 0, "broadcast": True}, "jobs[0].size_class", "not together with broadcast"),
    ],
)
def test_a_size_class_that_means_nothing_is_refused(app: App, fields: dict[str, Any], where: str, what: str) -> None:
    with pytest.raises(JobError) as refused:
        submit(app, {"fpops_est": 1e9, "output_files": []}, [fields], owner=None, now=timezone.now())
    assert refused.value.field == where
    assert what in str(refused.value.message)


def test_an_app_without_size_classes_refuses_jobs_with_one(alice: User) -> None:
    with pytest.raises(JobError, match="no size classes"):
        wait(make_app(), 0, 1)


def test_a_replacement_has_its_jobs_size_and_goes_before_new_work(
    app: App, alice: User, bob: User, settings: Settings
) -> None:
    # Otherwise it would be kept for others first, as both keys are new.
    settings.SEPARATE_REPLICAS = "off"
    slow = measured(bob, 1e9)
    *_, fast = three(alice)
    batch = wait(app, 2, 1)
    fast.ask(0, 1)
    [name] = fast.jobs
    fast.ask(0, results=result_xml(name, state=3, exit_status=1))
    transitioner.run(timezone.now())
    [replacement] = Result.objects.filter(workunit__batch=batch, server_state=ServerState.UNSENT)
    assert Lane.of(replacement.lane).size_class == 2
    wait(app, 0, 1)
    catalogue.forget()
    slow.ask(0, 1)
    assert sizes(slow) == {2: 1}


def test_what_was_bound_to_a_class_of_computers_waits_in_its_size_again_when_it_is_free(app: App, alice: User) -> None:
    App.objects.update(homogeneous_redundancy="coarse")
    *_, fast = three(alice)
    wait(app, 2, 1, min_quorum=2)
    fast.ask(0, 1)
    workunit = Workunit.objects.get()
    assert workunit.hr_class and Lane.of(workunit.lane).size_class is None
    fast.ask(0, results=result_xml(fast.jobs[0], state=3, exit_status=1))
    transitioner.run(timezone.now())
    workunit.refresh_from_db()
    assert (workunit.hr_class, Lane.of(workunit.lane)) == (0, Lane(size_class=2))
    assert set(workunit.results.filter(server_state=ServerState.UNSENT).values_list("lane", flat=True)) == {
        workunit.lane
    }


def test_each_size_class_has_a_queue_of_its_own_in_which_submitters_share(app: App, alice: User, bob: User) -> None:
    for user in (alice, bob):
        user.is_superuser = True
        user.save()
    wait(app, 2, 500, alice)
    wait(app, 0, 500, alice)
    wait(app, 0, 500, bob)
    small = Result.objects.filter(lane=Lane(size_class=0).number).order_by(F("id") + F("queue_shift"))
    owners = Counter(small.values_list("workunit__batch__owner", flat=True)[:400])
    # Her large jobs do not put her small ones behind his.
    assert abs(owners[alice.pk] - 200) < 30
    assert SubmitterPlace.objects.filter(submitter=alice.pk).count() == 2
    before = SubmitterPlace.objects.get(submitter=alice.pk, lane=Lane(size_class=2).number).end
    batches.cancel(Batch.objects.filter(owner=alice).order_by("pk")[0], timezone.now())
    after = {place.lane: place.end for place in SubmitterPlace.objects.filter(submitter=alice.pk)}
    # 500 jobs of 10^13 FLOPs no longer count, so her large jobs end 5,000 places earlier.
    assert after[Lane(size_class=2).number] == pytest.approx(before - 5000)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("filled_once")
def test_size_classes_cost_no_statement(app: App, alice: User) -> None:
    *_, fast = three(alice)
    for size_class in SIZES:
        wait(app, size_class, 30)
    for _ in range(2):
        fast.ask(0, 1)
    # read; lock computer and jobs, write
    assert statements(lambda: fast.ask(0, 5)) == 3
    assert sizes(fast) == {2: 7}


def test_operators_see_how_many_jobs_wait_for_how_many_computers_of_each_class(
    app: App, alice: User, desk: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    three(alice)
    for size_class, njobs in ((0, 2), (2, 1200), (None, 5)):
        wait(app, size_class, njobs)
    App.objects.update(n_size_classes=2)
    with django_assert_num_queries(2) as seen:
        shown = [(row.number, row.begins_at, row.nhosts, row.njobs, row.is_gone) for row in read_sizes()]
    counting = seen.captured_queries[1]["sql"]
    begins = [0.0, pytest.approx(5e9), pytest.approx(2e10)]
    assert shown == [(0, begins[0], 1, 2, False), (1, begins[1], 1, 0, False), (2, begins[2], 1, 1200, True)]
    page = desk.get("/admin/scheduler/retryentry/reserved/").content.decode()
    assert all(text in page for text in ("Jobs by size class", "5\u00a0GFLOPS", "20\u00a0GFLOPS", "1\u202f200"))
    with connection.cursor() as cursor:
        # The table is short
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {counting}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "result_lanes" in plan and "Seq Scan" not in plan
    App.objects.update(n_size_classes=1)
    Result.objects.update(server_state=ServerState.OVER, outcome=Outcome.DIDNT_NEED)
    assert read_sizes() == []
    assert "Jobs by size class" not in desk.get("/admin/scheduler/retryentry/reserved/").content.decode()

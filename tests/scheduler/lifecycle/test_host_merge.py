"""Two records of one computer are merged: jobs, statistics, credit and archived tasks move, and the sums match."""

from __future__ import annotations

import datetime as dt
import threading
from itertools import pairwise

import pytest
from django.db import connection

from accounting.computers.merge import merge
from credit.models import App, AppVersion, HostAppVersion, HostCredit, Outcome, ProcessorType, Result, Workunit
from portal.models import Host, User
from scheduler.models import ArchivedTask, ArchivedWorkunit, HostRecord, Upload
from tests.support.accounting_factories import make_host
from tests.support.credit_factories import NOON, make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import computer_of, names, result_xml
from tests.support.validator_runs import EST, differences, done, record, validate, volunteers

pytestmark = pytest.mark.django_db

DEFAULT = EST * 200 / 86400e9
MD5 = "9" * 32


@pytest.fixture
def old(alice: User) -> Host:
    return make_host(alice, "attic", "2026-01-01", "2026-02-10", p_fpops=4e9)


@pytest.fixture
def new(alice: User) -> Host:
    return make_host(alice, "attic", "2026-02-10", "2026-03-20", p_fpops=4e9)


def test_results_and_credit_of_both_are_the_newer_ones_and_the_books_hold(
    app: App, version: AppVersion, alice: User, old: Host, new: Host
) -> None:
    [other] = volunteers(1)
    first = done(app, version, old, other)
    validate(app, NOON)
    second = done(app, version, new, other)
    validate(app, NOON + dt.timedelta(days=7))
    before = HostCredit.objects.get(host=old), HostCredit.objects.get(host=new)
    merge(alice.pk, old.pk, new.pk)
    assert {each.results.filter(host=new).count() for each in (first, second)} == {1}
    joined = HostCredit.objects.get(host=new)
    assert joined.total_credit == pytest.approx(2 * DEFAULT)
    # A week is the half-life.
    assert joined.expavg_credit == pytest.approx(before[0].expavg_credit / 2 + before[1].expavg_credit)
    assert joined.expavg_at == before[1].expavg_at
    assert not HostCredit.objects.filter(host=old).exists()
    assert differences() == []


def test_what_only_the_older_record_knew_follows_and_what_the_newer_knows_stays(
    app: App, version: AppVersion, alice: User, old: Host, new: Host
) -> None:
    next_version = make_version(app, 101)
    record(old, version, pfc_n=20, pfc_avg=1.0)
    record(new, version, pfc_n=5, pfc_avg=3.0)
    record(old, next_version, pfc_n=7, pfc_avg=2.0)
    for host, type_ in ((old, ProcessorType.CPU), (new, ProcessorType.CPU), (old, ProcessorType.NVIDIA)):
        HostAppVersion.objects.create(host=host, app=app, processor_type=type_, pfc_n=1 + host.pk % 2, pfc_avg=1.0)
    merge(alice.pk, new.pk, old.pk)
    assert not HostAppVersion.objects.filter(host=old).exists()
    samples = {(r.app_version, r.processor_type): r.pfc_n for r in HostAppVersion.objects.filter(host=new)}
    assert samples == {
        (version, "CPU"): 5,
        (next_version, "CPU"): 7,
        (None, "CPU"): 1 + new.pk % 2,
        (None, "NVIDIA"): 1 + old.pk % 2,
    }


def test_a_job_that_went_to_the_older_record_is_reported_by_the_newer_one(app: App, version: AppVersion) -> None:
    owner = User.objects.create_user("carol@example.org", "a long password")
    outputs = [{"open_name": "out", "max_nbytes": 1000}]
    make_result(make_workunit(app, fpops_est=7.2e12, output_files=outputs, delay_bound_secs=86_400))
    computer = computer_of(owner)
    computer.ask(1, now=NOON)
    result, older = Result.objects.get(), Host.objects.get()
    same = {name: getattr(older, name) for name in ("os_name", "p_vendor", "p_model", "domain_name")}
    newer = Host.objects.create(owner=owner, created_at=dt.datetime.now(dt.UTC) + dt.timedelta(hours=1), **same)
    merge(owner.pk, older.pk, newer.pk)
    Upload.objects.create(
        result=result, name=f"{result.name}_0", path="outputs/x", nbytes=17, md5=MD5, completed_at=NOON
    )
    report = result_xml(result.name, files={f"{result.name}_0": MD5})
    reply = computer.ask(results=report, now=NOON + dt.timedelta(hours=1))
    assert computer.hostid == newer.pk
    assert names(reply, "result_ack") == [result.name]
    result.refresh_from_db()
    assert (result.outcome, result.host) == (Outcome.SUCCESS, newer)


def test_two_records_of_a_machine_do_not_get_its_time_twice(alice: User, old: Host, new: Host) -> None:
    HostCredit.objects.create(host=old, cpus_credited_until=NOON, gpus_credited_until=NOON)
    HostCredit.objects.create(host=new, cpus_credited_until=NOON - dt.timedelta(hours=1))
    merge(alice.pk, old.pk, new.pk)
    joined = HostCredit.objects.get()
    assert (joined.host, joined.cpus_credited_until, joined.gpus_credited_until) == (new, NOON, NOON)


def test_archived_tasks_follow_too(app: App, alice: User, old: Host, new: Host) -> None:
    workunit = ArchivedWorkunit.objects.create(id=1, app=app, name="w", error_mask=0, facts={}, archived_at=NOON)
    facts = {"granted_credit": 5.0, "partial_credit": 0.0}
    task = ArchivedTask.objects.create(id=1, workunit=workunit, user=alice, host=old, facts=facts)
    HostCredit.objects.create(host=old, total_credit=5.0)
    alice_credit = merge(alice.pk, old.pk, new.pk).owner
    task.refresh_from_db()
    assert task.host == new
    assert [line for line in differences() if line.startswith("host")] == []
    assert alice_credit == alice


TODAY, YESTERDAY = dt.date(2026, 11, 20), dt.date(2026, 11, 19)
FEW, MANY = [[1, 7, "CPU", 2], [1, 8, "CPU", 1]], [[1, 7, "CPU", 5], [1, 9, "CPU", 3]]


@pytest.mark.parametrize(
    ("older_day", "newer_day", "joined"),
    [
        # Of one day: 5 + 2 of what both were sent
        (TODAY, TODAY, [[1, 7, "CPU", 7], [1, 9, "CPU", 3], [1, 8, "CPU", 1]]),
        (TODAY, YESTERDAY, MANY),
        (YESTERDAY, TODAY, FEW),
        (TODAY, None, MANY),
    ],
)
def test_a_merge_does_not_give_the_jobs_of_the_day_again(
    alice: User, old: Host, new: Host, older_day: dt.date, newer_day: dt.date | None, joined: list[list[object]]
) -> None:
    HostRecord.objects.create(host=old, jobs_day=older_day, jobs_of_day=MANY)
    if newer_day is not None:
        HostRecord.objects.create(host=new, jobs_day=newer_day, jobs_of_day=FEW)
    merge(alice.pk, old.pk, new.pk)
    record = HostRecord.objects.get(host=new)
    assert record.jobs_day == TODAY
    assert sorted(record.jobs_of_day) == sorted(joined)
    assert HostRecord.objects.get(host=old).jobs_day is None


def test_computers_that_never_computed_for_this_project_are_joined_as_well(alice: User, old: Host, new: Host) -> None:
    assert merge(alice.pk, old.pk, new.pk) == new
    assert not HostCredit.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_validators_at_work_and_merges_at_once_lose_nothing() -> None:
    app = make_app("busy")
    version = make_version(app)
    owner = User.objects.create_user("many@example.org", "a long password")
    hosts = [make_host(owner, "pc", f"2026-0{m}-01", f"2026-0{m}-20", p_fpops=4e9) for m in range(1, 7)]
    [other] = volunteers(1)
    for n in range(120):
        done(app, version, hosts[n % 6], other)
    failures: list[Exception] = []
    barrier = threading.Barrier(3)

    def judge() -> None:
        try:
            barrier.wait(timeout=20)
            while Workunit.objects.filter(need_validate=True).exists():
                validate(app, limit=10)
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=judge, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    barrier.wait(timeout=20)
    for older, newer in pairwise(hosts):
        merge(owner.pk, older.pk, newer.pk)
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    assert failures == []
    assert HostCredit.objects.get(host=hosts[-1]).total_credit == pytest.approx(120 * DEFAULT)
    assert Result.objects.filter(host=hosts[-1]).count() == 120
    assert differences() == []

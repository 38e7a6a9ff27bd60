"""What computers get if a project has several apps, and if they never report."""

from __future__ import annotations

import datetime as dt

import pytest

from credit.models import App, HostAppVersion
from portal.models import User
from scheduler.lifecycle import transitioner
from scheduler.models import PlanClass
from scheduler.programs import catalogue
from tests.support.credit_factories import NOON, make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import computer_of, gpu, messages

pytestmark = pytest.mark.django_db
DAY = dt.timedelta(days=1)


def wait(app: App, njobs: int, **fields: float) -> None:
    for _ in range(njobs):
        make_result(make_workunit(app, output_files=[], **fields))
    catalogue.forget()


def test_whatever_app_is_drawn_jobs_of_another_are_sent_if_only_those_suit(alice: User) -> None:
    big, small = (make_app(name=name, max_jobs_per_day_init=1000) for name in ("big", "small"))
    for app in (big, small):
        make_version(app)
    wait(big, 10, memory_bound_bytes=1e12)
    wait(small, 30)
    computer = computer_of(alice)
    for _ in range(12):
        computer.ask(0, 1)
    assert len(computer.jobs) == 12


def test_if_no_app_has_jobs_that_suit_the_reasons_of_all_are_told(alice: User) -> None:
    big, wide = (make_app(name=name, max_jobs_per_day_init=1000) for name in ("big", "wide"))
    for app in (big, wide):
        make_version(app)
    wait(big, 3, memory_bound_bytes=1e12)
    wait(wide, 3, disk_bound_bytes=1e15)
    reply = computer_of(alice).ask(0, 1)
    assert "memory" in reply and "disk" in reply


def test_a_paused_app_hides_no_reason(alice: User) -> None:
    paused, wide = make_app(name="paused", weight=0), make_app(name="wide")
    make_version(paused)
    make_version(wide, plan_class="mt")
    PlanClass.objects.create(name="mt", min_ncpus=2, max_ncpus=4)
    wait(paused, 1)
    wait(wide, 1)
    computer = computer_of(alice, ncpus=1)
    assert messages(computer.ask(1000)) == [
        "No tasks sent: the applications need other processors or drivers, or more graphics memory"
    ]
    App.objects.filter(name="wide").update(weight=0)
    catalogue.forget()
    assert messages(computer.ask(1000)) == [
        "No tasks sent: the applications for this kind of computer are paused at the moment"
    ]
    assert "has no application for this kind of computer" in computer_of(alice, platform="riscv").ask(1000)


def test_idle_processors_of_each_type_are_filled_by_apps_for_them(alice: User) -> None:
    on_cpu, on_gpu = (make_app(name=name, max_jobs_per_day_init=1000) for name in ("on_cpu", "on_gpu"))
    make_version(on_cpu)
    make_version(on_gpu, plan_class="cuda", processor_type="NVIDIA", gpu_usage=1, avg_ncpus=0.1)
    wait(on_cpu, 60)
    wait(on_gpu, 10)
    for number in range(5):
        computer = computer_of(
            User.objects.create_user(f"cruncher{number}@example.org"), ncpus=8, coprocs=gpu(instances=1)
        )
        computer.ask(0, 8)
        # One job for each of eight processors, and one for the GPU.
        assert len(computer.jobs) == 9


def test_a_computer_that_never_reports_loses_its_quota(alice: User) -> None:
    app = make_app(max_jobs_per_day_init=2)
    make_version(app)
    computer = computer_of(alice, ncpus=1)
    got = []
    for day in range(4):
        wait(app, 4, fpops_est=1e9, delay_bound_secs=3600)
        before = len(computer.jobs)
        computer.ask(1e6, 4, now=NOON + day * DAY)
        got.append(len(computer.jobs) - before)
        computer.jobs.clear()
        transitioner.run(NOON + day * DAY + dt.timedelta(hours=2))
    # 2 a day for its one processor, one less for each that was not back in time, but never none.
    assert got == [2, 1, 1, 1]
    assert HostAppVersion.objects.get().max_jobs_per_day == 1


def test_a_record_without_quota_gets_one_with_its_next_job(alice: User) -> None:
    app = make_app(max_jobs_per_day_init=2)
    make_version(app)
    wait(app, 2)
    computer = computer_of(alice, ncpus=4)
    computer.ask(0, 1)
    HostAppVersion.objects.update(max_jobs_per_day=0, scale_probation=False, host_scale_at=None)
    computer.ask(0, 1)
    record = HostAppVersion.objects.get()
    assert (record.max_jobs_per_day, record.host_scale_at) == (8, None)

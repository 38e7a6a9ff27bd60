"""Checks that an operator starts in the browser: a worker runs them, the page and the dashboard say what they found."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from kombu.exceptions import OperationalError
from pytest_django import Settings

from credit.models import UserCredit
from portal.celery import app
from portal.dashboard import record
from portal.maintenance import figures, jobs, runs
from portal.models import MaintenanceRun, User
from portal.tasks import carry_out_maintenance

pytestmark = pytest.mark.django_db
PAGE = "/admin/portal/maintenancerun/"


@pytest.fixture(autouse=True)
def messages(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The runs that workers were told of; nobody takes the messages."""
    sent: list[int] = []
    monkeypatch.setattr(app, "send_task", lambda name, args, **options: sent.append(args[0]))
    return sent


def start(desk: Client, name: str, messages: list[int]) -> str:
    """Start it, let a worker do it, and read the page."""
    assert desk.post(f"{PAGE}start/{name}/").status_code == 302
    carry_out_maintenance(messages[-1])
    return str(desk.get(PAGE).content.decode())


@pytest.mark.parametrize("name", ["check", "check_ledger", "check_credit", "check_files"])
def test_each_check_can_be_started_and_says_that_it_has_run(desk: Client, messages: list[int], name: str) -> None:
    start(desk, name, messages)
    run = MaintenanceRun.objects.get()
    assert (run.job, run.failure, run.asked_by and run.asked_by.name) == (name, "", "Operator")
    assert run.finished_at is not None


def test_what_the_operator_has_silenced_is_no_difference(desk: Client, messages: list[int], settings: Settings) -> None:
    settings.SECURE_HSTS_SECONDS = 0
    assert "security.W004" in start(desk, "check", messages)
    settings.SILENCED_SYSTEM_CHECKS = ["security.W004"]
    start(desk, "check", messages)
    run = MaintenanceRun.objects.latest("pk")
    assert run.nlines == len(run.lines)
    assert not [line for line in run.lines if "security.W004" in line]


def test_what_a_check_finds_is_on_the_page_and_on_the_dashboard(desk: Client, messages: list[int], alice: User) -> None:
    assert "all is well" in start(desk, "check_credit", messages)
    UserCredit.objects.create(user=alice, total_credit=5)
    page = start(desk, "check_credit", messages)
    assert "1 difference<" in page and f"user {alice.pk}: has 5.0 credits in total" in page
    record.take_all(timezone.now())
    assert "A check found differences, or failed: Validated credit." in desk.get("/admin/").content.decode()
    UserCredit.objects.all().delete()
    start(desk, "check_credit", messages)
    assert [(sample.label, sample.value) for sample in figures.differences(timezone.now())] == [("check_credit", 0)]


def test_a_check_that_fails_says_why(desk: Client, messages: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[str]:
        yield "the first"
        raise OSError("no such disk")

    monkeypatch.setitem(jobs.jobs(), "broken", jobs.Job("broken", "Broken", "", broken))
    page = start(desk, "broken", messages)
    assert "OSError: no such disk" in page and "the first" in page
    assert [sample.value for sample in figures.differences(timezone.now())] == [1]


def test_of_many_differences_the_first_are_kept_and_all_are_counted(
    desk: Client, messages: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    many = jobs.Job("many", "Many", "", lambda: ("x" * 1000 for _ in range(201)))
    monkeypatch.setitem(jobs.jobs(), "many", many)
    page = start(desk, "many", messages)
    assert "201 differences" in page and "These are the first 200" in page
    assert {len(line) for line in MaintenanceRun.objects.get().lines} == {500}


def test_one_run_of_a_check_at_a_time_and_a_second_message_does_nothing(desk: Client, messages: list[int]) -> None:
    def post() -> str:
        return str(desk.post(f"{PAGE}start/check/", follow=True).content.decode())

    assert "waiting for a worker" in post()
    assert "already waiting or running" in post()
    assert len(messages) == 1
    carry_out_maintenance(messages[0])
    finished_at = MaintenanceRun.objects.get().finished_at
    carry_out_maintenance(messages[0])
    assert MaintenanceRun.objects.get().finished_at == finished_at


def test_a_run_that_no_worker_began_does_not_block_the_next(desk: Client, messages: list[int]) -> None:
    desk.post(f"{PAGE}start/check/")
    MaintenanceRun.objects.update(asked_at=timezone.now() - runs.LOST_AFTER - dt.timedelta(seconds=1))
    assert "No worker began it." in desk.get(PAGE).content.decode()
    assert "No worker began it." in start(desk, "check", messages)
    assert MaintenanceRun.objects.filter(failure="").count() == 1


def test_a_run_whose_worker_was_killed_does_not_block_the_next(desk: Client, messages: list[int]) -> None:
    desk.post(f"{PAGE}start/check/")
    # All that a killed worker leaves behind
    MaintenanceRun.objects.update(started_at=timezone.now())
    # The broker hands its message out again.
    carry_out_maintenance(messages[0])
    assert "The worker was stopped before it was done." in start(desk, "check", messages)
    assert MaintenanceRun.objects.filter(failure="").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_run_that_began_late_is_running_as_long_as_its_worker_lives(
    desk: Client, messages: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = Event(), Event()

    def slow() -> list[str]:
        begun.set()
        assert may_end.wait(60)
        return ["a difference"]

    def work() -> None:
        try:
            carry_out_maintenance(messages[0])
        finally:
            connection.close()

    monkeypatch.setitem(jobs.jobs(), "slow", jobs.Job("slow", "Slow", "", slow))
    desk.post(f"{PAGE}start/slow/")
    with ThreadPoolExecutor(1) as worker:
        done = worker.submit(work)
        try:
            assert begun.wait(60)
            MaintenanceRun.objects.update(asked_at=timezone.now() - runs.LOST_AFTER - dt.timedelta(seconds=1))
            assert "is running" in desk.get(PAGE).content.decode()
            assert "already waiting or running" in desk.post(f"{PAGE}start/slow/", follow=True).content.decode()
            # The broker hands a message out again that was not confirmed for an hour.
            carry_out_maintenance(messages[0])
            assert MaintenanceRun.objects.get().finished_at is None
        finally:
            may_end.set()
        done.result()
    run = MaintenanceRun.objects.get()
    assert (run.lines, run.failure) == (["a difference"], "")


def test_workers_are_told_again_of_a_run_whose_message_was_lost(
    desk: Client, messages: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.post(f"{PAGE}start/check/")
    lengths = {"requested": 1}
    monkeypatch.setattr(runs, "queue_length", lengths.__getitem__)
    later = timezone.now() + runs.RESEND_AFTER + dt.timedelta(seconds=1)
    runs.resend_lost(later)
    assert len(messages) == 1
    lengths["requested"] = 0
    runs.resend_lost(timezone.now())
    assert len(messages) == 1
    runs.resend_lost(later)
    run = MaintenanceRun.objects.get()
    assert messages == [run.pk, run.pk]
    carry_out_maintenance(run.pk)
    runs.resend_lost(later)
    assert len(messages) == 2


def test_the_last_runs_are_kept(desk: Client, messages: list[int]) -> None:
    for _ in range(runs.KEPT_RUNS + 2):
        start(desk, "check_files", messages)
    assert MaintenanceRun.objects.count() == runs.KEPT_RUNS


def test_jobs_are_renamed_and_that_is_no_difference(desk: Client, messages: list[int]) -> None:
    assert "Names of jobs that are sent from now on end in _r" in start(desk, "rename_jobs", messages)
    assert list(figures.differences(timezone.now())) == []


def test_the_statistics_are_exported(desk: Client, messages: list[int], settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
    assert "0 volunteers, 0 teams and 0 computers" in start(desk, "export_statistics", messages)
    assert len(list(tmp_path.glob("statistics/*/tables.xml"))) == 1


def test_without_valkey_nothing_is_left_waiting(desk: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(app, "send_task", refuse)
    page = desk.post(f"{PAGE}start/check/", follow=True).content.decode()
    assert "No worker can be reached" in page
    assert not MaintenanceRun.objects.exists()


def test_what_is_no_job_cannot_be_started(desk: Client) -> None:
    assert desk.post(f"{PAGE}start/flush/").status_code == 404
    assert desk.get(f"{PAGE}start/check/").status_code == 405

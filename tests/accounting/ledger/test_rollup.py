"""Sums that a task keeps: per project and day, and each volunteer's total and recent average at a project."""

from __future__ import annotations

import datetime as dt

import psycopg
import pytest
from django.utils import timezone

from accounting import tasks
from accounting.engine.amounts import MICRO
from accounting.ledger import check, rollup
from accounting.ledger.sql import WAIT_FOR_LOCK, AdvisoryLock
from accounting.models import Day, Project, ProjectDay, UserProject
from portal.databases.params import psycopg_params
from portal.models import Host, User
from tests.support.accounting_factories import at, credit, make_host, make_project

DAY_OF_36 = (36 * MICRO, 0, 3_600 * MICRO, 0, 2, 1)


@pytest.fixture
def project(db: None) -> Project:
    return make_project("Alpha")


@pytest.fixture
def attic(alice: User) -> Host:
    return make_host(alice, "attic", first="2026-01-01", last="2026-03-10")


def test_a_day_of_a_project_is_the_sum_over_hosts_and_people(
    project: Project, attic: Host, alice: User, bob: User
) -> None:
    for host in (attic, make_host(alice, "cellar"), make_host(bob, "studio")):
        credit(host, project, "2026-03-09", (10, 20, 30, 40, 5, 6))
    credit(attic, make_project("Beta"), "2026-03-09", (1, 1, 1, 1, 1, 1))
    assert rollup.roll_up(at("2026-03-10"))
    row = ProjectDay.objects.get(project=project)
    assert (row.day, row.hosts, row.users) == (dt.date(2026, 3, 9), 3, 2)
    assert (row.cpu_ec, row.gpu_ec, row.cpu_time, row.gpu_time) == (30, 60, 90, 120)
    assert (row.njobs_success, row.njobs_error) == (15, 18)


def test_rolling_up_again_changes_nothing_but_the_time(project: Project, attic: Host) -> None:
    credit(attic, project, "2026-03-09", DAY_OF_36)

    def sums() -> tuple[object, ...]:
        rolled_up_at = list(ProjectDay.objects.values_list("rolled_up_at", flat=True))
        days = list(ProjectDay.objects.values("project", "day", "hosts", "users", "cpu_ec", "cpu_time"))
        people = list(UserProject.objects.values("user", "project", "total_ec", "avg_ec"))
        return rolled_up_at, days, people

    rollup.roll_up(at("2026-03-10"))
    first = sums()
    rollup.roll_up(at("2026-03-10"))
    assert sums() == first
    assert len(ProjectDay.objects.all()) == len(UserProject.objects.all()) == 1


def test_what_came_after_the_last_run_is_taken_in(project: Project, attic: Host) -> None:
    credit(attic, project, "2026-03-09", DAY_OF_36)
    rollup.roll_up(at("2026-03-09", 12))
    Day.objects.update(cpu_ec=50 * MICRO)
    rollup.roll_up(at("2026-03-10", 1))
    assert ProjectDay.objects.get().cpu_ec == 50 * MICRO


def test_days_while_the_task_did_not_run_are_made_up_for(project: Project, attic: Host) -> None:
    credit(attic, project, "2026-03-01", DAY_OF_36)
    rollup.roll_up(at("2026-03-02"))
    # The worker was down for a week.
    for day in range(2, 9):
        credit(attic, project, f"2026-03-0{day}", DAY_OF_36)
    rollup.roll_up(at("2026-03-10"))
    assert ProjectDay.objects.count() == 8
    assert list(check.differences()) == []


def test_the_first_run_takes_all_that_there_is(project: Project, attic: Host) -> None:
    credit(attic, project, "2025-12-31", DAY_OF_36)
    credit(attic, project, "2026-02-01", DAY_OF_36)
    rollup.roll_up(at("2026-03-10"))
    assert ProjectDay.objects.count() == 2


def test_with_nothing_to_roll_up_nothing_happens(db: None) -> None:
    assert rollup.roll_up(at("2026-03-10"))
    assert not ProjectDay.objects.exists()
    assert not UserProject.objects.exists()


def test_the_total_is_what_all_computers_were_credited_however_old(project: Project, attic: Host, alice: User) -> None:
    old = make_host(alice, "old", first="2024-01-01", last="2024-02-01")
    credit(old, project, "2025-02-01", (500 * MICRO, 7 * MICRO, 0, 0, 0, 0))
    credit(attic, project, "2026-03-09", DAY_OF_36)
    for _ in range(2):
        rollup.roll_up(at("2026-03-10"))
        assert UserProject.objects.get().total_ec == (500 + 7 + 36) * MICRO


def test_a_choice_by_hand_is_not_touched(project: Project, attic: Host, alice: User) -> None:
    UserProject.objects.create(user=alice, project=project, is_chosen=True, resource_share=7, account_key=b"key")
    credit(attic, project, "2026-03-09", DAY_OF_36)
    rollup.roll_up(at("2026-03-10"))
    row = UserProject.objects.get()
    assert (row.is_chosen, row.resource_share, bytes(row.account_key or b"")) == (True, 7, b"key")
    assert row.total_ec == 36 * MICRO


def test_a_steady_hundred_a_day_is_an_average_of_a_hundred(project: Project, attic: Host) -> None:
    for back in range(1, 100):
        day = dt.date(2026, 3, 10) - dt.timedelta(days=back)
        credit(attic, project, day.isoformat(), (60 * MICRO, 40 * MICRO, 0, 0, 0, 0))
    rollup.roll_up(at("2026-03-10"))
    # By hand: each day counts from its middle, so with r = 0.5 ** (1/7) = 0.905724 the sum is
    # 100 × √r × (1 - r ** 99) / (1 - r) = 100 × 0.951695 × 0.999945 / 0.094276 = 1009.42; times ln 2 / 7 = 0.0990210.
    assert UserProject.objects.get().avg_ec == pytest.approx(99.954, abs=0.001)


def test_the_average_halves_in_a_week_without_work(project: Project, attic: Host) -> None:
    credit(attic, project, "2026-03-01", DAY_OF_36)

    def average(day: str) -> float:
        rollup.roll_up(at(day))
        return UserProject.objects.get().avg_ec

    first = average("2026-03-02")
    # 36 credits at noon, half a day ago: 36 × 0.5 ** (0.5 / 7) × ln 2 / 7 = 3.3926.
    assert first == pytest.approx(3.3926, abs=0.0001)
    assert average("2026-03-09") == pytest.approx(first / 2)
    # Long after, when no computer reports any more, it still goes down, at last to nothing.
    assert average("2026-06-30") == 0


def test_credit_of_today_counts_from_the_middle_of_what_there_is_of_today(project: Project, attic: Host) -> None:
    credit(attic, project, "2026-03-10", DAY_OF_36)
    rollup.roll_up(at("2026-03-10", 12))
    # A quarter of a day ago: 36 × 0.5 ** (0.25 / 7) × ln 2 / 7 = 3.4776.
    assert UserProject.objects.get().avg_ec == pytest.approx(3.4776, abs=0.0001)


def test_the_task_rolls_up_to_now(project: Project, attic: Host) -> None:
    credit(attic, project, timezone.now().date().isoformat(), DAY_OF_36)
    tasks.roll_up()
    assert ProjectDay.objects.get().cpu_ec == 36 * MICRO


@pytest.mark.django_db(transaction=True)
def test_a_second_run_at_the_same_time_leaves_it_to_the_first(project: Project) -> None:
    with psycopg.connect(**psycopg_params()) as other:
        other.execute(WAIT_FOR_LOCK, [AdvisoryLock.ROLL_UP.value])
        assert not rollup.roll_up(at("2026-03-10"))
        other.rollback()
        assert rollup.roll_up(at("2026-03-10"))

"""The history's monthly partitions: made ahead by a task, and at need by a report."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounting import tasks
from accounting.ledger import partitions
from accounting.models import Day, Project
from portal.models import User
from portal.people.accounts import ClientAuthError
from tests.support.am_rpc import HOUR, answer, call, hours_credited, make_computer, work

NEW_YEARS_EVE = dt.datetime(2031, 12, 31, 14, tzinfo=dt.UTC)


def names() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'accounting_day'::regclass")
        return {row[0] for row in cursor.fetchall()}


@pytest.fixture
def no_far_months() -> Iterator[None]:
    """Tests that really make partitions leave none behind."""
    yield
    partitions._known_months.clear()
    with connection.cursor() as cursor:
        for name in names():
            if name > "accounting_day_2031":
                cursor.execute(f"DROP TABLE {name}")


def test_december_is_followed_by_january() -> None:
    assert partitions.next_month(dt.date(2031, 12, 1)) == dt.date(2032, 1, 1)
    assert partitions.next_month(dt.date(2032, 1, 1)) == dt.date(2032, 2, 1)
    assert partitions.next_month(dt.date(2032, 2, 1)) == dt.date(2032, 3, 1)
    assert partitions.month_of(dt.date(2032, 2, 29)) == dt.date(2032, 2, 1)


def test_missing_months_are_made_and_present_ones_left(db: None) -> None:
    first, last = dt.date(2031, 11, 30), dt.date(2032, 2, 1)
    made = ["accounting_day_2031_11", "accounting_day_2031_12", "accounting_day_2032_01", "accounting_day_2032_02"]
    assert partitions.create_months(first, last) == made
    assert partitions.create_months(first, last) == []
    assert set(made) <= names()


def test_the_task_keeps_three_months_ahead(db: None) -> None:
    tasks.create_partitions()
    month = partitions.month_of(timezone.now().date())
    for _ in range(4):
        assert f"accounting_day_{month:%Y_%m}" in names()
        month = partitions.next_month(month)


def test_a_report_across_the_years_makes_what_it_needs(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = make_computer(alice)
    call(computer, NEW_YEARS_EVE)
    for hours in (9.9, 10.1):
        work(computer, alpha, 5)
        call(computer, NEW_YEARS_EVE + hours * HOUR)
    assert {"accounting_day_2031_12", "accounting_day_2032_01"} <= names()
    days = dict(Day.objects.order_by("day").values_list("day", "cpu_time"))
    assert days == {dt.date(2031, 12, 31): 18_000 * 10**6, dt.date(2032, 1, 1): 18_000 * 10**6}


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_far_months")
class TestReally:
    """What must hold with real transactions."""

    def test_a_refused_request_leaves_the_month_for_the_next(self, alice: User, projects: list[Project]) -> None:
        stranger = make_computer(alice, authenticator="f" * 32)
        with pytest.raises(ClientAuthError):
            answer(stranger.request(1.0), NEW_YEARS_EVE)
        computer = make_computer(alice)
        call(computer, NEW_YEARS_EVE)
        work(computer, projects[0], 1)
        call(computer, NEW_YEARS_EVE + HOUR)
        assert hours_credited(computer, projects[0]) == 1

    def test_a_month_whose_making_was_undone_is_made_again(self) -> None:
        with pytest.raises(RuntimeError), transaction.atomic():
            partitions.ensure_partition(NEW_YEARS_EVE.date())
            raise RuntimeError
        assert "accounting_day_2031_12" not in names()
        partitions.ensure_partition(NEW_YEARS_EVE.date())
        assert "accounting_day_2031_12" in names()

    def test_many_reports_at_once_in_a_new_month_are_all_booked(self, alice: User, projects: list[Project]) -> None:
        alpha = projects[0]
        computers = [make_computer(alice, f"computer-{n}", p_model=f"CPU {n}") for n in range(8)]
        for computer in computers:
            call(computer, NEW_YEARS_EVE)
            work(computer, alpha, 10)
        for computer in computers[::2]:
            # Half of them go the long way, with a transaction around all that they do.
            computer.ncpus = 8
        partitions._known_months.clear()
        later = NEW_YEARS_EVE + 12 * HOUR

        def report(message: bytes) -> None:
            try:
                answer(message, later)
            finally:
                connection.close()

        with ThreadPoolExecutor(8) as pool:
            for future in [pool.submit(report, c.request(later.timestamp())) for c in computers]:
                future.result()
        assert {hours_credited(computer, alpha) for computer in computers} == {10}
        assert set(Day.objects.values_list("day", flat=True)) == {dt.date(2032, 1, 1)}

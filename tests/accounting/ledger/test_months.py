"""Closed months: their sums are those of their days, whatever happens to these, and pages show the same."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection, connections
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounting.account_data import erasure
from accounting.computers.merge import merge
from accounting.engine.states import DayFlag
from accounting.history.periods import read_period
from accounting.history.reads import By, History, Show, read_history
from accounting.history.sums import read_first_day
from accounting.ledger import check, sql
from accounting.ledger.months import close_months, closed_until, split
from accounting.ledger.sql import MOST_CREDIT
from accounting.models import BestDay, Day, GrantedDay, Month, Project, Settlement
from accounting.reconciliation.reads import read_reconciled
from portal.models import Host, User
from portal.people.deletion import GRACE, ask_deletion
from tests.support.accounting_factories import at, credit, granted, make_host, make_project

pytestmark = pytest.mark.django_db

TODAY = dt.date(2026, 3, 10)
NOW = at("2026-03-10", 12)
CREDIT = 1_000_000


@pytest.fixture
def worked(alice: User) -> list[Host]:
    """Two computers, at two projects: in January, February and March."""
    hosts = [
        make_host(alice, "studio", "2026-02-14", "2026-03-10"),
        make_host(alice, "attic", "2026-01-01", "2026-02-13"),
    ]
    projects = [make_project("Alpha"), make_project("Beta")]
    for number, host in enumerate(hosts, 1):
        for day in ("2026-01-20", "2026-01-21", "2026-02-03", "2026-03-02"):
            credit(host, projects[0], day, (number * CREDIT, 0, 7, 0, 1, 0), flags=DayFlag.CAPPED)
            credit(host, projects[1], day, (0, 5 * number * CREDIT, 0, 9, 0, 1))
    return hosts


def history(user: User, *, step: str = "month", first: str = "2026-01-20", by: By = By.PROJECT) -> History:
    period = read_period({"from": first, "to": "2026-03-10", "step": step}, TODAY)
    return read_history(user, period, Show.CREDIT, by, TODAY)


def sound() -> bool:
    return not [line for line in check.differences() if "month" in line or "best day" in line]


@pytest.mark.parametrize("first", ["2026-01-01", "2026-01-21", "2026-02-01", "2026-02-02"])
@pytest.mark.parametrize("by", list(By))
def test_a_history_is_the_same_before_and_after_its_months_are_closed(worked: list[Host], by: By, first: str) -> None:
    before = history(worked[0].owner, by=by, first=first)
    assert close_months(NOW) == 2
    assert closed_until() == dt.date(2026, 3, 1)
    assert history(worked[0].owner, by=by, first=first) == before
    assert sound()


def test_what_a_lying_project_granted_is_merged_and_shown(signed_in: Client, worked: list[Host], alice: User) -> None:
    alpha = Project.objects.get(name="Alpha")
    for host in worked:
        for day in ("2026-01-20", "2026-03-02"):
            GrantedDay.objects.create(user=alice, day=day, project=alpha, host=host, credit=MOST_CREDIT)
        Settlement.objects.create(
            host=host, project=alpha, seen_on="2026-01-02", read_on="2026-03-03", estimated_before=0,
            is_whole=False, granted=MOST_CREDIT, granted_last=MOST_CREDIT,
        )  # fmt: skip
    close_months(NOW)
    merge(alice.pk, worked[0].pk, worked[1].pk)
    assert sound()
    assert set(GrantedDay.objects.values_list("credit", flat=True)) == {MOST_CREDIT}
    assert Settlement.objects.get().granted == MOST_CREDIT
    for address in ("/home/", "/computers/", f"/computers/{worked[0].pk}/", "/history/?from=2026-01-01&to=2026-03-10"):
        assert signed_in.get(address).status_code == 200


def test_closing_again_changes_nothing(worked: list[Host]) -> None:
    close_months(NOW)
    rows = list(Month.objects.order_by("pk").values())
    assert close_months(NOW) == 0
    assert list(Month.objects.order_by("pk").values()) == rows


def test_a_month_is_not_closed_on_its_last_day_nor_on_the_day_after(worked: list[Host]) -> None:
    close_months(at("2026-03-01", 23))
    assert closed_until() == dt.date(2026, 2, 1)
    close_months(at("2026-03-02", 0))
    assert closed_until() == dt.date(2026, 3, 1)


def test_days_that_were_written_anew_are_summed_up_anew(worked: list[Host]) -> None:
    close_months(NOW)
    Day.objects.filter(day="2026-02-03").update(cpu_ec=3)
    assert not sound()
    assert close_months(NOW, since=dt.date(2026, 2, 20)) == 1
    assert sound()


def test_nothing_is_closed_while_somebody_writes_days_of_closed_months(worked: list[Host]) -> None:
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(sql.LOCK_MONTHS)
            assert close_months(NOW) == 0
            cursor.execute("ROLLBACK")
        assert close_months(NOW) == 2
    finally:
        other.close()


def test_without_any_days_there_is_nothing_to_close(db: None) -> None:
    assert close_months(NOW) == 0
    assert closed_until() is None


def test_merging_moves_the_months_with_the_days(worked: list[Host]) -> None:
    close_months(NOW)
    before = history(worked[0].owner)
    merge(worked[0].owner_id, worked[0].pk, worked[1].pk)
    assert set(Month.objects.values_list("host_id", flat=True)) == {worked[0].pk}
    assert history(worked[0].owner).lines == before.lines
    assert sound()


def test_erasing_an_account_erases_its_months(worked: list[Host], alice: User, bob: User) -> None:
    credit(make_host(bob, "bobs"), make_project(), "2026-01-02", (1, 0, 0, 0, 0, 0))
    close_months(NOW)
    ask_deletion(alice)
    assert erasure.erase_due(timezone.now() + GRACE + dt.timedelta(hours=1)) == 1
    assert set(Month.objects.values_list("user_id", flat=True)) == {bob.pk}
    assert set(BestDay.objects.values_list("user_id", flat=True)) == {bob.pk}
    assert sound()


def test_the_best_day_of_each_month_is_kept(worked: list[Host], alice: User) -> None:
    credit(worked[0], make_project(), "2026-01-21", (CREDIT, 0, 0, 0, 0, 0))
    close_months(NOW)
    query = [(best.day.isoformat(), best.ec, best.active_days) for best in BestDay.objects.order_by("month")]
    # (1 + 5) + (2 + 10) credits each day, and one more on 21 January.
    assert query == [("2026-01-21", 19 * CREDIT, 2), ("2026-02-03", 18 * CREDIT, 1)]
    BestDay.objects.filter(day="2026-02-03").update(ec=1)
    assert not sound()


def test_settled_credit_is_the_same_before_and_after_months_are_closed(worked: list[Host], alice: User) -> None:
    project = make_project("Gamma")
    for day in ("2026-01-05", "2026-02-05", "2026-02-20"):
        credit(worked[0], project, day, (CREDIT, 0, 0, 0, 0, 0))
    granted(worked[0], project, 7, {"2026-01-31": CREDIT, "2026-02-12": 3 * CREDIT})
    Settlement.objects.create(
        host=worked[0], project=project, seen_on="2026-02-10", read_on="2026-02-12", estimated_before=2 * CREDIT,
        is_whole=False, granted=4 * CREDIT,
    )  # fmt: skip
    starts = [(dt.date(2026, month, 1), f"{month}") for month in (1, 2, 3)]
    days = dt.date(2026, 1, 1), TODAY
    before = read_reconciled(alice, starts, days, TODAY, by_months=True)
    assert before == read_reconciled(alice, starts, days, TODAY)
    close_months(NOW)
    assert read_reconciled(alice, starts, days, TODAY, by_months=True) == before
    assert before.lines[0][1].granted == CREDIT
    assert sound()


def test_months_of_hostile_grants_can_be_merged(worked: list[Host]) -> None:
    project = make_project()
    for day, host in (("2026-01-05", worked[0]), ("2026-01-06", worked[0]), ("2026-01-07", worked[1])):
        GrantedDay.objects.create(user=host.owner, day=day, project=project, host=host, credit=2**63 - 1)
    assert close_months(NOW) == 2
    assert sound()
    merge(worked[0].owner_id, worked[0].pk, worked[1].pk)
    assert Month.objects.get(project=project).granted == sql.MOST_CREDIT
    assert sound()


def test_the_first_day_is_found_with_closed_months(worked: list[Host], alice: User, bob: User) -> None:
    close_months(NOW)
    assert read_first_day(alice, TODAY) == dt.date(2026, 1, 20)
    assert read_first_day(bob, TODAY) is None
    # Granted in January, but estimated only later.
    project = make_project()
    Month.objects.create(user=bob, month="2026-01-01", project=project, host=worked[0], granted=1)
    credit(make_host(bob, "bobs"), project, "2026-03-01", (1, 0, 0, 0, 0, 0))
    assert read_first_day(bob, TODAY) == dt.date(2026, 3, 1)


def test_closed_months_are_read_without_their_days(
    worked: list[Host], alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    close_months(NOW)
    period = read_period({"from": "2026-01-01", "to": "2026-03-10", "step": "month"}, TODAY)
    # How far months are closed, their sums, the days of March, and the projects' names.
    with django_assert_num_queries(4) as statements:
        read_history(alice, period, Show.CREDIT, By.PROJECT, TODAY)
    days = [query["sql"] for query in statements.captured_queries if '"accounting_day"' in query["sql"]]
    assert len(days) == 1 and "2026-03-01" in days[0]
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN " + days[0])
        plan = str(cursor.fetchall())
    assert "accounting_day_2026_03" in plan and "accounting_day_2026_01" not in plan


def test_ranges_are_cut_into_days_and_closed_months() -> None:
    def day(text: str) -> dt.date:
        return dt.date.fromisoformat(text)

    until = day("2026-04-01")
    whole = [day("2026-02-01"), day("2026-03-01")]
    both = [(day("2026-01-05"), day("2026-01-31")), (day("2026-04-01"), day("2026-04-09"))]
    assert split(day("2026-01-05"), day("2026-04-09"), until) == (both, whole)
    assert split(day("2026-02-01"), day("2026-03-31"), until) == ([], whole)
    assert split(day("2026-02-01"), day("2026-03-30"), until) == ([(day("2026-03-01"), day("2026-03-30"))], whole[:1])
    # The days of March are wanted, and those of April follow.
    apart = [(day("2026-03-01"), day("2026-04-09"))]
    assert split(day("2026-02-01"), day("2026-04-09"), until, {day("2026-03-01")}) == (apart, whole[:1])
    assert split(day("2026-02-01"), day("2026-03-31"), None) == ([(day("2026-02-01"), day("2026-03-31"))], [])

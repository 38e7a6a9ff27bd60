"""The page of a year, and that of records and milestones."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounting.history.records import goals, read_records
from accounting.history.year import read_year
from accounting.ledger.months import close_months
from portal.models import Host, User
from portal.templatetags import display
from tests.support.accounting_factories import at, credit, make_host, make_project
from tests.support.page_reader import page_of
from tests.support.page_text import text_of

pytestmark = pytest.mark.django_db

TODAY = dt.date(2026, 3, 10)
CREDIT = 1_000_000


@pytest.fixture(params=[False, True], ids=["open", "closed"])
def worked(request: pytest.FixtureRequest, studio: Host) -> Host:
    """2025: 60 credits on 5 March, 100 on 20 December; 2026: 1, 2, 3 and 4 credits on four days, two in March."""
    alpha, beta = make_project("Alpha"), make_project("Beta")
    for day, credits in (("2025-03-05", 60), ("2025-12-20", 100), ("2026-01-30", 1), ("2026-02-01", 2)):
        credit(studio, alpha, day, (credits * CREDIT, 0, 3600 * CREDIT, 0, 1, 1))
    credit(studio, beta, "2026-03-02", (0, 3 * CREDIT, 0, 1, 1, 0))
    credit(studio, beta, "2026-03-09", (0, 4 * CREDIT, 0, 1, 1, 0))
    if request.param:
        close_months(at("2026-03-10", 12))
    return studio


def test_a_year_adds_up_its_days_months_projects_and_computers(worked: Host) -> None:
    year = read_year(worked.owner, 2026, TODAY)
    assert year is not None
    assert [month.amounts.credit // CREDIT for month in year.months] == [1, 2, 7]
    assert year.totals.credit == 10 * CREDIT and year.active_days == 4
    assert [(group.name, group.credit // CREDIT) for group in year.projects] == [("Beta", 7), ("Alpha", 3)]
    assert [(group.name, group.credit // CREDIT) for group in year.hosts] == [("studio", 10)]
    assert year.best is not None and year.best.day == dt.date(2026, 3, 9)
    # 60 credits until 10 March 2025: 10 are 83 % less.
    assert (year.before, year.change, year.loss) == (60 * CREDIT, -83, 83)
    assert (year.earlier, year.later) == (2025, None)


def test_each_quarter_of_the_days_has_a_colour_and_days_stand_in_their_weeks(worked: Host) -> None:
    year = read_year(worked.owner, 2026, TODAY)
    assert year is not None
    days = {day.day.isoformat(): day for month in year.months for day in month.days}
    assert year.limits == [1 * CREDIT, 2 * CREDIT, 3 * CREDIT, 4 * CREDIT]
    assert [days[day].level for day in ("2026-01-01", "2026-01-30", "2026-02-01", "2026-03-02", "2026-03-09")] == [
        0, 1, 2, 3, 4,
    ]  # fmt: skip
    # 1 March 2026 is a Sunday, so the 2nd begins the second row.
    assert [(days[day].week, days[day].weekday) for day in ("2026-03-01", "2026-03-02")] == [(0, 6), (1, 0)]
    assert max(days) == "2026-03-10"


def test_a_leap_day_has_a_year_before(studio: Host) -> None:
    credit(studio, make_project(), "2023-02-28", (CREDIT, 0, 0, 0, 0, 0))
    year = read_year(studio.owner, 2024, dt.date(2024, 2, 29))
    assert year is not None and year.before == CREDIT and year.change == -100


def test_records(worked: Host) -> None:
    records = read_records(worked.owner, TODAY)
    assert records is not None
    assert records.best_day == (dt.date(2025, 12, 20), 100 * CREDIT)
    assert records.best_month == (dt.date(2025, 12, 1), 100 * CREDIT)
    assert records.best_year == (2025, 160 * CREDIT)
    assert (records.first, records.active_days, records.ec) == (dt.date(2025, 3, 5), 6, 170 * CREDIT)
    assert [(milestone.ec // CREDIT, milestone.day) for milestone in records.milestones] == [
        (100, dt.date(2025, 12, 20))
    ]


def test_the_last_week_beside_the_median_of_twelve(worked: Host) -> None:
    records = read_records(worked.owner, TODAY)
    assert records is not None
    # 3 to 9 March. Of the weeks before, most have nothing.
    assert (records.week.first, records.week.last) == (dt.date(2026, 3, 3), dt.date(2026, 3, 9))
    assert (records.week.ec, records.week.usual, records.week.change) == (4 * CREDIT, 0, None)
    assert records.week.before == 12


def test_what_is_usual_is_known_after_five_weeks(signed_in: Client, studio: Host) -> None:
    """The week that is compared, and the complete weeks before it, of which there must be four."""
    project, last = make_project(), timezone.now().date() - dt.timedelta(days=1)

    def work(back: int, credits: int) -> None:
        credit(studio, project, str(last - dt.timedelta(days=back)), (credits * CREDIT, 0, 0, 0, 0, 0))

    for back, credits in ((0, 10), (8, 2), (15, 4), (22, 6)):
        work(back, credits)
    for back, usual, words in (
        (33, None, "A typical week can be calculated 5 weeks after your first day."),
        # Of 2, 4, 6 and 16
        (34, 5, "A typical week has 5 credits, the median of the 4 weeks before. This week has 100 % more."),
        # Of 2, 4, 6, 16 and 8
        (41, 6, "A typical week has 6 credits, the median of the 5 weeks before."),
    ):
        work(back, 8)
        records = read_records(studio.owner, last + dt.timedelta(days=1))
        assert records is not None and records.week.usual == (usual and usual * CREDIT)
        assert words in text_of(signed_in.get("/history/records/"))


def test_milestones_are_one_two_and_five_of_each_power_of_ten() -> None:
    assert list(goals(99 * CREDIT)) == []
    assert [goal // CREDIT for goal in goals(2_000 * CREDIT)] == [100, 200, 500, 1_000, 2_000]


def test_the_pages(signed_in: Client, studio: Host, alice: User) -> None:
    today = timezone.now().date()
    for address in (f"/history/years/{today.year}/", "/history/records/"):
        assert "Here you will see" in page_of(signed_in, address).words
    for number in (0, 1969, today.year + 1, 10**30):
        year_page = page_of(signed_in, f"/history/years/{number}/").words
        message = f"is not a year from 1970 to {today.year}. This year is shown."
        assert message in year_page and f"{today.year} in review" in year_page
    credit(studio, make_project("Alpha"), str(today), (300 * CREDIT, 0, 0, 0, 1, 0))
    year = signed_in.get(f"/history/years/{today.year}/").content.decode()
    assert year.count('<figure class="year__month">') == today.month
    assert f"<title>{display.day(today)}: 300\xa0credits</title>" in year
    records = page_of(signed_in, "/history/records/")
    assert "Milestones" in records.words and "200 credits" in records.words.replace("\xa0", " ")
    assert f"/history/years/{today.year}/" in signed_in.get("/history/").content.decode()


def test_the_cost_does_not_grow_with_years_and_computers(
    signed_in: Client, studio: Host, alice: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    today = timezone.now().date()
    for number in range(12):
        credit(make_host(alice, f"node-{number}"), make_project(), f"{today.year - number % 3}-01-01", (CREDIT,) * 6)
    for _ in range(2):
        with django_assert_max_num_queries(19):
            signed_in.get(f"/history/years/{today.year}/")
        # Of these, up to six see what is archived.
        with django_assert_max_num_queries(20):
            signed_in.get("/history/records/")
        close_months(timezone.now())


def test_another_user_sees_nothing_of_it(client: Client, worked: Host, bob: User) -> None:
    client.force_login(bob)
    for address in ("/history/years/2026/", "/history/records/"):
        assert "studio" not in client.get(address).content.decode()
    assert read_records(bob, TODAY) is None

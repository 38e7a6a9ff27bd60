"""Long tables a page at a time: the rule, and the history's, a day's and the computers' pages by it."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from accounting.computers import reads as computers_reads
from accounting.engine.paging import further, page_after, place_text, read_place
from accounting.history import day as history_day
from accounting.history import views
from accounting.ledger.partitions import create_months
from accounting.models import Day, Project
from portal.models import Host, User
from tests.support.accounting_factories import credit, make_host, make_project
from tests.support.page_reader import Page

PLACES = st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 9)), unique=True, max_size=30)


@given(PLACES, st.integers(1, 7))
def test_pages_together_have_every_row_once(places: list[tuple[int, int]], size: int) -> None:
    rows = sorted(places)
    seen: list[tuple[int, int]] = []
    after = ""
    while True:
        page = page_after(rows, lambda row: row, after, size)
        assert page.is_first is (not seen)
        seen += page.rows
        after = page.after
        if not after:
            break
        assert len(page.rows) == size
    assert seen == rows


@given(PLACES.filter(lambda places: len(places) > 3), st.integers(1, 3))
def test_a_row_that_goes_between_two_pages_takes_no_other_along(places: list[tuple[int, int]], size: int) -> None:
    rows = sorted(places)
    first = page_after(rows, lambda row: row, "", size)
    # The row by which the next page is asked for is gone by then.
    second = page_after([row for row in rows if row != rows[size - 1]], lambda row: row, first.after, size)
    assert second.rows == further(second).rows == rows[size : 2 * size]


@pytest.mark.parametrize("text", ["", "x", "1_", "--1", "1.5", "²", "1" * 101, "1_nan", "_"])
def test_what_is_no_place_is_the_beginning(text: str) -> None:
    assert read_place(text) is None
    assert page_after([1, 2, 3], lambda row: (row,), text, 2).rows == [1, 2]


def test_a_place_that_nothing_follows_is_the_beginning() -> None:
    page = page_after([1, 2, 3], lambda row: (row,), place_text((3,)), 2)
    assert (page.rows, page.is_first) == ([1, 2], True)
    # But not below the rows that are shown already.
    assert further(page).rows == []
    rest = page_after([1, 2, 3], lambda row: (row,), place_text((2,)), 2)
    assert further(rest) is rest


@pytest.fixture
def browser(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def shown(browser: Client, address: str, target: str = "") -> Page:
    headers = {"HX-Request": "true", "HX-Target": target} if target else {}
    return Page(browser.get(address, headers=headers).content.decode())


def more_of(page: Page, id_: str) -> str:
    """The address of the next rows, "" where there are none."""
    links = page.all("a", hx_target=f"#{id_}")
    return links[0].attributes["href"].partition("#")[0] if links else ""


def test_days_come_a_page_at_a_time_and_the_sum_is_of_all(browser: Client, studio: Host) -> None:
    project, last = make_project("Alpha"), dt.date(2026, 3, 31)
    for back in range(views.ROWS_A_PAGE + 20):
        credit(studio, project, str(last - dt.timedelta(days=back)), (1_000_000, 0, 0, 0, 0, 0))
    first = last - dt.timedelta(days=views.ROWS_A_PAGE + 19)
    address = f"/history/?from={first}&to={last}&step=day"
    page = shown(browser, address)
    assert len(page.all("th", scope="row", within="tbody")) == views.ROWS_A_PAGE
    # 120 days of 1 credit.
    assert page.one("td", within="tfoot", data_kind="ec").attributes["data-micro"] == "120000000"
    more = more_of(page, "more-days")
    plain, rows = shown(browser, f"/history/{more}"), shown(browser, f"/history/{more}", "more-days")
    for second in (plain, rows):
        days = [cell.text for cell in second.all("th", scope="row", within="tbody" if second is plain else "")]
        assert days == [str(first + dt.timedelta(days=19 - place)) for place in range(20)]
        assert not more_of(second, "more-days")
    assert plain.one("td", within="tfoot", data_kind="ec").attributes["data-micro"] == "120000000"
    assert not rows.all("html") and rows.all("a")[0].attributes.get("autofocus") is not None


def test_each_of_many_computers_has_its_sum_in_the_range(
    browser: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine computers share eight colours and a legend; here each has a line."""
    monkeypatch.setattr(views, "ROWS_A_PAGE", 8)
    project, today = make_project("Alpha"), timezone.now().date()
    for number in range(10):
        credit(make_host(alice, f"node-{number}"), project, str(today), ((number + 1) * 1_000_000, 0, 0, 0, 0, 0))
    page = shown(browser, f"/history/?from={today}&to={today}&by=computer")
    names = [link.text for link in page.all("a") if link.text.startswith("node")]
    assert names == [f"node-{number}" for number in range(9, 1, -1)]
    rows = shown(browser, f"/history/{more_of(page, 'more-groups')}", "more-groups")
    assert [link.text for link in rows.all("a")] == ["node-1", "node-0"]
    assert [cell.attributes["data-micro"] for cell in rows.all("td", data_kind="ec")] == ["2000000", "1000000"]


def test_where_the_legend_has_the_sums_there_is_no_second_table(browser: Client, studio: Host) -> None:
    today = timezone.now().date()
    credit(studio, make_project("Alpha"), str(today), (1, 0, 0, 0, 0, 0))
    assert not shown(browser, f"/history/?from={today}&to={today}&by=computer").all("table", id="groups-table")


def _many_parts(alice: User, number: int) -> dt.date:
    today = timezone.now().date()
    create_months(today, today)
    projects = [make_project() for _ in range(number)]
    host = make_host(alice, "node")
    Day.objects.bulk_create(
        Day(user=alice, day=today, project=project, host=host, cpu_ec=1_000_000 * (place + 1))
        for place, project in enumerate(projects)
    )
    return today


def test_a_day_lists_its_parts_a_page_at_a_time(browser: Client, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_day, "ROWS_A_PAGE", 3)
    day = _many_parts(alice, 5)
    page = shown(browser, f"/history/days/{day}/")
    assert [c.attributes["data-micro"] for c in page.all("td", within="tbody", data_kind="ec")] == [
        "5000000",
        "4000000",
        "3000000",
    ]
    more = more_of(page, "more-parts")
    for second in (shown(browser, more), shown(browser, more, "more-parts")):
        kept = [c.attributes["data-micro"] for c in second.all("td", data_kind="ec")]
        # The whole page has the sum of the day below: 1 + 2 + 3 + 4 + 5 credits.
        assert kept in (["2000000", "1000000", "15000000"], ["2000000", "1000000"])
    assert Project.objects.count() == 5


def test_computers_come_a_page_at_a_time(browser: Client, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computers_reads, "HOSTS_A_PAGE", 2)
    for number in range(5):
        make_host(alice, f"node-{number}", last=f"2026-02-0{number + 1}")
    seen: list[str] = []
    more, page = "", shown(browser, "/computers/")
    while True:
        seen += [link.text for link in page.all("a") if link.text.startswith("node")]
        if not (more := more_of(page, "more-after")):
            break
        page = shown(browser, more, "more-after")
    assert seen == ["node-4", "node-3", "node-2", "node-1", "node-0"]
    # By a plain link, too; and back.
    plain = shown(browser, more_of(shown(browser, "/computers/"), "more-after"))
    assert "from the latest on" in plain.words and "node-2" in plain.words

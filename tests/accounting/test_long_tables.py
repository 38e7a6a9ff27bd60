"""The history's, a day's and the computers' tables, a page at a time."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone

from accounting.computers import reads as computers_reads
from accounting.history import day as history_day
from accounting.history import views
from accounting.ledger.partitions import create_months
from accounting.models import Day, Project
from portal.models import Host, User
from portal.templatetags import display
from tests.support.accounting_factories import credit, make_host, make_project
from tests.support.page_reader import Page, page_of


def shown(signed_in: Client, address: str, target: str = "") -> Page:
    headers = {"HX-Request": "true", "HX-Target": target} if target else {}
    return page_of(signed_in, address, headers=headers)


def more_of(page: Page, id_: str) -> str:
    """The address of the next rows, "" where there are none."""
    links = page.all("a", hx_target=f"#{id_}")
    return links[0].attributes["href"].partition("#")[0] if links else ""


def test_days_come_a_page_at_a_time_and_the_sum_is_of_all(signed_in: Client, studio: Host) -> None:
    project, last = make_project("Alpha"), dt.date(2026, 3, 31)
    for back in range(views.ROWS_A_PAGE + 20):
        credit(studio, project, str(last - dt.timedelta(days=back)), (1_000_000, 0, 0, 0, 0, 0))
    first = last - dt.timedelta(days=views.ROWS_A_PAGE + 19)
    address = f"/history/?from={first}&to={last}&step=day"
    page = shown(signed_in, address)
    assert len(page.all("th", scope="row", within="tbody")) == views.ROWS_A_PAGE
    # 120 days of 1 credit.
    assert page.one("td", within="tfoot", data_kind="ec").attributes["data-micro"] == "120000000"
    more = more_of(page, "more-days")
    plain, rows = shown(signed_in, f"/history/{more}"), shown(signed_in, f"/history/{more}", "more-days")
    for second in (plain, rows):
        days = [cell.text for cell in second.all("th", scope="row", within="tbody" if second is plain else "")]
        assert days == [display.day(first + dt.timedelta(days=19 - place)) for place in range(20)]
        assert not more_of(second, "more-days")
    assert plain.one("td", within="tfoot", data_kind="ec").attributes["data-micro"] == "120000000"
    assert not rows.all("html") and rows.all("a")[0].attributes.get("autofocus") is not None


def test_each_of_many_computers_has_its_sum_in_the_range(
    signed_in: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine computers share eight colours and a legend; here each has a line."""
    monkeypatch.setattr(views, "ROWS_A_PAGE", 8)
    project, today = make_project("Alpha"), timezone.now().date()
    for number in range(10):
        credit(make_host(alice, f"node-{number}"), project, str(today), ((number + 1) * 1_000_000, 0, 0, 0, 0, 0))
    page = shown(signed_in, f"/history/?from={today}&to={today}&by=computer")
    names = [link.text for link in page.all("a") if link.text.startswith("node")]
    assert names == [f"node-{number}" for number in range(9, 1, -1)]
    rows = shown(signed_in, f"/history/{more_of(page, 'more-groups')}", "more-groups")
    assert [link.text for link in rows.all("a")] == ["node-1", "node-0"]
    assert [cell.attributes["data-micro"] for cell in rows.all("td", data_kind="ec")] == ["2000000", "1000000"]


def test_where_the_legend_has_the_sums_there_is_no_second_table(signed_in: Client, studio: Host) -> None:
    today = timezone.now().date()
    credit(studio, make_project("Alpha"), str(today), (1, 0, 0, 0, 0, 0))
    assert not shown(signed_in, f"/history/?from={today}&to={today}&by=computer").all("table", id="groups-table")


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


def test_a_day_lists_its_parts_a_page_at_a_time(
    signed_in: Client, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_day, "ROWS_A_PAGE", 3)
    day = _many_parts(alice, 5)
    page = shown(signed_in, f"/history/days/{day}/")
    assert [c.attributes["data-micro"] for c in page.all("td", within="tbody", data_kind="ec")] == [
        "5000000",
        "4000000",
        "3000000",
    ]
    more = more_of(page, "more-parts")
    for second in (shown(signed_in, more), shown(signed_in, more, "more-parts")):
        kept = [c.attributes["data-micro"] for c in second.all("td", data_kind="ec")]
        # The whole page has the sum of the day below: 1 + 2 + 3 + 4 + 5 credits.
        assert kept in (["2000000", "1000000", "15000000"], ["2000000", "1000000"])
    assert Project.objects.count() == 5


def test_computers_come_a_page_at_a_time(signed_in: Client, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computers_reads, "HOSTS_A_PAGE", 2)
    for number in range(5):
        make_host(alice, f"node-{number}", last=f"2026-02-0{number + 1}")
    seen: list[str] = []
    more, page = "", shown(signed_in, "/computers/")
    while True:
        seen += [link.text for link in page.all("a") if link.text.startswith("node")]
        if not (more := more_of(page, "more-page")):
            break
        page = shown(signed_in, more, "more-page")
    assert seen == ["node-4", "node-3", "node-2", "node-1", "node-0"]
    # By a plain link, too; and back.
    plain = shown(signed_in, more_of(shown(signed_in, "/computers/"), "more-page"))
    assert "Show it from the beginning" in plain.words and "node-2" in plain.words

"""Downloads of the history have every row of the range, and the page's numbers to the last digit."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from accounting.engine.states import DayFlag
from accounting.exchange import day_rows, downloads
from accounting.models import GrantedDay, Project, Settlement
from portal.models import Host, User
from tests.support.accounting_factories import credit, make_host, make_project
from tests.support.page_reader import page_of

pytestmark = pytest.mark.django_db

RANGE = "from=2026-03-01&to=2026-03-10"


@pytest.fixture
def worked(studio: Host) -> Host:
    """Rows with amounts that no rounding survives, one of them capped, and one a day after the range."""
    alpha, beta = make_project("Alpha"), make_project("Beta")
    attic = make_host(studio.owner, "attic")
    credit(studio, alpha, "2026-03-01", (1_000_001, 2, 259_346_744, 1, 4, 1), flags=DayFlag.CAPPED)
    credit(studio, beta, "2026-03-01", (0, 333_333, 0, 999_999, 0, 2))
    credit(attic, alpha, "2026-03-10", (2**53 + 1, 0, 2**53 + 3, 0, 7, 0))
    credit(attic, beta, "2026-03-11", (5, 5, 5, 5, 5, 5))
    return studio


def body(signed_in: Client, address: str) -> bytes:
    reply = signed_in.get(address)
    assert reply.status_code == 200
    assert reply.streaming
    return b"".join(reply)


def rows_of(text: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.decode(), newline="")))


def micro_sums(rows: list[dict[str, Any]]) -> list[int]:
    """The six sums in 1e-6 and jobs, without any float on the way."""
    credits_and_secs = [int(sum(Decimal(row[name]) for row in rows) * 1_000_000) for name in downloads.AMOUNTS[:4]]
    return credits_and_secs + [sum(int(row[name]) for row in rows) for name in downloads.AMOUNTS[4:]]


def page_sums(signed_in: Client) -> list[int]:
    """Credit and the other four sums, as the history page has them in its cells."""
    history_page = page_of(signed_in, f"/history/?{RANGE}")

    def cell(kind: str, attribute: str) -> int:
        return int(history_page.one("td", within="tfoot", data_kind=kind).attributes[attribute])

    micro = [cell(kind, "data-micro") for kind in ("ec", "cpu_time", "gpu_time")]
    return micro + [cell(kind, "data-count") for kind in ("njobs_success", "njobs_error")]


def test_both_formats_have_the_sums_of_the_page(signed_in: Client, worked: Host) -> None:
    rows = rows_of(body(signed_in, f"/history/history.csv?{RANGE}"))
    data = json.loads(body(signed_in, f"/history/history.json?{RANGE}"))
    # cpu_ec 1,000,001 + 2**53 + 1; gpu_ec 2 + 333,333; cpu 259,346,744 + 2**53 + 3; gpu 1 + 999,999.
    exact = [2**53 + 1_000_002, 333_335, 2**53 + 259_346_747, 1_000_000, 11, 3]
    assert micro_sums(rows) == micro_sums(data["rows"]) == micro_sums([data["sums"]]) == exact
    assert page_sums(signed_in) == [exact[0] + exact[1], *exact[2:]]


def test_a_row_is_a_day_of_a_computer_at_a_project(signed_in: Client, worked: Host) -> None:
    rows = rows_of(body(signed_in, f"/history/history.csv?{RANGE}"))
    assert [(row["day"], row["project"], row["host"]) for row in rows] == [
        ("2026-03-01", "Alpha", "studio"),
        ("2026-03-01", "Beta", "studio"),
        ("2026-03-10", "Alpha", "attic"),
    ]
    assert tuple(rows[0]) == downloads.COLUMNS
    assert (rows[0]["cpu_secs"], rows[0]["flags"], rows[0]["host_id"]) == ("259.346744", "capped", str(worked.pk))
    data = json.loads(body(signed_in, f"/history/history.json?{RANGE}"))
    assert (data["first"], data["last"]) == ("2026-03-01", "2026-03-10")
    assert data["rows"][0]["flags"] == ["capped"] and data["rows"][1]["flags"] == []
    assert [row["project_url"] for row in data["rows"]] == [row["project_url"] for row in rows]


def test_an_empty_range_is_an_empty_file_of_the_same_form(signed_in: Client, worked: Host) -> None:
    assert rows_of(body(signed_in, "/history/history.csv?from=2020-01-01&to=2020-02-01")) == []
    data = json.loads(body(signed_in, "/history/history.json?from=2020-01-01&to=2020-02-01"))
    assert data["rows"] == [] and micro_sums([data["sums"]]) == [0] * 6


def test_pages_of_any_size_give_the_same_rows(worked: Host) -> None:
    day_range = day_rows.DayRange(dt.date(2026, 3, 1), dt.date(2026, 3, 11))
    whole = day_rows.read_page(worked.owner, day_range)
    assert len(whole) == 4
    for size in (1, 2, 3, 4, 5):
        pages = list(day_rows.read_pages(worked.owner, day_range, size))
        assert [row for page in pages for row in page] == whole
        assert max(len(page) for page in pages) <= size


def test_a_page_is_two_statements_on_the_months_that_are_left(
    worked: Host, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    credit(worked, make_project("Gamma"), "2026-01-20", (1, 0, 0, 0, 0, 0))
    day_range = day_rows.DayRange(dt.date(2026, 1, 1), dt.date(2026, 3, 11))
    first = day_rows.read_page(worked.owner, day_range, limit=2)
    with django_assert_num_queries(2) as seen:
        assert len(day_rows.read_page(worked.owner, day_range, first[-1].place, limit=2)) == 2
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {seen.captured_queries[0]['sql']}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "accounting_day_2026_03" in plan and "accounting_day_2026_01" not in plan


def test_a_name_is_no_formula(signed_in: Client, alice: User) -> None:
    credit(make_host(alice, "=1+1"), make_project('@"evil",\n'), "2026-03-02", (1, 0, 0, 0, 0, 0))
    (row,) = rows_of(body(signed_in, f"/history/history.csv?{RANGE}"))
    assert (row["host"], row["project"]) == ("'=1+1", '\'@"evil",\n')
    (row,) = json.loads(body(signed_in, f"/history/history.json?{RANGE}"))["rows"]
    assert row["host"] == "=1+1"


def test_the_page_links_to_the_days_that_it_shows(signed_in: Client, worked: Host) -> None:
    credit(worked, make_project("Gamma"), str(timezone.now().date()), (7, 0, 0, 0, 0, 0))
    history_page = page_of(signed_in, "/history/?range=7")
    links = [a.attributes["href"] for a in history_page.all("a") if "/history/history." in a.attributes.get("href", "")]
    assert len(links) == 2
    today = timezone.now().date()
    assert all(link.endswith(f"?from={today - dt.timedelta(days=6)}&to={today}") for link in links)
    assert len(rows_of(body(signed_in, links[0]))) == 1


def test_a_wrong_range_is_refused_and_not_replaced(signed_in: Client, worked: Host) -> None:
    for query, reason in (
        ("from=2026-99-99", "“2026-99-99” is not a date. Enter year-month-day, for example 2026-11-21."),
        ("range=fame", "This range is not known."),
        ("from=2999-01-01", "This range is in the future."),
        ("from=2026-03-10&to=2026-03-01", "The first day is after the last one."),
        ("from=1900-01-01&to=2026-03-01", "A history covers 50 years at most."),
    ):
        for kind in ("csv", "json"):
            reply = signed_in.get(f"/history/history.{kind}?{query}")
            assert (reply.status_code, reply.content.decode()) == (400, f"{reason}\n")


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_somebody_elses_rows_are_in_no_file(client: Client, worked: Host, bob: User, operator: User, kind: str) -> None:
    address = f"/history/history.{kind}?{RANGE}"
    assert client.get(address).status_code == 302
    for visitor in (bob, operator):
        client.force_login(visitor)
        assert b"studio" not in body(client, address) and b"Alpha" not in body(client, address)


def test_a_file_is_named_by_its_days_and_kept_by_no_cache(signed_in: Client, worked: Host) -> None:
    reply = signed_in.get(f"/history/history.csv?{RANGE}")
    assert reply.headers["Content-Disposition"] == 'attachment; filename="history-2026-03-01-to-2026-03-10.csv"'
    assert "no-store" in reply.headers["Cache-Control"]


def make_grant(host: Host, project: Project, day: str, micro: int) -> None:
    GrantedDay.objects.create(user=host.owner, day=day, project=project, host=host, credit=micro)


def seen(host: Host, project: Project, day: str, *, read_on: str = "2026-03-11", is_whole: bool = False) -> None:
    """The project's statistics first had the computer on that day, and were read up to ``read_on``."""
    Settlement.objects.create(
        host=host, project=project, seen_on=day, read_on=read_on, estimated_before=0, is_whole=is_whole
    )


def test_granted_credit_stands_beside_the_estimate_where_it_is_known(signed_in: Client, worked: Host) -> None:
    alpha, attic = Project.objects.get(name="Alpha"), Host.objects.get(domain_name="attic")
    seen(worked, alpha, "2026-02-28")
    seen(attic, alpha, "2026-03-10")
    make_grant(worked, alpha, "2026-03-02", 7_500_000)
    rows = rows_of(body(signed_in, f"/history/history.csv?{RANGE}"))
    # On 1 March Alpha granted nothing, Beta's statistics are not known, and Attic was first seen on its own day. The
    # day of the grant has a row, though nothing was reported.
    assert [(row["day"], row["project"], row["host"], row["granted_credit"]) for row in rows] == [
        ("2026-03-01", "Alpha", "studio", "0.000000"),
        ("2026-03-01", "Beta", "studio", ""),
        ("2026-03-02", "Alpha", "studio", "7.500000"),
        ("2026-03-10", "Alpha", "attic", ""),
    ]
    data = json.loads(body(signed_in, f"/history/history.json?{RANGE}"))
    assert [row["granted_credit"] for row in data["rows"]] == ["0.000000", None, "7.500000", None]
    assert data["sums"]["granted_credit"] == "7.500000"


def test_a_file_of_one_type_of_processor_says_nothing_of_grants(signed_in: Client, worked: Host) -> None:
    alpha = Project.objects.get(name="Alpha")
    seen(worked, alpha, "2026-02-28", is_whole=True)
    make_grant(worked, alpha, "2026-03-01", 7_500_000)
    rows = rows_of(body(signed_in, f"/history/history.csv?{RANGE}&processor=cpu"))
    assert [row["granted_credit"] for row in rows] == ["", "", ""]
    data = json.loads(body(signed_in, f"/history/history.json?{RANGE}&processor=cpu"))
    assert [row["granted_credit"] for row in data["rows"]] == [None, None, None]
    assert data["sums"]["granted_credit"] is None


def test_nothing_is_known_of_grants_after_the_last_statistics(signed_in: Client, worked: Host) -> None:
    alpha = Project.objects.get(name="Alpha")
    seen(worked, alpha, "2026-02-01", read_on="2026-03-05")
    credit(worked, alpha, "2026-03-05", (1, 0, 0, 0, 0, 0))
    credit(worked, alpha, "2026-03-06", (1, 0, 0, 0, 0, 0))
    rows = rows_of(body(signed_in, f"/history/history.csv?{RANGE}&project={alpha.pk}&host={worked.pk}"))
    assert [(row["day"], row["granted_credit"]) for row in rows] == [
        ("2026-03-01", "0.000000"),
        ("2026-03-05", "0.000000"),
        ("2026-03-06", ""),
    ]


def test_grants_alone_make_a_range_too_long_to_be_sent_at_once(
    signed_in: Client, worked: Host, settings: Settings
) -> None:
    settings.HISTORY_DOWNLOAD_ROWS = 4
    gamma = make_project("Gamma")
    for day in range(1, 6):
        make_grant(worked, gamma, f"2026-01-{day:02}", 1)
    query = "from=2026-01-01&to=2026-01-31"
    assert signed_in.get(f"/history/history.csv?{query}").status_code == 302
    # Grants are not in a file of one type of processor.
    assert signed_in.get(f"/history/history.csv?{query}&processor=cpu").streaming
    settings.HISTORY_DOWNLOAD_ROWS = 5
    assert signed_in.get(f"/history/history.csv?{query}").streaming


def test_grants_and_reports_come_in_pages_of_any_size(worked: Host) -> None:
    alpha, gamma = Project.objects.get(name="Alpha"), make_project("Gamma")
    for day in range(1, 10):
        make_grant(worked, alpha, f"2026-03-{day:02}", day)
        make_grant(worked, gamma, f"2026-03-{day:02}", day)
    day_range = day_rows.DayRange(dt.date(2026, 3, 1), dt.date(2026, 3, 11))
    whole = day_rows.read_page(worked.owner, day_range)
    # 18 grants, one of them beside a report, and three more reports
    assert len(whole) == 21 and [row.place for row in whole] == sorted(row.place for row in whole)
    for size in (1, 2, 3, 7, 20, 21):
        assert [row for page in day_rows.read_pages(worked.owner, day_range, size) for row in page] == whole


def test_a_file_has_what_the_filters_of_the_page_show(signed_in: Client, worked: Host) -> None:
    alpha = Project.objects.get(name="Alpha")
    history_page = page_of(signed_in, f"/history/?{RANGE}&host={worked.pk}&project={alpha.pk}&processor=cpu")
    (link,) = [link for link in history_page.all("a") if "/history.csv?" in link.attributes.get("href", "")]
    reply = signed_in.get(link.attributes["href"].replace("&amp;", "&"))
    assert f'-computer-{worked.pk}-project-{alpha.pk}-cpu.csv"' in reply.headers["Content-Disposition"]
    (row,) = rows_of(b"".join(reply))
    assert (row["host"], row["project"], row["cpu_credit"], row["gpu_credit"]) == (
        "studio",
        "Alpha",
        "1.000001",
        "0.000000",
    )


@pytest.mark.parametrize("query", ["host=0", "project=99999", "processor=fpga", "host=attic", "processor=cpu&host=-1"])
def test_a_filter_that_names_nothing_is_refused_in_words(signed_in: Client, worked: Host, query: str) -> None:
    reply = signed_in.get(f"/history/history.csv?{RANGE}&{query}")
    assert reply.status_code == 400
    assert "“" in reply.content.decode() and "shown" not in reply.content.decode()


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("/history/history.csv?computer=11", "computer"),
        ("/history/history.json?From=2026-03-01", "From"),
        ("/history/files/?kind=csv&hosts=11", "hosts"),
        ("/history/files/?form=2026-03-01", "form"),
    ],
)
def test_a_misspelt_parameter_is_refused_and_named(signed_in: Client, worked: Host, address: str, name: str) -> None:
    reply = signed_in.get(address)
    assert reply.status_code == 400
    assert f"There is no parameter “{name}”. There are:" in reply.content.decode()
    assert "host, project, processor, app." in reply.content.decode()


def test_a_file_of_something_else_is_not_made_for_a_misspelt_parameter(signed_in: Client, worked: Host) -> None:
    reply = signed_in.post("/history/files/make/", {"kind": "csv", "computer": "11"})
    assert reply.status_code == 400 and "“computer”" in reply.content.decode()


def test_the_history_page_names_a_misspelt_parameter(signed_in: Client, worked: Host) -> None:
    assert "There is no parameter “computer”" in signed_in.get("/history/?computer=11").content.decode()

"""One day of the history: what a bar or a line leads to."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from django.test import Client
from django.utils import timezone

from accounting.engine.states import DayFlag
from portal.models import Host
from tests.support.accounting_factories import credit, make_host, make_note, make_project
from tests.support.page_reader import Page, page_of

pytestmark = pytest.mark.django_db

DAY = "/history/days/2026-03-02/"


@pytest.fixture
def worked(studio: Host) -> Host:
    alpha = make_project("Alpha")
    credit(studio, alpha, "2026-03-02", (1_000_000, 0, 3_600_000_000, 0, 4, 1), flags=DayFlag.CAPPED)
    credit(make_host(studio.owner, "attic"), alpha, "2026-03-02", (0, 2_000_000, 0, 60, 1, 0))
    make_note(studio, "dropped", "2026-03-02", detail="cpu_ec", amount=5_000_000)
    make_note(studio, "reset", "2026-03-03", project=alpha)
    return studio


def page(signed_in: Client, address: str = DAY) -> Page:
    return page_of(signed_in, address)


def test_a_day_has_its_computers_projects_and_sums(signed_in: Client, worked: Host) -> None:
    day_page = page(signed_in)
    cells = [cell.attributes["data-micro"] for cell in day_page.all("td", within="tbody", data_kind="ec")]
    assert cells == ["2000000", "1000000"]
    assert day_page.one("td", within="tfoot", data_kind="ec").attributes["data-micro"] == "3000000"
    assert day_page.one("td", within="tfoot", data_kind="cpu_time").attributes["data-micro"] == "3600000000"
    assert "attic" in day_page.words and "studio" in day_page.words and "Alpha" in day_page.words


def test_a_day_has_its_notes_in_full_and_no_others(signed_in: Client, worked: Host) -> None:
    words = page(signed_in).words
    assert "more was reported than the computer could have done; the rest is waiting" in words
    assert "reported 5 credits for CPU work more than it could have done" in words
    assert "Anything more than one day of work beyond what is possible does not count" in words
    assert "started again" not in words
    assert "started from zero again" in page(signed_in, "/history/days/2026-03-03/").words


def test_the_history_has_the_notes_of_its_days_in_full(signed_in: Client, worked: Host) -> None:
    words = page(signed_in, "/history/?from=2026-03-01&to=2026-03-03").words
    assert words.index("The totals of Alpha started from zero again") < words.index(
        "reported 5 credits for CPU work more"
    )
    assert "started from zero" not in page(signed_in, "/history/?from=2026-03-01&to=2026-03-02").words


def test_every_line_and_bar_of_the_history_leads_to_its_day(signed_in: Client, worked: Host) -> None:
    day_page = page(signed_in, "/history/?from=2026-03-01&to=2026-03-03")
    links = [a.attributes["href"] for a in day_page.all("a", within="tbody")]
    assert links == [f"/history/days/2026-03-0{day}/" for day in (3, 2, 1)]
    data = json.loads(day_page.one("script", id="history-data").text)
    assert data["addresses"] == list(reversed(links))


def test_a_week_leads_to_its_days_within_the_range(signed_in: Client, worked: Host) -> None:
    day_page = page(signed_in, "/history/?from=2026-03-01&to=2026-03-10&step=week&show=time&by=computer")
    links = [a.attributes["href"] for a in day_page.all("a", within="tbody")]
    assert links[1] == "/history/?from=2026-03-02&to=2026-03-08&step=day&show=time&by=computer"
    sums = [c.attributes["data-micro"] for c in day_page.all("td", within="tbody", data_kind="cpu_time")]
    days = page(signed_in, links[1])
    assert days.one("td", within="tfoot", data_kind="cpu_time").attributes["data-micro"] == sums[1] == "3600000000"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2026-13-01", "“2026-13-01” is not a day"),
        ("tomorrow", "“tomorrow” is not a day"),
        ("9999-12-31", "has not come yet"),
        ("0000-00-00", "is not a day"),
        ("%00", "is not a day"),
    ],
)
def test_a_day_that_is_none_or_still_to_come_is_told_and_today_is_shown(
    signed_in: Client, text: str, told: str
) -> None:
    day_page = page(signed_in, f"/history/days/{text}/")
    assert told in day_page.words and "Today is shown." in day_page.words
    assert f"/history/days/{timezone.now().date() - dt.timedelta(days=1)}/" in [
        a.attributes["href"] for a in day_page.all("a")
    ]


def test_the_first_and_the_present_day_have_no_further_neighbour(signed_in: Client) -> None:
    today = timezone.now().date()
    links = [a.attributes["href"] for a in page(signed_in, f"/history/days/{today}/").all("a")]
    assert f"/history/days/{today - dt.timedelta(days=1)}/" in links
    assert f"/history/days/{today + dt.timedelta(days=1)}/" not in links
    assert "No work on this day" in page(signed_in, "/history/days/0001-01-01/").words


@pytest.mark.parametrize("who", ["bob", "operator"])
def test_nobody_else_sees_anything_of_it(
    request: pytest.FixtureRequest, client: Client, worked: Host, who: str
) -> None:
    assert client.get(DAY).status_code == 302
    client.force_login(request.getfixturevalue(who))
    words = page(client).words
    assert "No work on this day" in words and "studio" not in words and "Notes on this day" not in words

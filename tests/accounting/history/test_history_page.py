"""The history page: what its address means, what stands in the table, and what it costs."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from django.test import Client
from django.utils import timezone

from accounting.models import Project, UserProject
from portal.models import Host, User
from tests.support.accounting_factories import credit, make_project
from tests.support.page_reader import Element, Page, page_of

pytestmark = pytest.mark.django_db

SEC = 1_000_000


@pytest.fixture
def worked(studio: Host) -> dt.date:
    """Alice's computer worked today: 259.346744 s of CPU, 1.5 credits, one job."""
    today = timezone.now().date()
    credit(studio, make_project("Alpha"), str(today), (1_500_000, 0, 259_346_744, 0, 1, 0))
    return today


def page(signed_in: Client, address: str = "") -> Page:
    return page_of(signed_in, f"/history/{address}")


def cell(history_page: Page, kind: str, part: str = "tfoot") -> Element:
    return history_page.one("td", within=part, data_kind=kind)


def test_the_table_has_run_time_to_the_microsecond(signed_in: Client, worked: dt.date) -> None:
    tree = page(signed_in, f"?from={worked}&to={worked}")
    for part in ("tbody", "tfoot"):
        assert cell(tree, "cpu_time", part).attributes["data-micro"] == "259346744"
        assert cell(tree, "ec", part).attributes["data-micro"] == "1500000"
        assert cell(tree, "njobs_success", part).attributes["data-count"] == "1"
    # 259.346744 s / 3600 = 0.072 h
    assert cell(tree, "cpu_time").text == "0.072"
    assert cell(tree, "cpu_time").attributes["title"] == "259.346744 s"


def test_the_chart_gets_the_numbers_of_the_table(signed_in: Client, worked: dt.date) -> None:
    tree = page(signed_in, "?range=7&show=time")
    data = json.loads(tree.one("script", id="history-data").text)
    assert data["unit"] == "hours"
    assert data["series"][0]["name"] == "Alpha"
    # Seven days, today the last of them: 259.346744 s in hours.
    assert data["totals"] == [0] * 6 + [pytest.approx(259.346744 / 3600)]
    assert data["partial"] == [6]


def test_the_page_works_without_scripts(signed_in: Client, worked: dt.date) -> None:
    tree = page(signed_in)
    assert "open" in tree.one("details", id="history-numbers").attributes
    links = [link.attributes["href"] for link in tree.all("a") if link.attributes.get("id", "").startswith("range-")]
    assert links[0] == "?range=7&show=credit&by=project"
    for link in links:
        page(signed_in, link)


def test_htmx_gets_the_part_that_changes(signed_in: Client, worked: dt.date) -> None:
    reply = signed_in.get("/history/?by=computer", headers={"HX-Request": "true"})
    text = reply.content.decode()
    assert text.strip().startswith('<div id="history"')
    assert "studio" in text and "<html" not in text
    assert "HX-Request" in reply.headers["Vary"]


@pytest.mark.parametrize("show", ["credit", "time", "jobs"])
@pytest.mark.parametrize("by", ["project", "computer", "processor"])
@pytest.mark.parametrize("step", ["day", "week", "month"])
def test_every_view_adds_up(signed_in: Client, worked: dt.date, show: str, by: str, step: str) -> None:
    tree = page(signed_in, f"?range=7&show={show}&by={by}&step={step}")
    times = [int(cell.attributes["data-micro"]) for cell in tree.all("td", within="tbody", data_kind="cpu_time")]
    assert sum(times) == int(cell(tree, "cpu_time").attributes["data-micro"]) == 259_346_744


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("?from=2026-05-31&to=2026-05-01", "swapped"),
        ("?from=9999-99-99", "is not a date"),
        ("?from=0001-01-01", "50 years at most"),
        ("?from=0001-01-01&to=0001-01-01", "No work on these days"),
        ("?show=fame", "cannot be shown here"),
        ("?by=%F0%9F%92%A5&step=%00", "cannot be shown here"),
        ("?range=<script>", "This range is not known"),
        ("?host=99999", "“99999” is not one of your computers"),
        ("?host=x&project=%00", "is not a project of your computers"),
        ("?processor=abacus", "“abacus” is not a type of processor"),
        ("?compare=others", "“others” cannot be shown here"),
        ("?curve=mean&step=month", "The 7-day average is available by day only"),
        ("?processor=cpu&show=jobs", "Clients do not report which processors each task ran on"),
        ("?from=0001-01-01&to=0001-02-01&compare=year&curve=mean", "Nothing before 1900 can be compared"),
    ],
)
def test_a_wrong_address_gets_a_clear_message(signed_in: Client, worked: dt.date, address: str, words: str) -> None:
    tree = page(signed_in, address)
    assert words in tree.words


def test_what_an_address_says_is_never_markup(signed_in: Client, worked: dt.date) -> None:
    text = signed_in.get("/history/?from=<b>x</b>&show=<b>y</b>").content.decode()
    assert "<b>" not in text and "&lt;b&gt;x" in text


def test_the_chart_names_days_as_german_does(signed_in: Client, worked: dt.date) -> None:
    signed_in.defaults["HTTP_ACCEPT_LANGUAGE"] = "de"
    history_page = page(signed_in, "?range=7&show=time")
    data = json.loads(history_page.one("script", id="history-data").text)
    assert data["labels"][-1] == f"{worked:%d.%m.}"
    assert data["totals"][-1] == pytest.approx(259.346744 / 3600)


def test_a_project_name_is_never_markup_in_the_chart_data(signed_in: Client, studio: Host) -> None:
    credit(studio, make_project("</script><b>x"), str(timezone.now().date()), (1, 0, 0, 0, 0, 0))
    text = signed_in.get("/history/").content.decode()
    assert "</script><b>" not in text


def test_the_recent_average_is_that_of_now_of_all_projects_or_one(
    signed_in: Client, alice: User, bob: User, worked: dt.date
) -> None:
    week_ago = timezone.now() - dt.timedelta(days=7)
    alpha, beta = Project.objects.get(name="Alpha"), make_project("Beta")
    for user, project, average in ((alice, alpha, 80), (alice, beta, 40), (bob, beta, 1000)):
        UserProject.objects.create(user=user, project=project, avg_ec=average, avg_at=week_ago)
    # A week is a half-life: 80 / 2 and 40 / 2.
    for address, average in (("", 60), (f"?project={alpha.pk}&range=year", 40)):
        history_page = page(signed_in, address).one("p", id="recent-average").text
        assert f"as of today {average} credits per day" in history_page
    # No average is kept of what one computer or GPUs did, nor of run time.
    host = Host.objects.get(owner=alice)
    for address in ("?show=time", f"?host={host.pk}", "?processor=gpu&from=2026-01-01"):
        assert not page(signed_in, address).all("p", id="recent-average")


def test_another_user_sees_nothing_of_it(client: Client, worked: dt.date, bob: User) -> None:
    client.force_login(bob)
    tree = page(client, "?range=all&user=1&by=computer")
    assert "No work on these days" in tree.words
    assert "studio" not in tree.words


def test_strangers_are_sent_to_sign_in(client: Client) -> None:
    reply = client.get("/history/?range=7")
    assert reply.status_code == 302
    assert reply.headers["Location"].startswith("/account/login/?next=/history/")

"""Journeys of a volunteer in a browser: the first day, two records that become one computer, numbers taken away."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounting.models import HostProject, Project
from portal.models import Host, User
from portal.templatetags.display import day
from tests.support.accounting_factories import credit, make_host, make_project
from tests.support.am_rpc import CPUS, FPOPS, hours_pass
from tests.support.browser_visitor import sign_in
from tests.support.keyword_projects import report
from tests.support.site_process import Site
from tools.simulation.client import SimulatedComputer

EMAIL, PASSWORD = "newcomer@example.org", "many small stones"
CREDIT, HOUR = 1_000_000, 3_600_000_000


def history_row(page: Page, date: dt.date) -> dict[str, str | None]:
    """The exact amounts of a day in the history's table: micro-credits, microseconds, jobs."""
    row = page.get_by_role("row", name=re.compile(f"^{day(date)}"))
    kinds = {"ec": "data-micro", "cpu_time": "data-micro", "njobs_success": "data-count"}
    return {kind: row.locator(f"[data-kind={kind}]").get_attribute(attribute) for kind, attribute in kinds.items()}


def test_from_signing_up_to_the_first_day(page: Page, site: Site, four_projects: dict[str, Project]) -> None:
    User.objects.create_user("demo@example.org", PASSWORD, name="Demo")
    page.goto("/")
    page.get_by_role("button", name="Look around").click()
    expect(page.get_by_text("You are looking around in a demo account.")).to_be_visible()
    page.get_by_role("button", name="Create an account").click()
    page.get_by_label("E-mail address").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Display name").fill("Newcomer")
    page.get_by_role("button", name="Sign up").click()
    expect(page.get_by_text("No computer is connected yet")).to_be_visible()

    page.get_by_role("link", name="Choose subjects").click()
    page.locator("input[name=k1][value=yes]").check()
    page.get_by_role("button", name="Save").click()
    expect(page).to_have_url(re.compile("/connect/$"))
    waiting = page.locator("#contact")
    expect(waiting).to_contain_text("make contact for the first time")
    # A simulated client with the address and password as the page says; test_attach.py has a real one.
    computer = SimulatedComputer("desk", "d" * 32, EMAIL, PASSWORD, CPUS, FPOPS)
    assert "Sky" in report(site, computer)
    expect(waiting).to_contain_text("is connected")
    page.get_by_role("link", name="Go to your home page").click()
    first_run = page.get_by_role("region", name="Your first computer is connected")
    expect(first_run).to_contain_text("First contact received")

    # Ten hours later it has done three hours of one processor for Sky: 3 h × 3600 s × 0.01 credits = 108.
    hours_pass(computer, 10)
    computer.projects["https://sky.example.org/"].work(computer, 3 * 3600, 0, (2, 0))
    report(site, computer)
    page.reload()
    expect(page.get_by_text("108 credits in the last 24 hours")).to_be_visible()
    expect(first_run).to_be_hidden()
    page.get_by_role("link", name="desk").first.click()
    contacts = page.get_by_role("region", name="Recent syncs")
    expect(contacts).to_contain_text("Attach ")
    expect(contacts).to_contain_text("Continue with ")
    page.goto("/history/")
    page.get_by_text("History as a table").click()
    assert history_row(page, timezone.now().date()) == {
        "ec": str(108 * CREDIT),
        "cpu_time": str(3 * HOUR),
        "njobs_success": "2",
    }


@pytest.fixture
def two_records(alice: User) -> tuple[Host, Host]:
    """One computer before and after BOINC was reinstalled, with work on days of each."""
    project = make_project("Alpha")
    old = make_host(alice, "studio", "2026-01-01", "2026-02-01")
    new = make_host(alice, "studio", "2026-02-02", "2026-03-01", given_name="Studio")
    credit(old, project, "2026-01-05", (100 * CREDIT, 0, 5 * HOUR, 0, 3, 0))
    credit(new, project, "2026-02-05", (40 * CREDIT, 0, 2 * HOUR, 0, 1, 0))
    return old, new


def test_two_merged_records_show_one_history(
    page: Page, site: Site, alice: User, two_records: tuple[Host, Host]
) -> None:
    sign_in(page.context, site, alice)
    range_ = "/history/?from=2026-01-01&to=2026-02-28&step=month&by=computer"
    page.goto(range_)
    legend = page.locator(".legend")
    expect(legend.get_by_role("listitem")).to_have_count(2)
    page.goto("/computers/")
    page.get_by_role("link", name="Studio", exact=True).click()
    page.locator("summary", has_text="Merge").click()
    page.get_by_role("link", name="Show computers to merge with").click()
    page.get_by_role("link", name="Preview").click()
    page.get_by_role("button", name="Merge", exact=True).click()
    expect(page.get_by_text("Studio now has the history of both.")).to_be_visible()
    # 100 + 40 credits, 3 + 1 jobs
    figures = page.locator("dl.stats")
    expect(figures).to_contain_text("140")
    expect(figures).to_contain_text("Tasks4")
    page.goto(range_)
    expect(legend.get_by_role("listitem")).to_have_count(1)
    expect(legend).to_contain_text(re.compile("Studio 140"))
    assert list(HostProject.objects.values_list("host_id", flat=True)) == [two_records[1].pk]


def test_downloads_have_the_numbers_of_the_page(
    page: Page, site: Site, alice: User, two_records: tuple[Host, Host]
) -> None:
    sign_in(page.context, site, alice)
    page.goto("/history/?from=2026-01-01&to=2026-02-28")
    page.get_by_text("History as a table").click()
    shown = history_row(page, dt.date(2026, 1, 5))
    foot = page.locator("#history-table tfoot")
    total = foot.locator("[data-kind=ec]").get_attribute("data-micro")

    def downloaded(name: str) -> str:
        with page.expect_download() as waiting:
            page.get_by_role("link", name=name, exact=True).click()
        return waiting.value.path().read_text()

    rows = list(csv.DictReader(io.StringIO(downloaded("CSV"))))
    days = json.loads(downloaded("JSON"))["rows"]
    for found in (rows, days):
        micro = [round(1e6 * (float(row["cpu_credit"]) + float(row["gpu_credit"]))) for row in found]
        assert str(sum(micro)) == total == str(140 * CREDIT)
        (row,) = [row for row in found if row["day"] == "2026-01-05"]
        assert str(round(1e6 * float(row["cpu_secs"]))) == shown["cpu_time"] == str(5 * HOUR)
        assert str(row["jobs_succeeded"]) == shown["njobs_success"] == "3"

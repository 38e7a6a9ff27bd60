"""The dashboard in a browser: an operator finds the stuck app, reads its chart, and the keyboard does too."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.utils import timezone
from playwright.sync_api import Page, expect

from credit.models import UserCredit, Workunit
from portal.dashboard import record
from portal.models import Host, OperatingFigure, User
from tests.support.browser_visitor import colours, sign_in
from tests.support.credit_factories import make_app, make_success, make_workunit
from tests.support.site_process import Site


@pytest.fixture
def stuck(studio: Host) -> Workunit:
    """A job of one app that could not be compared since three hours, beside an app that is well."""
    now = timezone.now()
    make_app("birch", user_friendly_name="Birch")
    app = make_app("alpine", user_friendly_name="Alpine")
    workunit = make_workunit(app, need_validate=True, validate_fault="OSError: the reference file is missing")
    make_success(workunit, studio, received_at=now - dt.timedelta(hours=3))
    for minutes_ago in (120, 60, 0):
        record.take_all(now - dt.timedelta(minutes=minutes_ago))
    return workunit


@pytest.fixture
def dashboard(page: Page, site: Site, operator: User, stuck: Workunit) -> Page:
    sign_in(page.context, site, operator)
    page.goto("/admin/")
    return page


def test_an_operator_finds_the_stuck_app_from_the_dashboard(dashboard: Page, stuck: Workunit) -> None:
    attention = dashboard.get_by_role("region", name=re.compile("Needs attention"))
    line = attention.get_by_role("listitem").filter(has_text="been waiting for validation for more than an hour")
    expect(line).to_contain_text("Alpine")
    expect(line).not_to_contain_text("Birch")
    line.get_by_role("link").click()
    expect(dashboard).to_have_url(re.compile("need_validate__exact=1"))
    dashboard.get_by_role("link", name=stuck.name, exact=True).click()
    expect(dashboard.locator("body")).to_contain_text("OSError: the reference file is missing")


def test_a_figure_leads_to_its_chart_which_the_keyboard_reads(dashboard: Page) -> None:
    dashboard.get_by_role("link", name="Jobs", exact=True).click()
    dashboard.get_by_role("link", name="Waiting for validation", exact=True).first.click()
    expect(dashboard.get_by_role("heading", name="Waiting for validation (number)")).to_be_visible()
    assert colours(dashboard, "#figure-chart") > 3
    chart = dashboard.get_by_role("slider")
    chart.focus()
    expect(chart).to_have_attribute("aria-valuetext", re.compile("Alpine 1"))
    dashboard.keyboard.press("Home")
    expect(chart).to_have_attribute("aria-valuenow", "1")
    dashboard.get_by_text("The numbers as a table").click()
    expect(dashboard.get_by_role("columnheader", name="Alpine (number)")).to_be_visible()
    dashboard.get_by_role("link", name="A year").click()
    expect(dashboard).to_have_url(re.compile("days=366"))


def test_the_page_renews_its_figures(dashboard: Page) -> None:
    expect(dashboard.get_by_text("Alpine: outputs could not be compared").first).to_be_visible()
    OperatingFigure.objects.filter(name="jobs.not_comparable").update(value=0)
    # As the timer does once a minute
    dashboard.evaluate("htmx.ajax('GET', document.getElementById('figures').getAttribute('hx-get'), '#figures')")
    expect(dashboard.get_by_text("Alpine: outputs could not be compared")).to_have_count(0)
    dashboard.get_by_role("link", name="Processes and services", exact=True).click()
    expect(dashboard.get_by_role("heading", name="Periodic tasks", exact=True)).to_be_visible()


@pytest.mark.parametrize(("width", "colours"), [(390, "light"), pytest.param(1440, "dark", marks=pytest.mark.nightly)])
def test_it_can_be_read_by_everybody(dashboard: Page, width: int, colours: str) -> None:
    """What is ours of the pages; the admin's frame is unfold's."""
    dashboard.emulate_media(color_scheme="dark" if colours == "dark" else "light")
    dashboard.set_viewport_size({"width": width, "height": 900})
    found = []
    for address in ("/admin/", "/admin/?panel=services", "/admin/portal/operatingfigure/history/jobs.to_validate/"):
        dashboard.goto(address)
        found += [
            f"{address}: {fault['id']} ({fault['impact']}): {fault['nodes'][0]['target']}"
            for fault in Axe().run(dashboard, context=".fig").response["violations"]
        ]
        if dashboard.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{address}: wider than the window")
    assert found == []


def test_an_operator_starts_a_check_and_the_page_shows_what_it_found(
    page: Page, site: Site, operator: User, worker: None
) -> None:
    UserCredit.objects.create(user=operator, total_credit=5)
    sign_in(page.context, site, operator)
    page.goto("/admin/")
    page.get_by_role("link", name="Maintenance").click()
    credit = page.get_by_role("region", name="Validated credit")
    credit.get_by_role("button", name="Check now").click()
    expect(page.get_by_text("a worker will start soon")).to_be_visible()
    # The page renews itself every ten seconds.
    expect(credit.get_by_text("1 difference", exact=True)).to_be_visible(timeout=60_000)
    expect(credit.get_by_role("listitem")).to_have_text(
        f"user {operator.pk}: has 5.0 credits in total, but its results add up to 0"
    )

"""The history page in a browser: the chart, the controls that change a part of the page, the keyboard."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from portal.models import User
from portal.templatetags.display import day
from tests.support.browser_visitor import colours, give_work, sign_in
from tests.support.site_process import Site


@pytest.fixture
def history(page: Page, site: Site, alice: User) -> Page:
    give_work(alice)
    sign_in(page.context, site, alice)
    page.goto("/history/?range=7")
    return page


def test_a_choice_redraws_the_chart_and_becomes_the_address(history: Page) -> None:
    assert colours(history, "#history-chart") > 3
    history.get_by_label("Show", exact=True).focus()
    history.get_by_label("Show", exact=True).select_option(label="Run time")
    expect(history).to_have_url(re.compile("show=time"))
    expect(history.get_by_role("heading", name="Run time per day")).to_be_visible()
    # The page itself was not loaded again, and the keyboard is where it was.
    expect(history.get_by_label("Show", exact=True)).to_be_focused()
    assert colours(history, "#history-chart") > 3
    history.get_by_role("link", name="90 days").click()
    expect(history).to_have_url(re.compile(r"range=90&show=time"))
    expect(history.get_by_role("link", name="90 days")).to_have_attribute("aria-current", "true")


def test_back_and_reload_show_what_the_address_says(history: Page) -> None:
    history.get_by_label("split by", exact=True).select_option("computer")
    expect(history.locator(".legend")).to_contain_text("studio")
    history.reload()
    expect(history.locator(".legend")).to_contain_text("studio")
    history.go_back()
    expect(history.locator(".legend")).to_contain_text("Alpha")
    expect(history.get_by_label("split by", exact=True)).to_have_value("project")


def test_the_keyboard_reads_the_values_of_the_chart(history: Page) -> None:
    chart = history.get_by_role("slider")
    chart.focus()
    today = timezone.now().date()
    expect(chart).to_have_attribute("aria-valuetext", re.compile(f"^{day(today)}: 30 credits; Beta 20; Alpha 10"))
    for _ in range(3):
        history.keyboard.press("ArrowLeft")
    expect(chart).to_have_attribute("aria-valuetext", re.compile("more was reported than the computer could have done"))
    expect(chart).to_have_attribute("aria-valuenow", "4")
    history.keyboard.press("Home")
    history.keyboard.press("ArrowLeft")
    expect(chart).to_have_attribute("aria-valuenow", "1")


def test_the_legend_switches_series_by_mouse_and_by_keyboard(history: Page) -> None:
    def drawn() -> str:
        return str(history.evaluate("document.getElementById('history-chart').toDataURL()"))

    chart = history.get_by_role("slider")
    alpha = history.locator(".legend").get_by_role("button", name="Alpha")
    both = drawn()
    expect(alpha).to_have_attribute("aria-pressed", "true")
    alpha.click()
    expect(alpha).to_have_attribute("aria-pressed", "false")
    # The chart has one project less, and so has what the keyboard reads.
    expect(chart).to_have_attribute("aria-valuetext", re.compile(r": 20 credits; Beta 20(?!.*Alpha)"))
    assert drawn() != both
    expect(alpha).to_be_focused()
    history.keyboard.press("Enter")
    expect(alpha).to_have_attribute("aria-pressed", "true")
    expect(chart).to_have_attribute("aria-valuetext", re.compile(": 30 credits; Beta 20; Alpha 10"))
    history.keyboard.press("Space")
    expect(alpha).to_have_attribute("aria-pressed", "false")
    # Another choice keeps what is switched off.
    history.get_by_label("Show", exact=True).select_option(label="Run time")
    expect(history.get_by_role("heading", name="Run time per day")).to_be_visible()
    expect(alpha).to_have_attribute("aria-pressed", "false")
    alpha.click()
    expect(alpha).to_have_attribute("aria-pressed", "true")
    expect(chart).to_have_attribute("aria-valuetext", re.compile("Alpha"))


def test_the_table_stays_as_the_visitor_left_it(history: Page) -> None:
    table = history.locator("#history-table")
    expect(table).to_be_hidden()
    history.get_by_text("History as a table").click()
    expect(table).to_be_visible()
    history.get_by_label("per", exact=True).select_option("week")
    expect(history.get_by_role("heading", name="per week")).to_be_visible()
    expect(table).to_be_visible()


def test_the_chart_follows_the_colours(history: Page) -> None:
    def corner() -> str:
        return str(history.evaluate("document.getElementById('history-chart').toDataURL()"))

    light = corner()
    history.emulate_media(color_scheme="dark")
    expect(history.locator("body")).to_be_visible()
    history.wait_for_function("before => document.getElementById('history-chart').toDataURL() !== before", arg=light)


def test_a_bar_leads_to_its_day(history: Page) -> None:
    today = timezone.now().date()
    history.get_by_role("slider").focus()
    history.keyboard.press("End")
    history.keyboard.press("Enter")
    expect(history).to_have_url(re.compile(f"/history/days/{today}/$"))
    expect(history.get_by_role("heading", name="Notes on this day")).to_be_visible()
    history.go_back()
    box = history.locator("#history-chart").bounding_box()
    assert box is not None
    # The bars of seven days are wide: the right end of the drawing is today's.
    history.mouse.click(box["x"] + box["width"] - 30, box["y"] + box["height"] / 2)
    expect(history).to_have_url(re.compile(f"/history/days/{today}/$"))


def test_more_rows_come_by_keyboard_and_the_focus_goes_on_with_them(history: Page) -> None:
    last = timezone.now().date()
    first = last - dt.timedelta(days=149)
    history.goto(f"/history/?from={first}&to={last}&step=day")
    history.get_by_text("History as a table").click()
    rows = history.locator("#history-table tbody th")
    expect(rows).to_have_count(100)
    history.get_by_role("link", name="Earlier days").focus()
    history.keyboard.press("Enter")
    expect(rows).to_have_count(150)
    expect(history.get_by_role("link", name=day(last - dt.timedelta(days=100)))).to_be_focused()
    # The chart and the address are as they were: a reload shows the beginning.
    expect(history).to_have_url(re.compile(f"to={last}&step=day$"))
    assert colours(history, "#history-chart") > 3

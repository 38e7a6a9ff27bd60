"""What volunteers come for, from the first click to the answer."""

from __future__ import annotations

import datetime as dt
import re

from django.utils import timezone
from playwright.sync_api import Page, expect

from credit.engine.explanation import ClaimRule, GrantRule
from credit.models import ValidateState
from portal.models import Host, User
from tests.support.accounting_factories import credit, make_host, make_project
from tests.support.browser_visitor import CREDIT, SEC, colours, sign_in
from tests.support.credit_factories import NOON, make_app, make_success, make_version, make_workunit
from tests.support.site_process import Site


def give_two_years(user: User) -> None:
    """A day of 100 credits in each month of last year, and of 150 in each month of this one so far."""
    today = timezone.now().date()
    alpha, small = make_project("Alpha", colour=0), make_project("Small", colour=1)
    studio = make_host(user, "studio", last=str(today))
    for year, amount in ((today.year - 1, 100), (today.year, 150)):
        for month in range(1, 13):
            day = dt.date(year, month, 1)
            if day <= today:
                credit(studio, alpha, str(day), (amount * CREDIT, 0, 3600 * SEC, 0, 1, 0))
                credit(studio, small, str(day), (CREDIT // 10, 0, SEC, 0, 1, 0))


def expect_chosen(page: Page, name: str, value: str) -> None:
    """The page shows it: its address says so a moment before."""
    expect(page).to_have_url(re.compile(f"{name}={value}"))
    expect(page.locator(f"select[name={name}] option[selected]")).to_have_attribute("value", value)


def test_two_years_are_compared_and_small_projects_seen(page: Page, site: Site, alice: User) -> None:
    give_two_years(alice)
    sign_in(page.context, site, alice)
    page.goto("/home/")
    page.get_by_role("link", name="History").first.click()
    page.get_by_role("link", name="This year").click()
    expect(page.get_by_role("link", name="This year")).to_have_attribute("aria-current", "true")
    page.get_by_label("per", exact=True).select_option("month")
    expect_chosen(page, "step", "month")
    page.locator("summary", has_text="Filter and compare").click()
    page.get_by_label("Compare with").select_option("year")
    expect_chosen(page, "compare", "year")
    expect(page.locator("#compared")).to_contain_text(re.compile(r"This range has \d+ % more"))
    page.get_by_label("Scale").select_option("log")
    expect_chosen(page, "scale", "log")
    expect(page.locator("#chart-help")).to_contain_text("ten times")
    assert colours(page, "#history-chart") > 3
    page.get_by_label("Project", exact=True).select_option(label="Small")
    expect(page.locator("#shown-part")).to_contain_text("Small")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert "Small" in download.value.path().read_text() and "Alpha" not in download.value.path().read_text()


def test_why_a_task_got_its_credit_is_found_on_a_phone(page: Page, site: Site, alice: User) -> None:
    app, studio = make_app("alpine", user_friendly_name="Alpine glaciers"), make_host(alice, "studio")
    # 3,000 s at 4 GFLOPS, × 0.5 × 2
    earned = 1.2e13 * 200 / 86400e9
    make_success(
        make_workunit(app, fpops_est=1e13, canonical_credit=earned),
        studio,
        app_version=make_version(app),
        validate_state=ValidateState.VALID,
        claim_rule=ClaimRule.VERSION_AND_HOST,
        raw_pfc=1.2e13,
        claimed_pfc=1.2e13,
        claimed_credit=earned,
        version_scale=0.5,
        host_scale=2.0,
        version_pfc_n=412,
        version_pfc_avg=1.31,
        host_pfc_n=12,
        host_pfc_avg=0.655,
        grant_rule=GrantRule.MEAN_OF_NORMAL,
        granted_credit=earned,
        granted_at=NOON,
    )
    page.set_viewport_size({"width": 320, "height": 700})
    sign_in(page.context, site, alice)
    page.goto("/tasks/?state=valid")
    # What was granted is seen without scrolling sideways, in the table or in the page.
    granted = page.get_by_role("cell", name="27.8")
    box = granted.bounding_box()
    assert box is not None and box["x"] + box["width"] <= 320
    page.locator(".task-table tbody a").first.click()
    expect(page.get_by_role("heading", name="Why this credit")).to_be_visible()
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_one_of_sixty_computers_is_found_as_one_types(page: Page, site: Site, alice: User) -> None:
    for number in range(60):
        make_host(alice, f"node-{number:02}", last=str(timezone.now().date()))
    sign_in(page.context, site, alice)
    page.goto("/computers/")
    page.get_by_role("searchbox", name="Search").press_sequentially("node-5")
    expect(page.locator("#computers tbody tr")).to_have_count(10)
    expect(page).to_have_url(re.compile("q=node-5"))
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()
    page.get_by_role("link", name="Name").click()
    expect(page.locator("#computers tbody th a").first).to_have_text("node-50")
    # Two of them are selected by keyboard, and all ten as what the search finds.
    page.locator("summary", has_text="Change several computers").press("Enter")
    page.get_by_label("What to do").select_option(label="Retire")
    for name in ("node-50", "node-51"):
        page.get_by_role("checkbox", name=f"Select {name}").press("Space")
    expect(page.locator("#change-several")).to_have_css("position", "sticky")
    page.get_by_role("button", name="Apply").press("Enter")
    expect(page.get_by_text("2 computers were changed.")).to_be_visible()
    page.locator("summary", has_text="Change several computers").click()
    page.get_by_label("all 8 computers that match the filters").check()
    page.get_by_label("What to do").select_option(label="Add to the group")
    page.locator("#group-name").fill("rack five")
    page.get_by_role("button", name="Apply").click()
    expect(page).to_have_url(re.compile("group=rack"))
    rows = page.get_by_role("region", name="Computers in use").locator("tbody tr")
    expect(rows).to_have_count(8)
    expect(rows.locator("a.badge").first).to_have_text("rack five")


def test_preferences_are_chosen_by_a_preset_and_then_by_the_clock(page: Page, site: Site, alice: User) -> None:
    sign_in(page.context, site, alice)
    page.goto("/account/preferences/")
    page.get_by_role("button", name="Quiet office").click()
    expect(page.get_by_text("Saved for everywhere.")).to_be_visible()
    expect(page.get_by_label("Processors while I use it, at most")).to_have_value("25")
    page.get_by_label("Run tasks from").fill("22:30")
    page.get_by_label("Run tasks until").fill("6:15")
    page.get_by_role("button", name="Save for everywhere").click()
    expect(page.get_by_label("Run tasks from")).to_have_value("22:30")
    expect(page.get_by_label("Run tasks until")).to_have_value("6:15")
    # From one group of the account's pages to another
    page.get_by_role("navigation", name="Account", exact=True).get_by_role("link", name="Sign-in and security").click()
    page.get_by_role("navigation", name="Sign-in and security").get_by_role("link", name="Sessions").click()
    expect(page.get_by_role("heading", name="Sessions", level=1)).to_be_visible()


def test_after_midnight_home_shows_the_last_24_hours(page: Page, site: Site, alice: User) -> None:
    now = timezone.now()
    studio = make_host(alice, "studio", last=str(now.date()))
    credit(
        studio, make_project("Alpha"), str(now.date() - dt.timedelta(days=1)), (240 * CREDIT, 0, 3600 * SEC, 0, 1, 0)
    )
    Host.objects.filter(pk=studio.pk).update(last_contact_at=now - dt.timedelta(hours=6))
    sign_in(page.context, site, alice)
    page.goto("/home/")
    expect(page.locator(".today")).to_contain_text("credits in the last 24 hours")
    expect(page.locator(".today")).not_to_have_text(re.compile(r"^0 "))
    expect(page.get_by_text("more will be reported (hatched)")).to_be_visible()
    expect(page.locator(".bar--hatched")).to_be_visible()

"""A visitor reads the site in German, and sees times as their own clock shows them."""

from __future__ import annotations

import datetime as dt

import pytest
from playwright.sync_api import Browser, Page, expect

from portal.models import User
from portal.people.security_events import NOWHERE, Kind, record
from tests.support.browser_visitor import give_work, sign_in
from tests.support.site_process import Site


def test_the_switch_lasts_and_follows_who_signs_in(browser: Browser, site: Site, alice: User) -> None:
    context = browser.new_context(base_url=site.url, locale="en-US", timezone_id="Asia/Kolkata")
    page = context.new_page()
    page.goto("/about/")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.get_by_role("button", name="Deutsch").click()
    expect(page).to_have_url(f"{site.url.rstrip('/')}/about/")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.get_by_role("link", name="Anmelden")).to_be_visible()
    # As the page's own numbers, once its scripts have run: a comma, and a narrow space
    page.wait_for_load_state()
    assert page.evaluate("cobblestone.localNumber(1284.5, {})") == "1\u202f284,5"
    page.goto("/account/login/")
    expect(page.get_by_role("heading", name="Anmelden")).to_be_visible()
    expect(page.get_by_label("Passwort", exact=True)).to_be_visible()

    sign_in(context, site, alice)
    record(alice, Kind.LOGIN, NOWHERE)
    at = alice.security_events.latest("at").at
    page.goto("/account/events/")
    expect(page.get_by_role("heading", name="Sicherheitsereignisse")).to_be_visible()
    # India is five and a half hours ahead of UTC, all year.
    shown = (at + dt.timedelta(hours=5, minutes=30)).strftime("%d.%m.%Y, %H:%M")
    expect(page.locator("main time").first).to_have_text(shown)
    # The browser's zone is known by now, so the page comes with its times; without a script, too.
    assert shown in context.request.get("/account/events/").text()

    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("heading", name="Security events")).to_be_visible()
    alice.refresh_from_db()
    assert alice.language == "en"
    context.close()


def sentences(page: Page, address: str) -> set[str]:
    """The lines of a page that have more than three words; data such as names of processors are shorter.

    Without commands to copy, which are in no language.
    """
    page.goto(address)
    page.locator("details").evaluate_all("all => all.forEach(each => { each.open = true; })")
    page.locator(".copy").evaluate_all("all => all.forEach(each => each.remove())")
    lines = page.locator("body").inner_text().splitlines()
    return {line.strip() for line in lines if len([word for word in line.split() if word.isalpha()]) > 3}


@pytest.mark.long
def test_whoever_switches_to_german_reads_german_all_the_way_through(page: Page, site: Site, alice: User) -> None:
    give_work(alice)
    sign_in(page.context, site, alice)
    page.goto("/home/")
    links = page.locator(".site-head a, .site-foot a, main a").evaluate_all("all => all.map(a => a.pathname)")
    addresses = [address for address in dict.fromkeys(links) if not address.endswith((".rss", ".png"))]
    assert {"/history/", "/computers/", "/tasks/", "/emulator/", "/connect/", "/account/data/"} <= {*addresses}
    english = {address: sentences(page, address) for address in addresses}
    page.goto("/home/")
    page.get_by_role("button", name="Deutsch").click()
    expect(page.locator("html")).to_have_attribute("lang", "de")
    stayed = {address: english[address] & sentences(page, address) for address in addresses}
    assert {address: lines for address, lines in stayed.items() if lines} == {}
    assert all(english.values())

"""The pages for readers who hear them, who use the keyboard alone, or whose browser runs no scripts."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from portal.models import User
from tests.support.access_matrix import MATRIX
from tests.support.admin_rows import admin_rows
from tests.support.browser_visitor import give_work, sign_in
from tests.support.site_process import Site
from tests.support.site_world import World, make_world

PUBLIC = [
    "/",
    "/projects/",
    "/apps/",
    "/emulator/",
    "/news/",
    "/emulator/examples/boinc-5589/",
    "/emulator/examples/document-shortfall/",
    "/about/",
    "/privacy/",
    "/terms/",
    "/account/login/",
    "/account/signup/",
    "/account/password/reset/",
    "/status/",
    "/api/v1/",
    "/certificates/",
]
PRIVATE = [
    "/home/",
    "/history/",
    "/history/?range=7&compare=before&curve=total&scale=root",
    "/history/?range=30&scale=log",
    "/history/years/2026/",
    "/history/records/",
    "/history/files/?kind=csv&range=30",
    "/history/badges/",
    "/history/certificates/",
    "/history/certificates/new/?first=2026-01-01&last=2026-01-02&about=all&shows=credit",
    "/connect/",
    "/connect/?system=android",
    "/computers/",
    "/computers/?status=silent&group=none",
    "/computers/joining/",
    "/tasks/",
    "/tasks/?state=odd",
    "/projects/",
    "/projects/keywords/",
    "/account/email/",
    "/account/password/change/",
    "/account/2fa/",
    "/account/2fa/webauthn/",
    "/account/events/",
    "/account/sessions/",
    "/account/keys/",
    "/account/tokens/",
    "/account/preferences/",
    "/account/email-preferences/",
    "/account/alerts/",
    "/account/profile/",
    "/account/signature-image/",
    "/account/data/",
    "/account/delete/",
]


NARROW, WIDE = (320, "light"), (1440, "dark")
"""The width of the window, and the colours. Pages are read in German, which has the longest words."""
PARTS, ROOM_PARTS = 6, 12
"""A part takes a minute on a quiet machine: the site answers for each address, and axe reads each page twice."""
FEWEST = {"stranger": 3, "owner": 10, "room": 4}
"""At least this many addresses of a part of the access matrix, and of the operators' room, show a page."""


def wear(page: Page, site: Site, language: str = "de") -> None:
    page.context.add_cookies([{"name": settings.LANGUAGE_COOKIE_NAME, "value": language, "url": site.url}])
    # A colour that is still changing has no contrast to measure.
    page.emulate_media(reduced_motion="reduce")


def faults(page: Page, address: str, *looks: tuple[int, str]) -> list[str]:
    """What axe finds on the page in each of these looks, and whether it can only be read by scrolling sideways."""
    page.goto(address)
    return [
        f"{address} {width} {colours}: {fault}" for width, colours in looks for fault in _faults(page, width, colours)
    ]


def _faults(page: Page, width: int, colours: str) -> list[str]:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if colours == "dark" else "light")
    found = [
        f"{fault['id']} ({fault['impact']}) {fault['nodes'][0]['target']}"
        for fault in Axe().run(page).response["violations"]
    ]
    return found + ["wider than the window"] * is_too_wide(page)


def is_too_wide(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))


def scrolled_tables(page: Page) -> list[str]:
    """The tables that are only read by scrolling sideways, the folded ones too."""
    page.locator("details").evaluate_all("all => all.forEach(each => { each.open = true; })")
    page.wait_for_timeout(50)  # the events of their opening
    tables = page.locator(".table-wrap, .table-scroll")
    names: list[str] = tables.evaluate_all(
        "all => all.filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.ariaLabel ?? 'a table')"
    )
    return names


def test_a_table_that_is_too_wide_for_a_phone_has_a_block_for_each_row(page: Page, site: Site, alice: User) -> None:
    give_work(alice)
    sign_in(page.context, site, alice)
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto("/history/?range=7")
    assert scrolled_tables(page) == []
    table = page.get_by_role("table").filter(has=page.get_by_role("rowheader", name="Total"))
    cell = table.get_by_role("row").last.get_by_role("cell").first
    assert cell.evaluate("cell => getComputedStyle(cell, '::before').content") != "none"
    assert not _faults(page, 390, "light")
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(page.locator(".is-stacked")).to_have_count(0)


def test_no_page_has_a_fault_that_axe_finds(page: Page, site: Site, alice: User) -> None:
    wear(page, site)
    found = [fault for address in PUBLIC for fault in faults(page, address, NARROW)]
    expect(page.locator("html")).to_have_attribute("lang", "de")
    sign_in(page.context, site, alice)
    found += [fault for address in ("/home/", "/history/") for fault in faults(page, address, NARROW)]
    give_work(alice)
    found += [fault for address in PRIVATE for fault in faults(page, address, NARROW)]
    assert not found, "\n".join(found)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_no_page_of_the_access_matrix_has_a_fault_in_either_look(
    page: Page, site: Site, alice: User, bob: User, operator: User, part: int
) -> None:
    """Each address that shows a page, so that none is forgotten: to a stranger, then to whom it is about."""
    world = make_world(alice, bob, operator)
    wear(page, site)
    found = []
    for who in ("stranger", "owner"):
        if who == "owner":
            alice.refresh_from_db()
            sign_in(page.context, site, alice)
        seen = pages_of(page, addresses(world, who)[part::PARTS])
        assert len(seen) > FEWEST[who]
        found += [fault for address in seen for fault in faults(page, address, NARROW, WIDE)]
    assert not found, "\n".join(found)


@pytest.mark.nightly
@pytest.mark.parametrize("language", ["en", "es", "fr"])
def test_no_page_is_wider_than_a_small_phone_in_the_other_languages(
    page: Page, site: Site, alice: User, language: str
) -> None:
    wear(page, site, language)
    page.set_viewport_size({"width": NARROW[0], "height": 900})
    sign_in(page.context, site, alice)
    give_work(alice)
    wide = []
    for address in {*PUBLIC, *PRIVATE}:
        page.goto(address)
        if is_too_wide(page) or scrolled_tables(page):
            wide.append(address)
    assert not wide, "\n".join(wide)


def addresses(world: World, who: str) -> list[str]:
    lines = (line for line in MATRIX if line.method == "GET" and getattr(line, who) == 200)
    return ["/" + (line.path or line.route).format(**world.ids) for line in lines]


def pages_of(page: Page, every: list[str]) -> list[str]:
    return [address for address in every if shows_page(page, address)]


def shows_page(page: Page, address: str) -> bool:
    """Whether it answers with a page: not with a file or a part of a page, and not with another page."""
    answer = page.request.get(address, max_redirects=0)
    is_html = answer.headers.get("content-type", "").startswith("text/html")
    return answer.status == 200 and is_html and answer.text().lstrip()[:9].lower() == "<!doctype"


# A table's head of boxes to delete, and the field of select2, are the theme's and Django's.
OF_THE_THEME = {"empty-table-header", "aria-input-field-name"}
ROOM = [
    "/admin/",
    "/admin/?panel=services",
    "/admin/portal/user/",
    "/admin/portal/user/add/",
    "/admin/portal/account/",
    "/admin/portal/maintenancerun/",
    "/admin/accounting/announcement/",
    "/admin/accounting/project/add/",
    "/admin/credit/app/add/",
    "/admin/scheduler/releasedraft/",
]
"""Of each kind of page in the operators' room."""


def faults_of_ours(page: Page, seen: list[str]) -> list[str]:
    found = [fault for address in seen for fault in faults(page, address, NARROW, WIDE)]
    return [fault for fault in found if not any(f": {name} " in fault for name in OF_THE_THEME)]


def test_no_kind_of_page_in_the_operators_room_has_a_fault(page: Page, site: Site, operator: User) -> None:
    wear(page, site)
    sign_in(page.context, site, operator)
    assert faults_of_ours(page, ROOM) == []


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(ROOM_PARTS))
def test_no_list_or_form_of_the_operators_room_has_a_fault(
    page: Page, site: Site, alice: User, operator: User, part: int
) -> None:
    rows = admin_rows(alice)
    wear(page, site)
    sign_in(page.context, site, operator)
    names = [(f"admin:{label.replace('.', '_')}", row) for label, row in rows.items()]
    every = [reverse(f"{name}_{kind}") for name, _ in names for kind in ("changelist", "add")]
    every += [reverse(f"{name}_change", args=[row.pk]) for name, row in names]
    seen = pages_of(page, every[part::ROOM_PARTS])
    assert len(seen) > FEWEST["room"]
    found = faults_of_ours(page, seen)
    assert not found, "\n".join(found)


def test_the_keyboard_skips_the_navigation_and_opens_the_menu(page: Page, site: Site, alice: User) -> None:
    sign_in(page.context, site, alice)
    page.goto("/home/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
    menu = page.locator("summary", has_text="Alice")
    menu.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Sign out")).to_be_hidden()
    expect(menu).to_be_focused()


def test_the_chosen_colours_last(page: Page) -> None:
    page.goto("/")
    switch = page.get_by_role("button", name=re.compile("Colours"))
    expect(switch).to_have_accessible_name("Colours: same as your system. Change")
    switch.click()
    switch.click()
    page.goto("/account/login/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_history_is_read_and_steered_without_scripts(browser: Browser, site: Site, alice: User) -> None:
    give_work(alice)
    context = browser.new_context(base_url=site.url, java_script_enabled=False)
    sign_in(context, site, alice)
    page = context.new_page()
    page.goto("/history/?range=7")
    expect(page.locator("canvas")).to_be_hidden()
    # Seven days of one hour at each of two projects.
    total = page.locator("#history-table tfoot [data-kind=cpu_time]")
    expect(total).to_be_visible()
    expect(total).to_have_attribute("data-micro", str(7 * 2 * 3600 * 1_000_000))
    page.get_by_label("split by").select_option("computer")
    page.locator(".controls__view").get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile("by=computer"))
    expect(page.get_by_role("columnheader", name="studio")).to_be_visible()
    context.close()

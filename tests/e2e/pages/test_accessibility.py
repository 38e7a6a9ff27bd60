"""The pages for readers who hear them, who use the keyboard alone, or whose browser runs no scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

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


MANY = {"stranger": 20, "owner": 60, "room": 80}
"""At least this many addresses of the access matrix, and of the operators' room, show a page."""


def faults(page: Page, address: str) -> list[str]:
    """What axe finds on the page, and whether it can only be read by scrolling sideways."""
    page.goto(address)
    found = [
        f"{address}: {fault['id']} ({fault['impact']}): {fault['nodes'][0]['target']}"
        for fault in Axe().run(page).response["violations"]
    ]
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append(f"{address}: wider than the window")
    return found


LOOKS = list(product((320, 1440), ("light", "dark"), ("de", "en")))
"""Width of the window, colours, language."""
# German words are longer, so they have the narrow window.
FIRST_LOOK = (320, "light", "de")
ALL_LOOKS = [look if look == FIRST_LOOK else pytest.param(*look, marks=pytest.mark.nightly) for look in LOOKS]


def wear(page: Page, site: Site, width: int, colours: str, language: str) -> None:
    page.context.add_cookies([{"name": settings.LANGUAGE_COOKIE_NAME, "value": language, "url": site.url}])
    page.emulate_media(color_scheme="dark" if colours == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 900})


@pytest.mark.parametrize(("width", "colours", "language"), ALL_LOOKS)
def test_no_page_has_a_fault_that_axe_finds(
    page: Page, site: Site, alice: User, width: int, colours: str, language: str
) -> None:
    wear(page, site, width, colours, language)
    found = [fault for address in PUBLIC for fault in faults(page, address)]
    expect(page.locator("html")).to_have_attribute("lang", language)
    sign_in(page.context, site, alice)
    found += [fault for address in ("/home/", "/history/") for fault in faults(page, address)]
    give_work(alice)
    found += [fault for address in PRIVATE for fault in faults(page, address)]
    assert found == []


@pytest.mark.nightly
@pytest.mark.parametrize(("width", "colours", "language"), LOOKS)
def test_no_page_of_the_access_matrix_has_a_fault_that_axe_finds(
    page: Page, site: Site, alice: User, bob: User, operator: User, width: int, colours: str, language: str
) -> None:
    """Each address that shows a page, so that none is forgotten: to a stranger, then to whom it is about."""
    world = make_world(alice, bob, operator)
    wear(page, site, width, colours, language)
    found = []
    for who in ("stranger", "owner"):
        if who == "owner":
            alice.refresh_from_db()
            sign_in(page.context, site, alice)
        seen = [address for address in addresses(world, who) if shows_page(page, address)]
        assert len(seen) > MANY[who]
        found += [fault for address in seen for fault in faults(page, address)]
    assert found == []


def addresses(world: World, who: str) -> Iterator[str]:
    lines = (line for line in MATRIX if line.method == "GET" and getattr(line, who) == 200)
    return ("/" + (line.path or line.route).format(**world.ids) for line in lines)


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


@pytest.mark.parametrize(("width", "colours", "language"), [FIRST_LOOK, (1440, "dark", "en")])
def test_no_kind_of_page_in_the_operators_room_has_a_fault(
    page: Page, site: Site, operator: User, width: int, colours: str, language: str
) -> None:
    wear(page, site, width, colours, language)
    sign_in(page.context, site, operator)
    found = [fault for address in ROOM for fault in faults(page, address)]
    assert [fault for fault in found if fault.split()[1] not in OF_THE_THEME] == []


@pytest.mark.nightly
@pytest.mark.parametrize(("width", "colours", "language"), LOOKS)
def test_no_list_or_form_of_the_operators_room_has_a_fault(
    page: Page, site: Site, alice: User, operator: User, width: int, colours: str, language: str
) -> None:
    rows = admin_rows(alice)
    wear(page, site, width, colours, language)
    sign_in(page.context, site, operator)
    names = [(f"admin:{label.replace('.', '_')}", row) for label, row in rows.items()]
    seen = [reverse(f"{name}_{kind}") for name, _ in names for kind in ("changelist", "add")]
    seen += [reverse(f"{name}_change", args=[row.pk]) for name, row in names]
    seen = [address for address in seen if shows_page(page, address)]
    assert len(seen) > MANY["room"]
    found = [fault for address in seen for fault in faults(page, address)]
    assert [fault for fault in found if fault.split()[1] not in OF_THE_THEME] == []


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

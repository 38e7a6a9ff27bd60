"""A volunteer looks after computers, projects and keys in a browser that runs no scripts."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from playwright.sync_api import Browser, Page, expect

from accounting.models import Day, HostProject, UserProject
from portal.models import ClientKey, Host, User
from portal.people.accounts import issue_client_key
from tests.support.accounting_factories import credit, make_host, make_note, make_project
from tests.support.browser_visitor import sign_in
from tests.support.site_process import Site

CREDIT, HOUR = 1_000_000, 3_600_000_000


@pytest.fixture
def computers(alice: User) -> tuple[Host, Host]:
    """One computer before and after BOINC was reinstalled, with work, a note and a key."""
    project = make_project("Alpha", account_key="k" * 32)
    make_project("Beta", account_key="k" * 32)
    gpu = [{"type": "NVIDIA", "name": "Example GPU", "count": 1, "peak_flops": 12e12}]
    old = make_host(alice, "studio", "2026-01-01", "2026-02-01", given_name="Before", coprocs=gpu)
    new = make_host(alice, "studio", "2026-02-02", "2026-03-01", given_name="After", coprocs=gpu)
    for host, day in ((old, "2026-01-05"), (new, "2026-02-05")):
        credit(host, project, day, (100 * CREDIT, 0, 5 * HOUR, 0, 3, 0))
        issue_client_key(alice, ClientKey.Origin.ATTACH, host)
    make_note(new, "reset", "2026-02-06", project=project)
    return old, new


def test_a_computer_is_renamed_steered_merged_and_shut_out(
    browser: Browser, site: Site, alice: User, computers: tuple[Host, Host]
) -> None:
    old, new = computers
    context = browser.new_context(base_url=site.url, java_script_enabled=False)
    sign_in(context, site, alice)
    page = context.new_page()
    page.goto("/computers/")
    page.get_by_role("link", name="After").click()
    page.get_by_role("textbox", name="Name").fill("Studio tower")
    page.get_by_role("region", name="Name and place").get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Studio tower")

    page.get_by_text("Instructions for this computer").click()
    alpha = page.get_by_role("group", name="Alpha")
    alpha.get_by_label("No new tasks").check()
    alpha.get_by_label("use NVIDIA GPU").check()
    page.locator("#wishes").get_by_role("button", name="Save").click()
    expect(page.get_by_role("group", name="Alpha").get_by_label("No new tasks")).to_be_checked()
    row = HostProject.objects.get(host=new, project__name="Alpha")
    assert (row.no_new_work, row.no_rsc, row.suspended) == (True, ["NVIDIA"], False)

    page.locator("summary", has_text="Merge").click()
    page.get_by_role("link", name="Show computers to merge with").click()
    page.get_by_role("link", name="Preview").click()
    expect(page.get_by_role("heading", name="Removed: Before")).to_be_visible()
    page.get_by_role("button", name="Merge", exact=True).click()
    expect(page.get_by_text("Studio tower now has the history of both.")).to_be_visible()
    assert set(Day.objects.values_list("host_id", flat=True)) == {new.pk}
    page.goto(f"/computers/{old.pk}/")
    expect(page).to_have_url(f"{site.url.rstrip('/')}/computers/{new.pk}/")

    page.goto("/account/keys/")
    page.get_by_role("button", name="Revoke").first.click()
    expect(page.get_by_text("is revoked.")).to_be_visible()
    assert ClientKey.objects.filter(revoked_at=None).count() == 1
    context.close()


def test_projects_are_chosen_with_shares(
    browser: Browser, site: Site, alice: User, computers: tuple[Host, Host]
) -> None:
    context = browser.new_context(base_url=site.url, java_script_enabled=False)
    sign_in(context, site, alice)
    page = context.new_page()
    page.goto("/projects/")
    expect(page.get_by_text("You have not chosen")).to_be_visible()
    page.get_by_label("Beta", exact=True).check()
    page.get_by_label("Share of Beta").fill("12.5")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved. Your computers work for the project that you chose.")).to_be_visible()
    expect(page.get_by_text("100 % of the work")).to_be_visible()
    chosen = UserProject.objects.get(user=alice, is_chosen=True)
    assert (chosen.project.name, chosen.resource_share) == ("Beta", 12.5)
    page.get_by_role("button", name="Choose by subjects again").click()
    expect(page.get_by_text("You have not chosen")).to_be_visible()
    context.close()


@pytest.mark.parametrize(
    ("width", "colours"),
    [
        (390, "light"),
        *(pytest.param(*look, marks=pytest.mark.nightly) for look in [(390, "dark"), (1440, "light"), (1440, "dark")]),
    ],
)
def test_the_page_of_a_computer_has_no_fault_that_axe_finds(
    page: Page, site: Site, alice: User, computers: tuple[Host, Host], width: int, colours: str
) -> None:
    old, new = computers
    address = f"/computers/{new.pk}/"
    sign_in(page.context, site, alice)
    found = [
        (where, fault)
        for where in (address, f"{address}merge/", f"{address}merge/?with={old.pk}")
        for fault in faults(page, where, width, dark=colours == "dark")
    ]
    assert found == []


def test_a_computer_without_gpu_time_whose_tasks_failed_fits_the_smallest_phone(
    page: Page, site: Site, alice: User, computers: tuple[Host, Host]
) -> None:
    new = computers[1]
    credit(new, make_project("Gamma"), "2026-02-06", (2 * CREDIT, 0, HOUR, 0, 2002, 38))
    sign_in(page.context, site, alice)
    page.context.add_cookies([{"name": settings.LANGUAGE_COOKIE_NAME, "value": "de", "url": site.url}])
    page.set_viewport_size({"width": 320, "height": 900})
    page.goto(f"/computers/{new.pk}/")
    expect(page.get_by_text("und 38 fehlgeschlagen")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def faults(page: Page, address: str, width: int, *, dark: bool) -> list[str]:
    """What axe finds on the page with all its folds open, and whether it is wider than the window."""
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(address)
    page.eval_on_selector_all("main details", "all => all.forEach(each => { each.open = true; })")
    found = [str(fault["id"]) for fault in Axe().run(page).response["violations"]]
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("wider than the window")
    return found

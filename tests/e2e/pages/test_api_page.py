"""The API's page in a browser: it shows the addresses, and whoever is signed in can try them."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from portal.models import Host, User
from tests.support.browser_visitor import give_work, sign_in
from tests.support.site_process import Site


def test_the_api_is_shown_and_can_be_tried(page: Page, site: Site, alice: User) -> None:
    give_work(alice)
    sign_in(page.context, site, alice)
    page.goto("/api/v1/#hosts_list")
    operation = page.locator("#hosts_list")
    operation.get_by_label("limit").fill("1")
    operation.get_by_role("button", name="Try it").press("Enter")
    expect(operation.get_by_role("status")).to_contain_text("200")
    expect(operation.get_by_role("region", name="Answer")).to_contain_text("limit=1")
    page.goto("/api/v1/#hosts_retrieve")
    operation = page.locator("#hosts_retrieve")
    operation.get_by_label("id", exact=True).fill(str(Host.objects.get(domain_name="studio").pk))
    operation.get_by_role("button", name="Try it").click()
    expect(operation.get_by_role("region", name="Answer")).to_contain_text('"name": "studio"')


def test_a_token_made_on_the_page_opens_the_api(page: Page, site: Site, alice: User) -> None:
    give_work(alice)
    sign_in(page.context, site, alice)
    page.goto("/account/tokens/")
    page.get_by_label("What is it for?").fill("spreadsheet")
    page.get_by_label("Daily history and its totals").check()
    page.get_by_role("button", name="Create a token").click()
    token = page.locator("#new-token").inner_text()
    page.context.clear_cookies()
    headers = {"Authorization": f"Bearer {token}"}
    sums = page.request.get("/api/v1/sums/", headers=headers).json()
    # Ten days of 10 credits of CPU and 20 of GPU.
    assert (sums["total"]["cpu_credit"], sums["total"]["gpu_credit"]) == ("100.000000", "200.000000")
    assert page.request.get("/api/v1/hosts/", headers=headers).status == 403

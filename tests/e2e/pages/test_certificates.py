"""A volunteer makes a certificate, a stranger checks its code, and the volunteer revokes it."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from portal.models import User
from tests.support.browser_visitor import give_work, sign_in
from tests.support.site_process import Site


def test_a_stranger_checks_a_certificate_until_it_is_revoked(
    page: Page, browser: Browser, site: Site, alice: User
) -> None:
    give_work(alice)
    sign_in(page.context, site, alice)
    page.goto("/history/")
    page.get_by_label("More about your history").get_by_role("link", name="Certificates").click()
    page.get_by_role("link", name="New certificate").click()
    page.get_by_label("Name on the certificate").fill("Mara Straße")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("article")).to_contain_text("Mara Straße")
    page.get_by_role("button", name="Create this certificate").click()
    expect(page.get_by_role("heading", name="Your certificate")).to_be_visible()
    code = re.search(r"(\w{4}-){3}\w{4}", page.get_by_role("article").inner_text())
    assert code is not None

    stranger = browser.new_context(base_url=site.url).new_page()
    stranger.goto("/certificates/")
    stranger.get_by_label("Code").fill(code[0].lower())
    stranger.get_by_role("button", name="Check").click()
    expect(stranger.get_by_role("heading", name="This certificate is valid")).to_be_visible()
    # Ten days of 30 credits
    expect(stranger.get_by_role("article")).to_contain_text("Estimated credit")
    expect(stranger.get_by_role("article")).to_contain_text("300")

    page.get_by_role("button", name="Revoke it").click()
    expect(page.get_by_text("You revoked it on")).to_be_visible()
    stranger.reload()
    expect(stranger.get_by_role("heading", name="This certificate was revoked")).to_be_visible()
    expect(stranger.get_by_text("Mara Straße")).to_have_count(0)
    stranger.context.close()

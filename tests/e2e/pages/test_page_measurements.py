"""What `make bench` says of pages is what Chromium saw."""

from __future__ import annotations

from playwright.sync_api import Browser, Page

from portal.models import User
from tests.support.browser_visitor import give_work, sign_in
from tests.support.site_process import Site
from tools.benchmarks.pages import visit


def test_the_largest_paint_and_the_bytes_of_a_first_visit_are_measured(
    browser: Browser, page: Page, site: Site, alice: User
) -> None:
    give_work(alice)
    sign_in(page.context, site, alice)
    landing = visit(browser, None, site.url)
    history = visit(browser, page.context, f"{site.url}history/")
    assert landing[0] > 0 and history[0] > 0
    # The history page loads what draws its chart.
    assert 10_000 < landing[1] < history[1]

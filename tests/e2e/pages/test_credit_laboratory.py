"""The credit laboratory in a browser: an operator's experiment, shared with a stranger; a volunteer's, where open."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from extras.laboratory import request as requests
from extras.laboratory.models import CreditExperiment
from extras.laboratory.trials.experiment import Experiment, Variant
from portal.models import User
from portal.requested_work import queue
from tests.support.browser_visitor import colours, sign_in
from tests.support.site_process import Site

DONE_MS = 60_000


def ask(page: Page, title: str, jobs: int) -> None:
    """Compare published with deployed rules, with some computers that exaggerate."""
    page.get_by_label("Title").fill(title)
    page.get_by_label("Jobs per population").fill(str(jobs))
    page.get_by_label("Populations", exact=True).fill("1")
    page.get_by_text("Computers that cheat").click()
    page.get_by_label("Share of computers that report ten times their speed").fill("0.1")
    page.get_by_role("button", name="Run the experiment").click()


def expect_results(page: Page) -> None:
    expect(page.get_by_role("heading", name="Side by side")).to_be_visible(timeout=DONE_MS)
    for label in ("1: published, single results", "2: deployed, single results"):
        expect(page.get_by_role("columnheader", name=label)).to_be_visible()
    for goal in ("Device neutrality", "Limited project neutrality", "Cheat resistance"):
        expect(page.locator("figcaption", has_text=goal).first).to_be_visible()
    for canvas in page.locator("canvas").all():
        # Both variants' colours, the text's, and those between
        assert colours(page, f"#{canvas.get_attribute('id')}") > 3


def stranger_of(browser: Browser, site: Site) -> Page:
    return browser.new_context(base_url=site.url).new_page()


def test_an_operator_compares_rule_sets_and_shares_the_result_until_the_link_is_revoked(
    page: Page, browser: Browser, site: Site, worker: None, operator: User
) -> None:
    sign_in(page.context, site, operator)
    page.goto("/admin/laboratory/creditexperiment/add/")
    ask(page, "Does exaggerating pay?", 6000)
    expect(page.get_by_role("progressbar", name="Progress of the experiment")).to_be_visible()
    expect_results(page)
    expect(page.get_by_role("heading", name="Does exaggerating pay?")).to_be_visible()
    chart = page.locator("#goal-0")
    chart.focus()
    page.keyboard.press("Home")
    expect(chart).to_have_attribute("aria-valuenow", "1")
    assert "limit 3" in (chart.get_attribute("aria-valuetext") or "")
    page.get_by_role("button", name="Share with a link").click()
    link = page.get_by_role("link", name="/laboratory/shared/").get_attribute("href") or ""
    stranger = stranger_of(browser, site)
    stranger.goto(link)
    expect(stranger.get_by_role("heading", name="Does exaggerating pay?")).to_be_visible()
    expect_results(stranger)
    expect(stranger.get_by_role("button", name="Stop sharing")).to_have_count(0)
    page.get_by_role("button", name="Stop sharing").click()
    expect(page.get_by_role("button", name="Share with a link")).to_be_visible()
    answer = stranger.reload()
    assert answer is not None and answer.status == 404
    stranger.context.close()


class TestWherePublic:
    @pytest.fixture
    def site_settings(self) -> dict[str, str]:
        return {"CREDIT_LABORATORY_PUBLIC": "true"}

    def test_a_volunteer_makes_shares_and_deletes_an_experiment(
        self, page: Page, browser: Browser, site: Site, worker: None, alice: User
    ) -> None:
        sign_in(page.context, site, alice)
        page.goto("/apps/")
        page.get_by_role("link", name="laboratory").first.click()
        page.get_by_role("link", name="New experiment").click()
        ask(page, "Mine", 3000)
        expect_results(page)
        page.get_by_role("button", name="Share with a link").click()
        link = page.get_by_role("link", name="/laboratory/shared/").get_attribute("href") or ""
        stranger = stranger_of(browser, site)
        stranger.goto(link)
        expect_results(stranger)
        page.get_by_text("Delete", exact=True).click()
        page.get_by_role("button", name="Delete “Mine”").click()
        expect(page.get_by_text("Your experiments will be kept here")).to_be_visible()
        answer = stranger.reload()
        assert answer is not None and answer.status == 404
        stranger.context.close()

    @pytest.mark.parametrize(
        ("width", "scheme"), [(390, "light"), pytest.param(1440, "dark", marks=pytest.mark.nightly)]
    )
    def test_it_can_be_read_by_everybody(self, page: Page, site: Site, operator: User, width: int, scheme: str) -> None:
        """Both kinds of pages; the admin's frame is unfold's."""
        kept = finished(operator)
        sign_in(page.context, site, operator)
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.set_viewport_size({"width": width, "height": 900})
        found = []
        for address in (
            "/laboratory/",
            "/laboratory/new/",
            f"/laboratory/{kept.pk}/",
            f"/admin/laboratory/creditexperiment/{kept.pk}/change/",
            "/admin/laboratory/creditexperiment/own-results/",
        ):
            page.goto(address)
            found += [
                f"{address}: {fault['id']} ({fault['impact']}): {fault['nodes'][0]['target']}"
                for fault in Axe().run(page, context=".lab").response["violations"]
            ]
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.append(f"{address}: wider than the window")
        assert found == []


def finished(owner: User) -> CreditExperiment:
    variants = (Variant(host_scale_check=True), Variant("deployed"))
    parameters = {"cheat_exaggerate": 0.1, "cheat_collude": 0.1, "cheat_one_time": 0.05}
    kept = requests.ask(owner, "Three ways", Experiment(variants, parameters, 3000, 1), is_operator=True)
    assert queue.carry_out_next()
    return kept

"""Subjects in a browser: a volunteer answers some, the computer gets other projects, and the site says why."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from accounting.models import Project
from portal.models import ClientKey, User
from portal.people.accounts import issue_client_key
from tests.support.am_rpc import make_computer
from tests.support.browser_visitor import sign_in
from tests.support.keyword_projects import report
from tests.support.site_process import Site


def test_subjects_change_what_the_computer_gets_and_its_page_says_why(
    page: Page, site: Site, alice: User, four_projects: dict[str, Project]
) -> None:
    computer = make_computer(alice, authenticator=issue_client_key(alice, ClientKey.Origin.ATTACH))
    assert report(site, computer) == {"Sky", "Coast", "Cells", "Sums"}
    sign_in(page.context, site, alice)

    page.goto("/projects/")
    page.get_by_role("link", name="Choose subjects").click()
    science = page.get_by_role("region", name="Science")
    science.get_by_role("group", name="Astronomy").get_by_role("radio", name="Yes").check()
    science.get_by_text("Parts of Earth sciences").click()
    science.get_by_role("group", name="Climate research").get_by_role("radio", name="Yes").check()
    places = page.get_by_role("region", name="Where projects are based")
    places.get_by_text("Parts of Europe").click()
    places.get_by_role("group", name="Germany").get_by_role("radio", name="No").check()
    page.get_by_role("button", name="Save subjects").click()
    expect(page.get_by_text("Saved: yes to 2, no to 1.")).to_be_visible()
    expect(page.get_by_text("Excluded now")).to_be_visible()

    assert report(site, computer) == {"Sky", "Coast"}

    page.goto("/computers/")
    page.get_by_role("link", name="studio").click()
    page.get_by_text("Why these projects").click()
    why = page.get_by_role("group", name="Why these projects").get_by_role("table")
    for project, words in {
        "Sky": "You said yes to “Astronomy”.",
        "Coast": "You said yes to “Climate research”.",
        "Cells": "You said no to “Germany”.",
        "Sums": "You prefer others.",
    }.items():
        expect(why.get_by_role("row", name=re.compile(f"^{project}"))).to_contain_text(words)
    # The score with its terms: fully liked, and the logarithm of the share of 100
    terms = re.compile(r"1\.00\s+4\.61\s+0\.00\s+0\.69")
    expect(why.get_by_role("row", name=re.compile("^Sky"))).to_contain_text(terms)

    page.goto(f"/projects/{four_projects['Cells'].pk}/")
    expect(page.get_by_text("you said no", exact=True)).to_be_visible()
    expect(page.get_by_text("no work", exact=True)).to_be_visible()


@pytest.fixture
def plain_page(browser: Browser, site: Site) -> Iterator[Page]:
    """A browser that runs no scripts, on a phone."""
    context = browser.new_context(
        base_url=site.url, java_script_enabled=False, viewport={"width": 390, "height": 844}, locale="en-GB"
    )
    yield context.new_page()
    context.close()


def test_the_tree_works_without_scripts_and_by_keyboard(
    plain_page: Page, site: Site, alice: User, four_projects: dict[str, Project]
) -> None:
    sign_in(plain_page.context, site, alice)
    plain_page.goto("/projects/keywords/")
    group = plain_page.get_by_role("group", name="Chemistry")
    group.get_by_role("radio", name="Maybe").focus()
    plain_page.keyboard.press("ArrowRight")
    expect(group.get_by_role("radio", name="No")).to_be_checked()
    plain_page.keyboard.press("Enter")
    expect(plain_page.get_by_text("Saved: yes to 0, no to 1.")).to_be_visible()
    # Without a computer the page to connect one comes next.
    plain_page.goto("/projects/keywords/")
    expect(plain_page.get_by_role("group", name="Chemistry").get_by_role("radio", name="No")).to_be_checked()

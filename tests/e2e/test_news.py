"""An operator writes news in the browser, and a real BOINC client takes the feeds that have them."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from accounting.models import Announcement
from portal.models import User
from tests.support.boinc_client import BoincClient
from tests.support.site_process import Site

EMAIL, PASSWORD = "operator@example.org", "many small stones"


def sign_up(page: Page, email: str) -> None:
    page.goto("/account/signup/")
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.locator("form:has([name=password1]) [type=submit]").click()
    expect(page).to_have_url(re.compile("/home/$"))


def publish(page: Page, title: str, text: str, **audience: str) -> None:
    """Save a draft, look at it, and publish it."""
    page.goto("/admin/accounting/announcement/add/")
    for name, value in {"title": title, "text": text, **audience}.items():
        page.locator(f"#announcement_form [name={name}]").fill(value)
    page.locator("[name=_save]").click()
    expect(page.locator(".as-shown h2")).to_have_text(title)
    assert Announcement.objects.get(title=title).is_draft
    page.locator("[name=accounting_announcement_publish]").click()
    expect(page.get_by_text("Published. Clients fetch news once a day.")).to_be_visible()


def test_a_real_client_is_given_what_is_for_everybody_and_what_is_for_it(
    page: Page, site: Site, boinc_client: BoincClient
) -> None:
    sign_up(page, EMAIL)
    User.objects.update(is_staff=True, is_superuser=True)
    publish(page, "Maintenance on Monday", "From **8 to 10** UTC.")
    publish(page, "Update your client", "It is old.", older_than="99.0")
    publish(page, "For another platform", "Not for this computer.", platform="windows_")

    page.goto("/news/")
    expect(page.locator("article h2")).to_have_text(["Maintenance on Monday"])
    expect(page.locator("article strong")).to_have_text("8 to 10")

    boinc_client.attach_manager(site.url, EMAIL, PASSWORD)
    given = (boinc_client.directory / "acct_mgr_reply.xml").read_text()
    everybody, own = re.findall(r"<rss_feed>\s*<url>(\S+?)</url>", given)
    assert titles(page, everybody) == ["Maintenance on Monday"]
    assert titles(page, own) == ["Update your client"]


def titles(page: Page, url: str) -> list[str]:
    """What is in a feed that the client was given. Clients of tests fetch none: they stay off the internet."""
    return re.findall(r"<item><title>(.*?)</title>", page.request.get(url).text())

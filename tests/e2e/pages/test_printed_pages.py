"""What people print has what it is about, and nothing of what is for the screen."""

from __future__ import annotations

from django.utils import timezone
from playwright.sync_api import Page, expect
from pypdfium2 import PdfDocument

from portal.models import User
from tests.support.browser_visitor import give_work, sign_in
from tests.support.site_process import Site

ON_SCREEN_ONLY = ("Sign out", "Computers\nProjects", "Privacy", "Deutsch")


def printed(page: Page) -> list[str]:
    """The text of each sheet."""
    return [sheet.get_textpage().get_text_range() for sheet in PdfDocument(page.pdf(format="A4"))]


def test_a_year_is_printed_without_what_is_for_the_screen(page: Page, site: Site, alice: User) -> None:
    give_work(alice)
    sign_in(page.context, site, alice)
    year = timezone.now().year
    page.goto(f"/history/years/{year}/")
    sheets = printed(page)
    text = "\n".join(sheets).replace("\r", "")
    assert f"{year} in review" in sheets[0] and "Estimated credit on each day" in text and "studio" in text
    assert [words for words in (*ON_SCREEN_ONLY, "Records") if words in text] == []
    page.emulate_media(media="print")
    expect(page.get_by_role("link", name="Records")).to_be_hidden()
    expect(page.locator(".year svg").first).to_be_visible()


def test_a_certificate_is_printed_on_one_sheet(page: Page, site: Site, alice: User) -> None:
    give_work(alice)
    sign_in(page.context, site, alice)
    page.goto("/history/certificates/new/")
    page.get_by_label("Name on the certificate").fill("Mara")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Create this certificate").click()
    expect(page.get_by_role("heading", name="Your certificate")).to_be_visible()
    (sheet,) = printed(page)
    assert "Mara" in sheet and "300" in sheet
    assert [words for words in (*ON_SCREEN_ONLY, "Revoke") if words in sheet] == []

"""One's own data in a browser: a copy made by a real worker, its numbers those of the history page."""

from __future__ import annotations

import csv
import io
import zipfile

from playwright.sync_api import Page, expect

from portal.models import User
from tests.support.browser_visitor import give_work, sign_in
from tests.support.site_process import Site


def sum_shown(page: Page, site: Site, owner: User) -> str | None:
    """The total in the history page's table, in micro-credits: ten days of 30 credits, all within thirty days."""
    give_work(owner)
    sign_in(page.context, site, owner)
    page.goto("/history/?range=30")
    return page.locator("#history-table tfoot [data-kind=ec]").get_attribute("data-micro")


def sum_in(history: bytes) -> str:
    """The total of a CSV file, in micro-credits."""
    rows = csv.DictReader(io.StringIO(history.decode(), newline=""))
    return str(sum(round(1e6 * float(row[kind])) for row in rows for kind in ("cpu_credit", "gpu_credit")))


def test_a_copy_has_the_numbers_of_the_history_page(page: Page, site: Site, worker: None, alice: User) -> None:
    shown = sum_shown(page, site, alice)
    page.goto("/account/data/")
    page.get_by_role("button", name="Make a copy").click()
    link = page.get_by_role("link", name="Download the copy")
    expect(link).to_be_visible(timeout=30_000)
    with page.expect_download() as waiting:
        link.click()
    archive = zipfile.ZipFile(waiting.value.path())
    assert sum_in(archive.read("history.csv")) == shown == "300000000"


def test_a_file_of_the_history_is_made_while_one_looks(page: Page, site: Site, worker: None, alice: User) -> None:
    shown = sum_shown(page, site, alice)
    # Where the link of a long range leads.
    page.goto("/history/files/?kind=csv&range=30")
    page.get_by_role("button", name="Make the CSV file").click()
    link = page.get_by_role("link", name="Download")
    expect(link).to_be_visible(timeout=30_000)
    with page.expect_download() as waiting:
        link.click()
    assert waiting.value.suggested_filename.endswith(".csv.zip")
    archive = zipfile.ZipFile(waiting.value.path())
    (name,) = archive.namelist()
    assert sum_in(archive.read(name)) == shown == "300000000"

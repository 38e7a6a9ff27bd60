"""One's own data in a browser: a copy made by a real worker, its numbers those of the history page."""

from __future__ import annotations

import csv
import io
import zipfile

from playwright.sync_api import Page, expect

from portal.models import User
from tests.support.browser_visitor import give_work, sign_in
from tests.support.site_process import Site


def test_a_copy_has_the_numbers_of_the_history_page(page: Page, site: Site, worker: None, alice: User) -> None:
    give_work(alice)
    sign_in(page.context, site, alice)
    page.goto("/history/?range=30")
    shown = page.locator("#history-table tfoot [data-kind=ec]").get_attribute("data-micro")
    page.goto("/account/data/")
    page.get_by_role("button", name="Make a copy").click()
    link = page.get_by_role("link", name="Download the copy")
    expect(link).to_be_visible(timeout=30_000)
    with page.expect_download() as waiting:
        link.click()
    archive = zipfile.ZipFile(waiting.value.path())
    rows = list(csv.DictReader(io.StringIO(archive.read("history.csv").decode(), newline="")))
    micro = [round(1e6 * float(row[kind])) for row in rows for kind in ("cpu_credit", "gpu_credit")]
    # Ten days of 30 credits, all of them within thirty days.
    assert str(sum(micro)) == shown == "300000000"


def test_a_file_of_the_history_is_made_while_one_looks(page: Page, site: Site, worker: None, alice: User) -> None:
    give_work(alice)
    sign_in(page.context, site, alice)
    page.goto("/history/?range=30")
    shown = page.locator("#history-table tfoot [data-kind=ec]").get_attribute("data-micro")
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
    rows = list(csv.DictReader(io.StringIO(archive.read(name).decode(), newline="")))
    micro = [round(1e6 * float(row[kind])) for row in rows for kind in ("cpu_credit", "gpu_credit")]
    assert str(sum(micro)) == shown == "300000000"

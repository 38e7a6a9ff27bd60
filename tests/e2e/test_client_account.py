"""A real BOINC client opens an account, and its owner goes on with it in the browser."""

from __future__ import annotations

import re
import urllib.parse
from email.message import Message

from playwright.sync_api import Page, expect

from tests.support.boinc_client import BoincClient
from tests.support.site_process import Site
from tests.support.wait import wait_until

OLD, NEW, PASSWORD = "Dora@Example.org", "dora@new.example.org", "seven green boats"


def key_of(answer: str) -> str:
    """The account key that boinccmd shows."""
    match = re.search(r"account key: (\S+)", answer)
    assert match, answer
    return match[1]


def path_in(mail: Message) -> str:
    payload = mail.get_payload(decode=True)
    assert isinstance(payload, bytes)
    match = re.search(r"https?://\S+", payload.decode())
    assert match
    return urllib.parse.urlsplit(match[0]).path


def test_an_account_opened_by_the_client_goes_on_in_the_browser(
    site: Site, page: Page, boinc_client: BoincClient
) -> None:
    def look_up(email: str, password: str) -> str:
        return boinc_client.command("--lookup_account", site.url, email, password)

    opened = key_of(boinc_client.command("--create_account", site.url, OLD, PASSWORD, "Dora & co"))
    assert opened != key_of(look_up(OLD, PASSWORD))
    assert "account key" not in look_up(OLD, "wrong")

    page.goto("/account/login/")
    page.locator("[name=login]").fill(OLD)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("form:has([name=login]) [type=submit]").click()
    expect(page).to_have_url(re.compile("/home/$"))
    expect(page.locator("header")).to_contain_text("Dora & co")

    page.goto("/account/email/")
    page.locator("[name=email]:visible").fill(NEW)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("[name=action_add]").click()
    wait_until(lambda: site.mails_to(NEW), "the mail to the new address", 10)
    page.goto(path_in(site.mails_to(NEW)[-1]))
    page.locator("main form [type=submit]").click()

    key_of(look_up(NEW, PASSWORD))
    assert "account key" not in look_up(OLD, PASSWORD)

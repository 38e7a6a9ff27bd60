"""Somebody of support helps a volunteer who lost the second factor, in the browser."""

from __future__ import annotations

import re

from allauth.mfa.models import Authenticator
from playwright.sync_api import Page, expect

from portal.models import Host, User
from tests.support.roles import give_role
from tests.support.site_process import Site
from tests.support.wait import wait_until

PASSWORD = "seven green boats"


def sign_up(page: Page, email: str) -> User:
    page.context.clear_cookies()
    page.goto("/account/signup/")
    page.get_by_label("E-mail address").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.locator("form:has([name=password1]) [type=submit]").click()
    expect(page).to_have_url(re.compile("/home/$"))
    return User.objects.get(email=email)


def sign_in(page: Page, email: str) -> None:
    page.context.clear_cookies()
    page.goto("/account/login/")
    page.locator("[name=login]").fill(email)
    page.locator("[name=password]").fill(PASSWORD)
    page.locator("form:has([name=login]) [type=submit]").click()
    expect(page).to_have_url(re.compile("/home/$"))


def test_a_lost_second_factor_is_removed_and_the_owner_reads_why(page: Page, site: Site) -> None:
    owner = sign_up(page, "dora@example.org")
    Host.objects.create(owner=owner, domain_name="attic-pc", client_version="8.2.4")
    Authenticator.objects.create(user=owner, type=Authenticator.Type.TOTP, data={})
    give_role(sign_up(page, "support@example.org"), "Support")
    sign_in(page, "support@example.org")
    nmails = len(site.mails_to("dora@example.org"))

    page.goto("/admin/portal/account/?q=attic-pc")
    page.get_by_role("link", name="dora@example.org").click()
    expect(page.get_by_text("8.2.4")).to_have_count(0)
    page.get_by_label("Reason").fill("Their mail of 3 May: the phone is lost")
    page.get_by_role("button", name="Look at the account").click()
    expect(page.get_by_text("8.2.4")).to_be_visible()

    card = page.locator("form:has(button:text-is('Remove the second factor'))")
    card.get_by_label("Reason").fill("Named the computer attic-pc")
    card.get_by_role("button").click()
    expect(page.get_by_text("Done: Remove the second factor.")).to_be_visible()
    wait_until(lambda: len(site.mails_to("dora@example.org")) > nmails, "the mail to the owner", 10)

    sign_in(page, "dora@example.org")
    page.goto("/account/events/")
    expect(page.locator("main")).to_contain_text("Looked at by support: Their mail of 3 May: the phone is lost")
    expect(page.locator("main")).to_contain_text("Second factor removed: Named the computer attic-pc")

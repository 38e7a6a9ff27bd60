"""Passkeys in Chromium, with its virtual authenticator: added, used, refused, and not offered at an IP address."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from playwright.sync_api import CDPSession, Page, expect

from portal.models import SecurityEvent, User
from tests.support.browser_visitor import sign_in
from tests.support.site_process import Site

PASSWORD = "alice's secret"


@pytest.fixture
def alice(alice: User) -> User:
    """As always, but with a password hash that the site takes: tests have a cheaper one."""
    alice.password = PBKDF2PasswordHasher().encode(PASSWORD, "salt-of-this-test-alone")
    alice.save(update_fields=["password"])
    return alice


@pytest.fixture
def device(page: Page) -> Iterator[tuple[CDPSession, str]]:
    """A device that keeps passkeys and takes its owner's finger for granted."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    made = session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    yield session, made["authenticatorId"]
    session.detach()


def by_name(site: Site, path: str) -> str:
    """The address with a host name instead of an IP address."""
    return site.url.replace("127.0.0.1", "localhost") + path


def sign_in_by_password(page: Page, site: Site, user: User) -> None:
    page.goto(by_name(site, "account/login/"))
    page.get_by_label("E-mail address").fill(user.email)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(re.compile("/(home|account/2fa/authenticate)/"))


def add_passkey(page: Page, site: Site, *, alone: bool) -> None:
    page.goto(by_name(site, "account/2fa/"))
    page.get_by_role("link", name="Add a passkey").click()
    page.get_by_label("Name").fill("phone")
    page.get_by_label("Sign in with it alone").set_checked(alone)
    page.get_by_role("button", name="Add it").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()


def sign_out(page: Page, site: Site) -> None:
    page.goto(by_name(site, "account/logout/"))
    page.get_by_role("main").get_by_role("button", name="Sign out").click()
    page.wait_for_url(by_name(site, ""))


def test_a_passkey_signs_in_alone(page: Page, site: Site, alice: User, device: tuple[CDPSession, str]) -> None:
    sign_in_by_password(page, site, alice)
    add_passkey(page, site, alone=True)
    passkey = Authenticator.objects.get(user=alice, type=Authenticator.Type.WEBAUTHN)
    assert str(passkey.wrap().name) == "phone"
    assert "A new passkey" in str(site.mails_to(alice.email)[-1]["Subject"])
    sign_out(page, site)
    page.goto(by_name(site, "account/login/"))
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url(re.compile("/home/"))
    assert list(SecurityEvent.objects.filter(user=alice).values_list("kind", flat=True)).count("login") == 2
    # Removed, it opens nothing.
    page.goto(by_name(site, "account/2fa/webauthn/"))
    page.get_by_role("link", name="Remove phone").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.get_by_text("You have none yet.")).to_be_visible()
    sign_out(page, site)
    page.goto(by_name(site, "account/login/"))
    # The page is already at an address of logins: wait for the answer itself.
    with page.expect_navigation():
        page.get_by_role("button", name="Sign in with a passkey").click()
    page.goto(by_name(site, "account/2fa/"))
    page.wait_for_url(re.compile("/account/login/"))


def test_a_passkey_is_the_second_factor_and_confirms_who_one_is(
    page: Page, site: Site, alice: User, device: tuple[CDPSession, str]
) -> None:
    sign_in_by_password(page, site, alice)
    add_passkey(page, site, alone=False)
    sign_out(page, site)
    sign_in_by_password(page, site, alice)
    expect(page.get_by_role("heading", name="Two-factor login")).to_be_visible()
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(re.compile("/home/"))
    page.goto(by_name(site, "account/2fa/webauthn/reauthenticate/?next=/account/2fa/"))
    page.get_by_role("button", name="Use a passkey").click()
    page.wait_for_url(re.compile("/account/2fa/$"))


def test_a_device_that_refuses_is_told_on_the_page(
    page: Page, site: Site, alice: User, device: tuple[CDPSession, str]
) -> None:
    session, authenticator = device
    sign_in_by_password(page, site, alice)
    session.send("WebAuthn.setUserVerified", {"authenticatorId": authenticator, "isUserVerified": False})
    page.goto(by_name(site, "account/2fa/webauthn/add/"))
    page.get_by_role("button", name="Add it").click()
    expect(page.get_by_role("alert")).to_contain_text("The browser did not provide a passkey")
    assert not Authenticator.objects.exists()


def test_at_an_ip_address_the_pages_say_that_passkeys_need_a_name(page: Page, site: Site, alice: User) -> None:
    page.goto("/account/login/")
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_have_count(0)
    sign_in(page.context, site, alice)
    for path in ("/account/2fa/", "/account/2fa/webauthn/"):
        page.goto(path)
        expect(
            page.get_by_text("Passkeys need a host name, and you opened this site by its IP address.")
        ).to_be_visible()
        expect(page.get_by_role("link", name="Add a passkey")).to_have_count(0)


def test_the_pages_fit_a_phone(page: Page, site: Site, alice: User, device: tuple[CDPSession, str]) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in_by_password(page, site, alice)
    add_passkey(page, site, alone=True)
    for path in ("account/2fa/", "account/2fa/webauthn/", "account/2fa/webauthn/add/", "account/events/"):
        page.goto(by_name(site, path))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path

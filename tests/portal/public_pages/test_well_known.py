"""Fixed addresses where browsers, search engines and finders of a weakness look, and whom people can write to."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from portal.environment import SettingError, contact
from portal.models import AccountBlock, User
from portal.people import accounts


@pytest.fixture
def reachable(settings: Settings) -> Settings:
    settings.CONTACT, settings.CONTACT_LINK = "help@example.org", "mailto:help@example.org"
    return settings


def test_who_finds_a_weakness_learns_whom_to_tell(client: Client, reachable: Settings) -> None:
    reachable.HTTPS, reachable.SITE_URL = True, "https://site.example.org/"
    reply = client.get("/.well-known/security.txt")
    lines = dict(line.split(": ", 1) for line in reply.content.decode().splitlines())
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert lines["Contact"] == "mailto:help@example.org"
    assert lines["Canonical"] == "https://site.example.org/.well-known/security.txt"
    left = dt.datetime.fromisoformat(lines["Expires"]) - timezone.now()
    assert dt.timedelta(days=88) < left < dt.timedelta(days=365)


def test_without_a_contact_there_is_no_file_that_names_nobody(client: Client, db: None, settings: Settings) -> None:
    settings.CONTACT = settings.CONTACT_LINK = ""
    assert client.get("/.well-known/security.txt").status_code == 404
    assert "Contact" not in client.get("/about/").content.decode()


def test_robots_and_sitemap_name_public_pages_by_the_sites_address(
    client: Client, db: None, settings: Settings
) -> None:
    settings.SITE_URL = "https://site.example.org/"
    robots = client.get("/robots.txt").content.decode()
    assert "Disallow: /account/" in robots and "Sitemap: https://site.example.org/sitemap.xml" in robots
    pages = re.findall("<loc>https://site.example.org(.*?)</loc>", client.get("/sitemap.xml").content.decode())
    assert pages[0] == "/" and "/privacy/" in pages
    assert {client.get(page).status_code for page in pages} == {200}


def test_a_phone_can_put_the_site_on_its_home_screen(client: Client, db: None) -> None:
    page = client.get("/").content.decode()
    (address,) = re.findall('<link rel="manifest" href="(.*?)">', page)
    reply = client.get(address)
    assert reply.headers["Content-Type"] == "application/manifest+json"
    assert {icon["sizes"] for icon in reply.json()["icons"]} == {"192x192", "512x512"}


def test_old_browsers_and_password_managers_are_sent_on(client: Client) -> None:
    assert client.get("/favicon.ico").headers["Location"].endswith(".ico")
    assert client.get("/.well-known/change-password").headers["Location"] == "/account/password/change/"


def test_pages_mails_and_errors_say_how_to_reach_the_operators(client: Client, db: None, reachable: Settings) -> None:
    page = client.get("/about/").content.decode()
    assert page.count('href="mailto:help@example.org"') == 2  # the text and the foot
    user = User.objects.create_user("mara@example.org")
    client.post("/account/password/reset/", {"email": user.email})
    assert "help@example.org" in str(mail.outbox[-1].body)
    AccountBlock.objects.create(user=user)
    with pytest.raises(accounts.ClientAuthError, match=r"those who run .* \(help@example.org\)"):
        accounts.refuse_if_blocked(user.pk)


@pytest.mark.parametrize(
    ("given", "link"),
    [
        ("", ""),
        ("help@example.org", "mailto:help@example.org"),
        ("https://example.org/contact/", "https://example.org/contact/"),
    ],
)
def test_a_contact_is_an_address_of_mails_or_a_page(given: str, link: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTACT", given)
    assert contact("CONTACT") == link


@pytest.mark.parametrize("given", ["http://example.org/", "the office", "javascript:alert(1)"])
def test_another_contact_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTACT", given)
    with pytest.raises(SettingError, match="CONTACT"):
        contact("CONTACT")

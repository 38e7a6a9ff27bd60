"""Whole addresses in mails and in answers of the API begin as SITE_URL does, and few mails a day set a new password."""

from __future__ import annotations

import time
from typing import Any

import pytest
from allauth.core.internal import ratelimit
from django.core import mail
from django.test import Client, RequestFactory
from pytest_django import Settings

from portal.models import User
from portal.web.middleware import SiteLinksMiddleware
from tests.support.sessions import confirm_address
from tests.support.settings_of import settings_of

SITE = "https://portal.example.org/"
OTHER = "localhost:9999"


@pytest.fixture
def site(settings: Settings) -> str:
    """A site that is also called by another name."""
    settings.SITE_URL, settings.ALLOWED_HOSTS = SITE, ["portal.example.org", "localhost"]
    return SITE


@pytest.mark.parametrize("address", ["alice@example.org", "nobody@example.org"])
def test_links_in_mails_lead_to_the_site_whatever_the_host_header_says(
    client: Client, alice: User, site: str, address: str
) -> None:
    client.post("/account/password/reset/", {"email": address}, headers={"host": OTHER})
    [sent] = mail.outbox
    assert f"{site}account/" in sent.body and "localhost" not in sent.body


@pytest.mark.parametrize(
    ("path", "location", "address"),
    [
        ("/api/v1/days/?limit=2", None, f"{SITE}api/v1/days/?limit=2"),
        ("/home/", "/account/keys/", f"{SITE}account/keys/"),
        ("/home/", "there/?a=ü", f"{SITE}home/there/?a=%C3%BC"),
        ("/home/", "https://elsewhere.example/x", "https://elsewhere.example/x"),
        ("//evil.example/x", None, f"{SITE}/evil.example/x"),
    ],
)
def test_every_whole_address_is_the_sites(site: str, path: str, location: str | None, address: str) -> None:
    made: list[str] = []

    def view(request: Any) -> Any:
        made.append(request.build_absolute_uri(location))

    request = RequestFactory().get("/", headers={"host": OTHER})
    request.path, _, request.META["QUERY_STRING"] = path.partition("?")
    request.path_info = request.path
    SiteLinksMiddleware(view)(request)
    assert made == [address]


@pytest.mark.parametrize(
    ("site_url", "hosts"),
    [
        ("https://portal.example.org/", ["portal.example.org"]),
        ("http://portal.example.org/", ["portal.example.org"]),
        ("http://127.0.0.1:8000/", ["127.0.0.1", "localhost"]),
    ],
)
def test_only_a_site_on_ones_own_machine_answers_as_localhost(site_url: str, hosts: list[str], tmp_path: Any) -> None:
    environment = {"SITE_URL": site_url, "VAR_DIR": str(tmp_path), "DATABASE_URL": "postgres://x@127.0.0.1/x"}
    environment |= {"BROKER_URL": "redis://127.0.0.1/0", "CACHE_URL": "redis://127.0.0.1/1"}
    assert settings_of(environment)["ALLOWED_HOSTS"] == hosts


def test_an_address_gets_ten_mails_a_day_that_set_a_new_password(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    for minute in range(60):
        # Each time another minute and another visitor: neither is what limits it.
        monkeypatch.setattr(ratelimit.time, "time", lambda minute=minute: now + 60.1 * minute)
        Client(REMOTE_ADDR=f"192.0.2.{minute}").post("/account/password/reset/", {"email": "Alice@example.org"})
    assert [sent.to for sent in mail.outbox] == [[alice.email]] * 10
    monkeypatch.setattr(ratelimit.time, "time", lambda: now + 86_401 + 60 * 60)
    Client().post("/account/password/reset/", {"email": alice.email})
    assert len(mail.outbox) == 11


@pytest.mark.parametrize("confirmed", [True, False])
def test_signing_up_with_the_address_of_an_account_writes_to_nobody(
    client: Client, alice: User, confirmed: bool
) -> None:
    if confirmed:
        confirm_address(alice)
    page = client.post("/account/signup/", {"email": "Alice@example.org", "password1": "a brand-new pass phrase"})
    assert "already registered" in page.content.decode() and mail.outbox == []

"""No page of the site runs scripts or styles that are not files of the site's own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.conf import global_settings, settings
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from pytest_django import Settings

from portal.models import User
from tests.support.settings_of import settings_of

STRICT = {
    "default-src": "'self'",
    "img-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}


def policy_of(client: Client, path: str) -> dict[str, str]:
    header = client.get(path).headers["Content-Security-Policy"]
    return dict(part.strip().split(" ", 1) for part in header.split(";"))


def plain_paths(resolver: URLResolver, prefix: str = "/") -> Iterator[str]:
    """The addresses of all pages that take nothing from their address, the admin's and the protocols' left out."""
    for entry in resolver.url_patterns:
        path = prefix + str(entry.pattern).lstrip("^").rstrip("$")
        if isinstance(entry, URLResolver):
            if entry.app_name != "admin":
                yield from plain_paths(entry, path)
        elif isinstance(entry, URLPattern) and not set("<(") & set(path) and path not in SHORT_WAY:
            yield path


SHORT_WAY = {*settings.CLIENT_PATHS, "/healthz", "/readyz", "/metrics"}
PAGES = sorted(set(plain_paths(get_resolver())))


def test_the_pages_are_found() -> None:
    assert {"/", "/home/", "/history/", "/account/login/", "/account/signup/"} <= set(PAGES)


@pytest.mark.django_db
@pytest.mark.parametrize("path", [*PAGES, "/nowhere/"])
def test_every_page_has_the_strict_policy(client: Client, alice: User, path: str) -> None:
    assert policy_of(client, path) == STRICT
    client.force_login(alice)
    assert policy_of(client, path) == STRICT


@pytest.mark.django_db
@pytest.mark.parametrize("path", [*PAGES, "/nowhere/", "/admin/"])
def test_no_page_of_somebody_signed_in_is_kept_by_a_browser(desk: Client, path: str) -> None:
    response = desk.get(path)
    # The feed for BOINC clients and these descriptions are the same for everybody.
    same = ("/notices.rss", "/sw.js", "/api/v1/schema/", "/emulator/scenario.schema.json")
    if path not in same and response.status_code != 405:
        assert "no-store" in response.headers["Cache-Control"]


@pytest.mark.django_db
def test_a_page_for_everybody_may_be_kept(client: Client) -> None:
    assert "Cache-Control" not in client.get("/").headers


NAMES = ["__Host-sessionid", "__Host-csrftoken", "__Host-known"]
PRODUCTION = {"SITE_URL": "https://portal.example.org/", "SECRET_KEY": "s" * 60}


def test_cookies_of_a_public_site_are_bound_to_its_host() -> None:
    found = settings_of({**os.environ, **PRODUCTION})
    assert [found[f"{name}_COOKIE_NAME"] for name in ("SESSION", "CSRF", "KNOWN_BROWSER")] == NAMES
    for name in ("SESSION", "CSRF"):
        assert found[f"{name}_COOKIE_SECURE"] is True
        # Django's own
        assert found.get(f"{name}_COOKIE_DOMAIN", getattr(global_settings, f"{name}_COOKIE_DOMAIN")) is None
        assert found.get(f"{name}_COOKIE_PATH", getattr(global_settings, f"{name}_COOKIE_PATH")) == "/"


@pytest.mark.django_db
def test_a_login_sets_no_other_cookies_and_all_of_them_as_the_prefix_demands(
    client: Client, alice: User, settings: Settings
) -> None:
    settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME, settings.KNOWN_BROWSER_COOKIE_NAME = NAMES
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    client.get("/account/login/", secure=True)
    client.post("/account/login/", {"login": alice.email, "password": "alice's secret"}, secure=True)
    client.post("/account/profile/", {"name": "Alison"}, secure=True)
    assert set(client.cookies) == set(NAMES)
    for cookie in client.cookies.values():
        assert (cookie["secure"], cookie["path"], cookie["domain"]) == (True, "/", "")


@pytest.mark.django_db
def test_only_the_admin_may_evaluate_scripts_and_none_are_inline(desk: Client) -> None:
    policy = policy_of(desk, "/admin/")
    assert policy["script-src"] == "'self' 'unsafe-eval'"
    assert policy["style-src"] == "'self' 'unsafe-inline'"
    assert policy["frame-ancestors"] == "'none'"

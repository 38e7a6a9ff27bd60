"""No page of the site runs scripts or styles that are not files of the site's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from portal.models import User

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
def test_only_the_admin_may_evaluate_scripts_and_none_are_inline(client: Client, operator: User) -> None:
    client.force_login(operator)
    policy = policy_of(client, "/admin/")
    assert policy["script-src"] == "'self' 'unsafe-eval'"
    assert policy["style-src"] == "'self' 'unsafe-inline'"
    assert policy["frame-ancestors"] == "'none'"

"""Errors on the web look like the site and say what to do."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.urls import path, reverse
from django.views.defaults import bad_request

from portal.models import User


def broken(request: Any) -> HttpResponse:
    raise RuntimeError("secret of the server")


def unreadable(request: Any) -> Any:
    return bad_request(request, ValueError("unreadable"))


@pytest.fixture
def broken_urls(settings: Any) -> None:
    """One page that fails and one that refuses, beside the site's own."""
    from portal import urls

    settings.ROOT_URLCONF = type(
        "Urls", (), {"urlpatterns": [path("broken/", broken), path("unreadable/", unreadable), *urls.urlpatterns]}
    )


def text_of(response: Any) -> str:
    return str(response.content.decode())


def looks_like_the_site(response: Any) -> bool:
    """A page with the site's style, a heading, and a sentence under it: not the framework's bare one."""
    return bool(re.search(r"portal/site\.css.*<h1>[^<]+</h1>\s*<p>[^<]{40,}", text_of(response), re.DOTALL))


def test_an_unknown_page(db: None, client: Client) -> None:
    page = client.get("/nowhere/")
    assert page.status_code == 404
    assert looks_like_the_site(page)


def test_a_page_for_operators(alice: User, client: Client) -> None:
    client.force_login(alice)
    page = client.get("/admin/", follow=True)
    assert page.status_code == 403
    assert looks_like_the_site(page)


def test_a_form_without_its_token(db: None) -> None:
    page = Client(enforce_csrf_checks=True).post("/account/login/", {"login": "a", "password": "b"})
    assert page.status_code == 403
    assert looks_like_the_site(page)


def test_too_many_sign_ups_from_one_address(db: None, client: Client) -> None:
    answers = [client.post("/account/signup/", {}) for _ in range(21)]
    assert [answer.status_code for answer in answers] == [200] * 20 + [429]
    assert looks_like_the_site(answers[-1])


@pytest.mark.usefixtures("broken_urls")
def test_a_broken_page_tells_nothing_of_the_server(db: None) -> None:
    page = Client(raise_request_exception=False).get("/broken/")
    assert page.status_code == 500
    assert looks_like_the_site(page)
    assert "secret of the server" not in text_of(page)


@pytest.mark.usefixtures("broken_urls")
def test_a_request_that_cannot_be_read(db: None, client: Client) -> None:
    page = client.get("/unreadable/")
    assert page.status_code == 400
    assert looks_like_the_site(page)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("check_certificate", [], []),
        ("signature_picture", [], []),
        ("unsubscribe", [], []),
        ("app", [], []),
        ("statistics_file", [], []),
        ("credit_experiment_shared", [], []),
        ("download", [], []),
        ("experiment_shared", [], []),
        ("emulator_run", [], [1]),
    ],
)
def test_an_address_with_a_nul_leads_nowhere(signed_in: Client, name: str, before: list[str], after: list[int]) -> None:
    """PostgreSQL has no text with a NUL, so a look-up with one would fail."""
    address = reverse(name, args=[*before, "a\0b", *after])
    assert signed_in.get(address).status_code in (400, 404)


@pytest.mark.django_db
def test_a_day_with_a_nul_is_told_and_today_is_shown(signed_in: Client) -> None:
    page = signed_in.get(reverse("history_day", args=["a\0b"]))
    assert page.status_code == 200
    assert "is not a day" in page.content.decode()

"""Logging in by user name: on the web, by BOINC clients, and who may have which name."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import Settings

from portal.models import User
from portal.people.accounts import ClientAuthError, authenticate_client
from portal.wire.credentials import client_password_hash
from portal.wire.names import folded, is_login_name
from tests.support.page_reader import Page

pytestmark = pytest.mark.django_db
PAGE = "/account/user-name/"
PASSWORD = "alice's secret"


@pytest.fixture(autouse=True)
def by_user_name(settings: Settings) -> None:
    settings.LOGIN_BY_USER_NAME = True


@pytest.fixture
def named(client: Client, alice: User) -> User:
    """Alice, who has chosen a name with her password."""
    client.force_login(alice)
    assert client.post(PAGE, {"name": "Star-Gazer 7", "password": PASSWORD}).status_code == 302
    alice.refresh_from_db()
    return alice


def log_in(login: str, password: str = PASSWORD) -> User:
    return authenticate_client(login, client_password_hash(password, login), address="192.0.2.1")


GOOD = ("ab", "Star-Gazer 7", "x_1.y", "a" * 40)
# One begins with a Cyrillic letter, one has a space that is not seen.
BAD = ("", "a", "7up", "a@example.org", "a--b", "a b ", "Zo\u00eb", "\u0430lice", "a" * 41, "a\u200bb")


@pytest.mark.parametrize(("name", "is_one"), [*((name, True) for name in GOOD), *((name, False) for name in BAD)])
def test_what_can_be_a_user_name(name: str, is_one: bool) -> None:
    assert is_login_name(name) is is_one


@pytest.mark.parametrize(
    ("one", "other"), [("Bill", "b1ll"), ("star-gazer", "Star Gazer"), ("o.k", "0k"), ("I x", "lx")]
)
def test_names_that_look_alike_are_one(one: str, other: str) -> None:
    assert folded(one) == folded(other)


def test_a_client_logs_in_by_name_or_address(named: User) -> None:
    assert [log_in(login) for login in ("Star-Gazer 7", "STAR-GAZER 7", named.email)] == [named] * 3
    for login, password in (("Star-Gazer 7", "wrong"), ("nobody", PASSWORD)):
        with pytest.raises(ClientAuthError):
            log_in(login, password)


def test_people_log_in_by_name(client: Client, named: User) -> None:
    client.logout()
    reply = client.post("/account/login/", {"login": "star-gazer 7", "password": PASSWORD})
    assert (reply.status_code, client.session["_auth_user_id"]) == (302, str(named.pk))


def test_a_new_password_counts_for_the_name_too(named: User) -> None:
    named.set_password("another secret")
    named.save()
    assert log_in("Star-Gazer 7", "another secret") == named
    with pytest.raises(ClientAuthError):
        log_in("Star-Gazer 7")


def test_a_name_that_looks_like_another_ones_or_a_wrong_password_is_refused(named: User, bob: User) -> None:
    client = Client()
    client.force_login(bob)
    for form in ({"name": "stargazer7", "password": "bob's secret"}, {"name": "bobby", "password": "wrong"}):
        reply = client.post(PAGE, form)
        assert reply.status_code == 422 and Page(reply.content.decode()).words
    bob.refresh_from_db()
    assert (bob.login_name, bob.login_name_key, bob.login_name_password) == ("", None, "")


def test_the_name_can_be_given_up(client: Client, named: User) -> None:
    client.post(PAGE, {"name": "", "password": PASSWORD})
    with pytest.raises(ClientAuthError):
        log_in("Star-Gazer 7")


def test_the_manager_asks_for_a_user_name(client: Client) -> None:
    config = client.get("/get_project_config.php").content
    assert b"<uses_username>1</uses_username>" in config or b"<uses_username/>" in config
    assert b"<client_account_creation_disabled" in config


def test_without_the_setting_there_are_none(client: Client, named: User, settings: Settings) -> None:
    settings.LOGIN_BY_USER_NAME = False
    assert client.get(PAGE).status_code == 404
    assert b"uses_username" not in client.get("/get_project_config.php").content
    with pytest.raises(ClientAuthError):
        log_in("Star-Gazer 7")

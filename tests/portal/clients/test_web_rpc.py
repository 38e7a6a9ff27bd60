"""get_project_config.php, lookup_account.php and create_account.php, as BOINC clients call them."""

from __future__ import annotations

import hashlib
import logging
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from django.db import connection
from django.test import Client

import portal
from portal.models import ClientKey, User
from portal.wire import boinc_errors

SECRET = hashlib.md5(b"alice's secretalice@example.org").hexdigest()


def boinc_quote(text: str) -> str:
    """Percent-encode as boinccmd does, even the dot."""
    return quote(text, safe="").replace(".", "%2E").replace("-", "%2D").replace("_", "%5F")


def call(client: Client, path: str, method: str = "GET", **parameters: str) -> ElementTree.Element:
    """The reply's root, after checking what is the same for all replies."""
    query = "&".join(f"{name}={boinc_quote(value)}" for name, value in parameters.items())
    response = client.generic(method, f"{path}?{query}")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/xml")
    assert not response.cookies
    return ElementTree.fromstring(response.content)


def error_of(reply: ElementTree.Element) -> int:
    """The error number, after checking that a sentence is with it."""
    assert reply.tag == "error", ElementTree.tostring(reply)
    assert len(reply.findtext("error_msg", "")) > 20
    return int(reply.findtext("error_num", "0"))


def look_up(client: Client, **parameters: str) -> ElementTree.Element:
    return call(client, "/lookup_account.php", **parameters)


def create(client: Client, **changed: str) -> ElementTree.Element:
    email = changed.get("email_addr", "new+user@example.org")
    sent = hashlib.md5(f"secret{email.lower()}".encode()).hexdigest()
    given = {"email_addr": email, "passwd_hash": sent, "user_name": "New User & co", **changed}
    return call(client, "/create_account.php", **given)


@pytest.fixture
def client() -> Client:
    """A BOINC client: it keeps no cookies and sends no CSRF token."""
    return Client(enforce_csrf_checks=True, headers={"user-agent": "BOINC client (x86_64-pc-linux-gnu 7.20.5)"})


class TestProjectConfig:
    PATH = "/get_project_config.php"

    def test_it_says_what_the_manager_needs(self, client: Client, settings: Any) -> None:
        settings.SITE_NAME, settings.SITE_URL = "Grünes Rechnen & <Co>", "https://am.example.org/"
        reply = call(client, self.PATH)
        assert reply.tag == "project_config"
        assert {element.tag: element.text for element in reply} == {
            "name": "Grünes Rechnen & <Co>",
            "master_url": "https://am.example.org/",
            "web_rpc_url_base": "https://am.example.org/",
            "account_manager": None,
            "min_passwd_length": "8",
            "web_stopped": "0",
            "sched_stopped": "0",
            "min_client_version": "70701",
            "cobblestone_version": portal.__version__,
        }

    def test_it_needs_no_database(self, client: Client) -> None:
        # Without the db mark, pytest-django refuses any use of the database.
        with pytest.raises(RuntimeError, match="Database access not allowed"):
            connection.ensure_connection()
        assert call(client, self.PATH).tag == "project_config"

    def test_closed_sign_up_is_said(self, client: Client, settings: Any) -> None:
        settings.CLIENT_SIGNUP_OPEN = False
        reply = call(client, self.PATH)
        assert reply.find("client_account_creation_disabled") is not None
        assert reply.find("account_creation_disabled") is None
        settings.SIGNUP_OPEN = False
        assert call(client, self.PATH).find("account_creation_disabled") is not None

    def test_terms_of_use_are_shown(self, client: Client, settings: Any) -> None:
        settings.TERMS_OF_USE = "Be kind & <brief>."
        assert call(client, self.PATH).findtext("terms_of_use") == "Be kind & <brief>."

    @pytest.mark.parametrize("accept", ["*/*", "text/html", "application/json", "nonsense", "image/png;q=0"])
    def test_any_accept_header_gets_xml(self, client: Client, accept: str) -> None:
        response = client.get(self.PATH, headers={"accept": accept})
        assert (response.status_code, response["Content-Type"]) == (200, "text/xml; charset=utf-8")

    def test_it_may_be_posted_as_a_form_that_is_none(self, client: Client) -> None:
        response = client.post(self.PATH, b"<x>", content_type="application/x-www-form-urlencoded")
        assert response.status_code == 200
        assert b"<project_config>" in response.content


@pytest.mark.django_db
class TestLookUp:
    def test_the_right_password_gets_a_fresh_key_each_time(self, client: Client, alice: User) -> None:
        keys = [
            look_up(client, email_addr=alice.email, passwd_hash=SECRET).findtext("authenticator", "") for _ in range(2)
        ]
        assert keys[0] != keys[1]
        hashes = {bytes(key.key_hash) for key in ClientKey.objects.filter(user=alice, origin="lookup")}
        assert hashes == {hashlib.sha256(key.encode()).digest() for key in keys}

    def test_the_address_is_taken_in_any_case(self, client: Client, alice: User) -> None:
        assert look_up(client, email_addr="ALICE@Example.org", passwd_hash=SECRET).tag == "account_out"

    def test_it_may_be_posted(self, client: Client, alice: User) -> None:
        reply = call(client, "/lookup_account.php", "POST", email_addr=alice.email, passwd_hash=SECRET)
        assert reply.find("authenticator") is not None

    @pytest.mark.parametrize(
        ("parameters", "error_num"),
        [
            ({"email_addr": "alice@example.org", "passwd_hash": "0" * 32}, boinc_errors.ERR_BAD_PASSWORD),
            ({"email_addr": "nobody@example.org", "passwd_hash": SECRET}, boinc_errors.ERR_ACCOUNT_NOT_FOUND),
            ({"email_addr": "nobody@example.org"}, boinc_errors.ERR_ACCOUNT_NOT_FOUND),
            ({"email_addr": "alice@example.org", "passwd_hash": ""}, boinc_errors.ERR_GENERIC),
            ({"email_addr": "alice@example.org", "passwd_hash": "x" * 32}, boinc_errors.ERR_GENERIC),
            ({"email_addr": "alice@example.org", "passwd_hash": "0" * 5000}, boinc_errors.ERR_GENERIC),
            ({"passwd_hash": SECRET}, boinc_errors.ERR_BAD_EMAIL),
            ({}, boinc_errors.ERR_BAD_EMAIL),
            ({"email_addr": "a\0b", "passwd_hash": SECRET}, boinc_errors.ERR_ACCOUNT_NOT_FOUND),
            ({"email_addr": "<&>\"'", "passwd_hash": SECRET}, boinc_errors.ERR_ACCOUNT_NOT_FOUND),
        ],
    )
    def test_a_refusal_has_boincs_number_and_gives_no_key(
        self, client: Client, alice: User, parameters: dict[str, str], error_num: int
    ) -> None:
        assert error_of(look_up(client, **parameters)) == error_num
        assert not ClientKey.objects.exists()

    def test_bytes_that_are_no_utf8_are_an_unknown_address(self, client: Client) -> None:
        response = client.get(f"/lookup_account.php?email_addr=%ff%fe&passwd_hash={SECRET}")
        assert error_of(ElementTree.fromstring(response.content)) == boinc_errors.ERR_ACCOUNT_NOT_FOUND

    def test_too_many_parameters_are_refused(self, client: Client) -> None:
        response = client.get("/lookup_account.php?" + "&".join(f"a{n}=1" for n in range(1001)))
        assert error_of(ElementTree.fromstring(response.content)) == boinc_errors.ERR_GENERIC

    def test_a_wrong_parameter_is_named_with_its_limit(self, client: Client) -> None:
        reply = look_up(client, email_addr="a" * 1001)
        assert "email_addr" in reply.findtext("error_msg", "")
        assert "1000" in reply.findtext("error_msg", "")

    def test_without_a_password_it_only_says_whether_there_is_an_account(self, client: Client, alice: User) -> None:
        reply = look_up(client, email_addr=alice.email)
        assert [element.tag for element in reply] == ["success"]
        assert not ClientKey.objects.exists()

    def test_too_many_failures_are_told_when_to_come_back(self, client: Client, alice: User, settings: Any) -> None:
        settings.CLIENT_LOGIN_FAILURES = 1
        look_up(client, email_addr=alice.email, passwd_hash="0" * 32)
        reply = look_up(client, email_addr=alice.email, passwd_hash=SECRET)
        assert error_of(reply) == boinc_errors.ERR_BAD_PASSWORD
        assert "Wait until" in reply.findtext("error_msg", "")

    def test_a_key_does_not_open_the_web_site(self, client: Client, alice: User) -> None:
        key = look_up(client, email_addr=alice.email, passwd_hash=SECRET).findtext("authenticator", "")
        browser = Client(headers={"authorization": f"Bearer {key}"})
        browser.cookies["auth"] = key
        assert browser.get("/account/email/").status_code == 302
        browser.post("/account/login/", {"login": alice.email, "password": key})
        assert "_auth_user_id" not in browser.session


@pytest.mark.django_db
class TestCreate:
    def test_it_opens_an_account_and_hands_out_a_key(self, client: Client) -> None:
        key = create(client).findtext("authenticator", "")
        user = User.objects.get()
        assert (user.email, user.name) == ("new+user@example.org", "New User & co")
        assert bytes(ClientKey.objects.get(user=user).key_hash) == hashlib.sha256(key.encode()).digest()

    def test_the_same_again_gives_a_key_of_the_same_account(self, client: Client) -> None:
        assert create(client).findtext("authenticator") != create(client).findtext("authenticator")
        assert ClientKey.objects.filter(user=User.objects.get()).count() == 2

    @pytest.mark.parametrize(
        ("changed", "error_num"),
        [
            ({"email_addr": "no address"}, boinc_errors.ERR_BAD_EMAIL),
            ({"user_name": ""}, boinc_errors.ERR_BAD_USER_NAME),
            ({"user_name": "Mara\u202etxt"}, boinc_errors.ERR_BAD_USER_NAME),
            ({"passwd_hash": "short"}, boinc_errors.ERR_GENERIC),
            ({"email_addr": "alice@example.org"}, boinc_errors.ERR_NOT_UNIQUE),
        ],
    )
    def test_a_refusal_has_boincs_number_and_makes_nothing(
        self, client: Client, alice: User, changed: dict[str, str], error_num: int
    ) -> None:
        assert error_of(create(client, **changed)) == error_num
        assert User.objects.count() == 1
        assert not ClientKey.objects.exists()

    def test_the_switch_is_obeyed(self, client: Client, settings: Any) -> None:
        settings.CLIENT_SIGNUP_OPEN = False
        assert error_of(create(client)) == boinc_errors.ERR_ACCOUNT_CREATION_DISABLED

    def test_consent_is_a_parameter(self, client: Client, settings: Any) -> None:
        settings.TERMS_OF_USE = "Be kind."
        assert error_of(create(client)) == boinc_errors.ERR_CONSENT_REQUIRED
        assert error_of(create(client, consent_flag="0")) == boinc_errors.ERR_CONSENT_REQUIRED
        assert create(client, consent_flag="1", source="BOINC Manager 7.20").tag == "account_out"


@pytest.mark.django_db
def test_no_secret_of_a_query_reaches_the_log(
    client: Client, alice: User, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    key = look_up(client, email_addr=alice.email, passwd_hash=SECRET).findtext("authenticator", "")
    look_up(client, email_addr=alice.email, passwd_hash="f" * 32)
    create(client)
    written = caplog.text + "".join(capfd.readouterr()) + "".join(str(vars(record)) for record in caplog.records)
    assert "lookup_account.php" in written
    for secret in (SECRET, "f" * 32, key, "alice@example.org", "alice%40", "passwd_hash"):
        assert secret not in written

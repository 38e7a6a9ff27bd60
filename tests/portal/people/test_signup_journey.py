"""People on the web: sign up, confirm, log in with a second factor, end a session, and operators' own way in."""

from __future__ import annotations

import re
from smtplib import SMTPException
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.core import mail
from django.test import Client
from pytest_django import Settings

from portal.models import ClientKey, User
from portal.people import accounts
from portal.wire import credentials
from tests.support.sessions import sign_in_lately

REMINDER = "Please confirm your e-mail address"


def sign_up(browser: Client, **changed: str) -> Any:
    form = {"email": "carol@example.org", "password1": "tulips in may", "name": "Carol", **changed}
    return browser.post("/account/signup/", form)


def log_in(user: User, password: str) -> Client:
    browser = Client()
    browser.post("/account/login/", {"login": user.email, "password": password})
    return browser


def is_signed_in(browser: Client) -> bool:
    return "_auth_user_id" in browser.session


def link_in_last_mail() -> str:
    match = re.search(r"https?://[^/\s]+(/\S+)", str(mail.outbox[-1].body))
    assert match
    return match[1]


def text_of(response: Any) -> str:
    return str(response.content.decode())


@pytest.mark.django_db
class TestSigningUp:
    def test_the_account_works_at_once_and_reminds_of_the_confirmation(self, client: Client) -> None:
        answer = sign_up(client)
        assert (answer.status_code, answer["Location"]) == (302, "/home/")
        user = User.objects.get()
        assert (user.email, user.name, user.is_staff) == ("carol@example.org", "Carol", False)
        assert REMINDER not in text_of(client.get("/home/"))  # which says that the mail was sent
        assert REMINDER in text_of(client.get("/connect/"))
        assert mail.outbox[-1].to == ["carol@example.org"]

    def test_confirming_ends_the_reminder(self, client: Client) -> None:
        sign_up(client)
        link = link_in_last_mail()
        # Opening the link is not enough: mail programs open links too.
        client.get(link)
        assert not EmailAddress.objects.get().verified
        client.post(link)
        address = EmailAddress.objects.get()
        assert (address.verified, address.primary) == (True, True)
        assert REMINDER not in text_of(client.get("/connect/"))

    def test_the_address_is_kept_in_lower_case(self, client: Client) -> None:
        sign_up(client, email="Carol@Example.ORG")
        assert User.objects.get().email == "carol@example.org"

    @pytest.mark.parametrize(
        "changed",
        [
            {"password1": "short"},
            {"password1": "12345678"},
            {"email": "carol"},
            {"name": "n" * 101},
            {"name": "Ma\u202era"},
        ],
    )
    def test_what_cannot_be_taken_is_said_on_the_form(self, client: Client, changed: dict[str, str]) -> None:
        answer = sign_up(client, **changed)
        assert answer.status_code == 200
        assert "errorlist" in text_of(answer)
        assert not User.objects.exists()

    def test_a_known_address_is_refused(self, client: Client, alice: User) -> None:
        assert sign_up(client, email="Alice@example.org").status_code == 200
        assert User.objects.count() == 1

    def test_closed_sign_up_says_so_kindly(self, client: Client, settings: Any) -> None:
        settings.SIGNUP_OPEN = False
        page = client.get("/account/signup/")
        assert page.status_code == 200
        assert "password1" not in text_of(page)
        assert "closed" in text_of(page).lower()
        sign_up(client)
        assert not User.objects.exists()

    def test_terms_of_use_are_shown_escaped_and_need_consent(self, client: Client, settings: Any) -> None:
        settings.TERMS_OF_USE = "Be kind <script>alert(1)</script>"
        page = text_of(client.get("/account/signup/"))
        assert "Be kind &lt;script&gt;" in page
        assert sign_up(client).status_code == 200
        assert not User.objects.exists()
        sign_up(client, terms="on")
        assert User.objects.get().terms_accepted_at is not None

    def test_a_mail_server_that_is_down_does_not_stop_it(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any) -> None:
            raise SMTPException("connection refused")

        monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", fail)
        assert sign_up(client).status_code == 302
        assert is_signed_in(client)
        assert "could not be sent" in text_of(client.get("/account/email/"))


class TestLoggingIn:
    def test_wrong_passwords_are_limited(self, alice: User) -> None:
        browser = Client()
        for _ in range(5):
            browser.post("/account/login/", {"login": alice.email, "password": "wrong"})
        answer = browser.post("/account/login/", {"login": alice.email, "password": "alice's secret"})
        assert not is_signed_in(browser)
        assert "Too many failed login attempts" in text_of(answer)

    def test_a_stranger_does_not_lock_out_a_browser_that_signed_in_before(self, alice: User) -> None:
        known = Client(REMOTE_ADDR="192.0.2.7")
        known.post("/account/login/", {"login": alice.email, "password": "alice's secret"})
        known.post("/account/logout/")
        # It has moved, so that its address is unknown.
        for number in range(6):
            stranger = Client(REMOTE_ADDR=f"203.0.113.{number}")
            stranger.post("/account/login/", {"login": alice.email, "password": "wrong"})
        login = {"login": alice.email, "password": "alice's secret"}
        stranger.post("/account/login/", login)
        assert not is_signed_in(stranger)
        known.post("/account/login/", login, REMOTE_ADDR="198.51.100.9")
        assert is_signed_in(known)
        # Nor an address that it signed in from.
        other = Client(REMOTE_ADDR="192.0.2.7")
        other.post("/account/login/", login)
        assert is_signed_in(other)

    def test_a_known_browser_may_not_guess_without_end_either(self, alice: User) -> None:
        browser = log_in(alice, "alice's secret")
        browser.post("/account/logout/")
        for _ in range(5):
            browser.post("/account/login/", {"login": alice.email, "password": "wrong"})
        browser.post("/account/login/", {"login": alice.email, "password": "alice's secret"})
        assert not is_signed_in(browser)

    def test_a_user_name_is_no_login(self, alice: User) -> None:
        browser = Client()
        browser.post("/account/login/", {"login": "Alice", "password": "alice's secret"})
        assert not is_signed_in(browser)

    def test_a_closed_account_stays_out(self, alice: User) -> None:
        User.objects.update(is_active=False)
        assert not is_signed_in(log_in(alice, "alice's secret"))

    def test_the_list_of_sessions_ends_the_others(self, alice: User) -> None:
        here, elsewhere = log_in(alice, "alice's secret"), log_in(alice, "alice's secret")
        here.get("/account/email/")
        elsewhere.get("/account/email/")
        assert here.get("/account/sessions/").status_code == 200
        here.post("/account/sessions/")
        assert here.get("/account/email/").status_code == 200
        assert elsewhere.get("/account/email/").status_code == 302

    def test_a_new_password_ends_other_sessions(self, alice: User) -> None:
        here, elsewhere = log_in(alice, "alice's secret"), log_in(alice, "alice's secret")
        new = {"oldpassword": "alice's secret", "password1": "tulips in may", "password2": "tulips in may"}
        here.post("/account/password/change/", new)
        assert here.get("/account/email/").status_code == 200
        assert elsewhere.get("/account/email/").status_code == 302


class TestTwoFactors:
    @staticmethod
    def code(secret: str) -> str:
        return str(format_hotp_value(hotp_value(secret, next(yield_hotp_counters_from_time()))))

    @pytest.fixture
    def secret(self, alice: User) -> str:
        """Alice switches two-factor login on, as on the page; returns the secret in her authenticator app."""
        EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
        browser = log_in(alice, "alice's secret")
        browser.post("/account/reauthenticate/", {"password": "alice's secret"})
        browser.get("/account/2fa/totp/activate/")
        secret = browser.session["mfa.totp.secret"]
        browser.post("/account/2fa/totp/activate/", {"code": self.code(secret)})
        return str(secret)

    def test_the_password_alone_does_not_log_in(self, alice: User, secret: str) -> None:
        browser = log_in(alice, "alice's secret")
        assert not is_signed_in(browser)
        browser.post("/account/2fa/authenticate/", {"code": "000000"})
        assert not is_signed_in(browser)

    def test_a_recovery_code_works_once(self, alice: User, secret: str) -> None:
        codes = Authenticator.objects.get(user=alice, type="recovery_codes").wrap().get_unused_codes()
        first, second = log_in(alice, "alice's secret"), log_in(alice, "alice's secret")
        first.post("/account/2fa/authenticate/", {"code": codes[0]})
        second.post("/account/2fa/authenticate/", {"code": codes[0]})
        assert (is_signed_in(first), is_signed_in(second)) == (True, False)

    def test_the_secret_is_stored_encrypted(self, alice: User, secret: str) -> None:
        stored = Authenticator.objects.get(user=alice, type="totp").data
        assert secret not in str(stored)

    def test_where_a_password_is_enough_for_clients_its_key_opens_no_web_page(
        self, alice: User, secret: str, settings: Settings
    ) -> None:
        settings.CLIENT_PASSWORD_ALONE = True
        sent = credentials.client_password_hash("alice's secret", alice.email)
        user = accounts.authenticate_client(alice.email, sent, address="192.0.2.1")
        key = accounts.issue_client_key(user, ClientKey.Origin.ATTACH)
        browser = log_in(alice, key)
        assert not is_signed_in(browser)


class TestOperators:
    PAGES = (
        "/admin/",
        "/admin/portal/user/",
        "/admin/portal/user/add/",
        "/admin/portal/user/{user}/change/",
        "/admin/portal/host/",
        "/admin/portal/host/{host}/change/",
        "/admin/portal/clientkey/",
        "/admin/portal/clientkey/{key}/change/",
        "/admin/portal/account/",
        "/admin/portal/account/{user}/change/",
    )

    def test_the_admin_has_no_login_of_its_own(self, operator: User) -> None:
        browser = Client()
        answer = browser.get("/admin/", follow=True)
        assert answer.redirect_chain[-1][0].startswith("/account/login/")
        browser.post("/admin/login/", {"username": operator.email, "password": "operator's secret"})
        assert not is_signed_in(browser)

    def test_a_volunteer_does_not_get_in(self, alice: User, client: Client) -> None:
        sign_in_lately(client, alice)
        assert client.get("/admin/", follow=True).status_code == 403

    @pytest.mark.parametrize("page", PAGES)
    def test_an_operators_page_opens(self, studio: Any, desk: Client, page: str) -> None:
        accounts.issue_client_key(studio.owner, ClientKey.Origin.ATTACH, studio)
        url = page.format(user=studio.owner_id, host=studio.pk, key=ClientKey.objects.get().pk)
        assert desk.get(url).status_code == 200

    def test_a_person_or_computer_with_history_cannot_be_deleted_by_a_click(self, studio: Any, desk: Client) -> None:
        for url in (f"user/{studio.owner_id}", f"host/{studio.pk}"):
            assert desk.post(f"/admin/portal/{url}/delete/", {"post": "yes"}).status_code == 403
        assert User.objects.filter(pk=studio.owner_id).exists()

    def test_an_operator_revokes_keys(self, alice: User, desk: Client) -> None:
        accounts.issue_client_key(alice, ClientKey.Origin.LOOKUP)
        form = {"action": "revoke", "_selected_action": [str(ClientKey.objects.get().pk)]}
        desk.post("/admin/portal/clientkey/", form)
        assert ClientKey.objects.get().revoked_at is not None

    def test_an_operator_adds_a_person_who_can_log_in_everywhere(self, desk: Client) -> None:
        form = {
            "email": "Dora@example.org",
            "usable_password": "true",
            "password1": "tulips in may",
            "password2": "tulips in may",
        }
        assert desk.post("/admin/portal/user/add/", form).status_code == 302
        dora = User.objects.get(email="dora@example.org")
        sent = credentials.client_password_hash("tulips in may", dora.email)
        assert accounts.authenticate_client(dora.email, sent, address="192.0.2.1") == dora
        assert is_signed_in(log_in(dora, "tulips in may"))

    def test_an_operator_changes_an_address_and_the_old_one_opens_nothing(self, alice: User, desk: Client) -> None:
        EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
        form = {"email": "Alice@new.example.org", "name": "Alice", "is_active": "on"}
        assert desk.post(f"/admin/portal/user/{alice.pk}/change/", form).status_code == 302
        assert not is_signed_in(log_in(alice, "alice's secret"))
        alice.refresh_from_db()
        assert alice.email == "alice@new.example.org"
        assert is_signed_in(log_in(alice, "alice's secret"))

"""What a BOINC client logs in with stays right through every way a password or an address can change."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth import authenticate
from django.contrib.auth.hashers import MD5PasswordHasher, make_password
from django.core import mail
from django.core.management import call_command
from django.test import Client
from pytest_django import DjangoCaptureOnCommitCallbacks

from portal.models import User
from portal.people import accounts
from portal.wire import boinc_errors
from portal.wire.credentials import client_password_hash

ADDRESS = "192.0.2.1"
NEW_PASSWORD = "a brand-new pass phrase"


def client_login(login: str, password: str) -> int:
    """Log in as a BOINC client does, by MD5(password + lower-case login); BOINC's error number, 0 for success."""
    sent = hashlib.md5((password + login.lower()).encode()).hexdigest()
    try:
        accounts.authenticate_client(login, sent, address=ADDRESS)
    except accounts.ClientAuthError as error:
        return error.error_num
    return 0


def web_login(login: str, password: str) -> Client:
    browser = Client()
    browser.post("/account/login/", {"login": login, "password": password})
    return browser


def is_signed_in(browser: Client) -> bool:
    return "_auth_user_id" in browser.session


def link_in_last_mail() -> str:
    match = re.search(r"https?://[^/\s]+(/\S+)", str(mail.outbox[-1].body))
    assert match, mail.outbox[-1].body
    return match[1]


def set_password_by_mail(email: str, password: str) -> None:
    """The whole way: ask for the mail, follow its link, give a new password."""
    browser = Client()
    browser.post("/account/password/reset/", {"email": email})
    asked = browser.get(link_in_last_mail(), follow=True)
    url = asked.redirect_chain[-1][0]
    browser.post(url, {"password1": password, "password2": password})


def ask_for_new_address(browser: Client, email: str, password: str) -> Any:
    return browser.post("/account/email/", {"email": email, "password": password, "action_add": ""})


def confirm_by_mail(browser: Client) -> None:
    browser.post(link_in_last_mail())


def test_the_known_vector() -> None:
    # BOINC protocol, lookup_account.php: "secret" + "user@example.org"
    assert hashlib.md5(b"secretuser@example.org").hexdigest() == "c5b3b6203845d293d91e391b3fe9c8dc"


def test_after_sign_up_a_client_can_log_in(db: None) -> None:
    Client().post("/account/signup/", {"email": "Carol@Example.ORG", "password1": "tulips in may"})
    assert client_login("carol@example.org", "tulips in may") == 0
    assert client_login("Carol@Example.ORG", "tulips in may") == 0
    assert client_login("carol@example.org", "tulips in june") == boinc_errors.ERR_BAD_PASSWORD


def test_what_is_stored_is_neither_the_password_nor_what_clients_send(alice: User, settings: Any) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    alice.set_password(NEW_PASSWORD)
    sent = hashlib.md5((NEW_PASSWORD + alice.email).encode()).hexdigest()
    assert alice.client_password.startswith("pbkdf2_sha256$")
    assert sent not in alice.client_password
    assert client_login(alice.email, alice.client_password) == boinc_errors.ERR_BAD_PASSWORD


def test_after_a_password_change_only_the_new_password_works(alice: User) -> None:
    browser = web_login(alice.email, "alice's secret")
    new = {"oldpassword": "alice's secret", "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    browser.post("/account/password/change/", new)
    assert client_login(alice.email, NEW_PASSWORD) == 0
    assert client_login(alice.email, "alice's secret") == boinc_errors.ERR_BAD_PASSWORD


def test_after_a_password_reset_only_the_new_password_works(alice: User) -> None:
    set_password_by_mail(alice.email, NEW_PASSWORD)
    assert client_login(alice.email, NEW_PASSWORD) == 0
    assert client_login(alice.email, "alice's secret") == boinc_errors.ERR_BAD_PASSWORD


def test_after_an_operator_sets_a_password_only_that_works(alice: User, desk: Client) -> None:
    form = {"usable_password": "true", "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    answer = desk.post(f"/admin/portal/user/{alice.pk}/password/", form)
    assert answer.status_code == 302
    assert client_login(alice.email, NEW_PASSWORD) == 0
    assert client_login(alice.email, "alice's secret") == boinc_errors.ERR_BAD_PASSWORD


def test_an_operator_who_disables_the_password_closes_both_logins(alice: User, desk: Client) -> None:
    form = {"usable_password": "false", "unset-password": "Disable"}
    assert desk.post(f"/admin/portal/user/{alice.pk}/password/", form).status_code == 302
    assert client_login(alice.email, "alice's secret") == boinc_errors.ERR_BAD_PASSWORD
    assert not is_signed_in(web_login(alice.email, "alice's secret"))


def test_after_changepassword_on_the_command_line_only_the_new_one_works_and_a_mail_tells_of_it(
    alice: User,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    monkeypatch.setattr("getpass.getpass", lambda prompt: NEW_PASSWORD)
    with django_capture_on_commit_callbacks(execute=True):
        call_command("changepassword", alice.email, verbosity=0)
    assert client_login(alice.email, NEW_PASSWORD) == 0
    [sent] = mail.outbox
    assert sent.to == [alice.email] and "The password was set." in sent.body


class TestANewAddress:
    """The value depends on the address: it must change with it, not before, and without the password in store."""

    NEW = "alice@new.example.org"

    def test_the_old_address_works_until_the_new_one_is_confirmed(self, alice: User) -> None:
        browser = web_login(alice.email, "alice's secret")
        ask_for_new_address(browser, "Alice@New.Example.org", "alice's secret")
        assert mail.outbox[-1].to == [self.NEW]
        assert client_login(alice.email, "alice's secret") == 0
        assert client_login(self.NEW, "alice's secret") == boinc_errors.ERR_ACCOUNT_NOT_FOUND

    def test_after_confirmation_the_new_address_works_at_once(self, alice: User) -> None:
        browser = web_login(alice.email, "alice's secret")
        ask_for_new_address(browser, self.NEW, "alice's secret")
        confirm_by_mail(browser)
        assert User.objects.get(pk=alice.pk).email == self.NEW
        assert client_login(self.NEW, "alice's secret") == 0
        assert client_login("alice@example.org", "alice's secret") == boinc_errors.ERR_ACCOUNT_NOT_FOUND
        assert is_signed_in(web_login(self.NEW, "alice's secret"))

    def test_the_form_wants_the_password(self, alice: User) -> None:
        browser = web_login(alice.email, "alice's secret")
        ask_for_new_address(browser, self.NEW, "")
        ask_for_new_address(browser, self.NEW, "wrong")
        assert mail.outbox == []
        assert not EmailAddress.objects.filter(email=self.NEW).exists()

    def test_a_password_changed_while_it_waits_counts_after_confirmation(self, alice: User) -> None:
        browser = web_login(alice.email, "alice's secret")
        ask_for_new_address(browser, self.NEW, "alice's secret")
        confirmation = link_in_last_mail()
        new = {"oldpassword": "alice's secret", "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
        browser.post("/account/password/change/", new)
        browser.post(confirmation)
        assert client_login(self.NEW, NEW_PASSWORD) == 0
        assert client_login(self.NEW, "alice's secret") == boinc_errors.ERR_BAD_PASSWORD

    def test_an_unconfirmed_login_keeps_working_while_its_owner_waits_for_another(self, db: None) -> None:
        browser = Client()
        browser.post("/account/signup/", {"email": "typo@example.org", "password1": "tulips in may"})
        ask_for_new_address(browser, "right@example.org", "tulips in may")
        assert client_login("typo@example.org", "tulips in may") == 0
        confirm_by_mail(browser)
        assert client_login("right@example.org", "tulips in may") == 0
        assert User.objects.get().email == "right@example.org"

    def test_nobody_can_take_an_address_that_is_somebody_elses(self, alice: User, bob: User) -> None:
        ask_for_new_address(web_login(alice.email, "alice's secret"), bob.email, "alice's secret")
        assert mail.outbox == []

    def test_an_address_taken_in_the_meantime_stays_with_who_took_it(self, alice: User) -> None:
        browser = web_login(alice.email, "alice's secret")
        ask_for_new_address(browser, self.NEW, "alice's secret")
        other = User.objects.create_user(self.NEW, "quick brown fox")
        confirm_by_mail(browser)
        assert User.objects.get(pk=alice.pk).email == "alice@example.org"
        assert User.objects.get(pk=other.pk).email == self.NEW
        assert client_login("alice@example.org", "alice's secret") == 0

    def test_an_address_cannot_become_the_login_without_confirmation(self, alice: User) -> None:
        browser = web_login(alice.email, "alice's secret")
        ask_for_new_address(browser, self.NEW, "alice's secret")
        for action in ("action_primary", "action_remove"):
            for email in (self.NEW, alice.email):
                browser.post("/account/email/", {"email": email, action: ""})
                assert User.objects.get(pk=alice.pk).email == alice.email

    def test_an_operators_change_is_explained_and_repaired_by_a_web_login(self, alice: User) -> None:
        # The operator knows no password, so the value for the new address cannot be made.
        User.objects.filter(pk=alice.pk).update(email=self.NEW)
        sent = hashlib.md5(f"alice's secret{self.NEW}".encode()).hexdigest()
        with pytest.raises(accounts.ClientAuthError, match="Log in once at http"):
            accounts.authenticate_client(self.NEW, sent, address=ADDRESS)
        web_login(self.NEW, "alice's secret")
        assert client_login(self.NEW, "alice's secret") == 0


class TestAnAccountMadeByAClient:
    """create_account.php brings only the hash; the web login takes the password over when it first sees it."""

    EMAIL, PASSWORD = "dora@example.org", "seven green boats"

    @pytest.fixture
    def dora(self, db: None) -> User:
        sent = hashlib.md5((self.PASSWORD + self.EMAIL).encode()).hexdigest()
        return accounts.create_account(self.EMAIL, sent, "Dora", address=ADDRESS)

    def test_a_client_can_log_in_at_once(self, dora: User) -> None:
        assert client_login(self.EMAIL, self.PASSWORD) == 0

    def test_the_web_login_works_and_makes_the_password_usable(self, dora: User) -> None:
        assert not dora.has_usable_password()
        assert is_signed_in(web_login("Dora@example.org", self.PASSWORD))
        dora.refresh_from_db()
        assert dora.check_password(self.PASSWORD)
        assert client_login(self.EMAIL, self.PASSWORD) == 0

    def test_a_wrong_password_opens_nothing(self, dora: User) -> None:
        assert not is_signed_in(web_login(self.EMAIL, "wrong"))
        dora.refresh_from_db()
        assert not dora.has_usable_password()

    def test_what_a_client_sends_is_no_web_password(self, dora: User) -> None:
        sent = hashlib.md5((self.PASSWORD + self.EMAIL).encode()).hexdigest()
        assert not is_signed_in(web_login(self.EMAIL, sent))

    def test_once_there_is_a_web_password_the_clients_value_opens_the_web_no_more(self, dora: User) -> None:
        set_password_by_mail(self.EMAIL, NEW_PASSWORD)
        assert not is_signed_in(web_login(self.EMAIL, self.PASSWORD))
        assert client_login(self.EMAIL, self.PASSWORD) == boinc_errors.ERR_BAD_PASSWORD
        assert client_login(self.EMAIL, NEW_PASSWORD) == 0

    def test_a_closed_account_is_refused_on_the_web(self, dora: User) -> None:
        User.objects.update(is_active=False)
        assert not is_signed_in(web_login(self.EMAIL, self.PASSWORD))


def test_a_stronger_hasher_upgrades_the_web_password_and_leaves_the_clients_right(alice: User, settings: Any) -> None:
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.PBKDF2PasswordHasher",
        "django.contrib.auth.hashers.MD5PasswordHasher",
    ]
    assert alice.password.startswith("md5$")
    assert is_signed_in(web_login(alice.email, "alice's secret"))
    alice.refresh_from_db()
    assert alice.password.startswith("pbkdf2_sha256$")
    assert client_login(alice.email, "alice's secret") == 0


@pytest.mark.django_db
def test_a_wrong_password_is_hashed_as_often_whatever_account_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the time does not tell who has an account, such as one that a client opened or that moved here."""
    User.objects.create_user("web@example.org", "secret")
    User.objects.create_user("closed@example.org", "secret", is_active=False)
    User.objects.create_user("none@example.org")
    sent = client_password_hash("secret", "client@example.org")
    User.objects.filter(pk=User.objects.create_user("client@example.org").pk).update(
        client_password=make_password(sent), client_password_email="client@example.org"
    )
    hashed: list[str] = []
    encode = MD5PasswordHasher.encode

    def counting(self: MD5PasswordHasher, password: str, salt: str) -> str:
        hashed.append(password)
        return str(encode(self, password, salt))

    monkeypatch.setattr(MD5PasswordHasher, "encode", counting)
    counts = {}
    for name in ("web", "closed", "none", "client", "nobody"):
        hashed.clear()
        assert authenticate(None, email=f"{name}@example.org", password="wrong") is None
        counts[name] = len(hashed)
    assert counts == dict.fromkeys(counts, 2)

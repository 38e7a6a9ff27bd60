"""A second factor guards what BOINC's clients get, too: they have a login token in place of the password."""

from __future__ import annotations

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from portal.models import ClientKey, LoginToken, User
from portal.people import accounts, login_tokens
from portal.wire.credentials import client_password_hash
from tests.support.sessions import sign_in_lately

PASSWORD = "alice's secret"
ADDRESS = "192.0.2.1"
Kind = Authenticator.Type


def log_in(user: User, secret: str) -> User:
    return accounts.authenticate_client(user.email, client_password_hash(secret, user.email), address=ADDRESS)


@pytest.fixture
def guarded(alice: User) -> User:
    Authenticator.objects.create(user=alice, type=Kind.TOTP, data={})
    return alice


def lookup(user: User, secret: str) -> str:
    """As the BOINC Manager attaches to the project."""
    sent = {"email_addr": user.email, "passwd_hash": client_password_hash(secret, user.email)}
    return Client().get("/project/lookup_account.php", sent).content.decode()


@pytest.mark.parametrize("kind", [Kind.TOTP, Kind.WEBAUTHN])
def test_the_password_alone_gives_no_key_where_a_second_factor_is_on(alice: User, kind: str) -> None:
    Authenticator.objects.create(user=alice, type=kind, data={})
    assert "account/login-token/" in lookup(alice, PASSWORD)
    with pytest.raises(accounts.ClientAuthError, match="second factor"):
        accounts.create_account(alice.email, client_password_hash(PASSWORD, alice.email), "A", address=ADDRESS)
    assert not ClientKey.objects.exists()
    # The owner learns that somebody knew the password.
    assert alice.security_events.filter(kind="client_failed").count() == 2


def test_recovery_codes_alone_are_no_second_factor(alice: User) -> None:
    Authenticator.objects.create(user=alice, type=Kind.RECOVERY_CODES, data={})
    assert log_in(alice, PASSWORD) == alice


def test_a_wrong_password_is_told_nothing_of_the_factor(guarded: User) -> None:
    with pytest.raises(accounts.WrongPassword):
        log_in(guarded, "wrong")


def test_a_login_token_takes_the_place_of_the_password_once(guarded: User) -> None:
    token = login_tokens.make(guarded, timezone.now())
    assert "<authenticator>" in lookup(guarded, token)
    assert "<authenticator>" not in lookup(guarded, token)
    assert ClientKey.objects.filter(user=guarded).count() == 1


def test_a_login_token_is_one_accounts_and_ends_after_a_day(guarded: User, bob: User) -> None:
    token = login_tokens.make(guarded, timezone.now())
    with pytest.raises(accounts.WrongPassword):
        log_in(bob, token)
    LoginToken.objects.update(made_at=timezone.now() - login_tokens.VALID)
    with pytest.raises(accounts.WrongPassword):
        log_in(guarded, token)


def test_where_the_switch_is_on_the_password_is_enough(guarded: User, settings: Settings) -> None:
    settings.CLIENT_PASSWORD_ALONE = True
    assert log_in(guarded, PASSWORD) == guarded


@pytest.mark.django_db(transaction=True)
def test_a_new_factor_ends_a_token_that_was_made_with_the_password_alone(client: Client, alice: User) -> None:
    login_tokens.make(alice, timezone.now())
    sign_in_lately(client, alice)
    client.get("/account/2fa/totp/activate/")
    secret = client.session["mfa.totp.secret"]
    code = totp.format_hotp_value(totp.hotp_value(secret, next(iter(totp.yield_hotp_counters_from_time()))))
    client.post("/account/2fa/totp/activate/", {"code": code})
    assert Authenticator.objects.filter(user=alice, type=Kind.TOTP).exists() and not LoginToken.objects.exists()

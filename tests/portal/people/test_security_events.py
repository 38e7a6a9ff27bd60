"""An account's security events: what is noted, who sees it, and for how long it is kept."""

from __future__ import annotations

import datetime as dt
import hashlib
import time
from collections.abc import Callable

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.core import mail
from django.test import Client
from django.utils import timezone

from portal import tasks
from portal.languages.messages import Message
from portal.models import ClientKey, SecurityEvent, User
from portal.people import accounts
from portal.people.api_tokens import issue_token
from portal.people.key_mails import send_waiting
from portal.people.security_events import EVENTS_KEPT, Source

PASSWORD = "alice's secret"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"


def kinds(user: User) -> list[str]:
    return list(SecurityEvent.objects.filter(user=user).order_by("pk").values_list("kind", flat=True))


def log_in(login: str, password: str) -> Client:
    browser = Client(REMOTE_ADDR="192.0.2.7", headers={"User-Agent": FIREFOX})
    browser.post("/account/login/", {"login": login, "password": password})
    return browser


def test_logins_and_failed_ones_are_noted_with_where_they_came_from(alice: User) -> None:
    log_in(alice.email, "wrong")
    log_in("nobody@example.org", PASSWORD)
    log_in(alice.email, PASSWORD)
    assert kinds(alice) == ["login_failed", "login"]
    event = SecurityEvent.objects.last()
    assert event is not None
    assert (event.address, event.user_agent) == ("192.0.2.7", FIREFOX)


def test_a_clients_wrong_password_and_its_new_key_are_noted(alice: User, client: Client) -> None:
    for password in ("wrong", PASSWORD):
        sent = hashlib.md5((password + alice.email).encode()).hexdigest()
        client.get("/lookup_account.php", {"email_addr": alice.email, "passwd_hash": sent}, REMOTE_ADDR="192.0.2.8")
    assert kinds(alice) == ["client_failed", "key_made"]
    assert set(SecurityEvent.objects.values_list("address", flat=True)) == {"192.0.2.8"}


def test_keys_tokens_and_passwords_are_noted_when_they_change(alice: User) -> None:
    browser = log_in(alice.email, PASSWORD)
    accounts.issue_client_key(alice, ClientKey.Origin.LOOKUP)
    issue_token(alice, name="spreadsheet", scopes=["read:hosts"], lifetime=None)
    browser.post(f"/account/keys/{ClientKey.objects.get().pk}/revoke/")
    browser.post(f"/account/tokens/{alice.api_tokens.get().pk}/revoke/")
    new = {"oldpassword": PASSWORD, "password1": "tulips in may", "password2": "tulips in may"}
    browser.post("/account/password/change/", new)
    assert kinds(alice)[1:] == ["key_made", "token_made", "key_revoked", "token_revoked", "password"]


def test_what_an_operator_changes_is_noted_as_an_operators(alice: User, desk: Client) -> None:
    form = {"email": alice.email, "name": "Alison", "is_active": "on"}
    assert desk.post(f"/admin/portal/user/{alice.pk}/change/", form).status_code == 302
    password = {"usable_password": "true", "password1": "tulips in may", "password2": "tulips in may"}
    assert desk.post(f"/admin/portal/user/{alice.pk}/password/", password).status_code == 302
    events = SecurityEvent.objects.filter(user=alice).order_by("pk").values_list("kind", "detail", "user_agent")
    changed = Message("event_changed_fields", fields=[Message("account_name")])
    assert list(events) == [("rights", changed, "an operator"), ("password", None, "an operator")]


def test_the_page_shows_ones_own_events_and_failures_apart(alice: User, bob: User) -> None:
    SecurityEvent.objects.create(user=bob, kind="login", address="203.0.113.99")
    for _ in range(3):
        log_in(alice.email, "wrong")
    page = log_in(alice.email, PASSWORD).get("/account/events/").content.decode()
    changes, _, failures = page.partition("<h2>Failed logins</h2>")
    assert "Signed in" in changes and "A wrong password" not in changes
    assert failures.count("A wrong password") == 3
    assert "Firefox 128 (Linux)" in page
    assert "203.0.113.99" not in page


def test_a_flood_of_failures_hides_no_change(alice: User) -> None:
    accounts.issue_client_key(alice, ClientKey.Origin.LOOKUP, source=Source("203.0.113.5"))
    SecurityEvent.objects.bulk_create(SecurityEvent(user=alice, kind="client_failed") for _ in range(300))
    page = log_in(alice.email, PASSWORD).get("/account/events/").content.decode()
    assert "Client key created" in page


def test_events_are_removed_after_ninety_days(alice: User) -> None:
    now = timezone.now()
    assert dt.timedelta(days=90) == EVENTS_KEPT
    for days in (89, 91):
        SecurityEvent.objects.create(user=alice, kind="login", at=now - dt.timedelta(days=days))
    tasks.tidy_up()
    assert (now - SecurityEvent.objects.get().at).days == 89


@pytest.mark.django_db
def test_each_event_is_a_line_of_the_log_without_the_login(
    alice: User, log_lines: Callable[[], list[dict[str, object]]]
) -> None:
    log_in(alice.email, "wrong")
    log_in("nobody@example.org", "wrong")
    lines = [line for line in log_lines() if line["event"] == "security_event"]
    assert [(line["kind"], line["user"], line["address"]) for line in lines] == [
        ("login_failed", alice.pk, "192.0.2.7"),
        ("login_failed", None, "192.0.2.7"),
    ]
    assert "example.org" not in str(lines)


def test_a_token_is_made_by_who_signed_in_lately_only_and_a_mail_tells_of_it(alice: User) -> None:
    wish = {"name": "spreadsheet", "scopes": "read:hosts", "days": "30"}
    browser = log_in(alice.email, PASSWORD)
    sign_in_was(browser, minutes_ago=6)
    asked = browser.post("/account/tokens/", wish)
    assert (asked.status_code, asked.headers["Location"]) == (
        302,
        "/account/reauthenticate/?next=%2Faccount%2Ftokens%2F",
    )
    assert not alice.api_tokens.exists()
    wrong = browser.post(asked.headers["Location"], {"password": "wrong"})
    assert wrong.status_code == 200 and not alice.api_tokens.exists()
    # The wish is not lost: it is carried out as soon as the password was given.
    made = browser.post(asked.headers["Location"], {"password": PASSWORD, "next": "/account/tokens/"})
    assert "This is your new token" in made.content.decode()
    assert alice.api_tokens.get().name == "spreadsheet"
    [sent] = mail.outbox
    assert sent.to == [alice.email] and "spreadsheet" in sent.body and "computers" in sent.body

    sign_in_was(browser, minutes_ago=6)
    replace = f"/account/tokens/{alice.api_tokens.get().pk}/replace/"
    assert browser.post(replace).headers["Location"].startswith("/account/reauthenticate/")
    sign_in_was(browser, minutes_ago=4)
    assert browser.post(replace).status_code == 200
    assert len(mail.outbox) == 2


@pytest.mark.django_db(transaction=True)
def test_the_second_factor_is_changed_by_who_signed_in_lately_only_and_a_mail_tells_of_it(alice: User) -> None:
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    browser = log_in(alice.email, PASSWORD)
    page = "/account/2fa/totp/activate/"
    assert browser.get(page).status_code == 200
    sign_in_was(browser, minutes_ago=6)
    assert browser.get(page).headers["Location"].startswith("/account/reauthenticate/")
    sign_in_was(browser, minutes_ago=1)
    browser.get(page)
    secret = browser.session["mfa.totp.secret"]
    browser.post(page, {"code": format_hotp_value(hotp_value(secret, next(yield_hotp_counters_from_time())))})
    assert [sent.subject for sent in mail.outbox] == ["Cobblestone: Authenticator app switched on"]
    assert "factor_added" in kinds(alice)
    sign_in_was(browser, minutes_ago=6)
    assert browser.post("/account/2fa/totp/deactivate/").headers["Location"].startswith("/account/reauthenticate/")
    sign_in_was(browser, minutes_ago=1)
    browser.post("/account/2fa/totp/deactivate/")
    assert kinds(alice)[-1] == "factor_removed"
    assert mail.outbox[-1].subject == "Cobblestone: Authenticator app switched off"


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_mail_tells_of_a_key_that_a_client_got_for_the_password(alice: User, client: Client, confirmed: bool) -> None:
    EmailAddress.objects.create(user=alice, email=alice.email, verified=confirmed, primary=True)
    sent = hashlib.md5((PASSWORD + alice.email).encode()).hexdigest()
    client.get("/lookup_account.php", {"email_addr": alice.email, "passwd_hash": sent}, REMOTE_ADDR="192.0.2.8")
    send_waiting(timezone.now())
    assert [message.to for message in mail.outbox] == [[alice.email]] * confirmed
    if confirmed:
        assert "192.0.2.8" in mail.outbox[0].body and "/account/password/reset/" in mail.outbox[0].body


def sign_in_was(browser: Client, *, minutes_ago: int) -> None:
    """Move all steps of this browser's login back."""
    session = browser.session
    for step in session["account_authentication_methods"]:
        step["at"] = time.time() - 60 * minutes_ago
    session.save()

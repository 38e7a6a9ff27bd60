"""Client logins are limited per account and per address, in the real Valkey."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest
import structlog
from django.contrib.auth import hashers
from redis import Redis

from portal.models import ClientKey, Host, User
from portal.people import accounts
from portal.people.security_events import Kind, Source, record
from portal.sign_in import throttle
from portal.wire import boinc_errors

HOME, OFFICE = "192.0.2.7", "198.51.100.9"


def client_hash(password: str, login: str) -> str:
    """What a BOINC client sends."""
    return hashlib.md5((password + login.lower()).encode()).hexdigest()


def attempt(login: str, password: str, address: str = HOME, host_token: str = "") -> int:
    """The error number of a login; 0 if it succeeds."""
    try:
        accounts.authenticate_client(login, client_hash(password, login), address=address, host_token=host_token)
    except accounts.ClientAuthError as error:
        return error.error_num
    return 0


def refusal(login: str, password: str, address: str = HOME) -> str:
    with pytest.raises(accounts.ClientAuthError) as caught:
        accounts.authenticate_client(login, client_hash(password, login), address=address)
    return caught.value.message


@pytest.fixture
def hashes_made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one with each slow hash that is really computed."""
    made: list[str] = []
    hasher = type(hashers.get_hasher())
    encode = hasher.encode

    def counted(self: Any, password: str, salt: str, *more: Any) -> str:
        made.append(salt)
        return str(encode(self, password, salt, *more))

    monkeypatch.setattr(hasher, "encode", counted)
    return made


@pytest.fixture
def few_failures(settings: Any) -> None:
    settings.CLIENT_LOGIN_FAILURES = 3
    settings.CLIENT_LOGIN_FAILURE_WINDOW_SECS = 600


@pytest.mark.usefixtures("few_failures")
def test_the_right_password_is_refused_too_after_too_many_wrong_ones(alice: User) -> None:
    for _ in range(3):
        assert attempt(alice.email, "wrong") == boinc_errors.ERR_BAD_PASSWORD
    message = refusal(alice.email, "alice's secret", OFFICE)
    assert "too many attempts" in message
    assert re.search(r"Wait until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", message)


@pytest.mark.usefixtures("few_failures")
def test_a_stranger_does_not_lock_out_computers_and_addresses_that_the_account_knows(alice: User, studio: Host) -> None:
    accounts.issue_client_key(alice, ClientKey.Origin.LOOKUP, source=Source(OFFICE))
    for number in range(4):
        attempt(alice.email, "wrong", f"203.0.113.{number}")
    assert "too many attempts" in refusal(alice.email, "alice's secret", HOME)
    assert attempt(alice.email, "alice's secret", OFFICE) == 0
    assert attempt(alice.email, "alice's secret", HOME, studio.token) == 0
    # The id of somebody else's computer opens nothing.
    assert attempt(alice.email, "alice's secret", HOME, "f" * 32) == boinc_errors.ERR_BAD_PASSWORD


@pytest.mark.usefixtures("few_failures")
def test_a_known_address_may_not_guess_without_end_either(alice: User) -> None:
    accounts.issue_client_key(alice, ClientKey.Origin.LOOKUP, source=Source(OFFICE))
    for _ in range(3):
        attempt(alice.email, "wrong", OFFICE)
    assert "too many attempts" in refusal(alice.email, "alice's secret", OFFICE)
    assert attempt(alice.email, "alice's secret", HOME) == 0


@pytest.mark.usefixtures("few_failures")
def test_after_a_reset_the_addresses_before_it_are_strangers(alice: User) -> None:
    record(alice, Kind.KEY_MADE, Source(OFFICE))
    record(alice, Kind.PASSWORD_RESET, Source(HOME))
    for number in range(4):
        attempt(alice.email, "wrong", f"203.0.113.{number}")
    assert attempt(alice.email, "alice's secret", OFFICE) == boinc_errors.ERR_BAD_PASSWORD
    assert attempt(alice.email, "alice's secret", HOME) == 0


@pytest.mark.usefixtures("few_failures")
def test_a_blocked_attempt_computes_no_slow_hash(alice: User, hashes_made: list[str]) -> None:
    before = len(hashes_made)
    for _ in range(3):
        attempt(alice.email, "wrong")
    assert len(hashes_made) - before == 3
    attempt(alice.email, "alice's secret")
    assert len(hashes_made) - before == 3


@pytest.mark.usefixtures("few_failures")
def test_successes_do_not_count_as_failures(alice: User) -> None:
    assert [attempt(alice.email, "alice's secret") for _ in range(6)] == [0] * 6


@pytest.mark.usefixtures("few_failures")
def test_one_address_cannot_try_many_accounts(alice: User, bob: User) -> None:
    for number in range(3):
        assert attempt(f"nobody{number}@example.org", "x") == boinc_errors.ERR_ACCOUNT_NOT_FOUND
    assert "too many attempts" in refusal(bob.email, "bob's secret")
    assert attempt(bob.email, "bob's secret", OFFICE) == 0


@pytest.mark.usefixtures("few_failures")
def test_the_count_is_the_same_whatever_the_case_of_the_login(alice: User) -> None:
    for login in ("Alice@example.org", "ALICE@EXAMPLE.ORG", " alice@example.org "):
        attempt(login, "wrong")
    assert "too many attempts" in refusal(alice.email, "alice's secret", OFFICE)


@pytest.mark.usefixtures("few_failures")
def test_looking_up_unknown_addresses_is_limited_like_a_login(alice: User) -> None:
    for number in range(3):
        with pytest.raises(accounts.ClientAuthError):
            accounts.account_exists(f"nobody{number}@example.org", address=HOME)
    with pytest.raises(accounts.ClientAuthError, match="too many attempts"):
        accounts.account_exists(alice.email, address=HOME)


def test_all_checks_of_one_address_are_limited(alice: User, settings: Any, hashes_made: list[str]) -> None:
    settings.CLIENT_PASSWORD_CHECKS_PER_MINUTE = 2
    before = len(hashes_made)
    assert [attempt(alice.email, "alice's secret") for _ in range(3)] == [0, 0, boinc_errors.ERR_BAD_PASSWORD]
    assert len(hashes_made) - before == 2


def test_an_unknown_account_costs_a_slow_hash_like_a_wrong_password(alice: User, hashes_made: list[str]) -> None:
    costs = []
    for login in (alice.email, "nobody@example.org"):
        before = len(hashes_made)
        attempt(login, "wrong")
        costs.append(len(hashes_made) - before)
    assert costs == [1, 1]


def test_the_failures_of_an_account_are_kept_without_its_name_or_the_address(alice: User, settings: Any) -> None:
    attempt(alice.email, "wrong", HOME)
    valkey = Redis.from_url(settings.CACHES["default"]["LOCATION"])
    keys = valkey.keys("limits*")
    assert len(keys) == 3  # failures of the account, failures of the address, checks of the address
    assert "alice" not in str(keys)
    assert HOME not in str(keys)
    assert all(0 < valkey.ttl(key) <= 600 for key in keys)


def test_logins_work_while_valkey_is_down_and_the_log_says_so(alice: User, settings: Any) -> None:
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": "unix:///nowhere/valkey.sock"}}
    with structlog.testing.capture_logs() as lines:
        assert attempt(alice.email, "alice's secret") == 0
        assert attempt(alice.email, "wrong") == boinc_errors.ERR_BAD_PASSWORD
    assert {line["event"] for line in lines} == {"login_limits_off", "security_event"}
    assert "alice" not in str(lines)


def test_a_login_without_a_turn_is_sent_away_before_the_hash(
    alice: User, monkeypatch: pytest.MonkeyPatch, hashes_made: list[str]
) -> None:
    monkeypatch.setattr(throttle, "HASH_SLOT_WAIT_SECS", 0.01)
    before = len(hashes_made)
    with throttle.hash_slot(), throttle.hash_slot():
        assert attempt(alice.email, "alice's secret") == boinc_errors.ERR_PROJECT_DOWN
    assert len(hashes_made) == before
    assert attempt(alice.email, "alice's secret") == 0


def test_waiting_for_a_turn_holds_no_connection_of_the_database(
    alice: User, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    monkeypatch.setattr(throttle, "HASH_SLOT_WAIT_SECS", 0.01)
    for email in (alice.email, "dora@example.org"):
        with throttle.hash_slot(), throttle.hash_slot(), django_assert_num_queries(0):
            with pytest.raises(accounts.ClientAuthError, match="busy checking other logins"):
                accounts.create_account(email, "a" * 32, "Dora", address="192.0.2.1")
            assert attempt(email, "alice's secret") == boinc_errors.ERR_PROJECT_DOWN


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("", "unknown"),
        ("not an address", "unknown"),
    ],
)
def test_what_counts_as_one_address(address: str, network: str) -> None:
    assert throttle.network_of(address) == network

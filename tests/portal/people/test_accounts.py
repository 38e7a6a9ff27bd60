"""Logging in, opening accounts, and keys, as BOINC clients do it."""

from __future__ import annotations

import datetime as dt
import hashlib
import threading
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from portal.models import ClientKey, Host, Session, User
from portal.people import accounts, key_upkeep
from portal.sign_in.sessions import SessionStore, stored_key
from portal.tasks import tidy_up
from portal.wire import boinc_errors, credentials

ADDRESS = "192.0.2.1"
LOOKUP, ATTACH = ClientKey.Origin.LOOKUP, ClientKey.Origin.ATTACH


def client_hash(password: str, login: str) -> str:
    return hashlib.md5((password + login.lower()).encode()).hexdigest()


def refused(login: str, password_hash: str) -> accounts.ClientAuthError:
    with pytest.raises(accounts.ClientAuthError) as caught:
        accounts.authenticate_client(login, password_hash, address=ADDRESS)
    return caught.value


class TestLoggingIn:
    @pytest.mark.parametrize("login", ["alice@example.org", "Alice@Example.ORG", " alice@example.org\n"])
    def test_case_and_blanks_of_the_login_do_not_matter(self, alice: User, login: str) -> None:
        sent = client_hash("alice's secret", "alice@example.org")
        assert accounts.authenticate_client(login, sent, address=ADDRESS) == alice

    def test_the_hash_may_be_in_upper_case(self, alice: User) -> None:
        sent = client_hash("alice's secret", alice.email).upper()
        assert accounts.authenticate_client(alice.email, sent, address=ADDRESS) == alice

    def test_a_wrong_password_says_where_to_set_a_new_one(self, alice: User) -> None:
        error = refused(alice.email, client_hash("wrong", alice.email))
        assert error.error_num == boinc_errors.ERR_BAD_PASSWORD
        assert "/account/password/reset/" in error.message

    def test_the_password_of_another_user_is_wrong(self, alice: User, bob: User) -> None:
        error = refused(alice.email, client_hash("bob's secret", bob.email))
        assert error.error_num == boinc_errors.ERR_BAD_PASSWORD

    @pytest.mark.parametrize("login", ["nobody@example.org", "", "a\0b", "x" * 100_000, "alice", "'; --", "é" * 300])
    def test_an_unknown_login_is_said_to_be_unknown(self, alice: User, login: str) -> None:
        assert refused(login, "0" * 32).error_num == boinc_errors.ERR_ACCOUNT_NOT_FOUND

    @pytest.mark.parametrize("sent", ["", "0" * 31, "0" * 33, "g" * 32, "0" * 32 + "\n", "é" * 32, "0" * 100_000])
    def test_a_hash_of_another_form_is_refused_with_the_form_it_should_have(self, alice: User, sent: str) -> None:
        error = refused(alice.email, sent)
        assert error.error_num == boinc_errors.ERR_GENERIC
        assert "32 hexadecimal digits" in error.message

    def test_a_closed_account_is_told_so_only_with_the_right_password(self, alice: User) -> None:
        User.objects.update(is_active=False)
        assert "closed" in refused(alice.email, client_hash("alice's secret", alice.email)).message
        assert "closed" not in refused(alice.email, client_hash("wrong", alice.email)).message


class TestOpeningAnAccount:
    EMAIL = "dora@example.org"

    def open(self, **changed: Any) -> User:
        given = {
            "email": self.EMAIL,
            "password_hash": client_hash("seven boats", self.EMAIL),
            "name": "Dora",
            "address": ADDRESS,
        }
        return accounts.create_account(**{**given, **changed})

    def refused(self, **changed: Any) -> int:
        with pytest.raises(accounts.ClientAuthError) as caught:
            self.open(**changed)
        assert User.objects.count() == 0
        return caught.value.error_num

    def test_it_can_be_used_at_once(self, db: None) -> None:
        dora = self.open(email=" Dora@Example.ORG ", name="  Dora ")
        assert (dora.email, dora.name) == (self.EMAIL, "Dora")
        sent = client_hash("seven boats", self.EMAIL)
        assert accounts.authenticate_client(self.EMAIL, sent, address=ADDRESS) == dora

    def test_asking_twice_makes_one_account(self, db: None) -> None:
        assert self.open() == self.open(name="Another name")
        assert User.objects.get().name == "Dora"

    def test_another_password_for_a_known_address_is_refused(self, alice: User) -> None:
        with pytest.raises(accounts.ClientAuthError, match="already, with another password") as caught:
            self.open(email=alice.email, password_hash=client_hash("guess", alice.email))
        assert caught.value.error_num == boinc_errors.ERR_NOT_UNIQUE

    def test_it_is_no_way_round_the_limit_on_guesses(self, alice: User, settings: Any) -> None:
        settings.CLIENT_LOGIN_FAILURES = 2
        for _ in range(2):
            with pytest.raises(accounts.ClientAuthError, match="another password"):
                self.open(email=alice.email, password_hash=client_hash("guess", alice.email))
        with pytest.raises(accounts.ClientAuthError, match="too many attempts"):
            self.open(email=alice.email, password_hash=client_hash("alice's secret", alice.email))

    def test_a_request_that_opens_nothing_does_not_tell_who_has_an_account(self, alice: User, settings: Any) -> None:
        settings.TERMS_OF_USE = "Be kind."
        for changed in ({"name": ""}, {"name": "Dora"}):
            numbers = set()
            for email in (alice.email, self.EMAIL):
                with pytest.raises(accounts.ClientAuthError) as caught:
                    self.open(email=email, **changed)
                numbers.add(caught.value.error_num)
            assert len(numbers) == 1

    @pytest.mark.parametrize(
        "email", ["", "dora", "dora@", "a b@example.org", "d" * 250 + "@example.org", "d\0@example.org"]
    )
    def test_a_bad_address_is_refused(self, db: None, email: str) -> None:
        assert self.refused(email=email) == boinc_errors.ERR_BAD_EMAIL

    @pytest.mark.parametrize("name", ["", "   ", "n" * 101, "a\nb", "a\0b", "\x1b[31m", "\ud800"])
    def test_a_bad_name_is_refused(self, db: None, name: str) -> None:
        assert self.refused(name=name) == boinc_errors.ERR_BAD_USER_NAME

    def test_markup_in_a_name_is_just_text(self, db: None) -> None:
        assert self.open(name="<b>R&D</b>").name == "<b>R&D</b>"

    def test_a_bad_hash_is_refused(self, db: None) -> None:
        assert self.refused(password_hash="secret") == boinc_errors.ERR_GENERIC

    def test_the_switch_closes_it(self, db: None, settings: Any) -> None:
        settings.CLIENT_SIGNUP_OPEN = False
        assert self.refused() == boinc_errors.ERR_ACCOUNT_CREATION_DISABLED

    def test_terms_of_use_need_consent_which_is_kept(self, db: None, settings: Any) -> None:
        settings.TERMS_OF_USE = "Be kind."
        assert self.refused() == boinc_errors.ERR_CONSENT_REQUIRED
        assert self.open(accepts_terms=True).terms_accepted_at is not None

    def test_one_address_opens_a_limited_number(self, db: None) -> None:
        for number in range(20):
            email = f"sock{number}@example.org"
            self.open(email=email, password_hash=client_hash("seven boats", email))
        with pytest.raises(accounts.ClientAuthError, match="too many attempts"):
            self.open()
        assert User.objects.count() == 20

    @pytest.mark.django_db(transaction=True)
    def test_the_same_request_twice_at_once_makes_one_account(self) -> None:
        made: list[int] = []

        def ask() -> None:
            try:
                start.wait()
                made.append(self.open().pk)
            finally:
                connection.close()

        start = threading.Barrier(4)
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [User.objects.get().pk] * 4


class TestKeys:
    def test_a_key_is_given_once_and_kept_as_a_hash(self, studio: Host) -> None:
        key = accounts.issue_client_key(studio.owner, ATTACH, studio)
        stored = ClientKey.objects.get()
        assert len(key) == 32
        assert "_" not in key
        assert bytes(stored.key_hash) == credentials.key_hash(key) == hashlib.sha256(key.encode()).digest()
        assert (stored.user, stored.host, stored.hint) == (studio.owner, studio, key[:6])

    def test_each_is_fresh_and_the_earlier_stay_valid(self, alice: User) -> None:
        keys = {accounts.issue_client_key(alice, LOOKUP) for _ in range(5)}
        assert len(keys) == 5
        assert ClientKey.objects.filter(revoked_at=None).count() == 5

    def test_keys_without_use_make_room_and_keys_in_use_stay(self, studio: Host, settings: Settings) -> None:
        settings.KEYS_PER_HOST = 3
        keys = [accounts.issue_client_key(studio.owner, ATTACH, studio) for _ in range(3)]
        used, unused, newest = (ClientKey.objects.get(key_hash=credentials.key_hash(key)) for key in keys)
        ClientKey.objects.update(created_at=timezone.now() - dt.timedelta(days=2))
        ClientKey.objects.filter(pk=used.pk).update(last_used_at=timezone.now())
        accounts.issue_client_key(studio.owner, ATTACH, studio)
        live = ClientKey.objects.filter(host=studio, revoked_at=None)
        assert live.count() == 3
        assert set(live) >= {used, newest} and unused not in live

    def test_a_key_more_is_refused_while_all_are_in_use(self, studio: Host, settings: Settings) -> None:
        settings.KEYS_PER_HOST = 3
        for _ in range(3):
            accounts.issue_client_key(studio.owner, ATTACH, studio)
        with pytest.raises(accounts.ClientAuthError, match=r"has 3 keys, all in use.* http.*/account/keys/"):
            accounts.issue_client_key(studio.owner, ATTACH, studio)
        assert ClientKey.objects.filter(host=studio, revoked_at=None).count() == 3

    def test_keys_of_look_ups_have_a_limit_and_end_none_of_a_computer(
        self, studio: Host, bob: User, settings: Settings
    ) -> None:
        settings.UNUSED_KEYS_PER_ACCOUNT = 2
        alice = studio.owner
        accounts.issue_client_key(bob, LOOKUP)
        accounts.issue_client_key(alice, ATTACH, studio)
        keys = [accounts.issue_client_key(alice, LOOKUP) for _ in range(3)]
        live = set(ClientKey.objects.filter(user=alice, host=None, revoked_at=None).values_list("hint", flat=True))
        assert live == {key[:6] for key in keys[1:]}
        assert ClientKey.objects.filter(revoked_at=None).count() == 4

    def test_only_its_owner_revokes_a_key(self, alice: User, bob: User) -> None:
        accounts.issue_client_key(alice, LOOKUP)
        key_id = ClientKey.objects.get().pk
        assert not accounts.revoke_client_key(bob, key_id)
        assert ClientKey.objects.filter(revoked_at=None).exists()
        assert accounts.revoke_client_key(alice, key_id)
        revoked_at = ClientKey.objects.get().revoked_at
        assert revoked_at is not None
        assert accounts.revoke_client_key(alice, key_id)
        assert ClientKey.objects.get().revoked_at == revoked_at


class TestTidyingUp:
    def key(self, user: User, days: int, **fields: Any) -> ClientKey:
        """A look-up key made this many days ago."""
        accounts.issue_client_key(user, LOOKUP)
        key = ClientKey.objects.latest("pk")
        made = timezone.now() - dt.timedelta(days=days)
        ClientKey.objects.filter(pk=key.pk).update(created_at=made, **fields)
        return key

    def test_keys_that_nobody_needs_go_and_the_rest_stay(self, alice: User) -> None:
        long_ago = timezone.now() - dt.timedelta(days=91)
        kept = [
            self.key(alice, 29),
            self.key(alice, 400, last_used_at=timezone.now()),
            self.key(alice, 400, origin=ATTACH),
            self.key(alice, 10, revoked_at=timezone.now()),
        ]
        self.key(alice, 31)
        self.key(alice, 400, last_used_at=long_ago, revoked_at=long_ago)
        tidy_up()
        assert set(ClientKey.objects.all()) == set(kept)

    def test_replaced_keys_end_with_time_and_those_in_use_do_not(self, studio: Host, settings: Settings) -> None:
        settings.KEYS_KEPT_DAYS = 100
        now = timezone.now()
        retired = Host.objects.create(owner=studio.owner, retired_at=now - dt.timedelta(days=101))
        rows = [(studio, 200, 150), (studio, 120, 90), (studio, 50, 0), (retired, 300, 200)]
        for host, made, used in rows:
            accounts.issue_client_key(studio.owner, ATTACH, host)
            times = {"created_at": now - dt.timedelta(days=made), "last_used_at": now - dt.timedelta(days=used)}
            ClientKey.objects.filter(pk=ClientKey.objects.latest("pk").pk).update(**times)
        replaced, lately, newest, of_retired = ClientKey.objects.order_by("pk")
        tidy_up()
        assert set(ClientKey.objects.filter(revoked_at=None)) == {lately, newest}
        assert set(ClientKey.objects.exclude(revoked_at=None)) == {replaced, of_retired}

    def test_computers_whose_keys_do_not_end_yet_hold_up_no_others(
        self, studio: Host, settings: Settings, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings.KEYS_KEPT_DAYS = 100
        monkeypatch.setattr(key_upkeep, "HOSTS_PER_RUN", 1)
        now = timezone.now()
        retired = Host.objects.create(owner=studio.owner, retired_at=now - dt.timedelta(days=101))
        # Of the first one, the newer key was not used yet.
        for host, made, used in [(studio, 200, 150), (studio, 0, None), (retired, 300, 200)]:
            accounts.issue_client_key(studio.owner, ATTACH, host)
            ClientKey.objects.filter(pk=ClientKey.objects.latest("pk").pk).update(
                created_at=now - dt.timedelta(days=made),
                last_used_at=None if used is None else now - dt.timedelta(days=used),
            )
        # Each run judges one of the two by chance: 40 in a row miss the second one once in 2 ** 40 times.
        assert sum(key_upkeep.end_outdated_keys(now) for _ in range(40)) == 1
        assert ClientKey.objects.exclude(revoked_at=None).get().host == retired

    def awaited(self, user: User, days: int) -> None:
        """The user asked, this many days ago, to change to another address."""
        EmailAddress.objects.create(user=user, email=f"new-{user.email}")
        user.expect_email("pass phrase", f"new-{user.email}")
        user.awaited_email_at = timezone.now() - dt.timedelta(days=days)
        user.save()

    def test_a_change_of_address_is_forgotten_with_its_link(self, alice: User, bob: User) -> None:
        EmailAddress.objects.create(user=alice, email=alice.email)  # her login, not yet confirmed
        self.awaited(alice, days=4)  # links are good for three days
        self.awaited(bob, days=2)
        tidy_up()
        left = EmailAddress.objects.order_by("email").values_list("email", flat=True)
        assert list(left) == ["alice@example.org", "new-bob@example.org"]
        alice.refresh_from_db()
        bob.refresh_from_db()
        assert alice.next_client_password_email == ""
        assert bob.next_client_password_email == "new-bob@example.org"

    def test_the_value_of_a_confirmed_address_stays(self, alice: User) -> None:
        self.awaited(alice, days=4)
        User.objects.update(email=f"new-{alice.email}")
        tidy_up()
        sent = client_hash("pass phrase", "new-alice@example.org")
        assert accounts.authenticate_client("new-alice@example.org", sent, address=ADDRESS) == alice

    def test_expired_sessions_go_and_live_ones_stay(self, alice: User, client: Client) -> None:
        client.force_login(alice)
        live = client.session.session_key
        old = SessionStore()
        old.set_expiry(timezone.now() - dt.timedelta(days=1))
        old.create()
        tidy_up()
        assert list(Session.objects.values_list("session_key", flat=True)) == [stored_key(live or "")]

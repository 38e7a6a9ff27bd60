"""Anyone who takes an account back by a mail is alone in it: nothing that somebody else made there goes on working."""

from __future__ import annotations

import hashlib
import re

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value, yield_hotp_counters_from_time
from django.contrib.auth.models import Permission
from django.core import mail
from django.core.management import CommandError, call_command
from django.forms.forms import BaseForm
from django.test import Client
from pytest_django import Settings

from portal.models import ApiToken, ClientKey, User
from portal.people import accounts
from portal.people.api_tokens import find_valid_token, issue_token
from portal.wire import boinc_errors, credentials
from tests.support.sessions import sign_in_lately

OLD, NEW = "alice's secret", "a brand-new pass phrase"
STRANGER = "stranger@example.net"


def sign_in(login: str, password: str) -> Client:
    browser = Client()
    browser.post("/account/login/", {"login": login, "password": password})
    return browser


def link_to(address: str) -> str:
    """The link in the last mail to this address."""
    [*_, last] = [sent for sent in mail.outbox if sent.to == [address]]
    match = re.search(r"https?://[^/\s]+(/\S+)", str(last.body))
    assert match
    return match[1]


def reset_by_mail(email: str, browser: Client | None = None) -> None:
    browser = browser or Client()
    browser.post("/account/password/reset/", {"email": email})
    asked = browser.get(link_to(email), follow=True)
    answer = browser.post(asked.redirect_chain[-1][0], {"password1": NEW, "password2": NEW}, follow=True)
    assert "Your password is changed" in answer.content.decode()


def add_authenticator_app(browser: Client) -> None:
    browser.get("/account/2fa/totp/activate/")
    secret = browser.session["mfa.totp.secret"]
    code = format_hotp_value(hotp_value(secret, next(yield_hotp_counters_from_time())))
    browser.post("/account/2fa/totp/activate/", {"code": code})


def password_hash(password: str, email: str) -> str:
    return hashlib.md5((password + email).encode()).hexdigest()


def test_a_reset_revokes_keys_tokens_and_logins(alice: User) -> None:
    browser = sign_in(alice.email, OLD)
    accounts.issue_client_key(alice, ClientKey.Origin.LOOKUP)
    token = issue_token(alice, name="x", scopes=["read:hosts"], lifetime=None)
    reset_by_mail(alice.email)
    assert not ClientKey.objects.filter(revoked_at=None).exists()
    assert find_valid_token(token) is None
    assert browser.get("/account/keys/").status_code == 302
    kinds = [(event.kind, str(event.detail)) for event in alice.security_events.order_by("pk")]
    assert kinds[-3:] == [("key_revoked", "all keys"), ("token_revoked", "all tokens"), ("reset", "None")]


@pytest.fixture
def thief(alice: User, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A browser that is signed in with the old password. The owner's reset overtakes its next form, once checked."""
    browser = sign_in(alice.email, OLD)
    check = BaseForm.full_clean

    def overtaken(form: BaseForm) -> None:
        check(form)
        monkeypatch.setattr(BaseForm, "full_clean", check)
        reset_by_mail(alice.email)

    monkeypatch.setattr(BaseForm, "full_clean", overtaken)
    return browser


@pytest.mark.parametrize(
    ("address", "form"),
    [
        ("/account/tokens/", {"name": "x", "scopes": ["read:hosts"], "days": ""}),
        ("/account/email/", {"email": STRANGER, "password": OLD, "action_add": ""}),
        ("/account/password/change/", {"oldpassword": OLD, "password1": "the thief's", "password2": "the thief's"}),
    ],
)
def test_nothing_is_given_for_a_password_that_a_reset_has_just_replaced(
    alice: User, thief: Client, address: str, form: dict[str, str]
) -> None:
    assert thief.post(address, form).headers["Location"] == "/account/login/"
    alice.refresh_from_db()
    assert alice.check_password(NEW)
    assert not ApiToken.objects.filter(revoked_at=None).exists()
    assert not EmailAddress.objects.filter(email=STRANGER).exists()
    assert thief.get("/account/keys/").status_code == 302


def test_no_key_is_given_for_a_password_that_a_reset_has_just_replaced(alice: User) -> None:
    sent = password_hash(OLD, alice.email)
    checked = accounts.authenticate_client(alice.email, sent, address="203.0.113.1")
    reset_by_mail(alice.email)
    with pytest.raises(accounts.PasswordChanged, match="Try again in a minute"):
        accounts.issue_client_key(checked, ClientKey.Origin.LOOKUP)
    assert not ClientKey.objects.filter(revoked_at=None).exists()


def test_a_mailbox_alone_does_not_switch_off_the_second_factor_of_a_confirmed_account(alice: User) -> None:
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    Authenticator.objects.create(user=alice, type=Authenticator.Type.TOTP, data={})
    reset_by_mail(alice.email)
    assert Authenticator.objects.filter(user=alice).exists()


@pytest.mark.parametrize("rights", [{"is_staff": True}, {"is_staff": True, "is_superuser": True}])
def test_a_mailbox_alone_never_switches_off_an_operators_second_factor(db: None, rights: dict[str, bool]) -> None:
    """As `createsuperuser` makes them: without a confirmed address."""
    operator = User.objects.create_user("op@example.org", "operator's secret", **rights)
    for kind in (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN):
        Authenticator.objects.create(user=operator, type=kind, data={})
    reset_by_mail(operator.email)
    assert Authenticator.objects.filter(user=operator).count() == 2
    login = Client().post("/account/login/", {"login": operator.email, "password": NEW})
    assert login.headers["Location"] == "/account/2fa/authenticate/"


class TestAnOperatorWithoutASecondFactor:
    """Anyone who reads the mails could set a new password and then a second factor of their own."""

    @pytest.fixture(autouse=True)
    def demanded(self, settings: Settings) -> None:
        settings.STAFF_SECOND_FACTOR = True

    @pytest.fixture
    def another(self, db: None) -> Client:
        """Another superuser, with a second factor, in the admin."""
        user = User.objects.create_superuser("another@example.org", "another secret")
        Authenticator.objects.create(user=user, type=Authenticator.Type.TOTP, data={})
        browser = Client()
        sign_in_lately(browser, user)
        return browser

    @pytest.mark.parametrize("is_superuser", [True, False])
    @pytest.mark.parametrize("path", ["/admin/", "/home/", "/account/2fa/", "/account/email/", "/account/tokens/"])
    def test_a_mailbox_alone_gives_none_of_their_rights(self, operator: User, path: str, is_superuser: bool) -> None:
        User.objects.filter(pk=operator.pk).update(is_superuser=is_superuser)
        reset_by_mail(operator.email)
        answer = sign_in(operator.email, NEW).get(path)
        assert answer.status_code == 403
        assert "Ask another superuser" in answer.content.decode()

    def test_they_set_up_no_factor_and_have_no_tokens_before_it_is_allowed(self, operator: User) -> None:
        reset_by_mail(operator.email)
        browser = sign_in(operator.email, NEW)
        assert browser.post("/account/2fa/totp/activate/", {"code": "123456"}).status_code == 403
        operator.refresh_from_db()
        # Even if one were there:
        Authenticator.objects.create(user=operator, type=Authenticator.Type.TOTP, data={})
        assert browser.get("/admin/").status_code == 403
        token = issue_token(operator, name="x", scopes=["read:hosts"], lifetime=None)
        assert Client(headers={"Authorization": f"Bearer {token}"}).get("/api/v1/hosts/").status_code == 401

    def test_another_superuser_allows_it(self, operator: User, another: Client) -> None:
        reset_by_mail(operator.email)
        allow = {"action": "allow_rights", "_selected_action": [str(operator.pk)]}
        assert another.post("/admin/portal/user/", allow).status_code == 302
        answer = sign_in(operator.email, NEW).get("/admin/", follow=True)
        # Now as any operator who has none yet.
        assert answer.redirect_chain == [("/account/2fa/", 302)]
        details = operator.security_events.filter(kind="rights").order_by("pk").values_list("detail", flat=True)
        assert [detail.code for detail in details] == ["event_rights_held", "event_rights_allowed"]

    def test_no_other_operator_allows_it(self, operator: User, another: Client) -> None:
        reset_by_mail(operator.email)
        helper = User.objects.get(email="another@example.org")
        helper.is_superuser = False
        helper.save()
        helper.user_permissions.set(Permission.objects.filter(codename__in=("view_user", "change_user")))
        another.post("/admin/portal/user/", {"action": "allow_rights", "_selected_action": [str(operator.pk)]})
        operator.refresh_from_db()
        assert operator.rights_held_at is not None

    def test_where_two_persons_are_needed_only_the_server_allows_it(
        self, operator: User, another: Client, settings: Settings
    ) -> None:
        """Who can read an operator's mail would otherwise be a second person after a reset."""
        settings.TWO_PERSONS = True
        reset_by_mail(operator.email)
        another.post("/admin/portal/user/", {"action": "allow_rights", "_selected_action": [str(operator.pk)]})
        operator.refresh_from_db()
        assert operator.rights_held_at is not None

    def test_a_command_on_the_server_allows_it(self, operator: User) -> None:
        with pytest.raises(CommandError, match="are not withheld"):
            call_command("allow_operator", operator.email)
        reset_by_mail(operator.email)
        call_command("allow_operator", operator.email.upper())
        assert sign_in(operator.email, NEW).get("/account/2fa/").status_code == 200
        with pytest.raises(CommandError, match="no account"):
            call_command("allow_operator", "nobody@example.org")

    def test_with_a_factor_or_where_none_is_demanded_or_without_rights_nothing_is_held(
        self, operator: User, another: Client, alice: User, settings: Settings
    ) -> None:
        for email in ("another@example.org", alice.email):
            reset_by_mail(email)
        settings.STAFF_SECOND_FACTOR = False
        reset_by_mail(operator.email)
        assert not User.objects.exclude(rights_held_at=None).exists()


def test_a_reset_by_who_is_signed_in_leaves_that_browser_working(alice: User) -> None:
    browser = sign_in(alice.email, OLD)
    reset_by_mail(alice.email, browser)
    assert browser.get("/account/login/").status_code == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_staff", [True, False])
def test_a_second_factor_ends_what_was_signed_in_with_the_password_alone(bob: User, is_staff: bool) -> None:
    owner = User.objects.create_user("op@example.org", OLD, is_staff=is_staff)
    thief, browser = sign_in(owner.email, OLD), sign_in(owner.email, OLD)
    other = sign_in(bob.email, "bob's secret")
    token = issue_token(owner, name="x", scopes=["read:hosts"], lifetime=None)
    add_authenticator_app(browser)
    assert Authenticator.objects.filter(user=owner, type=Authenticator.Type.TOTP).exists()
    assert thief.get("/account/keys/").status_code == 302
    assert browser.get("/account/keys/").status_code == 200
    assert other.get("/account/keys/").status_code == 200
    # An operator's token reads what volunteers' do not.
    assert (find_valid_token(token) is None) == is_staff


@pytest.mark.django_db(transaction=True)
def test_tokens_that_an_operator_made_with_a_second_factor_outlast_another_one() -> None:
    owner = User.objects.create_user("op@example.org", OLD, is_staff=True)
    browser = sign_in(owner.email, OLD)
    Authenticator.objects.create(user=owner, type=Authenticator.Type.WEBAUTHN, data={})
    token = issue_token(owner, name="x", scopes=["read:hosts"], lifetime=None)
    add_authenticator_app(browser)
    assert Authenticator.objects.filter(user=owner, type=Authenticator.Type.TOTP).exists()
    assert find_valid_token(token) is not None


def test_a_reset_leaves_others_alone(alice: User, bob: User) -> None:
    accounts.issue_client_key(bob, ClientKey.Origin.LOOKUP)
    token = issue_token(bob, name="x", scopes=["read:hosts"], lifetime=None)
    browser = sign_in(bob.email, "bob's secret")
    reset_by_mail(alice.email)
    assert ClientKey.objects.filter(revoked_at=None, user=bob).exists()
    assert find_valid_token(token) is not None
    assert browser.get("/account/keys/").status_code == 200


@pytest.mark.parametrize(("revoke", "left"), [("on", 0), ("", 1)])
def test_a_change_revokes_what_gave_access_if_wanted(alice: User, revoke: str, left: int) -> None:
    browser = sign_in(alice.email, OLD)
    accounts.issue_client_key(alice, ClientKey.Origin.LOOKUP)
    issue_token(alice, name="x", scopes=["read:hosts"], lifetime=None)
    page = browser.get("/account/password/change/").content.decode()
    assert re.search(r'<input type="checkbox" name="revoke"[^>]* checked', page)
    form = {"oldpassword": OLD, "password1": NEW, "password2": NEW, "revoke": revoke}
    browser.post("/account/password/change/", form)
    assert ClientKey.objects.filter(revoked_at=None).count() == left
    assert ApiToken.objects.filter(revoked_at=None).count() == left
    assert browser.get("/account/keys/").status_code == 200


@pytest.mark.parametrize("by_operator", [False, True])
def test_the_address_that_a_thief_wanted_ends_with_the_password(alice: User, operator: User, by_operator: bool) -> None:
    thief, owner = sign_in(alice.email, OLD), sign_in(alice.email, OLD)
    thief.post("/account/email/", {"email": STRANGER, "password": OLD, "action_add": ""})
    confirmation = link_to(STRANGER)
    if by_operator:
        admin = Client()
        sign_in_lately(admin, operator)
        admin.post(f"/admin/portal/user/{alice.pk}/password/", {"password1": NEW, "password2": NEW})
    else:
        form = {"oldpassword": OLD, "password1": NEW, "password2": NEW, "revoke": "on"}
        owner.post("/account/password/change/", form)
    Client().post(confirmation)
    before = alice.email
    alice.refresh_from_db()
    assert (alice.email, alice.next_client_password, alice.awaited_email_at) == (before, "", None)
    assert alice.check_password(NEW)
    accounts.authenticate_client(before, password_hash(NEW, before), address="203.0.113.1")


class TestAnAccountThatAStrangerOpenedUnderMyAddress:
    """By a BOINC client: the address is the owner's, the password the stranger's."""

    EMAIL, STRANGERS = "owner@example.org", "the stranger's own"

    @pytest.fixture
    def account(self, db: None) -> User:
        sent = password_hash(self.STRANGERS, self.EMAIL)
        return accounts.create_account(self.EMAIL, sent, "Mallory", address="203.0.113.1")

    def test_nothing_of_the_strangers_survives_the_owners_reset(self, account: User) -> None:
        key = accounts.issue_client_key(account, ClientKey.Origin.LOOKUP)
        browser = sign_in(self.EMAIL, self.STRANGERS)
        account.refresh_from_db()
        token = issue_token(account, name="x", scopes=["read:hosts"], lifetime=None)
        wish = {"email": STRANGER, "password": self.STRANGERS, "action_add": ""}
        browser.post("/account/email/", wish)
        confirmation = link_to(STRANGER)
        for kind in (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN):
            Authenticator.objects.create(user=account, type=kind, data={})

        reset_by_mail(self.EMAIL)

        assert not ClientKey.objects.filter(key_hash=credentials.key_hash(key), revoked_at=None).exists()
        assert find_valid_token(token) is None
        assert not Authenticator.objects.exists()
        assert browser.get("/account/keys/").status_code == 302
        assert sign_in(self.EMAIL, self.STRANGERS).get("/account/keys/").status_code == 302
        with pytest.raises(accounts.ClientAuthError) as caught:
            accounts.authenticate_client(self.EMAIL, password_hash(self.STRANGERS, self.EMAIL), address="203.0.113.1")
        assert caught.value.error_num == boinc_errors.ERR_BAD_PASSWORD
        # The address that the stranger wanted does not become the login any more.
        Client().post(confirmation)
        account.refresh_from_db()
        assert (account.email, account.next_client_password) == (self.EMAIL, "")
        assert list(EmailAddress.objects.values_list("email", "verified")) == [(self.EMAIL, True)]
        assert sign_in(self.EMAIL, NEW).get("/account/keys/").status_code == 200

    def test_an_address_that_waits_gets_no_mail_to_set_the_password(self, account: User) -> None:
        browser = sign_in(self.EMAIL, self.STRANGERS)
        browser.post("/account/email/", {"email": STRANGER, "password": self.STRANGERS, "action_add": ""})
        mail.outbox.clear()
        Client().post("/account/password/reset/", {"email": STRANGER})
        assert not any("password/reset/key" in str(sent.body) for sent in mail.outbox)

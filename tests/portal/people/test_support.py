"""What support sees of an account and does for its owner, in the admin as the role "Support" has it."""

from __future__ import annotations

import datetime as dt
from smtplib import SMTPException
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.contrib.admin.models import LogEntry
from django.core import mail
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from structlog.testing import capture_logs

from accounting.models import DataCopy, Note, Project
from portal.languages.messages import VERBATIM, Message
from portal.languages.sentences import unpacked
from portal.models import AccountBlock, ClientKey, Host, User
from portal.people.accounts import issue_client_key
from portal.people.api_tokens import find_valid_token, issue_token
from tests.support.page_text import text_of
from tests.support.roles import give_role, make_person
from tests.support.sessions import sign_in_lately

LIST = "/admin/portal/account/"


@pytest.fixture
def supporter(db: None) -> User:
    return make_person("Support")


@pytest.fixture
def desk(supporter: User) -> Client:
    """The browser of somebody of support."""
    client = Client()
    sign_in_lately(client, supporter)
    return client


def page(user: User) -> str:
    return f"{LIST}{user.pk}/change/"


def look(desk: Client, user: User, reason: str = "Their mail of today.") -> str:
    return text_of(desk.post(page(user), {"reason": reason}, follow=True))


def help_with(desk: Client, user: User, what: str, reason: str = "They asked for it.") -> str:
    return text_of(desk.post(f"{LIST}{user.pk}/help/{what}/", {"reason": reason}, follow=True))


def found(desk: Client, term: str) -> str:
    return text_of(desk.get(LIST, {"q": term}))


class TestSearch:
    @pytest.fixture(autouse=True)
    def there(self, alice: User, bob: User) -> None:
        host = Host.objects.create(owner=alice, domain_name="attic-pc", host_cpid="c" * 32, token="d" * 32)
        ClientKey.objects.create(user=alice, host=host, origin="attach", key_hash=b"k" * 32, hint="a1b2c3")

    @pytest.mark.parametrize("term", ["alice@example.org", "ALICE@", "Attic-PC", "c" * 32, "d" * 32, "a1b2", "a1b2c3"])
    def test_finds_the_account_by_address_computer_and_beginning_of_a_key(self, desk: Client, term: str) -> None:
        text = found(desk, term)
        assert "alice@example.org" in text and "bob@example.org" not in text

    def test_finds_it_by_the_number_of_a_computer(self, desk: Client, bob: User) -> None:
        host = Host.objects.create(owner=bob, domain_name="other")
        text = found(desk, str(host.pk))
        assert "bob@example.org" in text and "alice@example.org" not in text

    @pytest.mark.parametrize("term", ["", "a", "example.org", "attic", "%", "9" * 30, "x" * 300])
    def test_lists_nobody_for_what_is_not_the_beginning_or_the_whole(self, desk: Client, term: str) -> None:
        assert "@example.org" not in found(desk, term).replace("support@example.org", "")

    def test_conditions_in_the_address_find_out_nothing(self, desk: Client) -> None:
        for condition in ("password__startswith", "client_password__startswith", "hosts__domain_name"):
            answer = desk.get(LIST, {"q": "alice@", condition: "x"})
            assert answer.status_code in (302, 400), condition


class TestSearchesAreNoted:
    @pytest.mark.parametrize(
        ("term", "kind"),
        [
            ("alice@example.org", "an e-mail address"),
            ("attic-pc", "a name, or the beginning of an address or a key"),
            ("d" * 32, "a host id or CPID"),
            ("4711", "a number"),
            ("cobble_abcdef", "an API token"),
        ],
    )
    def test_who_searched_for_what_kind_of_thing_and_not_for_which(
        self, desk: Client, supporter: User, alice: User, term: str, kind: str
    ) -> None:
        found(desk, term)
        (row,) = LogEntry.objects.all()
        nfound = int(term == alice.email)
        assert (row.user, unpacked(row.change_message)) == (
            supporter,
            f"Searched for {kind}. Accounts found: {nfound}.",
        )
        assert row.object_id is None and term not in row.object_repr

    def test_it_is_a_line_of_the_log(self, desk: Client, supporter: User, alice: User) -> None:
        with capture_logs() as lines:
            found(desk, "alice@example.org")
        (line,) = [line for line in lines if line.get("kind") == "support_searched"]
        assert (line["event"], line["user"], line["address"]) == ("security_event", supporter.pk, "127.0.0.1")
        assert "alice" not in str(line)

    def test_a_list_without_a_search_is_none(self, desk: Client) -> None:
        found(desk, "")
        assert not LogEntry.objects.exists()

    def test_operators_read_who_searched_looked_and_helped(self, desk: Client, supporter: User, alice: User) -> None:
        found(desk, "alice@")
        look(desk, alice, "Ticket 7")
        help_with(desk, alice, "block", "Ticket 8")
        colleague = User.objects.create_user("colleague@example.org", "a secret")
        give_role(colleague, "Support")
        other = Client()
        sign_in_lately(other, colleague)
        rows = text_of(other.get("/admin/portal/supportaction/"))
        for shown in (
            f"number {supporter.pk}",
            "Searched for an e-mail address",
            "Ticket 7",
            "Block the account: Ticket 8",
        ):
            assert shown in rows, shown
        # By its number only: who reads this has not looked at the account.
        assert alice.email not in rows and str(alice.pk) in rows


class TestALook:
    def test_needs_a_reason_which_the_owner_reads(self, desk: Client, supporter: User, alice: User) -> None:
        Host.objects.create(owner=alice, domain_name="attic-pc")
        assert "attic-pc" not in text_of(desk.get(page(alice)))
        assert "Give a reason" in text_of(desk.post(page(alice), {"reason": " "}))
        assert not alice.security_events.exists()
        assert "attic-pc" in look(desk, alice, "Their mail of 3 May")
        owner = Client()
        sign_in_lately(owner, alice)
        events = text_of(owner.get("/account/events/"))
        assert "Looked at by support: Their mail of 3 May" in events
        assert supporter.email not in events and supporter.name not in events.replace("by support", "")
        logged = LogEntry.objects.get(object_id=str(alice.pk))
        assert (logged.user, "3 May" in logged.get_change_message()) == (supporter, True)

    def test_is_over_after_half_an_hour_and_holds_for_one_account(
        self, desk: Client, alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        look(desk, alice)
        assert "Why are you looking" not in text_of(desk.get(page(alice)))
        assert "Why are you looking" in text_of(desk.get(page(bob)))
        monkeypatch.setattr("portal.operators.admin_pages.LOOK_SECS", 0)
        assert "Why are you looking" in text_of(desk.get(page(alice)))
        assert "First say why" in help_with(desk, alice, "block")
        alice.refresh_from_db()
        assert alice.is_active

    def test_shows_what_helps_and_nothing_that_is_theirs_alone(self, desk: Client, alice: User) -> None:
        EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
        Authenticator.objects.create(user=alice, type=Authenticator.Type.TOTP, data={})
        host = Host.objects.create(owner=alice, domain_name="attic-pc", client_version="8.2.4")
        Host.objects.filter(pk=host.pk).update(hardware_faults=[Message(VERBATIM, text="p_fpops: more than 1e13")])
        key = issue_client_key(alice, ClientKey.Origin.ATTACH, host)
        project = Project.objects.create(name="Alpha", master_url="https://alpha.example.org/")
        now = timezone.now()
        for at in (now, now - dt.timedelta(days=1)):
            Note.objects.create(
                host=host, project=project, kind="dropped", day=at.date(), first_at=at, last_at=at, amount=987654321
            )
        text = look(desk, alice)
        for shown in ("Address confirmed Yes", "Second factor Yes", "attic-pc", "8.2.4", key[:6], "p_fpops"):
            assert shown in text, shown
        assert text.count("More was reported than the computer could have done") == 1
        for hidden in (key, "Alpha", "987", "TOTP", "Authenticator"):
            assert hidden not in text, hidden


class TestHelp:
    @pytest.fixture(autouse=True)
    def looked(self, desk: Client, alice: User) -> None:
        look(desk, alice)
        mail.outbox.clear()

    def test_a_lost_second_factor_is_removed_and_the_owner_told(self, desk: Client, alice: User) -> None:
        for kind in (Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES):
            Authenticator.objects.create(user=alice, type=kind, data={})
        assert "Done: Remove the second factor" in help_with(desk, alice, "remove-factors", "Lost phone, ticket 7")
        assert not Authenticator.objects.exists()
        event = alice.security_events.get(kind="factor_removed")
        assert (str(event.detail), event.user_agent) == ("Lost phone, ticket 7", "support")
        (message,) = mail.outbox
        assert message.to == [alice.email] and "second factor" in message.subject
        assert "Lost phone, ticket 7" in message.body
        assert "no second factor" in help_with(desk, alice, "remove-factors")

    def test_support_is_told_if_the_mail_could_not_be_sent(
        self, desk: Client, alice: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any) -> None:
            raise SMTPException

        Authenticator.objects.create(user=alice, type=Authenticator.Type.TOTP, data={})
        monkeypatch.setattr("portal.people.key_mails.send_mail", refuse)
        assert "mail to the person could not be sent" in help_with(desk, alice, "remove-factors")

    def test_each_needs_a_reason(self, desk: Client, alice: User) -> None:
        assert "Give a reason" in help_with(desk, alice, "block", "")
        assert not AccountBlock.objects.exists()

    def test_a_block_closes_the_account_and_is_reversible(self, desk: Client, alice: User) -> None:
        owner = Client()
        login = {"login": alice.email, "password": "alice's secret"}
        owner.post("/account/login/", login)
        token = issue_token(alice, name="x", scopes=["read:hosts"], lifetime=None)
        assert "Done: Block" in help_with(desk, alice, "block", "forged reports")
        assert "forged reports" in text_of(desk.get(page(alice)))
        assert owner.get("/home/").status_code == 302
        assert owner.post("/account/login/", login).headers["Location"] == "/account/inactive/"
        assert find_valid_token(token) is None
        assert "Done: Unblock" in help_with(desk, alice, "unblock")
        assert owner.post("/account/login/", login).headers["Location"] == "/home/"
        assert find_valid_token(token) is not None
        assert "forged reports" not in text_of(owner.get("/account/events/"))
        assert mail.outbox == []

    def test_a_blocked_account_is_not_opened_by_the_page_of_people(
        self, desk: Client, alice: User, operator: User
    ) -> None:
        help_with(desk, alice, "block")
        client = Client()
        sign_in_lately(client, operator)
        client.post(f"/admin/portal/user/{alice.pk}/change/", {"email": alice.email, "is_active": "on"})
        alice.refresh_from_db()
        assert not alice.is_active

    def test_a_copy_of_the_data_is_made_for_its_owner_alone(self, desk: Client, alice: User) -> None:
        assert "Done: Request a copy" in help_with(desk, alice, "copy-data")
        copy = DataCopy.objects.get(user=alice)
        DataCopy.objects.update(state=DataCopy.State.READY)
        assert desk.get(f"/account/data/{copy.pk}.zip").status_code == 404
        assert "/account/data/" in mail.outbox[0].body

    def test_a_deletion_is_asked_for_and_cancelled_by_signing_in(self, desk: Client, alice: User) -> None:
        assert "Done: Delete" in help_with(desk, alice, "erase", "Their letter")
        alice.refresh_from_db()
        assert alice.deletion_asked_at is not None and "will be erased" in mail.outbox[0].body
        Client().post("/account/login/", {"login": alice.email, "password": "alice's secret"})
        alice.refresh_from_db()
        assert alice.deletion_asked_at is None

    def test_who_cannot_sign_in_is_not_told_to_do_so_to_stop_a_deletion(self, desk: Client, alice: User) -> None:
        help_with(desk, alice, "block")
        help_with(desk, alice, "erase", "Their letter")
        (message,) = mail.outbox
        assert (
            "will be erased" in message.body
            and "sign in" not in message.body
            and "write to the operators" in message.body
        )
        # Nor can they fetch a copy.
        assert "could not download the copy" in help_with(desk, alice, "copy-data") and len(mail.outbox) == 1

    @pytest.mark.parametrize("what", ["remove-factors", "block", "copy-data", "erase"])
    def test_operators_are_left_to_superusers(self, desk: Client, operator: User, what: str) -> None:
        Authenticator.objects.create(user=operator, type=Authenticator.Type.TOTP, data={})
        look(desk, operator)
        assert "only superusers" in help_with(desk, operator, what)
        operator.refresh_from_db()
        assert operator.is_active and operator.deletion_asked_at is None
        assert Authenticator.objects.filter(user=operator).exists()

    def test_a_superuser_helps_an_operator_who_lost_the_factor(
        self, operator: User, supporter: User, settings: Settings
    ) -> None:
        settings.STAFF_SECOND_FACTOR = True
        for user in (operator, supporter):
            Authenticator.objects.create(user=user, type=Authenticator.Type.TOTP, data={})
        client = Client()
        sign_in_lately(client, operator)
        look(client, supporter)
        assert "Done: Remove" in help_with(client, supporter, "remove-factors")
        assert list(Authenticator.objects.values_list("user", flat=True)) == [operator.pk]

    def test_nobody_blocks_their_own_account(self, operator: User) -> None:
        client = Client()
        sign_in_lately(client, operator)
        look(client, operator)
        assert "your own account" in help_with(client, operator, "block")


def test_without_the_permission_for_it_a_help_is_neither_shown_nor_done(db: None, alice: User) -> None:
    viewer = make_person("Support")
    group = viewer.groups.get()
    group.permissions.set(group.permissions.filter(codename="view_account"))
    client = Client()
    sign_in_lately(client, viewer)
    assert "Block the account" not in look(client, alice)
    assert client.post(f"{LIST}{alice.pk}/help/block/", {"reason": "x"}).status_code == 403
    alice.refresh_from_db()
    assert alice.is_active

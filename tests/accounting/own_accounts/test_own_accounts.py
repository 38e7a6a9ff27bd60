"""A volunteer's own account at a project: found, created, entered or taken over, and checked; against real sockets."""

from __future__ import annotations

import datetime as dt
import json
import time
import zipfile
from collections.abc import Iterator
from io import BytesIO
from ipaddress import ip_network

import pytest
from django.core import mail
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from accounting import tasks
from accounting.account_data.copies import write
from accounting.account_data.erasure import erase_due
from accounting.models import DataCopy, HostProject, OwnAccount, Project, ProjectProfile, UserProject
from accounting.own_accounts import checks, requests
from accounting.own_accounts.requests import REQUEST_KEPT, AccountRequest
from accounting.rpc import account_keys, catalogue
from portal.celery import app
from portal.models import User
from portal.sign_in.throttle import PROJECT_ACCOUNTS_PER_HOUR
from portal.wire.credentials import client_password_hash
from tests.support.accounting_factories import make_project
from tests.support.am_rpc import attach, host_of, make_computer, sync
from tests.support.fake_project import EMAIL, PASSWORD, STRONG_KEY, WEAK_KEY, FakeProject
from tests.support.raw_server import reply
from tests.support.sessions import sign_in_lately
from tools.simulation.client import Attachment, SimulatedComputer

pytestmark = pytest.mark.django_db

State = OwnAccount.State
MINUTE = dt.timedelta(minutes=1)
LOGIN = {"action": "find", "login": EMAIL, "password": PASSWORD}


@pytest.fixture
def fake(settings: Settings) -> Iterator[FakeProject]:
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    with FakeProject() as project:
        yield project


@pytest.fixture
def project(fake: FakeProject, signing_keys: None) -> Project:
    """Where each volunteer has an account of their own; the only project."""
    made = make_project("Fake", master_url=fake.url, account_mode=Project.Account.PER_USER)
    catalogue.forget()
    return made


class Volunteer:
    """Alice at the page of her account, and the worker that does what she asked for."""

    def __init__(self, client: Client, user: User, project: Project, commits: DjangoCaptureOnCommitCallbacks) -> None:
        client.force_login(user)
        sign_in_lately(client, user)
        self.client, self.user, self.project, self._commits = client, user, project, commits
        self.address = f"/projects/{project.pk}/account/"

    def sends(self, fields: dict[str, str], status: int = 302) -> str:
        with self._commits(execute=True):
            reply = self.client.post(self.address, fields)
        assert reply.status_code == status, reply.content
        return reply.content.decode()

    def worker_asks(self, minutes: float = 0) -> OwnAccount:
        with self._commits(execute=True):
            checks.carry_out(self.account.pk, timezone.now() + minutes * MINUTE)
        return self.account

    def worker_checks(self) -> OwnAccount:
        with self._commits(execute=True):
            checks.check(self.account.pk, timezone.now())
        return self.account

    @property
    def account(self) -> OwnAccount:
        return OwnAccount.objects.get()

    @property
    def key(self) -> str:
        """The stored key in clear; empty if there is none."""
        row = UserProject.objects.filter(user=self.user, project=self.project).first()
        if row is None or not row.account_key:
            return ""
        return account_keys.own(self.user.pk, self.project.pk, self.project.master_url, bytes(row.account_key))

    @property
    def page(self) -> str:
        return self.client.get(self.address).content.decode()


@pytest.fixture
def volunteer(
    client: Client, alice: User, project: Project, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> Volunteer:
    return Volunteer(client, alice, project, django_capture_on_commit_callbacks)


def whole_database() -> str:
    """All rows of the account manager's and the portal's tables as text."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            " AND (tablename LIKE 'accounting%%' OR tablename LIKE 'portal%%')"
        )
        texts = []
        for (name,) in cursor.fetchall():
            cursor.execute(f'SELECT t::text FROM "{name}" t')
            texts += [text for (text,) in cursor.fetchall()]
    return "\n".join(texts)


class TestWaysToAnAccount:
    def test_one_is_found_by_its_login_and_its_weak_key_is_stored(
        self, volunteer: Volunteer, fake: FakeProject
    ) -> None:
        fake.credit = "1234.5"
        volunteer.sends(LOGIN)
        assert (volunteer.account.state, volunteer.key) == (State.ASKING, "")
        assert "hx-trigger" in volunteer.page
        account = volunteer.worker_asks()
        assert (account.state, account.number, account.name) == (State.WORKS, 7, "Ops Team")
        assert (volunteer.key, account.total_credit, account.avg_credit) == (WEAK_KEY, 1_234_500_000, 1.5)
        assert (
            "works" in volunteer.page and "number 7, Ops Team" in volunteer.page and "hx-trigger" not in volunteer.page
        )
        assert "An account at Fake was entered" in mail.outbox[-1].body

    def test_one_is_created_with_consent_to_the_terms_that_were_shown(
        self, volunteer: Volunteer, fake: FakeProject, project: Project
    ) -> None:
        fake.wants_consent = True
        new = {"action": "create", "login": "Alice@example.org", "password": "long enough", "name": "Alice"}
        volunteer.sends(new)
        # The project's terms were not known here yet.
        assert volunteer.worker_asks().state == State.TERMS
        said = {"terms_of_use": "Be <b>kind</b>.", "min_passwd_length": 8}
        ProjectProfile.objects.create(project=project, said=said, seen=said)
        assert "Be kind." in volunteer.page
        assert "at least 8 characters" in volunteer.sends(new | {"password": "short", "consent": "on"}, 422)
        assert "This field is required" in volunteer.sends(new, 422)
        volunteer.sends(new | {"consent": "on"})
        assert volunteer.worker_asks().state == State.WORKS
        assert fake.accounts["alice@example.org"] == client_password_hash("long enough", "alice@example.org")
        assert volunteer.key == WEAK_KEY

    def test_a_key_is_stored_once_the_project_knows_it(self, volunteer: Volunteer) -> None:
        volunteer.sends({"action": "key", "account_key": "nobody"})
        assert (volunteer.worker_asks().state, volunteer.key) == (State.KEY_REFUSED, "")
        volunteer.sends({"action": "key", "account_key": STRONG_KEY})
        assert (volunteer.worker_asks().state, volunteer.key) == (State.WORKS, WEAK_KEY)

    def test_a_key_is_stored_unchecked_where_the_project_does_not_tell(
        self, volunteer: Volunteer, fake: FakeProject
    ) -> None:
        fake.has_account_info = False
        volunteer.sends({"action": "key", "account_key": "7_key"})
        assert (volunteer.worker_asks().state, volunteer.key) == (State.UNCHECKED, "7_key")
        assert "does not tell whether this key still works" in volunteer.page

    def test_a_project_that_tells_of_accounts_by_full_keys_alone_cannot_say_that_the_password_was_changed(
        self, volunteer: Volunteer, fake: FakeProject
    ) -> None:
        # As BOINC's own am_get_info.php does
        fake.tells_by_weak_key = False
        volunteer.sends(LOGIN)
        account = volunteer.worker_asks()
        assert (account.state, account.can_check, volunteer.key) == (State.WORKS, False, WEAK_KEY)
        assert "does not tell whether this key still works" in volunteer.page

    @pytest.mark.parametrize(
        ("fields", "state", "words"),
        [
            ({"login": "nobody@example.org"}, State.NO_ACCOUNT, "there is no such account"),
            ({"password": "wrong"}, State.WRONG_PASSWORD, "the password is wrong"),
            (
                {"action": "create", "name": "A", "password": "another"},
                State.TAKEN,
                "there is an account with this address and another password",
            ),
        ],
    )
    def test_what_the_project_refuses_is_said_and_a_key_that_works_stays(
        self, fields: dict[str, str], state: State, words: str, volunteer: Volunteer
    ) -> None:
        volunteer.sends(LOGIN)
        volunteer.worker_asks()
        volunteer.sends(LOGIN | fields)
        account = volunteer.worker_asks()
        assert (account.state, volunteer.key) == (state, WEAK_KEY)
        assert f"The project refused: {words} (error -" in volunteer.page

    def test_what_a_project_repeats_of_a_secret_is_not_shown_and_not_stored(
        self, volunteer: Volunteer, fake: FakeProject
    ) -> None:
        fake.words = "no such key: 0123secret"
        volunteer.sends({"action": "key", "account_key": "0123secret"})
        assert str(volunteer.worker_asks().reason) == "The project refused: no such key: … (error -136)."
        hashed = client_password_hash("wrong", EMAIL)
        fake.words = f"no such hash: {hashed}"
        volunteer.sends(LOGIN | {"password": "wrong"})
        assert str(volunteer.worker_asks().reason) == "The project refused: no such hash: … (error -206)."
        assert "0123secret" not in whole_database() and hashed not in whole_database()

    def test_which_address_a_project_has_inside_is_not_told(self, volunteer: Volunteer, settings: Settings) -> None:
        settings.FETCH_ALLOWED_NETWORKS = []
        volunteer.sends(LOGIN)
        assert (volunteer.worker_asks().state, volunteer.account.reason) == (State.UNREACHABLE, None)

    @pytest.mark.parametrize(
        ("nonsense", "words"),
        [
            (b"ICY 200 OK\r\n\r\n", "the connection broke, or the answer is not HTTP"),
            (reply(b"<html>Hello</html>"), "not what a BOINC project answers"),
            (reply(b"<account_out><authenticator>7 key</authenticator></account_out>"), "printable characters"),
            (reply(b"<account_out>" + b"x" * (3 << 20)), "more than the limit of"),
            (reply(b"<account_out>" + b"<a/>" * 30_000), "more than"),
            (reply(b"", "Location: ftp://elsewhere.example.org/", status="302 Found"), ""),
            (reply(b"", "Location: http://10.0.0.7/", status="302 Found"), ""),
            (reply(b"", "Location: /lookup_account.php", status="302 Found"), "redirects more than 3 times"),
        ],
        ids=["no HTTP", "a page", "no key", "huge", "many elements", "another scheme", "inside", "in circles"],
    )
    def test_what_is_no_answer_of_a_project_stores_no_key_and_is_said(
        self, nonsense: bytes, words: str, volunteer: Volunteer, fake: FakeProject
    ) -> None:
        fake.nonsense = nonsense
        volunteer.sends(LOGIN)
        account = volunteer.worker_asks()
        assert (account.state, volunteer.key) == (State.UNREACHABLE, "") and words in str(account.reason)
        assert "10.0.0.7" not in volunteer.page

    def test_a_project_that_is_down_stores_nothing(self, volunteer: Volunteer, fake: FakeProject) -> None:
        fake.is_down = True
        volunteer.sends({"action": "key", "account_key": STRONG_KEY})
        assert (volunteer.worker_asks().state, volunteer.key) == (State.UNREACHABLE, "")


class TestTakingOver:
    """A client has the project with an account of its owner's own, and says its key."""

    @pytest.fixture
    def computer(self, alice: User, project: Project) -> SimulatedComputer:
        computer = attach(alice)
        assert computer.projects == {}
        computer.projects = {project.master_url: Attachment(project.master_url, account_key=STRONG_KEY, managed=False)}
        # A client says the key from the reply on that named the project.
        account = sync(computer).account(project)
        assert {element.tag for element in account} == {"url", "user_total_ec", "user_avg_ec"}
        sync(computer)
        return computer

    def test_its_key_is_sealed_until_the_owner_takes_it_over(
        self, computer: SimulatedComputer, volunteer: Volunteer, project: Project
    ) -> None:
        assert STRONG_KEY not in whole_database()
        assert "Use the account of studio" in volunteer.page
        volunteer.sends({"action": "take_over", "host": str(host_of(computer).pk)})
        assert (volunteer.worker_asks().state, volunteer.key) == (State.WORKS, WEAK_KEY)
        # Another computer is attached with it; this one keeps its own key.
        other = attach(volunteer.user, "attic")
        assert other.projects[project.master_url].account_key == WEAK_KEY
        assert sync(computer).accounts[project.master_url].find("authenticator") is None

    def test_it_is_forgotten_when_the_client_has_the_project_no_longer(
        self, computer: SimulatedComputer, project: Project
    ) -> None:
        assert "own_key" in HostProject.objects.get().state
        computer.projects = {}
        sync(computer)
        assert "own_key" not in HostProject.objects.get().state

    @pytest.mark.parametrize(("number", "gets_new_key"), [("7", True), ("8", False), ("77", False)])
    def test_another_key_of_the_same_account_follows_its_password(
        self, number: str, gets_new_key: bool, computer: SimulatedComputer, volunteer: Volunteer, project: Project
    ) -> None:
        computer.projects[project.master_url].account_key = f"{number}_{'0' * 32}"
        volunteer.sends(LOGIN)
        volunteer.worker_asks()
        account = sync(computer).account(project)
        assert account.findtext("authenticator") == (WEAK_KEY if gets_new_key else None)
        assert account.find("detach_when_done") is None

    @pytest.mark.parametrize("key", ["", "7_\u00e9", "7 key", "7_" + "x" * 300])
    def test_what_no_other_client_could_be_sent_is_not_offered(
        self, key: str, computer: SimulatedComputer, volunteer: Volunteer, project: Project
    ) -> None:
        computer.projects[project.master_url].account_key = key
        sync(computer)
        assert "own_key" not in HostProject.objects.get().state
        assert "Use the account of studio" not in volunteer.page

    @pytest.mark.parametrize("host", ["", "0", "-1", "\u00b2", "9" * 5000])
    def test_what_is_no_computer_is_refused_in_words(self, host: str, volunteer: Volunteer) -> None:
        assert "does not report an account of yours" in volunteer.sends({"action": "take_over", "host": host}, 422)

    def test_nobody_else_takes_it_over(
        self, computer: SimulatedComputer, bob: User, volunteer: Volunteer, client: Client
    ) -> None:
        host = str(host_of(computer).pk)
        client.force_login(bob)
        sign_in_lately(client, bob)
        assert "does not report an account of yours" in volunteer.sends({"action": "take_over", "host": host}, 422)
        assert not OwnAccount.objects.exists()

    def test_the_copy_of_ones_data_has_the_account_and_no_key(
        self, computer: SimulatedComputer, volunteer: Volunteer
    ) -> None:
        sealed = HostProject.objects.get().state["own_key"]
        volunteer.sends({"action": "take_over", "host": str(host_of(computer).pk)})
        volunteer.worker_asks()
        file = BytesIO()
        write(DataCopy.objects.create(user=volunteer.user, asked_at=timezone.now()), file)
        with zipfile.ZipFile(file) as archive:
            texts = {name: archive.read(name).decode() for name in archive.namelist()}
        (account,) = json.loads(texts["projects.json"])["accounts"]
        assert (account["state"], account["number"]) == ("works", 7)
        assert not [name for name, text in texts.items() if sealed in text or WEAK_KEY in text]


class TestSecrets:
    def test_neither_password_nor_hash_nor_key_is_stored_in_clear_nor_sent_to_the_broker(
        self, volunteer: Volunteer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent: list[object] = []
        monkeypatch.setattr(app, "send_task", lambda *args, **more: sent.append((args, more)))
        secrets = [PASSWORD, client_password_hash(PASSWORD, EMAIL), STRONG_KEY, WEAK_KEY]
        volunteer.sends(LOGIN)
        rows = whole_database()
        assert sent == [(("accounting.tasks.ask_for_account", (volunteer.account.pk,)), {"retry": False})]
        assert not [secret for secret in secrets if secret in rows]
        volunteer.worker_asks()
        assert volunteer.account.sealed_request is None
        assert not [secret for secret in secrets if secret in whole_database()]

    def test_a_request_is_carried_out_once_and_forgotten_in_ten_minutes(
        self, volunteer: Volunteer, fake: FakeProject
    ) -> None:
        volunteer.sends(LOGIN)
        for _ in range(2):
            volunteer.worker_asks()
        assert len(fake.asked("/lookup_account.php")) == 1
        volunteer.sends(LOGIN)
        checks.look_after(timezone.now() + REQUEST_KEPT + MINUTE)
        assert (volunteer.account.state, volunteer.account.sealed_request) == (State.EXPIRED, None)
        volunteer.sends(LOGIN)
        assert volunteer.worker_asks(minutes=11).state == State.EXPIRED
        assert len(fake.asked("/lookup_account.php")) == 1

    def test_a_request_is_not_sent_to_another_server_than_it_was_entered_for(
        self, volunteer: Volunteer, project: Project
    ) -> None:
        volunteer.sends(LOGIN)
        with FakeProject("127.0.0.2") as other:
            Project.objects.update(master_url=other.url)
            assert volunteer.worker_asks().state == State.EXPIRED
            assert other.requests == []

    def test_with_another_server_all_is_forgotten(self, volunteer: Volunteer, project: Project) -> None:
        volunteer.sends(LOGIN)
        volunteer.worker_asks()
        project.master_url = "https://elsewhere.example.org/"
        project.save()
        assert not OwnAccount.objects.exists()
        assert not UserProject.objects.exclude(account_key=None).exists()

    def test_an_answer_that_comes_after_another_request_or_a_removal_changes_nothing(
        self, volunteer: Volunteer
    ) -> None:
        volunteer.sends(LOGIN)
        taken = requests.take(volunteer.account.pk, timezone.now())
        assert taken is not None
        requests.ask(volunteer.user, volunteer.project, AccountRequest(key="other"))
        checks._note(taken[0], checks.Finding(State.WORKS, "7_late"), timezone.now())
        assert (volunteer.account.state, volunteer.key) == (State.ASKING, "")
        volunteer.sends({"action": "remove"})
        checks._note(taken[0], checks.Finding(State.WORKS, "7_late"), timezone.now())
        assert volunteer.key == ""

    @pytest.mark.parametrize("gone", ["volunteer", "project"])
    def test_an_answer_for_a_volunteer_or_project_that_is_gone_changes_nothing(
        self, volunteer: Volunteer, gone: str
    ) -> None:
        volunteer.sends(LOGIN)
        taken = requests.take(volunteer.account.pk, timezone.now())
        assert taken is not None
        (volunteer.user if gone == "volunteer" else volunteer.project).delete()
        checks._note(taken[0], checks.Finding(State.WORKS, "7_late"), timezone.now())
        # Foreign keys are checked at the end of a transaction.
        connection.check_constraints()
        assert not UserProject.objects.exists()

    def test_a_login_of_a_while_ago_is_not_enough(self, volunteer: Volunteer) -> None:
        session = volunteer.client.session
        session["account_authentication_methods"] = [{"method": "password", "at": time.time() - 3600}]
        session.save()
        volunteer.sends(LOGIN)
        assert not OwnAccount.objects.exists()

    def test_nobody_guesses_passwords_of_a_project_through_the_site(self, volunteer: Volunteer) -> None:
        for _ in range(PROJECT_ACCOUNTS_PER_HOUR + 1):
            volunteer.sends(LOGIN)
        assert "20 requests to projects within an hour" in volunteer.page

    def test_it_is_erased_with_its_owner(self, volunteer: Volunteer, alice: User) -> None:
        volunteer.sends(LOGIN)
        User.objects.update(deletion_asked_at=timezone.now() - dt.timedelta(days=15), is_active=False)
        assert erase_due(timezone.now()) == 1
        assert not OwnAccount.objects.exists()


class TestChecks:
    @pytest.fixture(autouse=True)
    def _entered(self, volunteer: Volunteer) -> None:
        volunteer.sends(LOGIN)
        volunteer.worker_asks()

    def test_a_key_that_ended_with_a_new_password_is_found_and_told_once(
        self, volunteer: Volunteer, fake: FakeProject
    ) -> None:
        mail.outbox.clear()
        fake.weak_key = "7_of_the_new_password"
        for _ in range(2):
            assert volunteer.worker_checks().state == State.KEY_REFUSED
        assert [letter.subject for letter in mail.outbox] == [
            "Cobblestone: The key of an account at a project is not valid any more"
        ]
        assert volunteer.address in mail.outbox[0].body
        volunteer.sends(LOGIN)
        assert (volunteer.worker_asks().state, volunteer.key) == (State.WORKS, "7_of_the_new_password")

    @pytest.mark.parametrize("can_check", [True, False])
    def test_a_project_that_is_down_ends_no_key_and_is_left_alone_for_an_hour(
        self, can_check: bool, volunteer: Volunteer, fake: FakeProject, bob: User
    ) -> None:
        later = timezone.now() + dt.timedelta(days=8)
        OwnAccount.objects.update(can_check=can_check)
        other = OwnAccount.objects.get()
        other.pk, other.user = None, bob
        other.save()
        [first] = checks.look_after(later)[:1]
        OwnAccount.objects.exclude(pk=first).update(check_after=later)
        fake.is_down = True
        checks.check(first, later)
        assert set(OwnAccount.objects.values_list("state", "check_after")) == {
            (State.WORKS, later + checks.UNREACHABLE_FOR)
        }

    def test_a_project_that_is_down_while_a_weak_key_is_entered_does_not_make_it_an_unchecked_one(
        self, volunteer: Volunteer, fake: FakeProject
    ) -> None:
        volunteer.sends({"action": "remove"})
        fake.refusal = -183
        volunteer.sends({"action": "key", "account_key": "7_key"})
        assert (volunteer.worker_asks().state, volunteer.key) == (State.UNREACHABLE, "")

    def test_no_project_keeps_the_worker_busy_nor_others_waiting(
        self, volunteer: Volunteer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(checks, "CHECKS_OF_PROJECT", 2)
        other = make_project("Other", account_mode=Project.Account.PER_USER)
        now = timezone.now()
        OwnAccount.objects.all().delete()
        for number in range(4):
            user = User.objects.create_user(f"v{number}@example.org", "s")
            # The crowd of one project waits for longer than the one account of the other.
            of = other if number == 3 else volunteer.project
            due = now - dt.timedelta(hours=9 - number)
            OwnAccount.objects.create(user=user, project=of, state=State.WORKS, state_at=now, check_after=due)
        chosen = OwnAccount.objects.filter(pk__in=checks.look_after(now)).order_by("check_after")
        assert sorted(account.project.name for account in chosen) == ["Fake", "Fake", "Other"]
        for task in (tasks.ask_for_account, tasks.check_account):
            assert app.amqp.router.route({}, task.name)["queue"].name == "requested"

    def test_its_credit_is_read_again(self, volunteer: Volunteer, fake: FakeProject) -> None:
        assert volunteer.account.total_credit is None
        fake.credit = "99"
        assert volunteer.worker_checks().total_credit == 99_000_000
        for odd in ("-1", "nan", "1e300"):
            fake.credit = odd
            assert volunteer.worker_checks().total_credit == 99_000_000

    @pytest.mark.parametrize("can_check", [True, False])
    @pytest.mark.parametrize("is_asked", [True, False], ids=["refused", "not asked in time"])
    def test_an_entry_that_came_to_nothing_is_said_for_an_hour_and_the_stored_key_is_checked_on(
        self, is_asked: bool, can_check: bool, volunteer: Volunteer, fake: FakeProject
    ) -> None:
        OwnAccount.objects.update(can_check=can_check)
        volunteer.sends(LOGIN | {"password": "mistyped"})
        state = volunteer.worker_asks(0 if is_asked else 11).state
        assert state == (State.WRONG_PASSWORD if is_asked else State.EXPIRED)
        begun = timezone.now() + (0 if is_asked else 11) * MINUTE
        assert checks.look_after(begun + 59 * MINUTE) == []
        assert checks.look_after(begun + 61 * MINUTE) == [volunteer.account.pk]
        assert volunteer.worker_checks().state == (State.WORKS if can_check else State.UNCHECKED)

    def test_a_key_that_ended_is_told_also_where_another_entry_came_to_nothing(
        self, volunteer: Volunteer, fake: FakeProject
    ) -> None:
        volunteer.sends(LOGIN | {"password": "mistyped"})
        volunteer.worker_asks()
        fake.weak_key = "7_of_the_new_password"
        mail.outbox.clear()
        assert volunteer.worker_checks().state == State.KEY_REFUSED
        assert len(mail.outbox) == 1

    def test_a_request_that_no_worker_took_leaves_the_stored_key_to_be_checked(self, volunteer: Volunteer) -> None:
        volunteer.sends(LOGIN | {"password": "mistyped"})
        later = timezone.now() + REQUEST_KEPT + MINUTE
        assert checks.look_after(later) == []
        assert (volunteer.account.state, volunteer.account.check_after) == (
            State.EXPIRED,
            later + dt.timedelta(hours=1),
        )

    def test_each_is_checked_once_a_week_and_some_in_a_run(
        self, volunteer: Volunteer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = timezone.now()
        assert checks.look_after(now) == []
        later = now + dt.timedelta(days=8)
        assert checks.look_after(later) == [volunteer.account.pk]
        assert checks.look_after(later) == []
        monkeypatch.setattr(checks, "CHECKS_PER_RUN", 0)
        assert checks.look_after(later + dt.timedelta(days=8)) == []


def test_computers_get_no_project_before_its_account_is_entered_and_then_its_key(
    volunteer: Volunteer, project: Project
) -> None:
    computer = make_computer(volunteer.user)
    assert sync(computer).accounts == {}
    volunteer.sends(LOGIN)
    volunteer.worker_asks()
    assert sync(computer).account(project).findtext("authenticator") == WEAK_KEY


def test_there_is_no_such_page_of_a_project_that_all_share(volunteer: Volunteer, project: Project) -> None:
    Project.objects.update(account_mode=Project.Account.SHARED)
    assert volunteer.client.get(volunteer.address).status_code == 404

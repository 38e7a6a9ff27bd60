"""Where the operator demands a confirmed address, no project's key is handed out before, and the reply says why."""

from __future__ import annotations

import hashlib
import re

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounting.models import Project
from portal.models import User
from portal.people.key_mails import send_waiting
from tests.support.am_rpc import attach, make_computer, sync

NEW = "dora@example.org"


@pytest.fixture
def demanded(settings: Settings) -> None:
    settings.CONFIRMED_EMAIL_FOR_PROJECTS = True


def look_up(path: str, email: str, password: str, **more: str) -> str:
    sent = hashlib.md5((password + email).encode()).hexdigest()
    return Client().get(path, {"email_addr": email, "passwd_hash": sent, **more}).content.decode()


@pytest.mark.usefixtures("demanded")
def test_no_key_is_handed_out_before_the_address_is_confirmed(alice: User, projects: list[Project]) -> None:
    computer = make_computer(alice)
    for _ in range(2):
        reply = sync(computer)
        assert reply.error[0] == 0
        assert reply.accounts == {}
        assert b"key_of_alpha" not in reply.raw
        assert any("confirmed your e-mail address" in message for message in reply.messages)
        assert not any("There is no project for this computer" in message for message in reply.messages)
        # It is asked back soon, not after hours.
        assert reply.repeat_secs < 3600
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    reply = sync(computer)
    assert set(reply.accounts) == {project.master_url for project in projects}
    assert reply.messages == []


def test_nothing_is_demanded_by_default(alice: User, projects: list[Project]) -> None:
    assert set(sync(make_computer(alice)).accounts) == {project.master_url for project in projects}


def test_what_is_attached_stays_when_the_operator_begins_to_demand_it(
    alice: User, projects: list[Project], settings: Settings
) -> None:
    computer = attach(alice)
    sync(computer)
    assert len(computer.projects) == 3
    settings.CONFIRMED_EMAIL_FOR_PROJECTS = True
    assert sync(computer).accounts == {}
    assert len(computer.projects) == 3


@pytest.mark.usefixtures("demanded")
def test_an_address_that_is_not_the_login_confirms_nothing(alice: User, projects: list[Project]) -> None:
    EmailAddress.objects.create(user=alice, email="other@example.org", verified=True, primary=True)
    EmailAddress.objects.create(user=alice, email=alice.email, verified=False)
    assert sync(make_computer(alice)).accounts == {}


@pytest.mark.usefixtures("demanded")
def test_an_account_that_a_client_opened_gets_projects_after_its_mail(projects: list[Project]) -> None:
    assert "<authenticator>" in look_up("/create_account.php", NEW, "seven green boats", user_name="Dora")
    dora = User.objects.get(email=NEW)
    computer = make_computer(dora)
    computer.password = "seven green boats"
    assert sync(computer).accounts == {}
    send_waiting(timezone.now())
    [sent] = mail.outbox
    assert sent.to == [NEW]
    link = re.search(r"https?://[^/\s]+(/\S+)", str(sent.body))
    assert link is not None
    Client().post(link[1])
    assert set(sync(computer).accounts) == {project.master_url for project in projects}


@pytest.mark.usefixtures("demanded")
def test_the_mail_is_sent_once_however_often_a_client_asks_for_the_account(db: None) -> None:
    for _ in range(3):
        assert "<authenticator>" in look_up("/create_account.php", NEW, "seven green boats", user_name="Dora")
    send_waiting(timezone.now())
    assert [sent.to for sent in mail.outbox] == [[NEW]]


@pytest.mark.usefixtures("demanded")
def test_the_sites_own_project_gives_no_key_either_and_says_why(alice: User) -> None:
    assert "Confirm your e-mail address first" in look_up("/project/lookup_account.php", alice.email, "alice's secret")
    # With it one attaches to the account manager, which gives no projects.
    assert "<authenticator>" in look_up("/lookup_account.php", alice.email, "alice's secret")
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    assert "<authenticator>" in look_up("/project/lookup_account.php", alice.email, "alice's secret")

"""If the operator requires a confirmed address, the scheduler accepts no new computer before, whatever its key."""

from __future__ import annotations

import hashlib
import re

import pytest
from allauth.account.models import EmailAddress
from django.test import Client
from pytest_django import Settings

from portal.models import Host, User
from scheduler.models import HostRecord
from tests.support.credit_factories import NOON, make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of, messages, names, post

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def jobs(db: None) -> None:
    app = make_app()
    make_version(app)
    for _ in range(3):
        make_result(make_workunit(app))


@pytest.fixture
def demanded(settings: Settings) -> None:
    settings.CONFIRMED_EMAIL_FOR_PROJECTS = True


def confirm(user: User) -> None:
    EmailAddress.objects.update_or_create(user=user, email=user.email, defaults={"verified": True, "primary": True})


@pytest.mark.usefixtures("demanded")
def test_a_key_for_the_account_manager_brings_no_jobs_before_the_address_is_confirmed() -> None:
    email, password = "dora@example.org", "seven green boats"
    sent = hashlib.md5((password + email).encode()).hexdigest()
    query = {"email_addr": email, "passwd_hash": sent, "user_name": "Dora"}
    answer = Client().get("/create_account.php", query).content.decode()
    match = re.search("<authenticator>(.*?)</authenticator>", answer)
    assert match is not None
    computer = computer_of(User.objects.get(email=email))
    computer.key = match[1]
    refused = post(computer.request(0, 1))
    assert names(refused, "result") == []
    [message] = messages(refused)
    assert "Confirm your e-mail address first" in message
    assert not Host.objects.exists()
    confirm(User.objects.get(email=email))
    assert len(names(computer.ask(0, 1, now=NOON), "result")) == 1


@pytest.mark.usefixtures("demanded")
def test_nor_does_the_number_of_a_computer_that_the_account_manager_knows(alice: User) -> None:
    computer = computer_of(alice)
    computer.hostid = Host.objects.create(owner=alice).pk
    assert "Confirm your e-mail address first" in messages(post(computer.request(0, 1)))[0]
    assert not HostRecord.objects.exists()
    confirm(alice)
    assert len(names(computer.ask(0, 1, now=NOON), "result")) == 1
    assert HostRecord.objects.get().host_id == computer.hostid


def test_what_was_attached_before_goes_on(alice: User, settings: Settings) -> None:
    computer: Computer = computer_of(alice)
    assert len(names(computer.ask(0, 1, now=NOON), "result")) == 1
    settings.CONFIRMED_EMAIL_FOR_PROJECTS = True
    assert len(names(computer.ask(0, 1), "result")) == 1

"""The site's own project in the account manager: who is handed it, with which key, and what that key opens."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounting.models import Project
from accounting.projects import own_project
from portal.models import ClientKey, User
from portal.people.accounts import issue_client_key, weak_key
from portal.wire.credentials import key_hash
from scheduler.programs import code_signing
from tests.support.am_rpc import attach, make_computer, sync
from tests.support.scheduler_clients import Computer, value
from tests.support.scheduler_clients import post as ask_scheduler


@pytest.fixture
def own(db: None, signing_keys: None, key_folder: Path, settings: Settings) -> Project:
    settings.CODE_SIGNING_KEY = key_folder / "code_private"
    settings.CODE_SIGNING_KEY_PUBLIC = key_folder / "code_public"
    code_signing.make_if_missing()
    assert own_project.create_if_missing(is_active=True)
    return Project.objects.get()


def test_a_computer_is_handed_the_weak_form_of_its_key_from_the_first_reply_on(own: Project, alice: User) -> None:
    computer = make_computer(alice)
    first = sync(computer)
    weak = weak_key(alice.pk, key_hash(computer.authenticator))
    assert first.account(own).findtext("authenticator") == weak
    assert sync(computer).account(own).findtext("authenticator") == weak
    assert value(ask_scheduler(Computer(weak).request()), "userid") == str(alice.pk)


def test_after_a_new_login_the_new_keys_form_is_handed_out(own: Project, alice: User) -> None:
    computer = attach(alice)
    old = weak_key(alice.pk, key_hash(computer.authenticator))
    ClientKey.objects.update(revoked_at=timezone.now())
    computer.authenticator = issue_client_key(alice, ClientKey.Origin.ATTACH)
    handed = sync(computer).account(own).findtext("authenticator")
    assert handed == weak_key(alice.pk, key_hash(computer.authenticator)) != old
    assert "Invalid or missing account key" in ask_scheduler(Computer(old).request())


def test_it_is_put_in_the_list_once(own: Project, settings: Settings) -> None:
    assert (own.master_url, own.name) == (settings.PROJECT_URL, settings.SITE_NAME)
    assert own.url_signature
    assert not own_project.create_if_missing(is_active=True)


def test_a_site_without_a_project_server_has_none(signing_keys: None, settings: Settings, db: None) -> None:
    settings.ROOMS = ["account_manager", "emulator"]
    assert not own_project.create_if_missing(is_active=True)
    assert not Project.objects.exists()

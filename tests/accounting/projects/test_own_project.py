"""The site's own project in the account manager: who is handed it, with which key, and what that key opens."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import IntegrityError
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
    with pytest.raises(IntegrityError, match="project_own_once"):
        Project.objects.create(name="Second", master_url="https://second.example.org/", is_own=True)


def test_a_project_that_was_added_by_the_sites_address_is_the_own_one(db: None, settings: Settings) -> None:
    by_hand = Project.objects.create(name="By hand", master_url=settings.PROJECT_URL.replace("http:", "https:"))
    assert own_project.create_if_missing(is_active=True)
    by_hand.refresh_from_db()
    assert by_hand.is_served_here and by_hand.name == "By hand"
    assert Project.objects.count() == 1


@pytest.mark.parametrize(
    ("taken", "name"),
    [
        ((), "Cobblestone"),
        (("Cobblestone",), "Cobblestone jobs"),
        (("Cobblestone", "Cobblestone jobs"), "Cobblestone jobs 2"),
    ],
)
def test_its_name_is_the_sites_as_far_as_that_is_free(
    taken: tuple[str, ...], name: str, signing_keys: None, db: None
) -> None:
    for number, other in enumerate(taken):
        Project.objects.create(name=other, master_url=f"https://p{number}.example.org/")
    own_project.create_if_missing(is_active=True)
    assert Project.objects.get(is_own=True).name == name


def test_a_site_without_a_project_server_has_none(signing_keys: None, settings: Settings, db: None) -> None:
    settings.ROOMS = ["account_manager", "emulator"]
    assert not own_project.create_if_missing(is_active=True)
    assert not Project.objects.exists()

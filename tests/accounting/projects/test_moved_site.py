"""A site whose SITE_URL changes: its own project follows or waits for the operator, and computers keep their tasks."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from accounting.models import Project, ProjectAddress
from accounting.projects import own_project, signing_key
from accounting.rpc import catalogue
from portal.models import ClientKey, User
from portal.people.accounts import weak_key
from portal.people.recovery import revoke_access
from portal.people.security_events import NOWHERE
from tests.support.am_rpc import attach, sync

OLD, NEW = "https://old.example.org/", "https://new.example.org/"


@pytest.fixture(autouse=True)
def _site(signing_keys: None, key_folder: Path, settings: Settings) -> None:
    settings.CODE_SIGNING_KEY = key_folder / "code_private"
    settings.CODE_SIGNING_KEY_PUBLIC = key_folder / "code_public"
    settings.DEMO = False


def at(url: str, settings: Settings) -> None:
    settings.SITE_URL, settings.PROJECT_URL = url, f"{url}project/"
    catalogue.forget()


def run(command: str, *arguments: str) -> str:
    output = io.StringIO()
    call_command(command, *arguments, stdout=output)
    catalogue.forget()
    return output.getvalue()


def own() -> Project:
    """The own project, whose signature clients accept."""
    project = Project.objects.get()
    assert project.is_own and signing_key.is_signed(project.master_url, project.url_signature)
    return project


def former() -> list[tuple[str, str]]:
    return list(ProjectAddress.objects.order_by("url").values_list("url", "source"))


@pytest.mark.django_db
def test_make_run_follows_from_an_address_of_one_machine_to_any_other_and_back(settings: Settings) -> None:
    for port in (18500, 18501, 18502):
        at(f"http://127.0.0.1:{port}/", settings)
        run("prepare", "--follow-address")
    assert own().master_url == own().web_url == "http://127.0.0.1:18502/project/"
    assert former() == [(f"http://127.0.0.1:{port}/project/", "moved") for port in (18500, 18501)]
    at("http://127.0.0.1:18500/", settings)
    assert "from http://127.0.0.1:18502/project/ to http://127.0.0.1:18500/project/" in run(
        "prepare", "--follow-address"
    )
    assert own().master_url == "http://127.0.0.1:18500/project/"
    assert [url for url, _ in former()] == ["http://127.0.0.1:18501/project/", "http://127.0.0.1:18502/project/"]
    at(NEW, settings)
    # Unless `make run` calls it: somebody may just have forgotten the port.
    assert "Nothing was changed" in run("prepare")
    run("prepare", "--follow-address")
    assert own().master_url == f"{NEW}project/"
    assert run("prepare") == ""


@pytest.mark.django_db
@pytest.mark.parametrize("mistaken", [NEW, "http://127.0.0.1:8000/", "http://old.example.org/"])
def test_an_address_that_others_can_have_moves_only_when_an_operator_says_so(mistaken: str, settings: Settings) -> None:
    at(OLD, settings)
    run("prepare")
    before = Project.objects.values().get()
    at(mistaken, settings)
    for _ in range(2):
        output = run("prepare", "--follow-address")
        assert (
            f"SITE_URL is {mistaken}" in output and f"is at {OLD}project/" in output and "manage.py move_site" in output
        )
    assert Project.objects.values().get() == before and former() == []
    at(OLD, settings)
    assert run("prepare") == ""
    at(mistaken, settings)
    assert f"has moved from {OLD}project/ to {mistaken}project/" in run("move_site")
    assert own().master_url == f"{mistaken}project/"
    # The same address by another scheme is no other one.
    assert former() == ([] if mistaken == "http://old.example.org/" else [(f"{OLD}project/", "moved")])
    assert run("prepare") == "" and "Nothing to move" in run("move_site")


@pytest.mark.django_db
def test_an_attached_computer_keeps_the_project_at_its_old_address_and_a_new_one_gets_the_new(
    settings: Settings, alice: User, bob: User
) -> None:
    at(OLD, settings)
    run("prepare")
    Project.objects.update(is_active=True)
    catalogue.forget()
    stays = attach(alice)
    assert list(stays.projects) == [f"{OLD}project/"]
    at(NEW, settings)
    run("move_site")
    for _ in range(2):
        entries = sync(stays).root.findall("account")
        assert [entry.findtext("url") for entry in entries] == [f"{OLD}project/"]
        assert [entry.find("detach") for entry in entries] == [None]
        assert entries[0].findtext("resource_share") == "100"
    # Its key ended with the access of all clients. With the new one it can report the tasks that it has.
    revoke_access(alice, NOWHERE)
    stays.authenticator = ""
    for _ in range(2):
        [entry] = sync(stays).root.findall("account")
        key = ClientKey.objects.get(user=alice, revoked_at=None)
        assert entry.findtext("authenticator") == weak_key(alice.pk, bytes(key.key_hash))
    assert list(attach(bob).projects) == [f"{NEW}project/"]


@pytest.mark.django_db
def test_where_the_private_key_is_elsewhere_the_signature_comes_with_the_move(
    settings: Settings, tmp_path: Path
) -> None:
    at(OLD, settings)
    run("prepare")
    at(NEW, settings)
    (tmp_path / "right").write_text(signing_key.sign_url(f"{NEW}project/") or "")
    (tmp_path / "of another").write_text(signing_key.sign_url(f"{OLD}project/") or "")
    (tmp_path / "none").write_text("hello")
    settings.AM_SIGNING_KEY = tmp_path / "elsewhere"
    for arguments, reason in [
        ([], rf"sign_url {NEW}project/ > signature"),
        (["--signature", str(tmp_path / "absent")], "cannot be used"),
        (["--signature", str(tmp_path / "none")], "cannot be used"),
        (["--signature", str(tmp_path / "of another")], f"no signature of {NEW}project/"),
    ]:
        with pytest.raises(CommandError, match=rf"^Nothing was changed.*{reason}|^Nothing was changed.*\n.*{reason}"):
            run("move_site", *arguments)
        assert own().master_url == f"{OLD}project/"
    run("move_site", "--signature", str(tmp_path / "right"))
    assert own().master_url == f"{NEW}project/"


@pytest.mark.django_db
def test_an_address_that_another_project_has_is_refused_by_name(settings: Settings) -> None:
    at(OLD, settings)
    run("prepare")
    Project.objects.create(name="Other", master_url=f"{NEW}project/")
    at(NEW, settings)
    with pytest.raises(CommandError, match="“Other” in the list of projects has the address"):
        run("move_site")
    assert Project.objects.get(is_own=True).master_url == f"{OLD}project/"
    at("http://127.0.0.1:8000/", settings)
    run("move_site")
    at(NEW, settings)
    assert "It cannot move" in run("prepare", "--follow-address")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("before", ["", "http://127.0.0.1:18500/"])
def test_several_prepare_at_once(before: str, settings: Settings) -> None:
    if before:
        at(before, settings)
        run("prepare")
    at("http://127.0.0.1:18501/", settings)
    outputs: list[str] = []

    def prepare() -> None:
        try:
            outputs.append(run("prepare", "--follow-address"))
        finally:
            connection.close()

    threads = [threading.Thread(target=prepare) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outputs) == 4 and len([output for output in outputs if "own project" in output]) == 1
    assert own().master_url == "http://127.0.0.1:18501/project/"
    assert own_project.pending_move() is None

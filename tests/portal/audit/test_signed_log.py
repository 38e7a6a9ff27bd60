"""The signed log: what comes into it, what it shows, and how each way to falsify it is found."""

from __future__ import annotations

import json
import logging
import re
from io import StringIO
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from accounting.models import Project
from portal.audit import signed_log
from portal.models import SignedEntry, User
from portal.wire import statements

pytestmark = pytest.mark.django_db
KEY = SignedEntry.Kind.KEY


@pytest.fixture
def log() -> list[SignedEntry]:
    """Three entries."""
    return [signed_log.append(KEY, {"old_key": "a", "new_key": str(number)}) for number in range(3)]


def check(*options: str | Path) -> str:
    out = StringIO()
    call_command("check_signed_log", *options, stdout=out)
    return out.getvalue()


def falsify(statement: str) -> None:
    """As whoever owns the database can."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE portal_signedentry DISABLE TRIGGER portal_signedentry_stays")
        cursor.execute(statement)
        cursor.execute("ALTER TABLE portal_signedentry ENABLE TRIGGER portal_signedentry_stays")


def test_a_whole_log_passes(log: list[SignedEntry]) -> None:
    assert check() == "The signed log is intact.\n"
    assert [entry.number for entry in log] == [1, 2, 3]
    assert [entry.previous for entry in log] == ["", log[0].digest, log[1].digest]


@pytest.mark.parametrize(
    "statement", ["UPDATE portal_signedentry SET content = '{}'", "DELETE FROM portal_signedentry WHERE number = 3"]
)
def test_the_database_refuses_to_change_or_delete_an_entry(log: list[SignedEntry], statement: str) -> None:
    with (
        pytest.raises(DatabaseError, match="never changed or removed"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)
    assert check() == "The signed log is intact.\n"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE portal_signedentry SET content = '{}' WHERE number = 2", "entry 2: it was changed"),
        ("UPDATE portal_signedentry SET person = 7 WHERE number = 1", "entry 1: it was changed"),
        ("UPDATE portal_signedentry SET at = at - interval '1 s' WHERE number = 3", "entry 3: it was changed"),
        ("DELETE FROM portal_signedentry WHERE number = 1", "entry 2: entry 1 is expected here"),
        ("DELETE FROM portal_signedentry WHERE number = 2", "entry 3: it does not follow the entry before it"),
    ],
)
def test_what_was_changed_or_removed_all_the_same_is_found(
    log: list[SignedEntry], statement: str, message: str
) -> None:
    falsify(statement)
    assert message in " ".join(signed_log.differences())
    with pytest.raises(CommandError, match="differences"):
        check()


def test_a_copy_shows_what_was_cut_off_or_signed_again(log: list[SignedEntry], tmp_path: Path) -> None:
    copy = tmp_path / "log.jsonl"
    copy.write_text(check("--export"))
    assert check("--copy", copy) == "The signed log is intact.\n"
    falsify("DELETE FROM portal_signedentry WHERE number = 3")
    assert check() == "The signed log is intact.\n"
    signed_log.append(KEY, {"old_key": "a", "new_key": "another"})
    assert check() == "The signed log is intact.\n"
    with pytest.raises(CommandError, match="1 differences"):
        check("--copy", copy)


def test_the_sites_own_log_names_each_entry_so_that_a_cut_off_end_shows(
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks, caplog: pytest.LogCaptureFixture
) -> None:
    with django_capture_on_commit_callbacks(execute=True), caplog.at_level(logging.INFO):
        last = [signed_log.append(KEY, {"old_key": "a", "new_key": str(number)}) for number in range(2)][-1]
    (digits,) = re.findall(r"'number': 2, 'digest': '(\w{16})'", caplog.text)
    assert last.digest.startswith(digits)
    assert check("--last", "2", digits) == "The signed log is intact.\n"
    falsify("DELETE FROM portal_signedentry WHERE number = 2")
    assert check() == "The signed log is intact.\n"
    with pytest.raises(CommandError, match="1 differences"):
        check("--last", "2", digits)


def test_a_copy_is_checked_with_the_public_key_alone(log: list[SignedEntry]) -> None:
    key = load_pem_public_key(check("--public-key").encode())
    assert isinstance(key, Ed25519PublicKey)
    for line in check("--export").splitlines():
        entry = json.loads(line)
        assert statements.is_signed(entry["statement"], entry["signature"], key)
        assert not statements.is_signed(entry["statement"] | {"number": 9}, entry["signature"], key)


def test_certificates_and_the_log_have_different_keys(settings: Settings) -> None:
    from extras.certificates import registry

    assert signed_log.public_key_text() != statements.public_key_text(registry.signing_key())


def test_what_is_no_copy_is_refused_by_its_line(log: list[SignedEntry], tmp_path: Path) -> None:
    (tmp_path / "log").write_text("[]\n")
    with pytest.raises(CommandError, match="line 1 is not an entry of a signed log"):
        check("--copy", tmp_path / "log")


def test_each_change_of_a_projects_address_is_in_it_with_who_made_it(client: Client, operator: User) -> None:
    project = Project.objects.create(name="Alpha", master_url="https://alpha.example.org/")
    project.summary = "A line of its science."
    project.save()
    project.master_url = "https://other.example.org/"
    project.save()
    project.delete()
    entries = list(SignedEntry.objects.order_by("number"))
    told = [entry.content["master_url"] for entry in entries]
    assert told == [
        {"before": "", "after": "https://alpha.example.org/"},
        {"before": "https://alpha.example.org/", "after": "https://other.example.org/"},
        {"before": "https://other.example.org/", "after": ""},
    ]
    assert {entry.person for entry in entries} == {0}


def test_operators_read_and_export_it(desk: Client, log: list[SignedEntry]) -> None:
    page = desk.get("/admin/portal/signedentry/").content.decode()
    assert "a command" in page and "Export the log" in page
    # The first 16 digits of the SHA-256 of "a" and of "0".
    assert "ca978112ca1bbdca → 5feceb66ffc86f38" in page
    project = Project.objects.create(name="Alpha", master_url="https://alpha.example.org/")
    project.url_signature = "ab"
    project.save()
    page = desk.get("/admin/portal/signedentry/").content.decode()
    assert "Alpha: – → https://alpha.example.org/" in page and "Alpha: url_signature" in page
    reply = desk.get("/admin/portal/signedentry/export.jsonl")
    assert b"".join(reply).decode() == check("--export")
    assert desk.post("/admin/portal/signedentry/export.jsonl").status_code == 405
    assert desk.get("/admin/portal/signedentry/1/change/").status_code == 200
    assert desk.post("/admin/portal/signedentry/1/delete/", {"post": "yes"}).status_code == 403

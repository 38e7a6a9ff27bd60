"""A new code-signing key: who changes it, what clients with older ones get, and what is signed again."""

from __future__ import annotations

import html
import io
import os
import re
import zipfile
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client as Browser
from pytest_django import Settings

from credit.models import App
from portal.models import SignedEntry, User
from portal.wire import signing
from portal.wire.purposes import content_of
from scheduler.models import KeyChange, StoredFile, VersionFile
from scheduler.programs import catalogue, code_signing
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of, known_apps, messages, names
from tests.support.sessions import sign_in_lately

pytestmark = pytest.mark.django_db
MD5 = "0123456789abcdef" * 2


@pytest.fixture(autouse=True)
def own_keys(tmp_path: Path, settings: Settings) -> Path:
    """A pair that no other test has, as it is changed here."""
    folder = tmp_path / "own_keys"
    settings.CODE_SIGNING_KEY = folder / "private"
    settings.CODE_SIGNING_KEY_PUBLIC = folder / "public"
    code_signing.make_if_missing()
    return folder


@pytest.fixture
def app(own_keys: Path) -> App:
    """An app whose program is signed, and two jobs of it."""
    app = make_app()
    version = make_version(app)
    file = StoredFile.objects.create(name="program_1", path="p", nbytes=1, md5=MD5, signature=signed(MD5))
    VersionFile.objects.create(app_version=version, file=file, is_main_program=True)
    for _ in range(2):
        make_result(make_workunit(app, fpops_est=7.2e12, fpops_bound=1e16))
    return app


def signed(md5: str) -> str:
    return signing.sign_md5(md5, signing.parse_private_key(settings.CODE_SIGNING_KEY.read_text()))


def change(*options: Any) -> str:
    out = StringIO()
    call_command("change_code_signing_key", *options, stdout=out)
    catalogue.forget()
    return out.getvalue()


def key_in(reply: str) -> str:
    match = re.search(r"<code_sign_key>\n(.*?)\n</code_sign_key>", reply, re.DOTALL)
    return match[1] if match else ""


class Client(Computer):
    """A client that keeps the key as the real one does: the first that it is told, then only signed ones."""

    held = ""
    refused = 0

    def ask(self, *args: Any, **kwargs: Any) -> str:
        reply = super().ask(*args, code_sign_key=f"\n{self.held}\n" if self.held else None, **kwargs)
        received = key_in(reply)
        signature = re.search(r"<code_sign_key_signature>(.*?)</code_sign_key_signature>", reply, re.DOTALL)
        if received and self.held:
            is_right = signature and signing.verify(
                received.encode(), signature[1], signing.parse_public_key(self.held)
            )
            self.refused += not is_right
            received = received if is_right else self.held
        self.held = received or self.held
        # Every program of the reply must be signed with what is held now.
        for text in re.findall(r"<file_signature>(.*?)</file_signature>", reply, re.DOTALL):
            self.refused += not signing.verify_md5(MD5, text, signing.parse_public_key(self.held))
        return reply


@pytest.fixture
def client(app: App, alice: User) -> Client:
    return Client(computer_of(alice).key)


def test_a_client_follows_the_key_and_gets_jobs_that_suit_it_at_once(client: Client) -> None:
    client.ask()
    first = client.held
    assert change() == "The key is changed; programs signed with it: 1. Clients follow with their next request.\n"
    reply = client.ask(secs=1)
    assert (client.held, client.refused) == (code_signing.code_signing_key_text(), 0)
    assert client.held != first
    entry = SignedEntry.objects.get(kind=SignedEntry.Kind.KEY)
    assert (entry.content["old_key"], entry.content["new_key"], entry.content["programs"]) == (first, client.held, 1)
    assert len(names(reply, "result")) == 1
    assert key_in(client.ask()) == ""


def test_a_client_that_missed_two_changes_is_led_from_key_to_key_and_gets_jobs_only_then(client: Client) -> None:
    client.ask()
    change()
    second = code_signing.code_signing_key_text()
    change()
    reply = client.ask(secs=1)
    assert (client.held, names(reply, "result")) == (second, [])
    assert messages(reply)[0].startswith("No tasks sent: this project's code-signing key has changed more than once")
    reply = client.ask(secs=1)
    assert (client.held, len(names(reply, "result"))) == (code_signing.code_signing_key_text(), 1)
    assert client.refused == 0


def test_what_a_client_may_be_fetching_gets_its_new_signature_with_the_key(client: Client) -> None:
    client.ask(secs=1)
    change()
    reply = client.ask()
    assert names(reply, "result") == []
    assert names(reply, "file_info") == ["program_1"]
    assert client.refused == 0
    assert names(client.ask(), "file_info") == []


def test_a_client_with_a_strange_key_gets_no_jobs_and_is_told_why(client: Client) -> None:
    client.held = strange = signing.public_key_text(signing.generate_key()).strip()
    reply = client.ask(secs=1)
    assert (client.held, names(reply, "result")) == (strange, [])
    assert "Remove the project in BOINC and add it again." in messages(reply)[0]


def test_a_key_that_another_process_told_a_moment_ago_is_no_strange_one(client: Client) -> None:
    client.ask(secs=1)
    app_elements = known_apps()
    # Without the hook after the commit, as in a process that did not make the change.
    call_command("change_code_signing_key", stdout=StringIO())
    assert known_apps() is app_elements
    client.held = code_signing.code_signing_key_text()
    reply = client.ask(secs=1)
    assert (len(names(reply, "result")), client.refused, messages(reply)) == (1, 0, [])


def test_the_programs_of_an_app_info_file_need_no_key(app: App, alice: User) -> None:
    client = Client(computer_of(alice).key, platform="anonymous")
    client.held = signing.public_key_text(signing.generate_key()).strip()
    version = (
        f"<app_version><app_name>{app.name}</app_name><version_num>1</version_num><flops>1e9</flops></app_version>"
    )
    reply = client.ask(secs=1, extra=version.replace("<flops>", "<avg_ncpus>1</avg_ncpus><flops>"))
    assert (len(names(reply, "result")), messages(reply)) == (1, [])


def test_the_old_keys_are_kept_and_a_server_with_the_old_public_file_follows(
    app: App, own_keys: Path, settings: Settings
) -> None:
    old = (own_keys / "public").read_text()
    change()
    assert (own_keys / "public").read_text().strip() == code_signing.code_signing_key_text() != old.strip()
    file_names = sorted(path.name for path in own_keys.iterdir())
    assert [name.split("-")[0] for name in file_names] == [
        "private",
        "private.old",
        "private.signed",
        "public",
        "public.old",
    ]
    settings.CODE_SIGNING_KEY_PUBLIC = next(own_keys.glob("public.old-*"))
    assert code_signing.code_signing_key_text() == (own_keys / "public").read_text().strip()
    assert (own_keys / "private").stat().st_mode & 0o777 == 0o600


def test_a_change_that_was_cut_off_after_the_database_is_ended_by_a_second_run(app: App, own_keys: Path) -> None:
    change("--list")
    (own_keys / "list").write_text(change("--list"))
    change("--sign", own_keys / "list", own_keys / "carried")
    change("--take", own_keys / "carried")
    assert change() == "The key is changed; programs signed with it: 0. Clients follow with their next request.\n"
    assert KeyChange.objects.count() == 1
    assert code_signing.sign_program(content_of(b"x")) is not None
    assert code_signing.is_signed_md5(content_of(b"x").md5, code_signing.sign_program(content_of(b"x")) or "")


def test_the_new_key_is_on_the_disk_before_any_client_is_told(
    app: App, own_keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, int]] = []

    def fsync(fd: int, really: Callable[[int], None] = os.fsync) -> None:
        really(fd)
        synced.append((Path(f"/proc/self/fd/{fd}").readlink().name, KeyChange.objects.count()))

    monkeypatch.setattr(os, "fsync", fsync)
    change()
    assert synced == [
        ("private.next.part", 0), ("own_keys", 0),
        # Which key was signed, before its signature is anywhere.
        ("private.signed-keys.part", 0), ("own_keys", 0),
        ("own_keys", 1), ("public.part", 1), ("own_keys", 1), ("own_keys", 1),
    ]  # fmt: skip
    assert not list(own_keys.glob("*.part"))


def test_a_key_that_was_only_half_written_holds_nothing_up(app: App, own_keys: Path) -> None:
    (own_keys / "private.next.part").write_text("1024\n00")
    assert "programs signed with it: 1." in change()


def test_with_the_private_key_elsewhere_lists_and_signatures_are_carried(
    app: App, own_keys: Path, settings: Settings, tmp_path: Path
) -> None:
    listed = change("--list")
    key = "".join(code_signing.code_signing_key_text().split())[:-1]
    assert listed == f"key {key}\nprogram_1 {MD5} {''.join(signed(MD5).split())[:-1]}\n"
    (tmp_path / "list").write_text(listed)
    change("--sign", tmp_path / "list", tmp_path / "carried")
    settings.CODE_SIGNING_KEY = tmp_path / "not here"
    with pytest.raises(CommandError, match="is not on this machine"):
        change()
    assert "programs signed with it: 1." in change("--take", tmp_path / "carried")
    assert "programs signed with it: 0." in change("--take", tmp_path / "carried")
    assert code_signing.is_signed_md5(MD5, StoredFile.objects.get().signature)
    settings.CODE_SIGNING_KEY = own_keys / "private"
    (tmp_path / "new list").write_text(change("--list"))
    with pytest.raises(CommandError, match=r"private.next already: adopt it"):
        change("--sign", tmp_path / "new list", tmp_path / "carried")
    for _ in range(2):
        change("--adopt", tmp_path / "new list")
        assert code_signing.is_signed_md5(content_of(b"x").md5, code_signing.sign_program(content_of(b"x")) or "")


def test_a_key_that_the_site_has_not_taken_is_not_adopted(app: App, own_keys: Path, tmp_path: Path) -> None:
    (tmp_path / "list").write_text(change("--list"))
    change("--sign", tmp_path / "list", tmp_path / "carried")
    (tmp_path / "carried" / "program_1.sig").unlink()
    with pytest.raises(CommandError, match="is not signed: it was released meanwhile"):
        change("--take", tmp_path / "carried")
    before = {path.name: path.read_text() for path in own_keys.iterdir()}
    with pytest.raises(CommandError, match="the site had not taken the next key"):
        change("--adopt", tmp_path / "list")
    assert {path.name: path.read_text() for path in own_keys.iterdir()} == before
    change("--sign", tmp_path / "list", tmp_path / "carried")
    assert "programs signed with it: 1." in change("--take", tmp_path / "carried")


def test_nothing_is_signed_with_a_key_that_is_not_in_force(app: App, own_keys: Path, tmp_path: Path) -> None:
    (tmp_path / "list").write_text(change("--list"))
    (own_keys / "private").replace(own_keys / "private.old-1")
    (own_keys / "private").write_text(signing.private_key_text(signing.generate_key()))
    with pytest.raises(CommandError, match=r"private.old-1 still is. Move .* Nothing was signed"):
        change("--sign", tmp_path / "list", tmp_path / "carried")
    (own_keys / "private.old-1").unlink()
    with pytest.raises(CommandError, match="does not match the key in force at the site"):
        change("--sign", tmp_path / "list", tmp_path / "carried")
    with pytest.raises(CommandError, match=r"Neither .* matches the key in force"):
        change("--adopt", tmp_path / "list")
    (tmp_path / "list").write_text(f"program_1 {MD5} {'ab' * 128}\n")
    with pytest.raises(CommandError, match="list: The list does not begin with the key in force"):
        change("--sign", tmp_path / "list", tmp_path / "carried")
    assert not (tmp_path / "carried").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"evil {'66' * 16} {{}}", "evil: the present key has not signed the MD5 6666"),
        (f"evil {MD5} {'ab' * 128}", "evil: the present key has not signed"),
        (f"evil {MD5} 00", "evil: signature: it has 2 hexadecimal digits"),
        (f"evil {MD5}", "is not a name, an MD5 and a signature"),
        (f"../evil {MD5} {{}}", "'../evil' is not the name of a program file"),
    ],
)
def test_what_the_old_key_has_not_signed_is_not_signed_by_the_new_one(
    app: App, own_keys: Path, tmp_path: Path, line: str, said: str
) -> None:
    signature = "".join(signed(MD5).split())[:-1]
    (tmp_path / "list").write_text(change("--list") + line.format(signature) + "\n")
    with pytest.raises(CommandError, match=said):
        change("--sign", tmp_path / "list", tmp_path / "carried")
    assert not (tmp_path / "carried").exists()
    assert not (own_keys / "private.next").exists()


def test_the_signature_of_the_next_key_is_none_of_a_program(app: App, own_keys: Path, tmp_path: Path) -> None:
    """The first run has signed the next key with the old one, which anybody may read on its way to the site."""
    (tmp_path / "list").write_text(change("--list"))
    change("--sign", tmp_path / "list", tmp_path / "carried")
    following = (tmp_path / "carried" / "new_key_public").read_bytes().strip()
    signature = "".join((tmp_path / "carried" / "new_key_signature").read_text().split())[:-1]
    (tmp_path / "list").write_text(change("--list") + f"evil {content_of(following).md5} {signature}\n")
    with pytest.raises(CommandError, match="this is the MD5 of a key, not of a program"):
        change("--sign", tmp_path / "list", tmp_path / "again")


def test_a_file_that_came_past_the_key_stops_the_change_on_one_machine_too(app: App) -> None:
    before = code_signing.code_signing_key_text()
    StoredFile.objects.update(md5="66" * 16)
    with pytest.raises(CommandError, match="program_1: the present key has not signed"):
        change()
    assert code_signing.code_signing_key_text() == before


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("new_key_signature", "ab" * 128, "not signed by the one in force"),
        ("program_1.sig", "ab" * 128, "not the new key's signature of this file"),
        ("program_1.sig", None, "is not signed: it was released meanwhile"),
        ("new_key_public", "1024\n00\n.\n", "public key"),
        ("new_key_public", "in upper case", "it is not written as clients read it"),
    ],
)
def test_wrong_or_missing_signatures_change_nothing(
    app: App, tmp_path: Path, name: str, text: str | None, said: str
) -> None:
    (tmp_path / "list").write_text(change("--list"))
    change("--sign", tmp_path / "list", tmp_path / "carried")
    file = tmp_path / "carried" / name
    if text is None:
        file.unlink()
    else:
        file.write_text(file.read_text().upper() if text == "in upper case" else text)
    before = code_signing.code_signing_key_text()
    with pytest.raises(CommandError, match=said):
        change("--take", tmp_path / "carried")
    assert code_signing.code_signing_key_text() == before
    assert code_signing.is_signed_md5(MD5, StoredFile.objects.get().signature)


def test_an_old_key_does_not_come_back(app: App, own_keys: Path, tmp_path: Path) -> None:
    change()
    (tmp_path / "list").write_text(change("--list"))
    next(own_keys.glob("private.old-*")).replace(own_keys / "private.next")
    with pytest.raises(CommandError, match="was the project's before"):
        change()


# --- in the browser ---------------------------------------------------------------------------------------------------

NEW_KEY = "/admin/scheduler/keychange/new-key/"


def zipped(folder: Path, method: int = zipfile.ZIP_DEFLATED, **more: bytes) -> SimpleUploadedFile:
    """The folder as a ZIP archive, with more files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{folder.name}/{path.name}")
        for name, content in more.items():
            archive.writestr(f"{folder.name}/{name}", content)
    return SimpleUploadedFile("SIGNED.zip", out.getvalue())


@pytest.fixture
def browser(operator: User) -> Browser:
    browser = Browser()
    sign_in_lately(browser, operator)
    return browser


def upload(browser: Browser, archive: SimpleUploadedFile) -> str:
    return html.unescape(browser.post(NEW_KEY, {"archive": archive}, follow=True).content.decode())


@pytest.fixture
def carried(app: App, browser: Browser, tmp_path: Path) -> Path:
    """The folder that the machine with the key has written of the list that was downloaded."""
    (tmp_path / "LIST").write_bytes(browser.get(f"{NEW_KEY}list.txt").content)
    change("--sign", tmp_path / "LIST", tmp_path / "SIGNED")
    return tmp_path / "SIGNED"


def test_list_and_signatures_are_carried_by_the_browser_too(browser: Browser, carried: Path, tmp_path: Path) -> None:
    assert "programs signed with it: 1." in upload(browser, zipped(carried))
    key = (carried / "new_key_public").read_text().strip()
    assert code_signing.code_signing_key_text() == key == KeyChange.objects.get().new_key
    assert "programs signed with it: 0." in upload(browser, zipped(carried))
    (tmp_path / "LIST").write_bytes(browser.get(f"{NEW_KEY}list.txt").content)
    assert "The new key is in place" in change("--adopt", tmp_path / "LIST")


@pytest.mark.parametrize(
    ("files", "method", "message"),
    [
        ({"program_1.sig": b"00"}, zipfile.ZIP_DEFLATED, "Nothing was changed"),
        ({"large.sig": b"0" * 8193}, zipfile.ZIP_DEFLATED, "large.sig has more than 8192 bytes"),
        ({"program_1.sig": b"0" * 8192}, zipfile.ZIP_DEFLATED, "Nothing was changed"),
        ({}, zipfile.ZIP_LZMA, "is not compressed the way"),
        ({"accent.sig": "é".encode()}, zipfile.ZIP_DEFLATED, "This cannot be used"),
    ],
)
# The archive has the second of two files of a name.
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_that_is_not_what_was_signed_changes_nothing(
    browser: Browser, carried: Path, files: dict[str, bytes], method: int, message: str
) -> None:
    assert message in upload(browser, zipped(carried, method, **files))
    assert not KeyChange.objects.exists()


def test_what_is_no_archive_or_lacks_the_key_is_said(browser: Browser, carried: Path) -> None:
    assert "File is not a zip file" in upload(browser, SimpleUploadedFile("x.zip", b"no archive"))
    (carried / "new_key_public").unlink()
    assert "there is no file new_key_public in it" in upload(browser, zipped(carried))


def damaged(folder: Path, stored: bytes) -> SimpleUploadedFile:
    """The folder as an archive, and in it one file whose packed bytes are these."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, path.name)
        archive.writestr("more.sig", stored)
    raw = bytearray(out.getvalue())
    # It says that it is packed, in the central directory and before the content.
    for mark, method in ((b"PK\x01\x02", 10), (b"PK\x03\x04", 8)):
        at = raw.rindex(mark) + method
        raw[at : at + 2] = zipfile.ZIP_DEFLATED.to_bytes(2, "little")
    return SimpleUploadedFile("SIGNED.zip", bytes(raw))


@pytest.mark.parametrize("stored", [b"\xff\xff\xff\xff", b"\x03"])
def test_a_damaged_archive_is_refused_in_words(browser: Browser, carried: Path, stored: bytes) -> None:
    assert "This cannot be used" in upload(browser, damaged(carried, stored))
    assert not KeyChange.objects.exists()


def test_an_archive_that_ends_within_a_file_is_refused_in_words(browser: Browser, carried: Path) -> None:
    raw = bytearray(zipped(carried, zipfile.ZIP_STORED).read())
    # The last file is longer than the archive: in the central directory, packed and unpacked.
    at = raw.rindex(b"PK\x01\x02")
    raw[at + 20 : at + 28] = (7000).to_bytes(4, "little") * 2
    assert "This cannot be used" in upload(browser, SimpleUploadedFile("SIGNED.zip", bytes(raw)))
    assert not KeyChange.objects.exists()


@pytest.mark.parametrize("name", ["new_key_public", "new_key_signature", "program_1.sig"])
def test_a_key_with_a_zero_byte_is_refused_in_words(browser: Browser, carried: Path, name: str) -> None:
    path = carried / name
    path.write_bytes(b"\0" + path.read_bytes())
    assert "Nothing was changed" in upload(browser, zipped(carried))
    assert not KeyChange.objects.exists()


def test_without_a_key_to_begin_with_the_page_says_so(browser: Browser, carried: Path, own_keys: Path) -> None:
    for path in own_keys.iterdir():
        path.unlink()
    code_signing._read.cache_clear()
    assert "There is no public key to start with" in upload(browser, zipped(carried))


def test_who_changed_the_key_is_in_the_log_of_the_admin(browser: Browser, carried: Path, operator: User) -> None:
    upload(browser, zipped(carried))
    entry = LogEntry.objects.get(content_type__model="keychange")
    assert (entry.user, entry.object_id) == (operator, str(KeyChange.objects.get().pk))
    # A page that is sent twice changes nothing.
    upload(browser, zipped(carried))
    assert LogEntry.objects.filter(content_type__model="keychange").count() == 1

"""Versions prepared and signed in the browser: each step, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import Permission
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from credit.models import App, AppVersion
from portal.models import SignedEntry, User
from portal.wire import signing
from portal.wire.purposes import content_of
from scheduler.engine.release_states import ReleaseState
from scheduler.models import BetaTest, DraftFile, ReleaseDraft, StoredFile, VersionFile
from scheduler.programs import code_signing
from tests.support.credit_factories import make_app, make_version
from tests.support.releases import (
    BASE,
    FIELDS,
    LINUX,
    MAIN,
    add_file,
    begin,
    prepared,
    said,
    signed_version,
    state,
    store,
)
from tests.support.sessions import sign_in_lately

pytestmark = pytest.mark.django_db


def test_a_version_is_released_step_by_step_with_signatures_made_elsewhere(
    browser: Client,
    offline: Callable[[Client, ReleaseDraft], str],
    django_capture_on_commit_callbacks: Callable[..., AbstractContextManager[object]],
) -> None:
    draft = prepared(browser)
    assert "2 files are" in said(browser.get(f"{BASE}{draft.pk}/change/")).replace("\u00a0", " ")
    assert "is not signed yet" in store(browser, draft)
    assert not StoredFile.objects.exists() and not App.objects.exists()
    signatures = offline(browser, draft)
    reply = browser.post(f"{BASE}{draft.pk}/signatures/", {"text": signatures}, follow=True)
    assert "The signatures are valid" in said(reply)
    with django_capture_on_commit_callbacks(execute=True):
        store(browser, draft, "release")
    version = AppVersion.objects.get()
    assert (str(version), state(version)) == (f"Alpine 1.01 {LINUX}", ReleaseState.RELEASED)
    main, table = VersionFile.objects.order_by("-is_main_program").select_related("file")
    assert (main.file.name, main.file.is_executable) == (f"alpine_101_{LINUX}_main.sh", True)
    assert (table.open_name, table.is_copied, table.file.is_executable) == ("table", True, False)
    public = signing.parse_public_key(code_signing.code_signing_key_text())
    with default_storage.open(main.file.path) as stored:
        assert signing.verify(stored.read(), main.file.signature, public)
    assert [entry.content["action"] for entry in SignedEntry.objects.order_by("number")] == ["stored", "released"]
    # Asked again it does nothing, and what was uploaded is gone.
    store(browser, draft, "release")
    assert AppVersion.objects.count() == 1 and not DraftFile.objects.exists()
    assert default_storage.listdir(f"drafts/releases/{draft.pk}")[1] == []


def test_it_is_the_same_version_as_the_command_makes(browser: Client, tmp_path: Path) -> None:
    signed_version(browser, "release")
    (tmp_path / "main.sh").write_bytes(MAIN)
    (tmp_path / "table.txt").write_bytes(b"1 2 3\n")
    files = [{"path": "main.sh", "main_program": True}, {"path": "table.txt", "open_name": "table"}]
    version = {"app": "alpine", "version_num": 101, "platform": LINUX, "files": files}
    (tmp_path / "version.json").write_text(json.dumps(version))
    out = StringIO()
    call_command("release_app_version", tmp_path, stdout=out)
    assert "was already released: nothing to do" in out.getvalue()


def test_the_servers_key_signs_where_there_is_one(browser: Client, settings: Settings, tmp_path: Path) -> None:
    draft = prepared(browser)
    page = said(browser.get(f"{BASE}{draft.pk}/change/"))
    assert "Sign with this server" in page
    settings.CODE_SIGNING_KEY = tmp_path / "none"
    assert "Sign with this server" not in said(browser.get(f"{BASE}{draft.pk}/change/"))
    assert "not on this machine" in said(browser.post(f"{BASE}{draft.pk}/sign/", follow=True))


def test_without_any_key_the_pages_say_so(browser: Client, settings: Settings, tmp_path: Path) -> None:
    draft = prepared(browser)
    settings.CODE_SIGNING_KEY_PUBLIC = settings.CODE_SIGNING_KEY = tmp_path / "none"
    assert "no code-signing key yet" in said(browser.get(f"{BASE}{draft.pk}/manifest.json", follow=True))
    given = {"text": json.dumps({"signatures": {"main.sh": "0"}})}
    assert "no code-signing key yet" in said(browser.post(f"{BASE}{draft.pk}/signatures/", given, follow=True))


def test_wrong_signatures_are_refused_by_the_file_and_none_is_kept(browser: Client) -> None:
    draft = prepared(browser)
    main = draft.files.get(name="main.sh")
    foreign = signing.sign(MAIN, signing.generate_key())
    right = code_signing.sign_program(content_of(MAIN))
    for given, message in [
        ({"main.sh": foreign}, "main.sh: not the signature of this file"),
        ({"main.sh": right, "table.txt": right}, "table.txt: not the signature of this file"),
        ({"main.sh": "zz"}, "is not a hexadecimal digit"),
        ({"other.sh": right}, "other.sh: this draft has no such file"),
        (["x"], "not what sign_manifest writes"),
    ]:
        text = json.dumps({"signatures": given})
        reply = browser.post(f"{BASE}{draft.pk}/signatures/", {"text": text}, follow=True)
        assert message in said(reply).replace("&#x27;", "'")
    assert "not what sign_manifest writes" in said(
        browser.post(f"{BASE}{draft.pk}/signatures/", {"text": "[" * 100_000}, follow=True)
    )
    assert not draft.files.exclude(signature="").exists()
    # A file for each works as well, and one that is uploaded again has to be signed again.
    sig = SimpleUploadedFile(f"alpine_101_{LINUX}_main.sh.sig", (right or "").encode())
    browser.post(f"{BASE}{draft.pk}/signatures/", {"file": sig})
    assert draft.files.exclude(signature="").get() == main
    add_file(browser, draft, content=MAIN + b"#", is_main_program="on")
    assert not draft.files.exclude(signature="").exists()


def test_a_machine_with_the_key_signs_only_files_that_it_has(
    browser: Client, offline: Callable[[Client, ReleaseDraft], str]
) -> None:
    """Who has broken into the site cannot get a program of theirs signed."""
    draft = prepared(browser)
    add_file(browser, draft, content=MAIN + b"curl evil\n", is_main_program="on")
    with pytest.raises(CommandError, match=r"main\.sh: the site has a different file\. Nothing is signed"):
        offline(browser, draft)
    DraftFile.objects.filter(name="main.sh").update(md5="0" * 32)
    with pytest.raises(CommandError, match="the site has a different file"):
        offline(browser, draft)


def test_a_data_file_that_is_a_key_is_signed_nowhere(
    browser: Client, tmp_path: Path, offline: Callable[[Client, ReleaseDraft], str], settings: Settings
) -> None:
    """Clients would accept its signature for a change of the project's key (BOINC protocol, keys and signatures)."""
    thiefs = signing.public_key_text(signing.generate_key()).strip().encode()
    draft = prepared(browser)
    assert "clients would take it for a new code-signing key" in add_file(browser, draft, "table.txt", thiefs)
    # It was put past the upload, into the storage and the database.
    file = draft.files.get(name="table.txt")
    with default_storage.open(file.path, "wb") as stored:
        stored.write(thiefs)
    DraftFile.objects.filter(pk=file.pk).update(md5=content_of(thiefs).md5, nbytes=len(thiefs))
    (tmp_path / "own" / "table.txt").write_bytes(thiefs)
    with pytest.raises(CommandError, match=r"table\.txt: clients would take it for a new code-signing key"):
        offline(browser, draft)
    settings.CODE_SIGNING_KEY = Path(settings.CODE_SIGNING_KEY_PUBLIC).with_name("private")
    reply = said(browser.post(f"{BASE}{draft.pk}/sign/", follow=True))
    assert "clients would take it for a new code-signing key" in reply
    assert not draft.files.exclude(signature="").exists()


@pytest.mark.parametrize("name", [".hidden", "a b", "a..b", "\N{SNOWMAN}.sh", "-x"])
def test_hostile_names_of_files_are_refused(browser: Client, name: str) -> None:
    draft = begin(browser)
    assert "is not a name of at most 200" in add_file(browser, draft, name)
    assert not DraftFile.objects.exists()


@pytest.mark.parametrize("name", ["al pine", ".alpine", "a..b", "-x"])
@pytest.mark.parametrize("field", ["app", "platform"])
def test_hostile_names_of_apps_and_platforms_are_refused(browser: Client, field: str, name: str) -> None:
    reply = browser.post(f"{BASE}add/", {**FIELDS, field: name})
    assert "Use a name of at most 64" in said(reply)
    assert not ReleaseDraft.objects.exists()


def test_a_path_in_a_files_name_counts_for_nothing(browser: Client) -> None:
    draft = begin(browser)
    add_file(browser, draft, "../../etc/passwd")
    assert DraftFile.objects.get().name == "passwd"


@pytest.mark.parametrize("name", ["version.json", "version.toml"])
def test_a_file_cannot_stand_for_the_description(browser: Client, name: str) -> None:
    draft = prepared(browser)
    assert "a program file cannot have this name" in add_file(browser, draft, name, b"{}")
    assert draft.files.count() == 2


def test_files_have_limits(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = begin(browser)
    monkeypatch.setattr("scheduler.releases.drafts.MAX_FILE_NBYTES", 5)
    assert "the limit is 5" in add_file(browser, draft)
    monkeypatch.setattr("scheduler.releases.drafts.MAX_FILE_NBYTES", 100)
    monkeypatch.setattr("scheduler.releases.drafts.MAX_FILES_PER_JOB", 1)
    add_file(browser, draft)
    assert "at most 1 files" in add_file(browser, draft, "second.sh")


def test_what_is_still_missing_is_said(browser: Client) -> None:
    draft = begin(browser)
    assert "files: 1 to 100 of them" in said(browser.get(f"{BASE}{draft.pk}/change/"))
    add_file(browser, draft)
    assert "exactly one of them must be the main program" in said(browser.get(f"{BASE}{draft.pk}/change/"))
    add_file(browser, draft, is_main_program="on")
    assert "Still missing" not in said(browser.get(f"{BASE}{draft.pk}/change/"))
    browser.post(f"{BASE}{draft.pk}/change/", {**FIELDS, "gpu_usage": "1"})
    assert "gpu_usage: more than 0 for a GPU type" in said(browser.get(f"{BASE}{draft.pk}/change/"))


def test_a_draft_is_discarded_with_its_files(browser: Client) -> None:
    draft = prepared(browser)
    path = draft.files.all()[0].path
    browser.post(f"{BASE}{draft.pk}/discard/")
    assert not ReleaseDraft.objects.exists() and not DraftFile.objects.exists()
    assert path.startswith("drafts/")


def test_a_version_that_was_released_before_is_not_made_again(browser: Client) -> None:
    signed_version(browser, "release")
    draft = prepared(browser)
    browser.post(f"{BASE}{draft.pk}/sign/")
    assert "was released before. Give it another version number" in store(browser, draft)
    assert not BetaTest.objects.exists()


def test_preparing_and_releasing_are_two_rights(client: Client, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    rights = ("view_releasedraft", "add_releasedraft", "change_releasedraft")
    alice.user_permissions.set(Permission.objects.filter(codename__in=rights))
    sign_in_lately(client, User.objects.get(pk=alice.pk))
    draft = prepared(client)
    assert client.post(f"{BASE}{draft.pk}/sign/").status_code == 403
    assert client.post(f"{BASE}{draft.pk}/store/", {"action": "release"}).status_code == 403
    version = make_version(make_app("other"))
    assert client.post(f"{BASE}versions/{version.pk}/withdraw/").status_code == 403
    alice.user_permissions.clear()
    sign_in_lately(client, User.objects.get(pk=alice.pk))
    for address in ("", "add/", f"{draft.pk}/change/", f"{draft.pk}/manifest.json"):
        assert client.get(BASE + address).status_code == 403

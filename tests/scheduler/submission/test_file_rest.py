"""Inputs uploaded over the REST API: in pieces that may be interrupted, up to a limit, one file for each name."""

from __future__ import annotations

import hashlib
import os
import tracemalloc
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from credit.engine.states import FileDeleteState
from credit.models import Workunit
from portal.models import User
from portal.object_storage import storage
from scheduler.files import inputs
from scheduler.files.store import store_file
from scheduler.models import InputUpload, PendingFile, StoredFile, VersionFile
from scheduler.submission.submit import submit
from tests.support.credit_factories import NOON, make_app, make_version, make_workunit
from tests.support.lock_waits import meanwhile
from tests.support.rest_api import bearer, call, errors_of

pytestmark = pytest.mark.django_db
API = "/api/v1/files/"
CONTENT = bytes(range(256)) * 4000
"""1,024,000 bytes."""
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def token(bob: User) -> dict[str, str]:
    return token_of(bob)


def token_of(user: User) -> dict[str, str]:
    user.user_permissions.add(Permission.objects.get(codename="add_batch"))
    return bearer(User.objects.get(pk=user.pk))


def announce(token: dict[str, str], name: str = "map.bin", status: int = 201, **changes: Any) -> Any:
    return call("PUT", f"{API}{name}/", token, {"nbytes": len(CONTENT), "md5": MD5} | changes, status)


def test_no_file_takes_the_name_of_an_output_that_is_there_or_may_come(token: dict[str, str]) -> None:
    make_workunit(make_app("alpine"), name="sky")
    for name in ("alpine_57_0_0_0", "alpine_57_a_b_0_r0065fd1a_12", "sky_0_0"):
        announce(token, name, 400)
    for name in ("sky_2026_11", "sky_0_0.txt", "alpine_57_map", "moon_26_11"):
        announce(token, name)


def send(
    token: dict[str, str], offset: Any, piece: bytes, status: int = 200, name: str = "map.bin", **meta: Any
) -> Any:
    headers = token | {"Upload-Offset": str(offset)}
    reply = Client().generic("PATCH", f"{API}{name}/", piece, "application/octet-stream", headers=headers, **meta)
    assert reply.status_code == status, reply.content
    return reply.json()


def on_disk(settings: Settings) -> list[Path]:
    return [path for path in (Path(settings.UPLOADS_DIR) / "inputs").rglob("*") if path.is_file()]


def read(name: str = "map.bin") -> bytes:
    with default_storage.open(StoredFile.objects.get(name=name).path) as file:
        content: bytes = file.read()
    return content


def test_a_file_is_sent_in_pieces_and_jobs_name_it(token: dict[str, str], bob: User, settings: Settings) -> None:
    assert announce(token)["received"] == 0
    assert announce(token, status=200)["is_stored"] is False
    assert send(token, 0, CONTENT[:600_000])["received"] == 600_000
    assert call("GET", f"{API}map.bin/", token)["received"] == 600_000
    done = send(token, 600_000, CONTENT[600_000:])
    assert (done["received"], done["is_stored"], done["md5"]) == (1_024_000, True, MD5)
    assert read() == CONTENT
    reply = Client().get(done["url"].removeprefix("http://127.0.0.1:8000"))
    assert reply.getvalue() == CONTENT
    assert [file["name"] for file in call("GET", API, token)["results"]] == ["map.bin"]
    # A last piece whose answer was lost, and a repeated announcement, do no harm.
    assert send(token, 600_000, CONTENT[600_000:])["is_stored"] is True
    assert announce(token, status=200)["is_stored"] is True
    assert (on_disk(settings), PendingFile.objects.count()) == ([], 0)
    job = {"input_files": [{"open_name": "in", "name": "map.bin"}]}
    defaults = {"fpops_est": 1e12, "output_files": [{"open_name": "out", "max_nbytes": 9}]}
    assert submit(make_app(), defaults, [job], owner=bob, now=NOON)[0].workunits.get().input_files[0]["md5"] == MD5


def test_what_came_of_a_broken_piece_stays(token: dict[str, str]) -> None:
    announce(token)
    # The connection breaks 100,000 bytes before the end of the piece.
    cut: dict[str, Any] = {"wsgi.input": BytesIO(CONTENT[:500_000]), "CONTENT_LENGTH": "600000"}
    assert send(token, 0, b"", **cut)["received"] == 500_000
    # A piece from elsewhere is not taken; its beginning again would be no progress.
    for offset in (499_999, 500_001):
        problem = send(token, offset, b"xyz", 409)
        assert errors_of(problem) == {"Upload-Offset": "500000 bytes are here: continue there."}
    assert send(token, 0, CONTENT[:1000])["received"] == 500_000
    assert send(token, 500_000, CONTENT[500_000:])["is_stored"] is True


def test_another_content_than_announced_begins_again(token: dict[str, str], settings: Settings) -> None:
    announce(token)
    problem = send(token, 0, bytes(len(CONTENT)), 400)
    assert errors_of(problem)["md5"].endswith("It was deleted: send it again.")
    assert call("GET", f"{API}map.bin/", token)["received"] == 0
    # The file was changed before it was sent whole: its new announcement begins with nothing.
    send(token, 0, CONTENT[:10])
    other = b"other"
    assert announce(token, nbytes=5, md5=hashlib.md5(other).hexdigest(), status=200)["received"] == 0
    assert send(token, 0, other)["is_stored"] is True
    assert errors_of(announce(token, status=409))["name"].startswith("Another file was stored under this name.")
    assert read() == other


def test_an_interrupted_storing_is_asked_for_again(token: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    announce(token)

    def fails(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "keep", fails)
        assert errors_of(send(token, 0, CONTENT, 400)) == {"nbytes": "The disk of this site is full. Try again later."}
    assert call("GET", f"{API}map.bin/", token)["received"] == len(CONTENT)
    # What may lie in the storage is known, and goes with other leftovers.
    assert PendingFile.objects.count() == 1
    assert send(token, len(CONTENT), b"")["is_stored"] is True
    assert read() == CONTENT


def test_two_pieces_at_once_do_not_mix(token: dict[str, str]) -> None:
    announce(token)
    with inputs._locked(InputUpload.objects.get()):
        assert errors_of(send(token, 0, b"x", 409))["name"].startswith("Another piece of this file is being received")


def test_a_whole_file_that_comes_twice_at_once_is_stored_once(token: dict[str, str], settings: Settings) -> None:
    announce(token)
    seen_by_second = InputUpload.objects.get()
    send(token, 0, CONTENT)
    path = StoredFile.objects.get().path
    assert inputs.receive(seen_by_second, 0, len(CONTENT), BytesIO(CONTENT).read).file is not None
    assert StoredFile.objects.get().path == path
    assert (on_disk(settings), PendingFile.objects.count()) == ([], 0)


@pytest.mark.django_db(transaction=True)
def test_of_two_who_announce_a_name_at_the_same_moment_the_first_has_it(alice: User, bob: User) -> None:
    with meanwhile(lambda: inputs.announce(alice, "map.bin", 5, "a" * 32, timezone.now())) as begin:
        with transaction.atomic():
            inputs.announce(bob, "map.bin", len(CONTENT), MD5, timezone.now())
            second = begin()
        with pytest.raises(inputs.InputConflict, match="Somebody else"):
            second.result()
    assert InputUpload.objects.get().owner == bob


@pytest.mark.django_db(transaction=True)
def test_a_file_that_is_just_being_stored_is_not_announced_in_another_way(bob: User) -> None:
    upload, _ = inputs.announce(bob, "map.bin", len(CONTENT), MD5, timezone.now())
    with meanwhile(lambda: inputs.announce(bob, "map.bin", 5, "a" * 32, timezone.now())) as begin:
        with transaction.atomic():
            stored = StoredFile.objects.create(name="map.bin", path="files/map", nbytes=len(CONTENT), md5=MD5)
            InputUpload.objects.filter(pk=upload.pk).update(file=stored)
            second = begin()
        with pytest.raises(inputs.InputConflict, match="Another file was stored"):
            second.result()
    assert InputUpload.objects.get().md5 == MD5


def test_an_empty_file_is_stored_too(token: dict[str, str]) -> None:
    announce(token, nbytes=0, md5=hashlib.md5(b"").hexdigest())
    assert send(token, 0, b"")["is_stored"] is True
    assert read() == b""


def test_memory_does_not_grow_with_the_piece(token: dict[str, str], bob: User, tmp_path: Path) -> None:
    nbytes = 40 * 1024 * 1024
    path = tmp_path / "big"
    path.write_bytes(os.urandom(1024) * (nbytes // 1024))
    md5 = hashlib.md5(path.read_bytes()).hexdigest()
    upload, _ = inputs.announce(bob, "big", nbytes, md5, timezone.now())
    tracemalloc.start()
    with path.open("rb") as body:
        assert inputs.receive(upload, 0, nbytes, body.read).file is not None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Chunks of 256 KiB, a few at a time
    assert peak < 4 * 1024 * 1024


@pytest.mark.usefixtures("bucket")
def test_object_storage_gets_the_whole_file(token: dict[str, str]) -> None:
    announce(token)
    send(token, 0, CONTENT[:5])
    assert send(token, 5, CONTENT[5:])["is_stored"] is True
    assert read() == CONTENT


def test_a_name_is_one_persons_and_never_another_files(token: dict[str, str], alice: User) -> None:
    store_file("program", ContentFile(b"#!/bin/sh"), signature="ab")
    store_file("table", ContentFile(CONTENT))
    other = token_of(alice)
    announce(token)
    assert call("GET", f"{API}map.bin/", other, status=404)
    send(other, 0, b"x", 404)
    assert "Somebody else" in errors_of(announce(other, status=409))["name"]
    program = {"nbytes": 9, "md5": hashlib.md5(b"#!/bin/sh").hexdigest()}
    assert "Another file" in errors_of(announce(token, "program", 409, **program))["name"]
    # Not even the very same file becomes another's, who could delete it.
    assert "already stored" in errors_of(announce(token, "table", 409))["name"]
    assert InputUpload.objects.count() == 1


def test_a_file_that_others_stored_meanwhile_stays_theirs(token: dict[str, str]) -> None:
    announce(token)
    send(token, 0, CONTENT[:-1])
    program = store_file("map.bin", ContentFile(CONTENT), signature="ab")
    assert "in the meantime" in errors_of(send(token, len(CONTENT) - 1, CONTENT[-1:], 409))["name"]
    call("DELETE", f"{API}map.bin/", token, status=204)
    program.refresh_from_db()
    assert program.deleted_at is None and default_storage.exists(program.path)


def test_a_file_that_a_version_has_is_not_deleted(token: dict[str, str]) -> None:
    announce(token)
    send(token, 0, CONTENT)
    VersionFile.objects.create(app_version=make_version(make_app()), file=StoredFile.objects.get())
    assert "need this file" in errors_of(call("DELETE", f"{API}map.bin/", token, status=409))["name"]
    assert read() == CONTENT


def test_a_new_announcement_deletes_what_came_of_the_former_one(token: dict[str, str], settings: Settings) -> None:
    announce(token)
    send(token, 0, CONTENT[:10])
    announce(token, nbytes=5, md5="a" * 32, status=200)
    assert on_disk(settings) == []


def test_a_piece_of_a_file_that_is_deleted_meanwhile_is_told_so(
    token: dict[str, str], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_room = inputs._check_room

    def deletes_it(*args: Any) -> None:
        check_room(*args)
        inputs.delete(InputUpload.objects.get(), timezone.now())

    with monkeypatch.context() as patch:
        patch.setattr(inputs, "_check_room", deletes_it)
        for piece in (CONTENT[:10], CONTENT):
            announce(token)
            assert "in the meantime" in errors_of(send(token, 0, piece, 409))["name"]
    digest = inputs._digest

    def is_deleted(*args: Any) -> Any:
        inputs.delete(InputUpload.objects.get(), timezone.now())
        return digest(*args)

    announce(token)
    with monkeypatch.context() as patch:
        patch.setattr(inputs, "_digest", is_deleted)
        assert "in the meantime" in errors_of(send(token, 0, CONTENT, 409))["name"]
    upload = InputUpload(pk=1, name="map.bin", nbytes=len(CONTENT), md5=MD5)
    with pytest.raises(inputs.InputConflict):
        inputs.receive(upload, 0, 9, BytesIO(CONTENT).read)
    assert on_disk(settings) == []
    inputs.delete(upload, timezone.now())
    assert InputUpload.objects.count() == StoredFile.objects.count() == 0


@pytest.mark.parametrize("name", ["collatz_7_in_{}", "collatz_7_in_12_{}", "image_map_{}_f", "remote_{}", "jf_{}"])
def test_names_that_the_site_makes_up_are_not_taken(token: dict[str, str], name: str) -> None:
    assert list(errors_of(announce(token, name.format("a" * 32), 400))) == ["name"]


@pytest.mark.parametrize(
    ("name", "changes", "field"),
    [
        ("a b", {}, "name"),
        ("..", {}, "name"),
        ("x" * 201, {}, "name"),
        ("-x", {}, "name"),
        ("a", {"nbytes": -1}, "nbytes"),
        ("a", {"nbytes": 2**40 + 1}, "nbytes"),
        ("a", {"nbytes": "1e3"}, "nbytes"),
        ("a", {"md5": "A" * 32}, "md5"),
        ("a", {"md5": ["a" * 32]}, "md5"),
    ],
)
def test_announcements_are_checked(token: dict[str, str], name: str, changes: dict[str, Any], field: str) -> None:
    assert list(errors_of(announce(token, name, 400, **changes))) == [field]


@pytest.mark.parametrize("offset", ["", "-1", "1.5", "x", "9" * 20, "\u0661"])
def test_a_piece_says_where_it_begins(token: dict[str, str], offset: str) -> None:
    announce(token)
    assert "Upload-Offset is not a number" in send(token, offset.encode().decode("latin-1"), b"x", 400)["detail"]


def test_sizes_are_limited(token: dict[str, str], settings: Settings) -> None:
    announce(token)
    assert "at most 67108864" in send(token, 0, b"", 413, CONTENT_LENGTH=str(64 * 1024**2 + 1))["detail"]
    assert "would end at byte" in errors_of(send(token, 0, CONTENT + b"x", 400))["Upload-Offset"]
    settings.INPUT_FILE_MAX_BYTES = len(CONTENT)
    assert "the limit is 1024000" in errors_of(announce(token, "b", 400, nbytes=len(CONTENT) + 1))["nbytes"]
    settings.INPUT_FILES_MAX_BYTES = 2 * len(CONTENT) - 1
    assert "would take up 2048000 bytes" in errors_of(announce(token, "b", 400))["nbytes"]
    announce(token, status=200)
    settings.INPUT_FILES_MAX_BYTES = 2**50
    # Nobody has 1 TiB to spare for this test.
    settings.INPUT_FILE_MAX_BYTES = 2**40
    announce(token, "huge", nbytes=2**40)
    assert "The site has space for" in errors_of(send(token, 0, b"x", 400, name="huge"))["nbytes"]


def test_who_may_not_submit_may_not_upload(alice: User) -> None:
    announce(bearer(alice), status=403)
    announce(bearer(alice, "read:tasks"), status=403)
    announce({}, status=401)


def test_a_file_is_deleted_when_no_job_needs_it(token: dict[str, str], bob: User, settings: Settings) -> None:
    announce(token)
    send(token, 0, CONTENT)
    job = {"input_files": [{"open_name": "in", "name": "map.bin"}]}
    defaults = {"fpops_est": 1e12, "output_files": [{"open_name": "out", "max_nbytes": 9}]}
    submit(make_app(), defaults, [job], owner=bob, now=NOON)
    assert "Unfinished jobs need this file" in errors_of(call("DELETE", f"{API}map.bin/", token, status=409))["name"]
    Workunit.objects.update(file_delete_state=FileDeleteState.DONE)
    path = StoredFile.objects.get().path
    call("DELETE", f"{API}map.bin/", token, status=204)
    assert not default_storage.exists(path)
    assert call("GET", API, token)["results"] == []
    # The same file may come again by its name, another one may not.
    announce(token, status=409, nbytes=1, md5="a" * 32)
    announce(token)
    assert send(token, 0, CONTENT)["is_stored"] is True
    assert read() == CONTENT
    # One that is not whole goes, too.
    announce(token, "part")
    send(token, 0, b"abc", name="part")
    call("DELETE", f"{API}part/", token, status=204)
    assert on_disk(settings) == []


def test_an_upload_that_nobody_continues_gives_its_name_back(token: dict[str, str], alice: User) -> None:
    announce(token)
    InputUpload.objects.update(continued_at=NOON.replace(year=2020))
    assert announce(token_of(alice))["received"] == 0

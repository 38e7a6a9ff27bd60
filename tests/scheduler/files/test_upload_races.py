"""Uploads and the file deleter at the same time: whatever comes first, no file is left that nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import close_old_connections
from pytest_django import Settings

from credit.models import FileDeleteState, Outcome, Result, ServerState, Workunit
from portal.clients import plain
from portal.models import Host
from scheduler.files import on_disk, storage, uploads
from scheduler.files import receive as files_receive
from scheduler.files.uploads import UploadError
from scheduler.lifecycle import file_deleter
from scheduler.models import Upload
from tests.support.credit_factories import NOON
from tests.support.lock_waits import nwaiting_for_locks
from tests.support.upload_requests import asked_of, make_task, post, upload_body
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db
CONTENT = b"forty-two\n" * 1000
NOT_NEEDED = "-1 The task of this file is over: it is not needed any more."


@pytest.fixture
def late(studio: Host) -> Result:
    """A result that is late, and so may still deliver its file."""
    return make_task("t", studio, server_state=ServerState.OVER, outcome=Outcome.NO_REPLY)


def let_delete(result: Result) -> None:
    Workunit.objects.filter(pk=result.workunit_id).update(file_delete_state=FileDeleteState.READY)


def files(settings: Settings) -> list[str]:
    """Everything that lies in the storage, or is on its way."""
    folders = (Path(settings.UPLOADS_DIR), Path(settings.MEDIA_ROOT))
    return sorted(path.name for folder in folders for path in folder.rglob("*") if path.is_file())


def receive(read: Callable[[int], bytes]) -> None:
    plain.run(files_receive.receive(asked_of(upload_body("t_0", CONTENT)), b""), read)


def state(result: Result) -> int:
    return Workunit.objects.get(pk=result.workunit_id).file_delete_state


def test_an_upload_that_is_going_on_is_waited_for_and_its_file_then_deleted(late: Result, settings: Settings) -> None:
    pieces = iter([CONTENT[:4000], CONTENT[4000:], b""])

    def read(_: int) -> bytes:
        # Between any two pieces the workunit may end, and the deleter come by.
        let_delete(late)
        file_deleter.run(NOON)
        assert state(late) == FileDeleteState.READY
        return next(pieces)

    receive(read)
    assert files(settings) == ["t_0"]
    assert file_deleter.run(NOON) == 1
    assert (files(settings), state(late)) == ([], FileDeleteState.DONE)


def test_an_upload_that_begins_just_after_the_deletion_leaves_nothing(
    late: Result, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = uploads.check

    def check_and_fall_asleep(*args: Any) -> None:
        check(*args)
        let_delete(late)
        file_deleter.run(NOON)

    monkeypatch.setattr(uploads, "check", check_and_fall_asleep)
    assert post(upload_body("t_0", CONTENT)) == NOT_NEEDED
    assert (files(settings), Upload.objects.count(), state(late)) == ([], 0, FileDeleteState.DONE)


def test_what_was_stored_by_a_server_that_died_before_it_could_say_so_is_deleted(
    late: Result, settings: Settings
) -> None:
    assert post(upload_body("t_0", CONTENT)) == "0"
    Upload.objects.update(completed_at=None, path="")
    let_delete(late)
    assert file_deleter.run(NOON) == 1
    assert files(settings) == []


def test_what_a_server_leaves_that_dies_after_its_row_was_written_is_deleted(late: Result, settings: Settings) -> None:
    assert post(upload_body("t_0", CONTENT)) == "0"
    on_disk._path("t_0").hardlink_to(default_storage.path(Upload.objects.get().path))
    let_delete(late)
    assert file_deleter.run(NOON) == 1
    assert files(settings) == []


def test_a_part_of_a_file_goes_with_its_workunit(late: Result, settings: Settings) -> None:
    assert post(upload_body("t_0", CONTENT)[:-1]).startswith("-1 data")
    pieces = iter([CONTENT[:10], b""])
    with pytest.raises(UploadError, match="ended before the file"):
        receive(lambda _: next(pieces))
    assert files(settings) == ["t_0"]
    let_delete(late)
    assert file_deleter.run(NOON) == 1
    assert files(settings) == []
    assert post(upload_body("t_0", CONTENT)) == NOT_NEEDED


def test_one_upload_that_is_going_on_holds_up_no_other_workunits(late: Result, studio: Host) -> None:
    other = make_task("u", studio, server_state=ServerState.OVER, outcome=Outcome.NO_REPLY)
    assert post(upload_body("u_0", CONTENT)) == "0"

    def read(_: int) -> bytes:
        for result in (late, other):
            let_delete(result)
        file_deleter.run(NOON)
        return b""

    with pytest.raises(UploadError):
        receive(read)
    assert (state(late), state(other)) == (FileDeleteState.READY, FileDeleteState.DONE)
    assert not default_storage.exists(Upload.objects.get(name="u_0").path)


def test_a_file_of_another_name_is_not_touched(late: Result, settings: Settings) -> None:
    default_storage.save("outputs/00/stranger", ContentFile(b"x"))
    let_delete(late)
    file_deleter.run(NOON)
    assert files(settings) == ["stranger"]


def test_an_upload_that_begins_while_another_is_stored_does_not_lose_the_file(
    studio: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_task("t", studio)
    body = upload_body("t_0", CONTENT)
    second = files_receive.receive(asked_of(body), CONTENT)
    wants: list[Any] = []
    save = default_storage.save

    def save_and_begin_another(*args: Any) -> str:
        saved = save(*args)
        # Now the file is in the storage, and its row does not say so yet.
        with suppress(UploadError):
            wants.append(second.send(next(second).function()))
        return saved

    with monkeypatch.context() as patched:
        patched.setattr(default_storage, "save", save_and_begin_another)
        assert post(body) == "0"
    with suppress(UploadError, OSError, StopIteration):
        while wants:
            wants.append(second.send(wants[-1].function()))
    upload = Upload.objects.get()
    with default_storage.open(upload.path) as file:
        assert file.read() == CONTENT
    assert wants == []  # it was told to come later


def test_an_upload_that_finds_the_file_just_completed_leaves_nothing(
    studio: Host, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_task("t", studio)
    body = upload_body("t_0", CONTENT)
    check = uploads.check

    def check_and_be_overtaken(*args: Any) -> None:
        check(*args)
        monkeypatch.undo()
        assert post(body) == "0"

    monkeypatch.setattr(uploads, "check", check_and_be_overtaken)
    assert post(body) == "1 The file has just been completed by another upload."
    assert [path for path in Path(settings.UPLOADS_DIR).rglob("*") if path.is_file()] == []
    assert post(body) == "0"


@pytest.mark.django_db(transaction=True)
def test_where_locks_on_files_are_of_no_use_the_row_keeps_an_upload_whole(
    studio: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on some network file systems."""
    make_task("t", studio)
    body = upload_body("t_0", CONTENT)
    monkeypatch.setattr("fcntl.flock", lambda *_: None)
    keep = storage.keep
    told: list[str] = []

    def send_again() -> None:
        try:
            told.append(post(body))
        finally:
            close_old_connections()

    second = Thread(target=send_again)

    def keep_while_it_comes_again(*what: Any) -> str:
        monkeypatch.setattr(storage, "keep", keep)
        second.start()
        wait_until(lambda: not second.is_alive() or bool(nwaiting_for_locks()), "the second, or that it waits", 30)
        return keep(*what)

    monkeypatch.setattr(storage, "keep", keep_while_it_comes_again)
    assert post(body) == "0"
    second.join()
    assert told == ["1 The file has just been completed by another upload."]
    with default_storage.open(Upload.objects.get().path) as file:
        assert file.read() == CONTENT

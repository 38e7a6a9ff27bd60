"""Uploads and the file deleter at the same time: whichever comes first, no unknown file is left."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone
from pytest_django import Settings

from credit.models import FileDeleteState, Outcome, Result, ServerState, Workunit
from portal.clients import sync_driver
from portal.models import Host
from scheduler.files import leftovers, uploads
from scheduler.files import receive as files_receive
from scheduler.files.uploads import UploadError
from scheduler.lifecycle import file_deleter
from scheduler.models import Upload
from tests.support.credit_factories import NOON
from tests.support.lock_waits import meanwhile
from tests.support.upload_requests import asked_of, make_task, post, post_cut, size_query, upload_body

pytestmark = pytest.mark.django_db
CONTENT = b"forty-two\n" * 1000
NOT_NEEDED = "-1 The task of this file is over: the file is no longer needed."
JUST_OVER = "1 The file has just arrived by another upload, or is no longer needed."


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
    sync_driver.run(files_receive.receive(asked_of(upload_body("t_0", CONTENT)), b""), read)


def state(result: Result) -> int:
    return Workunit.objects.get(pk=result.workunit_id).file_delete_state


def test_a_file_that_ceases_to_be_needed_while_it_comes_is_refused_and_leaves_nothing(
    late: Result, settings: Settings
) -> None:
    pieces = iter([CONTENT[:4000], CONTENT[4000:], b""])

    def read(_: int) -> bytes:
        # Between any two pieces the workunit may end, and the deleter come by, which waits for no upload.
        let_delete(late)
        file_deleter.run(NOON)
        return next(pieces)

    with pytest.raises(UploadError, match="no longer needed"):
        receive(read)
    assert state(late) == FileDeleteState.DONE
    leftovers.delete(timezone.now() + dt.timedelta(days=2))
    assert files(settings) == []
    assert post(upload_body("t_0", CONTENT)) == NOT_NEEDED


@pytest.mark.django_db(transaction=True)
def test_an_upload_that_begins_while_the_deleter_has_the_workunit_waits_for_it(late: Result) -> None:
    with meanwhile(lambda: post(upload_body("t_0", CONTENT))) as begin:
        with transaction.atomic():
            Workunit.objects.filter(pk=late.workunit_id).update(file_delete_state=FileDeleteState.DONE)
            second = begin()
        assert second.result() == JUST_OVER
    assert not Upload.objects.exists()


def test_an_upload_that_begins_just_after_the_deletion_leaves_nothing(
    late: Result, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = uploads.check

    def check_and_fall_asleep(*args: Any) -> None:
        check(*args)
        let_delete(late)
        file_deleter.run(NOON)

    monkeypatch.setattr(uploads, "check", check_and_fall_asleep)
    assert post(upload_body("t_0", CONTENT)) == JUST_OVER
    monkeypatch.undo()
    assert (files(settings), Upload.objects.count(), state(late)) == ([], 0, FileDeleteState.DONE)
    assert post(upload_body("t_0", CONTENT)) == NOT_NEEDED


def test_what_was_stored_by_a_server_that_died_before_it_could_say_so_is_deleted_a_day_later(
    late: Result, settings: Settings
) -> None:
    steps = files_receive.receive(asked_of(upload_body("t_0", CONTENT)), CONTENT)
    want = steps.send(None)
    for _ in range(4):  # begin, write, check, store
        want = steps.send(want.function())
    steps.close()
    assert [name.partition(".")[0] for name in files(settings)] == ["t_0", "t_0"]
    # The client goes on with what came, here by its last byte.
    assert post(size_query("t_0")) == f"0 {len(CONTENT) - 1}"
    assert post(upload_body("t_0", CONTENT, offset=len(CONTENT) - 1)) == "0"
    assert leftovers.delete(timezone.now()) == 0
    assert leftovers.delete(timezone.now() + dt.timedelta(days=2)) == 1
    assert files(settings) == [Path(Upload.objects.get().path).name]


def test_what_nobody_goes_on_with_is_deleted_by_a_later_upload_of_its_folder(studio: Host, settings: Settings) -> None:
    folder = uploads.shard("t_0")
    beside = next(name for n in itertools.count() if uploads.shard(f"{(name := f'n{n}')}_0") == folder)
    for name in ("t", beside):
        make_task(name, studio)
    post_cut(upload_body("t_0", CONTENT), 1000)
    (part,) = (path for path in Path(settings.UPLOADS_DIR).rglob("*_0"))
    for days, left in ((settings.UPLOADS_KEPT_DAYS - 1, 9000), (settings.UPLOADS_KEPT_DAYS + 1, 0)):
        then = time.time() - days * 86_400
        os.utime(part, (then, then))
        post_cut(upload_body(f"{beside}_0", CONTENT), 1000)
        assert post(size_query("t_0")) == f"0 {left}"


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
            wants.append(second.send(second.send(None).function()))
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
    assert post(body) == JUST_OVER
    assert [path for path in Path(settings.UPLOADS_DIR).rglob("*") if path.is_file()] == []
    assert post(body) == "0"

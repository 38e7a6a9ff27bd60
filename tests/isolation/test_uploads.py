"""Uploads at two web servers with no disk in common, and the file deleter on a third machine, in many orders."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import threading
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from credit.models import FileDeleteState, Outcome, Result, ServerState, Workunit
from portal.clients import sync_driver
from portal.object_storage import storage
from scheduler.files import incoming, inputs, leftovers, receive, uploads
from scheduler.files.store import store_file
from scheduler.files.uploads import UploadError
from scheduler.lifecycle import file_deleter
from scheduler.models import InputUpload, PendingFile, StickyFile, StoredFile, Upload, VersionFile
from scheduler.submission.submit import submit
from scheduler.wire.uploads import REFUSED, TRY_AGAIN
from tests.support.credit_factories import make_app, make_version
from tests.support.interleavings import Scene, Work, try_all
from tests.support.upload_requests import asked_of, make_task, upload_body
from tests.support.work_scenes import NOON, computer_with_work, volunteer

pytestmark = pytest.mark.django_db(transaction=True)
CONTENT = b"forty-two\n" * 100
numbers = itertools.count(1)
machine = threading.local()


@pytest.fixture(autouse=True)
def machines(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each session has a folder for incoming files of its own; before it stores one is a step, too."""
    settings.MEDIA_ROOT, settings.UPLOADS_DIR = tmp_path / "files", tmp_path
    keep = storage.keep

    def keep_as_a_step(*what: Any) -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return keep(*what)

    monkeypatch.setattr(storage, "keep", keep_as_a_step)
    monkeypatch.setattr(incoming, "path", lambda name: tmp_path / machine.name / uploads.shard(name) / name)


def late_task() -> Result:
    """What it delivers may still count, and its workunit may be deleted."""
    host = computer_with_work(volunteer())
    return make_task(f"t{next(numbers)}", host, server_state=ServerState.OVER, outcome=Outcome.NO_REPLY)


def upload(task: Result, server: str, content: bytes = CONTENT) -> Work:
    def work() -> str:
        machine.name = server
        try:
            sync_driver.run(receive.receive(asked_of(upload_body(f"{task.name}_0", content)), content))
        except UploadError as error:
            return {TRY_AGAIN: "try again", REFUSED: "refused"}[error.status]
        return "acknowledged"

    return work


def delete_files(task: Result) -> None:
    Workunit.objects.filter(pk=task.workunit_id).update(file_delete_state=FileDeleteState.READY)
    file_deleter.run(NOON)


def test_an_input_is_deleted_while_a_version_comes_to_have_it() -> None:
    def make() -> Scene:
        owner, name = volunteer(), f"table{next(numbers)}"
        version = make_version(make_app(f"app{next(numbers)}"))
        file = store_file(name, ContentFile(CONTENT))
        given = InputUpload.objects.create(owner=owner, name=name, nbytes=file.nbytes, md5=file.md5, file=file)

        def delete() -> None:
            with suppress(inputs.InputConflict):
                inputs.delete(given, NOON)

        @transaction.atomic
        def release() -> None:
            VersionFile.objects.create(app_version=version, file=store_file(name, ContentFile(CONTENT)))

        def check_(_: list[Any]) -> None:
            kept = VersionFile.objects.get(app_version=version).file
            assert kept.deleted_at is None
            assert default_storage.exists(kept.path)

        return Scene([delete, release], check_)

    try_all(make)


def test_a_batch_gets_more_jobs_while_the_file_deleter_looks_who_needs_its_files(settings: Settings) -> None:
    settings.REMOTE_INPUT_HOSTS = ["data.example.org"]
    far = {"open_name": "in", "url": "https://data.example.org/map", "nbytes": 4, "md5": "a" * 32, "sticky": True}
    job = {"fpops_est": 1e12, "input_files": [far], "output_files": [{"open_name": "out", "max_nbytes": 9}]}

    def make() -> Scene:
        app = make_app(f"app{next(numbers)}")
        batch, _ = submit(app, job, [{}], owner=None, now=NOON)
        Workunit.objects.filter(batch=batch).update(file_delete_state=FileDeleteState.DONE)

        def add() -> None:
            submit(app, job, [{"name": f"more{next(numbers)}"}], owner=None, into=batch, exact_names=True, now=NOON)

        def check_(_: list[Any]) -> None:
            assert StickyFile.objects.filter(batch=batch).exists()

        return Scene([add, lambda: file_deleter.run(NOON)], check_)

    try_all(make)


@pytest.mark.parametrize("other", [CONTENT, CONTENT[::-1]], ids=["the same", "another"])
def test_an_input_comes_in_pieces_by_two_connections(other: bytes) -> None:
    half = len(CONTENT) // 2

    def make() -> Scene:
        owner, name = volunteer(), f"table{next(numbers)}"
        md5 = hashlib.md5(CONTENT).hexdigest()
        given, _ = inputs.announce(owner, name, len(CONTENT), md5, timezone.now())

        def send(content: bytes) -> bool:
            upload = InputUpload.objects.get(pk=given.pk)
            try:
                for offset in (0, half):
                    upload = inputs.receive(upload, offset, half, SlowBody(content[offset : offset + half]).read)
            except inputs.InputError:
                return False
            return True

        def check_(outcomes: list[Any]) -> None:
            assert set(outcomes) <= {True, False}
            # Whoever was refused comes again, once more if what had come was wrong.
            assert send(CONTENT) or send(CONTENT)
            file = StoredFile.objects.get(name=name)
            assert InputUpload.objects.get(pk=given.pk).file == file
            leftovers.delete(timezone.now() + 2 * leftovers.UNUSED_KEPT)
            with default_storage.open(file.path) as kept:
                assert kept.read() == CONTENT
            assert list(Path(default_storage.path("")).rglob(f"{name}.*")) == [Path(default_storage.path(file.path))]

        return Scene([lambda: send(CONTENT), lambda: send(other)], check_)

    try_all(make)


class SlowBody(BytesIO):
    """A piece for whose bytes a session waits: a step."""

    def read(self, size: int | None = -1, /) -> bytes:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return super().read(size)


def stored(task: Result) -> list[str]:
    """Its files in the storage, when all that nobody needs is gone."""
    leftovers.delete(timezone.now() + 2 * leftovers.UNUSED_KEPT)
    assert not PendingFile.objects.exists()
    root = Path(default_storage.path(""))
    return sorted(str(path.relative_to(root)) for path in root.rglob(f"{task.name}_*"))


def test_a_file_comes_while_the_files_of_its_workunit_are_deleted() -> None:
    def make() -> Scene:
        task = late_task()

        def check_(outcomes: list[Any]) -> None:
            assert outcomes[0] in ("acknowledged", "refused", "try again")
            file_deleter.run(NOON)
            assert Workunit.objects.get(pk=task.workunit_id).file_delete_state == FileDeleteState.DONE
            assert stored(task) == []

        return Scene([upload(task, "first"), lambda: delete_files(task)], check_)

    try_all(make)


@pytest.mark.parametrize("other", [CONTENT, CONTENT[::-1]], ids=["the same", "another"])
def test_a_file_comes_at_two_servers(other: bytes) -> None:
    def make() -> Scene:
        task = late_task()

        def check_(outcomes: list[Any]) -> None:
            assert outcomes.count("acknowledged") >= 1 or other != CONTENT
            for server in ("first", "second"):
                # A client that was told to come again does.
                outcomes.append(upload(task, server, other)())
            row = Upload.objects.get(result=task)
            assert "acknowledged" in outcomes and row.is_complete
            assert stored(task) == [row.path]
            with default_storage.open(row.path) as file:
                assert hashlib.md5(file.read()).hexdigest() == row.md5

        return Scene([upload(task, "first"), upload(task, "second", other)], check_)

    try_all(make)


def test_two_servers_and_the_file_deleter() -> None:
    def make() -> Scene:
        task = late_task()

        def check_(_: list[Any]) -> None:
            file_deleter.run(NOON)
            assert stored(task) == []

        return Scene([upload(task, "first"), upload(task, "second"), lambda: delete_files(task)], check_)

    try_all(make)


def test_what_an_upload_stores_is_taken_for_abandoned_meanwhile() -> None:
    """As by a worker whose clock is a day ahead."""

    def make() -> Scene:
        task = late_task()
        ahead = timezone.now() + dt.timedelta(days=2)

        def check_(outcomes: list[Any]) -> None:
            if outcomes[0] == "try again":
                assert upload(task, "first")() == "acknowledged"
            assert stored(task) == [Upload.objects.get(result=task).path]

        return Scene([upload(task, "first"), lambda: leftovers.delete(ahead)], check_)

    try_all(make)

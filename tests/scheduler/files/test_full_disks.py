"""Full disks, for real: uploads and the storage are on separate file systems, and one of them is full."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.files.base import ContentFile, File
from django.core.files.storage import default_storage
from pytest_django import Settings

from portal.clients import sync_driver
from portal.models import Host
from scheduler.files import incoming, receive
from scheduler.files.store import store_file
from scheduler.files.uploads import UploadError
from scheduler.models import StoredFile, Upload
from tests.support.small_disk import fill, small_disk
from tests.support.upload_requests import asked_of, make_task, post, size_query, upload_body

pytestmark = [pytest.mark.django_db, pytest.mark.system]

PAGE = os.sysconf("SC_PAGE_SIZE")
# What is left ends within the last part that is copied at a time: a short write, and no further one that fails.
CONTENT = os.urandom(64 * 1024 + 40_000)
LEFT = 64 * 1024 + PAGE
FULL = "1 The disk of this project is full. Your client will try again."


@pytest.fixture
def disks(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    """The folder of the incoming files, and that of the storage."""
    monkeypatch.setattr(incoming, "SPARE_NBYTES", 0)
    with small_disk(tmp_path / "small uploads", 2**20) as uploads, small_disk(tmp_path / "small files", 2**20) as files:
        settings.UPLOADS_DIR, settings.MEDIA_ROOT = uploads, files
        yield uploads, files


def kept(name: str) -> bytes:
    with default_storage.open(Upload.objects.get(name=name).path) as file:
        content: bytes = file.read()
    return content


def test_an_upload_goes_to_a_storage_on_another_disk(disks: tuple[Path, Path], studio: Host) -> None:
    make_task("t", studio, max_nbytes=2**20)
    assert post(upload_body("t_0", CONTENT, max_nbytes=2**20)) == "0"
    assert kept("t_0") == CONTENT
    assert [path for path in disks[0].rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("left", [LEFT, 64 * 1024, PAGE, 0])
def test_a_storage_that_fills_up_during_an_upload_acknowledges_nothing(
    disks: tuple[Path, Path], studio: Host, left: int
) -> None:
    make_task("t", studio, max_nbytes=2**20)
    pieces = iter([CONTENT[:50_000], CONTENT[50_000:]])
    fillers: list[Path] = []

    def read(_: int) -> bytes:
        if not fillers:
            # The folders of the upload take no room of their own; the file's has to be there.
            fillers.append(fill(disks[1], left))
        return next(pieces)

    with pytest.raises(UploadError, match="full") as caught:
        sync_driver.run(receive.receive(asked_of(upload_body("t_0", CONTENT, max_nbytes=2**20)), b""), read)
    assert caught.value.status == 1
    assert Upload.objects.get().completed_at is None
    assert [path for path in disks[1].rglob("*") if path.is_file()] == fillers
    fillers[0].unlink()
    # All of it has arrived. But a client that hears so takes the file for uploaded, so it is asked for the last byte.
    assert post(size_query("t_0")) == f"0 {len(CONTENT) - 1}"
    assert post(upload_body("t_0", CONTENT, offset=len(CONTENT) - 1, max_nbytes=2**20)) == "0"
    assert post(size_query("t_0")) == f"0 {len(CONTENT)}"
    assert kept("t_0") == CONTENT


@pytest.mark.parametrize("full", [0, 1], ids=["uploads", "storage"])
def test_an_upload_that_does_not_fit_on_either_disk_is_not_begun(
    disks: tuple[Path, Path], studio: Host, full: int
) -> None:
    make_task("t", studio, max_nbytes=2**20)
    filler = fill(disks[full], LEFT)
    assert post(upload_body("t_0", CONTENT, max_nbytes=2**20)) == FULL
    assert post(size_query("t_0")) == "0 0"
    filler.unlink()
    assert post(upload_body("t_0", CONTENT, max_nbytes=2**20)) == "0"


def test_a_program_that_does_not_fit_is_not_stored(disks: tuple[Path, Path]) -> None:
    filler = fill(disks[1], LEFT)
    with pytest.raises(OSError, match="No space left"):
        store_file("program", ContentFile(CONTENT))
    assert not StoredFile.objects.exists()
    assert [path for path in disks[1].rglob("*") if path.is_file()] == [filler]
    filler.unlink()
    assert store_file("program", ContentFile(CONTENT)).md5 == hashlib.md5(CONTENT).hexdigest()


def test_a_storage_that_keeps_less_than_it_was_given_acknowledges_nothing(
    disks: tuple[Path, Path], studio: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Django's did when the last write was a short one, and as a storage elsewhere may."""
    make_task("t", studio, max_nbytes=2**20)
    body = upload_body("t_0", CONTENT, max_nbytes=2**20)
    save = default_storage.save

    def save_half(name: str, content: File[bytes]) -> str:
        content.seek(0)
        return save(name, ContentFile(content.read(len(CONTENT) // 2)))

    with monkeypatch.context() as patched:
        patched.setattr(default_storage, "save", save_half)
        with pytest.raises(OSError, match="differs from what was written"):
            sync_driver.run(receive.receive(asked_of(body), CONTENT), lambda _: b"")
    assert Upload.objects.get().completed_at is None
    assert [path for path in disks[1].rglob("*") if path.is_file()] == []
    assert post(body) == "0"
    assert kept("t_0") == CONTENT

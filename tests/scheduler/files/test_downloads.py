"""Downloads of stored files: whole, in ranges, by nginx, and missing ones."""

from __future__ import annotations

import hashlib
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import close_old_connections
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from portal.object_storage import storage
from scheduler.files.addresses import download_url
from scheduler.files.store import StoringError, store_file
from scheduler.models import StoredFile
from tests.support.lock_waits import nwaiting_for_locks
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db

CONTENT = bytes(range(256)) * 2000  # 512,000 bytes: two pieces and a bit
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


@pytest.fixture
def file(db: None) -> StoredFile:
    return store_file("table_1.bin", ContentFile(CONTENT))


def get(name: str = "table_1.bin", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    reply = Client().get(f"/project/download/{name}", headers=headers)
    body = b"".join(reply) if reply.streaming else reply.content
    return reply.status_code, body, dict(reply.headers)


def test_a_file_comes_whole_and_may_be_kept_for_ever(file: StoredFile) -> None:
    status, body, headers = get()
    assert (status, body) == (200, CONTENT)
    assert headers["Content-Length"] == "512000"
    assert headers["ETag"] == f'"{MD5}"'
    assert headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert headers["Content-Type"] == "application/octet-stream"
    assert download_url(file.name).endswith("/project/download/table_1.bin")


@pytest.mark.parametrize(
    ("wanted", "first", "last"),
    [
        ("bytes=500000-", 500_000, 511_999),  # as a client resumes
        ("bytes=0-0", 0, 0),
        ("bytes=10-19", 10, 19),
        ("bytes=511999-", 511_999, 511_999),
        ("bytes=511990-999999", 511_990, 511_999),
        ("bytes=-10", 511_990, 511_999),
    ],
)
def test_a_range_is_that_part(file: StoredFile, wanted: str, first: int, last: int) -> None:
    status, body, headers = get(Range=wanted)
    assert (status, body) == (206, CONTENT[first : last + 1])
    assert headers["Content-Range"] == f"bytes {first}-{last}/512000"
    assert headers["Content-Length"] == str(last - first + 1)


@pytest.mark.parametrize(
    "wanted", ["bytes=0-", "bytes=-600000", "bytes=", "bytes=-", "bytes=5-2", "lines=1-2", "x", "bytes=0-1,5-6"]
)
def test_a_range_that_is_all_or_not_understood_gives_the_whole_file(file: StoredFile, wanted: str) -> None:
    assert get(Range=wanted)[:2] == (200, CONTENT)


@pytest.mark.parametrize("wanted", ["bytes=512000-", "bytes=9999999999-", "bytes=-0"])
def test_a_range_behind_the_end_is_refused(file: StoredFile, wanted: str) -> None:
    status, body, headers = get(Range=wanted)
    assert (status, body, headers["Content-Range"]) == (416, b"", "bytes */512000")


def test_a_range_of_another_version_gives_the_whole_file(file: StoredFile) -> None:
    assert get(**{"Range": "bytes=5-", "If-Range": '"other"'})[0] == 200
    assert get(**{"Range": "bytes=5-", "If-Range": f'"{MD5}"'})[0] == 206


def test_an_empty_file_is_a_file() -> None:
    store_file("empty", ContentFile(b""))
    assert get("empty")[:2] == (200, b"")
    assert get("empty", Range="bytes=0-")[0] == 416


def test_head_says_how_long_it_is(file: StoredFile) -> None:
    reply = Client().head("/project/download/table_1.bin")
    assert (reply.status_code, reply.headers["Content-Length"], reply.content) == (200, "512000", b"")


@pytest.mark.parametrize(
    "name",
    [
        "unknown",
        "../files/table_1.bin",
        "..%2Ftable_1.bin",
        "%2e%2e/%2e%2e/etc/passwd",
        "table_1.bin/",
        "table_1.bin%00",
    ],
)
def test_there_is_nothing_else(file: StoredFile, name: str) -> None:
    assert get(name)[0] == 404


def test_what_was_deleted_or_lost_is_not_there(file: StoredFile) -> None:
    default_storage.delete(file.path)
    assert get()[0] == 404
    StoredFile.objects.update(deleted_at=timezone.now())
    assert get()[0] == 404


def test_a_name_stands_for_one_content_even_after_it_was_deleted(file: StoredFile) -> None:
    assert store_file("table_1.bin", ContentFile(CONTENT)) == file
    with pytest.raises(StoringError, match="stored before"):
        store_file("table_1.bin", ContentFile(b"other"))
    default_storage.delete(file.path)
    StoredFile.objects.update(deleted_at=timezone.now(), signature="by an earlier key")
    with pytest.raises(StoringError, match="stored before"):
        store_file("table_1.bin", ContentFile(b"other"))
    again = store_file("table_1.bin", ContentFile(CONTENT), signature="by this key")
    assert (again.pk, again.deleted_at, again.signature) == (file.pk, None, "by this key")
    with default_storage.open(again.path) as content:
        assert content.read() == CONTENT


def test_a_run_that_was_cut_off_leaves_nothing_in_the_way(file: StoredFile) -> None:
    path = Path(default_storage.path(file.path))
    StoredFile.objects.all().delete()
    path.write_bytes(b"half")
    again = store_file("table_1.bin", ContentFile(CONTENT))
    assert (again.path, path.read_bytes()) == (file.path, CONTENT)


def test_nginx_sends_it_where_it_is_set_up_so(file: StoredFile, settings: Settings) -> None:
    settings.DOWNLOAD_ACCEL_PREFIX = "/stored/"
    status, body, headers = get()
    assert (status, body, headers["X-Accel-Redirect"]) == (200, b"", f"/stored/{file.path}")


def test_files_may_lie_in_a_storage_without_folders(db: None, settings: Settings) -> None:
    in_memory = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    settings.STORAGES = {**settings.STORAGES, "default": in_memory}
    store_file("table_2.bin", ContentFile(CONTENT))
    assert get("table_2.bin")[:2] == (200, CONTENT)
    assert get("table_2.bin", range="bytes=300-302")[:2] == (206, CONTENT[300:303])


@pytest.mark.django_db(transaction=True)
def test_of_two_that_store_one_new_name_at_once_the_second_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []
    keep = storage.keep

    def store_other() -> None:
        try:
            store_file("table_1.bin", ContentFile(b"other"))
        except StoringError as error:
            refused.append(str(error))
        finally:
            close_old_connections()

    second = Thread(target=store_other)

    def keep_first(*what: Any) -> str:
        """The second begins when the first has its file and not yet its row."""
        monkeypatch.setattr(storage, "keep", keep)
        path = keep(*what)
        second.start()
        wait_until(lambda: not second.is_alive() or bool(nwaiting_for_locks()), "the second, or that it waits", 30)
        return path

    monkeypatch.setattr(storage, "keep", keep_first)
    stored = store_file("table_1.bin", ContentFile(CONTENT))
    second.join()
    assert len(refused) == 1 and "stored before" in refused[0]
    assert StoredFile.objects.get() == stored
    assert Path(default_storage.path(stored.path)).read_bytes() == CONTENT

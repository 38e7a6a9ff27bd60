"""Files in a real S3 server: stored, read, uploaded, and what happens while the server has faults."""

from __future__ import annotations

import datetime as dt
import os
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone
from pytest_django import Settings

from credit.engine.states import FileDeleteState
from credit.models import Workunit
from portal.models import Host
from portal.object_storage import storage
from portal.object_storage.backend import ObjectStorage
from portal.object_storage.errors import StorageError
from scheduler.files import check, leftovers
from scheduler.files.store import store_file
from scheduler.lifecycle import file_deleter
from scheduler.models import PendingFile, RetryEntry, StoredFile, Upload
from tests.support.credit_factories import NOON
from tests.support.s3_server import FaultyProxy, keys
from tests.support.upload_requests import make_task, post, size_query, upload_body

pytestmark = pytest.mark.django_db

CONTENT = os.urandom(300_000)
LIMIT = 2**20
FAULTS = ["refuse", "error", "hang", "cut"]


def body(content: bytes = CONTENT, **more: Any) -> bytes:
    return upload_body("t_0", content, max_nbytes=LIMIT, **more)


def stored() -> bytes:
    upload = Upload.objects.get()
    assert upload.is_complete
    with default_storage.open(upload.path) as file:
        content: bytes = file.read()
    return content


# --- the storage itself -----------------------------------------------------------------------------------------------


def test_a_file_is_read_whole_and_from_any_place(bucket: ObjectStorage) -> None:
    name = bucket.save("folder/a.gz", ContentFile(CONTENT))
    assert (bucket.size(name), bucket.exists(name), bucket.exists("other")) == (len(CONTENT), True, False)
    with bucket.open(name) as file:
        assert file.read() == CONTENT
        file.seek(-10, os.SEEK_END)
        assert file.read() == CONTENT[-10:]
        file.seek(1000)
        assert file.read(5) == CONTENT[1000:1005]
    assert bucket.listdir("") == (["folder"], []) and bucket.listdir("folder") == ([], ["a.gz"])
    bucket.delete(name)
    bucket.delete(name)
    with pytest.raises(FileNotFoundError):
        bucket.open(name)
    with pytest.raises(FileNotFoundError):
        bucket.size(name)


def test_a_name_that_is_taken_is_not_used_again(bucket: ObjectStorage) -> None:
    first, second = (bucket.save("a", ContentFile(content)) for content in (b"one", b"two"))
    assert first != second
    with bucket.open(first) as file:
        assert file.read() == b"one"


def test_an_empty_file_is_a_file(bucket: ObjectStorage) -> None:
    with bucket.open(bucket.save("empty", ContentFile(b""))) as file:
        assert file.read() == b""


def test_a_large_file_is_sent_in_parts_and_proved_by_reading_it(
    bucket: ObjectStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(6 * 2**20)
    monkeypatch.setattr(bucket.transfer_config, "multipart_threshold", 5 * 2**20)
    monkeypatch.setattr(bucket.transfer_config, "multipart_chunksize", 5 * 2**20)
    file = store_file("large", ContentFile(content))
    # The server has the MD5 of the parts' MD5s.
    assert bucket.as_server_says(file.path)[1].endswith("-2")
    assert list(check.differences()) == []


def test_what_the_server_lost_or_changed_is_found(bucket: ObjectStorage) -> None:
    lost, changed, _ = (store_file(name, ContentFile(CONTENT)) for name in ("lost", "changed", "kept"))
    bucket.delete(lost.path)
    bucket.client.put_object(Bucket=bucket.bucket_name, Key=changed.path, Body=b"x" * len(CONTENT))
    differences = list(check.differences())
    assert [line.partition(": ")[0].split()[3] for line in differences] == ["lost", "changed"]
    assert "missing" in differences[0] and "has the MD5" in differences[1]


@pytest.mark.parametrize("fault", [*FAULTS, "cut head", "cut body"])
def test_a_check_says_that_the_storage_cannot_be_asked_and_no_more(
    bucket: ObjectStorage, s3_proxy: FaultyProxy, fault: str
) -> None:
    store_file("kept", ContentFile(CONTENT))
    with s3_proxy.broken(fault), pytest.raises(StorageError, match="object storage"):
        list(check.differences())
    assert list(check.differences()) == []


def test_keys_and_bucket_that_are_refused_are_told_in_one_line_without_the_keys(bucket: ObjectStorage) -> None:
    bucket.client.delete_bucket(Bucket=bucket.bucket_name)
    with pytest.raises(StorageError, match=f"bucket {bucket.bucket_name}, answered: NoSuchBucket") as caught:
        store_file("a", ContentFile(b"a"))
    assert "\n" not in str(caught.value) and "secret" not in f"{caught.value} {bucket.options!r}"
    assert not StoredFile.objects.exists()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_program_is_stored_whole_or_not_at_all(bucket: ObjectStorage, s3_proxy: FaultyProxy, fault: str) -> None:
    with s3_proxy.broken(fault), pytest.raises(OSError, match="object storage"):
        store_file("program", ContentFile(CONTENT))
    assert not StoredFile.objects.exists()
    store_file("program", ContentFile(CONTENT))
    assert list(check.differences()) == []


def test_a_presigned_address_opens_one_object_for_a_time(bucket: ObjectStorage) -> None:
    file = store_file("data.gz", ContentFile(CONTENT))
    url = bucket.presigned_url(file.path, secs=60, file_name="data ü.gz")
    assert parse_qs(urlsplit(url).query)["X-Amz-Expires"] == ["60"]
    with urllib.request.urlopen(url) as reply:
        assert reply.read() == CONTENT
        assert reply.headers["Content-Disposition"] == "attachment; filename*=UTF-8''data%20%C3%BC.gz"
        assert reply.headers["Content-Encoding"] is None
    asked = urllib.request.Request(url, headers={"Range": "bytes=299990-"})
    with urllib.request.urlopen(asked) as reply:
        assert (reply.status, reply.read()) == (206, CONTENT[299_990:])


# --- uploads ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", CONTENT])
def test_an_upload_is_one_object_and_nothing_else(
    bucket: ObjectStorage, studio: Host, settings: Settings, content: bytes
) -> None:
    make_task("t", studio, max_nbytes=LIMIT)
    assert post(body(content)) == "0"
    assert stored() == content
    assert keys(bucket) == [Upload.objects.get().path]
    assert [path for path in Path(settings.UPLOADS_DIR).rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("fault", [*FAULTS, "cut head"])
def test_while_the_storage_has_a_fault_clients_try_later_and_nothing_is_lost(
    bucket: ObjectStorage, studio: Host, s3_proxy: FaultyProxy, fault: str
) -> None:
    make_task("t", studio, max_nbytes=LIMIT)
    with s3_proxy.broken(fault):
        assert post(body()) == "1 The upload was interrupted."
    # All of it is on the server's disk, and a client asks for what is missing.
    assert post(size_query("t_0")) == "0 299999"
    assert post(body(offset=299_999)) == "0"
    assert stored() == CONTENT
    leftovers.delete(timezone.now() + dt.timedelta(days=2))
    assert keys(bucket) == [Upload.objects.get().path]


def test_while_the_storage_cannot_be_reached_the_file_deleter_waits(
    bucket: ObjectStorage, studio: Host, s3_proxy: FaultyProxy
) -> None:
    for name in "tuv":
        make_task(name, studio, max_nbytes=LIMIT)
        assert post(upload_body(f"{name}_0", b"forty-two", max_nbytes=LIMIT)) == "0"
    Workunit.objects.update(file_delete_state=FileDeleteState.READY)
    before = s3_proxy.nconnections
    with s3_proxy.broken("refuse"):
        assert file_deleter.run(NOON) == 0
    # It does not try each of them.
    assert s3_proxy.nconnections - before <= 2
    assert set(Workunit.objects.values_list("file_delete_state", flat=True)) == {FileDeleteState.READY}
    assert not RetryEntry.objects.exists()
    assert file_deleter.run(NOON) == 3
    assert keys(bucket) == []


# --- what is left over ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["refuse", "error", "cut"])
def test_what_cannot_be_deleted_now_is_deleted_later(bucket: ObjectStorage, s3_proxy: FaultyProxy, fault: str) -> None:
    # As of a server that died before it could say what it had stored.
    long_ago = timezone.now() - dt.timedelta(days=2)
    for name in "ab":
        path = default_storage.save(f"outputs/{name}", ContentFile(CONTENT))
        PendingFile.objects.create(path=path, begun_at=long_ago)
    with s3_proxy.broken(fault):
        assert leftovers.delete(timezone.now()) == 0
    assert PendingFile.objects.count() == 2
    assert leftovers.delete(timezone.now()) == 2
    assert (keys(bucket), PendingFile.objects.count()) == ([], 0)


def test_the_server_forgets_files_whose_sending_never_ended(bucket: ObjectStorage) -> None:
    bucket.client.create_multipart_upload(Bucket=bucket.bucket_name, Key="outputs/half")
    # This server says that all of them were begun in 2010.
    assert bucket.end_unfinished("outputs", dt.datetime(2010, 1, 1, tzinfo=dt.UTC)) == 0
    assert "Uploads" in bucket.client.list_multipart_uploads(Bucket=bucket.bucket_name)
    leftovers.delete(timezone.now() + dt.timedelta(days=2))
    assert "Uploads" not in bucket.client.list_multipart_uploads(Bucket=bucket.bucket_name)


@pytest.mark.parametrize("prefix", ["", "site"])
def test_unfinished_files_of_other_programs_in_the_bucket_stay(
    bucket: ObjectStorage, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    others = ["backup/base.tar", "outputs-of-others/half", "other/outputs/half"]
    with monkeypatch.context() as patch:
        patch.setattr(bucket, "location", prefix)
        ours = [bucket.key(f"{folder}/half") for folder in storage.FOLDERS]
        for key in (*ours, *others):
            bucket.client.create_multipart_upload(Bucket=bucket.bucket_name, Key=key)
        leftovers.delete(timezone.now() + dt.timedelta(days=2))
    left = bucket.client.list_multipart_uploads(Bucket=bucket.bucket_name)["Uploads"]
    assert sorted(upload["Key"] for upload in left) == sorted(others)

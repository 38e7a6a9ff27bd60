"""Files in a real S3 server: stored, read, uploaded in parts, and what happens while the server has faults."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import urllib.request
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone

from credit.engine.states import FileDeleteState
from credit.models import Workunit
from portal.clients import plain
from portal.models import Host
from portal.object_storage.backend import ObjectStorage, StorageError
from scheduler.files import check, in_parts, leftovers, receive, storage
from scheduler.files.store import store_file
from scheduler.files.uploads import UploadError
from scheduler.lifecycle import file_deleter
from scheduler.models import IncomingPart, RetryEntry, StoredFile, Upload
from tests.support.credit_factories import NOON
from tests.support.s3_server import FaultyProxy, keys
from tests.support.upload_requests import asked_of, make_task, post, post_cut, size_query, upload_body

pytestmark = pytest.mark.django_db

CONTENT = os.urandom(300_000)
LIMIT = 2**20
FAULTS = ["refuse", "error", "hang", "cut"]


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_parts, "PART_NBYTES", 100_000)


def body(content: bytes = CONTENT, **more: Any) -> bytes:
    return upload_body("t_0", content, max_nbytes=LIMIT, **more)


def stored() -> bytes:
    upload = Upload.objects.get()
    assert upload.is_complete and upload.writer is None
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
    found = list(check.differences())
    assert [line.partition(": ")[0].split()[3] for line in found] == ["lost", "changed"]
    assert "missing" in found[0] and "has the MD5" in found[1]


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


def test_a_short_file_is_one_object_and_nothing_else(bucket: ObjectStorage, studio: Host) -> None:
    make_task("t", studio, max_nbytes=LIMIT)
    assert post(body()) == "0"
    assert stored() == CONTENT
    assert keys(bucket) == [Upload.objects.get().path]
    assert not IncomingPart.objects.exists()


@pytest.mark.parametrize("content", [b"", b"x", CONTENT[:100_000], CONTENT[:100_001]])
def test_a_file_of_any_size_is_stored(bucket: ObjectStorage, studio: Host, short_parts: None, content: bytes) -> None:
    make_task("t", studio, max_nbytes=LIMIT)
    assert post(body(content)) == "0"
    assert stored() == content
    assert (len(keys(bucket)), IncomingPart.objects.count()) == (1, 0)


def test_a_long_file_is_stored_in_parts_which_then_go(bucket: ObjectStorage, studio: Host, short_parts: None) -> None:
    make_task("t", studio, max_nbytes=LIMIT)
    seen: list[list[str]] = []
    pieces = iter([CONTENT[at : at + 50_000] for at in range(0, len(CONTENT), 50_000)])

    def read(_: int) -> bytes:
        seen.append([key.partition("/")[0] for key in keys(bucket)])
        return next(pieces)

    plain.run(receive.receive(asked_of(body()), b""), read)
    assert seen == [[], [], ["uploads"], ["uploads"], ["uploads"] * 2, ["uploads"] * 2]
    assert stored() == CONTENT
    assert keys(bucket) == [Upload.objects.get().path]
    assert not IncomingPart.objects.exists()


@pytest.mark.parametrize("offset", [220_000, 219_999, 200_000, 150_000, 100_000, 1, 0])
def test_an_upload_goes_on_at_any_byte_that_came(
    bucket: ObjectStorage, studio: Host, short_parts: None, offset: int
) -> None:
    make_task("t", studio, max_nbytes=LIMIT)
    post_cut(body(), 80_000)
    assert post(size_query("t_0")) == "0 220000"
    assert post(body(offset=220_001)) == "1 The upload begins at byte 220001, but only 220000 bytes are here."
    assert post(body(offset=offset)) == "0"
    assert stored() == CONTENT


def test_many_cuts_and_another_content_in_between_do_no_harm(
    bucket: ObjectStorage, studio: Host, short_parts: None
) -> None:
    make_task("t", studio, max_nbytes=LIMIT)
    post_cut(body(), 250_000)
    post_cut(body(offset=50_000), 130_000)
    # The job was begun anew, and has another result.
    other = CONTENT[::-1]
    assert post(body(other, offset=170_000)).startswith("1 The upload begins at byte 170000, but only 0")
    assert post(size_query("t_0")) == "0 0"
    post_cut(body(other), 100_000)
    assert post(body(other, offset=200_000)) == "0"
    assert stored() == other
    # Parts of the first content go when they are a day old.
    assert leftovers.delete(timezone.now() + dt.timedelta(days=2)) > 0
    assert keys(bucket) == [Upload.objects.get().path]


def test_parts_that_do_not_make_up_the_file_are_dropped(bucket: ObjectStorage, studio: Host, short_parts: None) -> None:
    make_task("t", studio, max_nbytes=LIMIT)
    md5 = hashlib.md5(CONTENT).hexdigest()
    post_cut(body(bytes(len(CONTENT)), md5=md5), 150_000)
    assert post(body(offset=150_000)).startswith("1 The parts do not make up the file")
    assert post(size_query("t_0")) == "0 0"
    assert post(body(CONTENT[:-1] + b"?", md5=md5)).startswith("1 The parts do not")
    assert post(upload_body("t_0", b"wrong", md5=md5, max_nbytes=LIMIT)) == (
        "-1 The file does not have the announced MD5."
    )
    assert post(body()) == "0"
    assert stored() == CONTENT


def test_a_part_that_the_storage_lost_has_the_client_begin_anew(
    bucket: ObjectStorage, studio: Host, short_parts: None
) -> None:
    make_task("t", studio, max_nbytes=LIMIT)
    post_cut(body(), 80_000)
    bucket.delete(IncomingPart.objects.earliest("offset").path)
    assert post(body(offset=220_000)).startswith("1 The parts do not make up the file")
    assert post(body()) == "0"
    assert stored() == CONTENT


@pytest.mark.parametrize(
    ("fault", "nbytes_here"),
    [("refuse", 0), ("refuse", 250_000), ("error", 50_000), ("hang", 0), ("hang", 250_000), ("cut head", 250_000)],
)
def test_while_the_storage_has_a_fault_clients_try_later_and_nothing_is_lost(
    bucket: ObjectStorage, studio: Host, s3_proxy: FaultyProxy, short_parts: None, fault: str, nbytes_here: int
) -> None:
    make_task("t", studio, max_nbytes=LIMIT)
    if nbytes_here:
        post_cut(body(), len(CONTENT) - nbytes_here)
    with s3_proxy.broken(fault):
        assert post(body(offset=nbytes_here)) == "1 The upload was interrupted."
        # How much has come is known to the database.
        status, here = post(size_query("t_0")).split()
        assert status == "0" and int(here) >= nbytes_here
    assert post(body(offset=int(here))) == "0"
    assert stored() == CONTENT
    leftovers.delete(timezone.now() + dt.timedelta(days=2))
    assert keys(bucket) == [Upload.objects.get().path]


# --- who may write ----------------------------------------------------------------------------------------------------


OVER: Final = dt.timedelta(seconds=-1)
BY_A_CLOCK_THAT_WAS_AHEAD: Final = dt.timedelta(hours=1)


def lose_place(name: str = "t_0", until: dt.timedelta = OVER) -> None:
    """As when the web server that has it was killed, and the time is over."""
    Upload.objects.filter(name=name).update(writer_until=timezone.now() + until)


@pytest.mark.parametrize("until", [OVER, BY_A_CLOCK_THAT_WAS_AHEAD])
def test_a_second_upload_is_told_to_come_later_until_the_first_has_lost_its_place(
    bucket: ObjectStorage, studio: Host, short_parts: None, until: dt.timedelta
) -> None:
    make_task("t", studio, max_nbytes=LIMIT)
    told: list[str] = []
    pieces = iter([CONTENT[:150_000], CONTENT[150_000:]])

    def read(_: int) -> bytes:
        if len(told) == 1:
            lose_place(until=until)
        told.append(post(body()))
        return next(pieces)

    with pytest.raises(UploadError, match="begun meanwhile"):
        plain.run(receive.receive(asked_of(body()), b""), read)
    assert told == ["1 Another upload of this file is going on.", "0"]
    assert stored() == CONTENT
    leftovers.delete(timezone.now() + dt.timedelta(days=2))
    assert keys(bucket) == [Upload.objects.get().path]
    assert stored() == CONTENT


def test_who_loses_the_place_while_the_storage_takes_the_whole_file_changes_nothing(
    bucket: ObjectStorage, studio: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_task("t", studio, max_nbytes=LIMIT)
    save = bucket.save

    def save_slowly(*what: Any) -> str:
        monkeypatch.undo()
        lose_place()
        assert post(body()) == "0"
        return str(save(*what))

    monkeypatch.setattr(default_storage._wrapped, "save", save_slowly)  # type: ignore[attr-defined]  # a lazy object
    assert post(body()) == "1 Another upload of this file has begun meanwhile."
    assert stored() == CONTENT
    assert len(keys(bucket)) == 2
    # A day later, not before: then whoever wrote it must be done.
    assert leftovers.delete(timezone.now()) == 0
    assert leftovers.delete(timezone.now() + dt.timedelta(days=2)) == 1
    assert keys(bucket) == [Upload.objects.get().path] and stored() == CONTENT


def test_the_file_deleter_waits_for_an_upload_and_takes_the_place_of_one_that_is_gone(
    bucket: ObjectStorage, studio: Host, short_parts: None
) -> None:
    task = make_task("t", studio, max_nbytes=LIMIT)
    pieces = iter([CONTENT[:150_000], CONTENT[150_000:]])
    deleted: list[int] = []

    def read(_: int) -> bytes:
        Workunit.objects.update(file_delete_state=FileDeleteState.READY)
        if deleted:
            lose_place()
        deleted.append(file_deleter.run(NOON))
        return next(pieces)

    with pytest.raises(UploadError, match="begun meanwhile"):
        plain.run(receive.receive(asked_of(body()), b""), read)
    assert Workunit.objects.get(pk=task.workunit_id).file_delete_state == FileDeleteState.DONE
    assert post(body()).startswith("-1 The task of this file is over")
    leftovers.delete(timezone.now() + dt.timedelta(days=2))
    assert keys(bucket) == []
    assert not IncomingPart.objects.exists()


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


def test_an_upload_that_nobody_goes_on_with_is_forgotten(
    bucket: ObjectStorage, studio: Host, short_parts: None
) -> None:
    for name in ("t", "u"):
        make_task(name, studio, max_nbytes=LIMIT)
        for offset, ncut in ((0, 200_000), (100_000, 80_000)):
            post_cut(upload_body(f"{name}_0", CONTENT, offset=offset, max_nbytes=LIMIT), ncut)
    long_ago = timezone.now() - dt.timedelta(days=16)
    IncomingPart.objects.filter(name="t_0").update(begun_at=long_ago)
    # Of this one the newest part is new.
    IncomingPart.objects.filter(name="u_0", offset=0).update(begun_at=long_ago)
    assert leftovers.delete(timezone.now()) == 2
    assert [post(size_query(name)) for name in ("t_0", "u_0")] == ["0 0", "0 220000"]
    assert post(body()) == "0"
    assert post(upload_body("u_0", CONTENT, offset=220_000, max_nbytes=LIMIT)) == "0"


def test_what_is_being_gone_on_with_is_not_forgotten(bucket: ObjectStorage, studio: Host, short_parts: None) -> None:
    make_task("t", studio, max_nbytes=LIMIT)
    post_cut(body(), 80_000)
    IncomingPart.objects.update(begun_at=timezone.now() - dt.timedelta(days=16))

    def read(_: int) -> bytes:
        assert leftovers.delete(timezone.now()) == 0
        return CONTENT[220_000:]

    plain.run(receive.receive(asked_of(body(offset=220_000)), b""), read)
    assert stored() == CONTENT


@pytest.mark.parametrize("fault", ["refuse", "error", "cut"])
def test_what_cannot_be_deleted_now_is_deleted_later(
    bucket: ObjectStorage, studio: Host, s3_proxy: FaultyProxy, short_parts: None, fault: str
) -> None:
    make_task("t", studio, max_nbytes=LIMIT)
    post_cut(body(), 200_000)
    post_cut(body(offset=100_000), 80_000)
    later = timezone.now() + dt.timedelta(days=17)
    with s3_proxy.broken(fault):
        assert leftovers.delete(later) == 0
    assert IncomingPart.objects.count() == 2
    assert leftovers.delete(later) == 2
    assert (keys(bucket), IncomingPart.objects.count()) == ([], 0)


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

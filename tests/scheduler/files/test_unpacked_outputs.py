"""Outputs that computers pack by gzip (``gzip_when_done``) are unpacked here, so no later step has to know of it."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import pytest
from pytest_django import Settings

from credit.models import Outcome, Result
from portal.models import Host, User
from scheduler.files import incoming
from scheduler.models import Upload
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import computer_of, result_xml
from tests.support.upload_requests import post, post_cut, size_query, stored, upload_body

pytestmark = pytest.mark.django_db
PLAIN = b"1.5 2.5\n" * 10_000
"""80,000 bytes."""


def packed_task(host: Host, *, max_nbytes: int = 100_000) -> Result:
    files = [{"open_name": "out", "max_nbytes": max_nbytes, "gzip_when_done": True}]
    return make_result(make_workunit(make_app(), output_files=files), host)


def pack(content: bytes, level: int = 6) -> bytes:
    return gzip.compress(content, level, mtime=0)


def left_over(settings: Settings) -> list[Path]:
    return [path for path in Path(settings.UPLOADS_DIR).rglob("*") if path.is_file()]


def test_a_packed_output_is_stored_unpacked_and_stays_the_one_that_came(studio: Host, settings: Settings) -> None:
    name, packed = f"{packed_task(studio).name}_0", pack(PLAIN)
    body = upload_body(name, packed)
    assert post_cut(body, 5).startswith("1 ")
    # The client asks how much is here, and sends the rest; after a lost reply it asks, or sends, again.
    assert post(size_query(name)) == f"0 {len(packed) - 5}"
    assert post(upload_body(name, packed, offset=len(packed) - 5)) == "0"
    assert post(size_query(name)) == f"0 {len(packed)}"
    assert post(body) == "0"
    assert stored(name) == PLAIN
    upload = Upload.objects.get()
    assert (upload.nbytes, upload.md5) == (80_000, hashlib.md5(PLAIN).hexdigest())
    assert (upload.sent_nbytes, upload.sent_md5) == (len(packed), hashlib.md5(packed).hexdigest())
    assert left_over(settings) == []


def test_computers_that_pack_differently_agree_to_the_bit(alice: User, bob: User) -> None:
    app = make_app(max_jobs_per_day_init=1000)
    make_version(app)
    workunit = make_workunit(app, output_files=[{"open_name": "o", "max_nbytes": 100_000, "gzip_when_done": True}])
    results = [make_result(workunit) for _ in range(2)]
    for user, level in ((alice, 1), (bob, 9)):
        computer = computer_of(user)
        computer.ask(0, 1)
        (name,) = computer.jobs
        packed = pack(PLAIN, level)
        md5 = hashlib.md5(packed).hexdigest()
        assert post(upload_body(f"{name}_0", packed)) == "0"
        computer.ask(results=result_xml(name, final_elapsed_time=0, files={f"{name}_0": md5}))
    for result in results:
        result.refresh_from_db()
        assert (result.outcome, result.report_faults) == (Outcome.SUCCESS, [])
        assert result.outputs[0]["nbytes"] == len(PLAIN)
    assert results[0].output_digest == results[1].output_digest


@pytest.mark.parametrize(
    "content",
    [PLAIN, b"", b"\x1f", pack(PLAIN)[:-9], pack(PLAIN)[:50] + bytes(200), b"\x1f\x8b" + bytes(30)],
    ids=["plain", "empty", "one byte", "cut", "damaged", "only looks so"],
)
def test_what_is_not_packed_is_taken_as_it_came(studio: Host, settings: Settings, content: bytes) -> None:
    name = f"{packed_task(studio).name}_0"
    assert post(upload_body(name, content)) == "0"
    assert stored(name) == content
    assert Upload.objects.get().sent_nbytes is None
    assert left_over(settings) == []


def test_what_unpacks_to_more_than_the_limit_is_refused(studio: Host, settings: Settings) -> None:
    name = f"{packed_task(studio, max_nbytes=79_999).name}_0"
    reply = post(upload_body(name, pack(PLAIN), max_nbytes=79_999))
    assert reply == "-1 The file has more than 79999 bytes when it is unpacked."
    assert [path for path in left_over(settings) if path.name.endswith(".plain")] == []


def test_what_cannot_be_packed_may_grow_a_little(studio: Host) -> None:
    content = os.urandom(1000)
    name = f"{packed_task(studio, max_nbytes=1000).name}_0"
    assert len(pack(content)) > 1000
    assert post(upload_body(name, pack(content), max_nbytes=1000)) == "0"
    assert stored(name) == content


def test_a_disk_that_fills_while_it_is_unpacked_makes_the_client_wait(
    studio: Host, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{packed_task(studio).name}_0"
    with monkeypatch.context() as patch:
        patch.setattr(incoming, "_check_room", lambda asked: None)
        patch.setattr(incoming, "SPARE_NBYTES", 1 << 62)
        assert post(upload_body(name, pack(PLAIN))) == "1 The disk of this project is full. Your client will try again."
        assert [path for path in left_over(settings) if path.name.endswith(".plain")] == []
    assert post(upload_body(name, pack(PLAIN))) == "0"

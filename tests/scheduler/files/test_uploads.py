"""The upload handler: captured requests, resuming, refusals with their reasons, and what is left after each."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import shutil
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.http import UnreadablePostError
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from credit.models import FileDeleteState, Outcome, ServerState, WorkunitError
from portal.clients import sync_driver
from portal.clients.bodies import CutOff, TooSlow
from portal.clients.effects import Call, ReadBody
from portal.clients.messages import ClientRequest
from portal.models import Host
from portal.wire.scanner import ProtocolError
from scheduler.engine.outputs import expected_and_received
from scheduler.files import incoming, receive, upload_handler
from scheduler.files.certificates import size_key
from scheduler.files.uploads import UploadError
from scheduler.models import Upload
from scheduler.wire.uploads import parse_head
from tests.support.upload_requests import (
    ADDRESS,
    asked_of,
    captured,
    certified,
    make_task,
    post,
    post_cut,
    read_reply,
    size_query,
    stored,
    upload_body,
)

pytestmark = pytest.mark.django_db

CONTENT = bytes(range(256)) * 100  # 25,600 bytes


def left_over(settings: Settings) -> list[Path]:
    """What lies in the folder for files on their way."""
    return [path for path in Path(settings.UPLOADS_DIR).rglob("*") if path.is_file()]


# --- as captured from a real client -----------------------------------------------------------------------------------


def test_a_captured_upload_is_stored(studio: Host, settings: Settings) -> None:
    make_task("lab_calc_wu_1_0_r1", studio)
    reply = Client().post(ADDRESS, certified(captured("request_17_bytes")), content_type="text/xml")
    assert reply.content == captured("reply_ok")
    assert stored("lab_calc_wu_1_0_r1_0") == b"result 52.072956\n"
    assert left_over(settings) == []


def test_a_captured_upload_with_the_certificate_of_another_server_is_refused(studio: Host) -> None:
    make_task("lab_calc_wu_1_0_r1", studio)
    assert post(captured("request_17_bytes")) == "-1 The certificate of this file was not issued by this project."
    assert not Upload.objects.exists()


def test_an_empty_file_is_uploaded_too(studio: Host) -> None:
    make_task("lab_finish_wu_0_0_r0", studio)
    assert post(certified(captured("request_empty_file"))) == "0"
    assert stored("lab_finish_wu_0_0_r0_0") == b""


def test_a_captured_size_query_before_anything_came(studio: Host) -> None:
    make_task("lab_big_wu_3_0_r3", studio, max_nbytes=3_000_000)
    reply = Client().post(ADDRESS, captured("request_get_file_size"), content_type="text/xml")
    assert reply.content == captured("reply_file_size")


def test_a_captured_resume_finds_its_first_part(studio: Host, settings: Settings) -> None:
    # Captured: 2,500,000 bytes of "x", broken off after 1,199,300; the head of the second request, with its MD5.
    name, content = "lab_big_wu_0_0_r0_0", b"x" * 2_500_000
    make_task("lab_big_wu_0_0_r0", studio, max_nbytes=3_000_000)
    head = certified(captured("request_resume_first_1200_bytes")).partition(b"<data>\n")[0] + b"<data>\n"
    md5 = "3c4964c1096b98908df136eb84fdd165"
    partial = incoming.path(name)
    partial.parent.mkdir(parents=True)
    partial.write_bytes(content[:1_199_300])
    assert hashlib.md5(content, usedforsecurity=False).hexdigest() == md5
    assert post(size_query(name)) == "0 1199300"
    assert post(head + content[1_199_300:]) == "0"
    assert stored(name) == content
    assert left_over(settings) == []


def test_who_does_not_hold_the_address_of_a_file_learns_nothing_of_it(studio: Host) -> None:
    make_task("t", studio)
    post_cut(upload_body("t_0", CONTENT), 20_000)
    make_task("u", studio)
    assert post(upload_body("u_0", CONTENT)) == "0"
    assert [post(size_query(name)) for name in ("t_0", "u_0")] == ["0 5600", "0 25600"]
    for name in ("t_0", "u_0", "nothing of this name_0", "../../etc/passwd_0"):
        for query in ("", "?", f"?{size_key('v_0')}", f"?{size_key(name)[:-1]}", "?%FF", "?name=t_0"):
            reply = Client().post(ADDRESS + query, size_query(name), content_type="text/xml")
            assert read_reply(reply.content) == "0 0"


# --- resuming ---------------------------------------------------------------------------------------------------------


def test_a_cut_upload_goes_on_where_it_stopped(studio: Host) -> None:
    make_task("t", studio)
    whole = upload_body("t_0", CONTENT)
    assert post_cut(whole, 20_000) == "1 The upload ended before the file did."
    assert post(size_query("t_0")) == "0 5600"
    assert post(upload_body("t_0", CONTENT, offset=5_600)) == "0"
    assert stored("t_0") == CONTENT
    assert post(size_query("t_0")) == "0 25600"


def test_a_part_may_be_sent_again_from_an_earlier_byte(studio: Host) -> None:
    make_task("t", studio)
    whole = upload_body("t_0", CONTENT)
    post_cut(whole, 600)
    assert post(upload_body("t_0", CONTENT, offset=100)) == "0"
    assert stored("t_0") == CONTENT


def test_a_part_that_begins_behind_what_is_here_waits(studio: Host) -> None:
    make_task("t", studio)
    assert post(upload_body("t_0", CONTENT, offset=1)).startswith("1 The upload starts at byte 1, but only 0 bytes")
    assert post(upload_body("t_0", CONTENT)) == "0"


def test_a_complete_file_is_acknowledged_again_and_stays(studio: Host) -> None:
    make_task("t", studio)
    body = upload_body("t_0", CONTENT)
    assert [post(body), post(body), post(upload_body("t_0", CONTENT, offset=25_600))] == ["0", "0", "0"]
    assert post(upload_body("t_0", b"another")) == "-1 Another file has been uploaded under this name."
    assert stored("t_0") == CONTENT
    assert Upload.objects.count() == 1


def test_another_content_under_the_name_begins_anew(studio: Host) -> None:
    # The client went back to a checkpoint and computed the file once more before the first had come whole.
    make_task("t", studio)
    whole = upload_body("t_0", CONTENT)
    post_cut(whole, 1)
    assert post(upload_body("t_0", b"second")) == "0"
    assert stored("t_0") == b"second"


@pytest.mark.parametrize("error", [CutOff(), TooSlow(), UnreadablePostError()])
def test_what_came_until_the_client_was_gone_or_too_slow_is_kept(studio: Host, error: OSError) -> None:
    make_task("t", studio)
    whole = upload_body("t_0", CONTENT)
    body = BytesIO(whole[:-5_600])

    def read(nbytes: int) -> bytes:
        if part := body.read(nbytes):
            return part
        raise error

    reply = sync_driver.run(upload_handler.answer(ClientRequest("POST", ADDRESS, "", b"", len(whole), "")), read)
    assert read_reply(reply.body) == "1 The upload was interrupted."
    assert receive.received_nbytes("t_0") == 20_000
    assert post(upload_body("t_0", CONTENT, offset=20_000)) == "0"


def test_a_cancelled_upload_lets_go_of_its_file_and_leaves_what_came(studio: Host) -> None:
    make_task("t", studio)
    steps = receive.receive(asked_of(upload_body("t_0", CONTENT)), CONTENT[:100])
    want = steps.send(None)
    while isinstance(want, Call):
        want = steps.send(want.function())
    assert isinstance(want, ReadBody)
    assert post(upload_body("t_0", CONTENT)) == "1 Another upload of this file is in progress."
    steps.close()
    assert post(size_query("t_0")) == "0 100"
    assert post(upload_body("t_0", CONTENT, offset=100)) == "0"


def test_an_upload_cancelled_while_a_thread_is_at_work_keeps_its_file_until_that_is_done(
    studio: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_task("t", studio)
    steps = receive.receive(asked_of(upload_body("t_0", CONTENT)), b"")
    begin = steps.send(None)
    disk_usage = shutil.disk_usage

    def cancel(path: Path) -> Any:
        steps.close()
        assert post(upload_body("t_0", CONTENT)) == "1 Another upload of this file is in progress."
        return disk_usage(path)

    monkeypatch.setattr(shutil, "disk_usage", cancel)
    begin.function()
    monkeypatch.undo()
    assert post(upload_body("t_0", CONTENT)) == "0"


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_wrong_md5_is_refused_for_good(studio: Host, settings: Settings) -> None:
    make_task("t", studio)
    assert post(upload_body("t_0", CONTENT, md5="0" * 32)) == "-1 The file does not have the announced MD5."
    assert [path.stat().st_size for path in left_over(settings)] == [0]
    assert not default_storage.exists("outputs")


def test_a_wrong_md5_after_a_resume_starts_from_the_beginning(studio: Host) -> None:
    make_task("t", studio)
    md5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()
    damaged = upload_body("t_0", b"!" * 25_600, md5=md5)
    post_cut(damaged, 10_000)
    assert post(upload_body("t_0", CONTENT, offset=15_600)).startswith("1 The parts do not add up to the file")
    assert post(size_query("t_0")) == "0 0"
    assert post(upload_body("t_0", CONTENT)) == "0"


def test_more_than_the_limit_is_refused_before_it_is_read(studio: Host) -> None:
    make_task("t", studio, max_nbytes=1000)
    assert post(upload_body("t_0", b"x" * 1000, max_nbytes=1000)) == "0"
    make_task("u", studio, max_nbytes=1000)
    refused = post(upload_body("u_0", b"x" * 1001, max_nbytes=1000))
    assert refused == "-1 The file has 1001 bytes; the limit is 1000."
    assert not Upload.objects.filter(name="u_0").exists()


def test_an_oversize_body_is_refused(studio: Host) -> None:
    make_task("t", studio)
    body = upload_body("t_0", CONTENT, nbytes=25_599) + b"more"
    assert post(body) == "-1 data: 25604 bytes, but nbytes − offset is 25599"
    assert not Upload.objects.exists()


@pytest.mark.parametrize(
    "name", ["unknown_0", "t_1", "t_00", "t", "../../etc/passwd_0", "..%2Ft_0", "t_0/../t_0", "/t_0", "t\ufffd_0"]
)
def test_a_name_that_nobody_was_given_is_refused(studio: Host, settings: Settings, name: str) -> None:
    make_task("t", studio)
    expected = "-1 This project does not expect this file."
    assert post(upload_body(name, b"x")) == expected
    assert post(size_query(name)) == expected
    assert left_over(settings) == []


def test_an_unsent_task_has_no_files_to_deliver(studio: Host) -> None:
    make_task("t", None)
    assert post(upload_body("t_0", b"x")) == "-1 This project does not expect this file."


OVER = {"server_state": ServerState.OVER}


@pytest.mark.parametrize(
    ("fields", "is_taken"),
    [
        ({}, True),
        ({**OVER, "outcome": Outcome.NO_REPLY}, True),  # late, but may still count
        ({**OVER, "outcome": Outcome.NO_REPLY, "file_delete_state": FileDeleteState.DONE}, False),
        ({**OVER, "outcome": Outcome.CLIENT_ERROR}, False),
        ({**OVER, "outcome": Outcome.CLIENT_DETACHED}, True),  # taken for lost, but may still count
    ],
)
def test_a_task_that_is_over_delivers_nothing_more(studio: Host, fields: dict[str, Any], is_taken: bool) -> None:
    make_task("t", studio, **fields)
    expected = "0" if is_taken else "-1 The task of this file is over: the file is no longer needed."
    assert post(upload_body("t_0", b"x")) == expected


def test_a_cancelled_workunit_takes_no_files(studio: Host) -> None:
    task = make_task("t", studio)
    task.workunit.error_mask = WorkunitError.CANCELLED
    task.workunit.save()
    assert post(upload_body("t_0", b"x")).startswith("-1 The task of this file is over")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"<nbytes>5</nbytes>", b"", "nbytes: missing"),
        (b"<nbytes>5</nbytes>", b"<nbytes>-1</nbytes>", "nbytes: not an integer from 0 to"),
        (b"<nbytes>5</nbytes>", b"<nbytes>1e304</nbytes>", "nbytes: not an integer from 0 to"),
        (b"<nbytes>5</nbytes>", b"<nbytes>nan</nbytes>", "nbytes: not an integer from 0 to"),
        (b"<offset>0</offset>", b"<offset>6</offset>", "offset: not an integer from 0 to 5"),
        (b"<max_nbytes>100000</max_nbytes>", b"", "max_nbytes: missing"),
        (b"<md5_cksum>", b"<md5_cksum>zz", "md5_cksum: longer than 32 characters"),
        (b"<data>\n", b"<data>" + b"x" * 20_000, "data: does not begin within 16384 bytes"),
        (b"<name>", b"<name>" + b"n" * 300, "name: longer than 254 characters"),
    ],
)
def test_a_message_without_sense_is_refused_by_its_field(studio: Host, old: bytes, new: bytes, message: str) -> None:
    make_task("t", studio)
    body = upload_body("t_0", b"hello")
    assert old in body
    assert post(body.replace(old, new)).startswith(f"-1 {message}")


@given(st.binary(max_size=300))
def test_no_bytes_make_the_parser_fail(noise: bytes) -> None:
    head = upload_body("t_0", b"")
    for message in (noise, head[: len(noise)] + noise, head.replace(b"<nbytes>0", b"<nbytes>" + noise)):
        try:
            parse_head(message.partition(b"<data>\n")[0])
        except ProtocolError as error:
            assert error.field


def test_other_methods_and_chunks_are_refused() -> None:
    client = Client()
    assert client.get(ADDRESS).status_code == 405
    assert client.generic("POST", ADDRESS, b"", HTTP_TRANSFER_ENCODING="chunked").status_code == 411


def test_a_client_that_is_refused_may_send_to_the_end() -> None:
    body = BytesIO(upload_body("t_0", bytes(1_000_000)))
    sent: dict[str, Any] = {"wsgi.input": body, "CONTENT_LENGTH": str(len(body.getvalue()))}
    assert read_reply(Client().generic("POST", ADDRESS, **sent).content).startswith("-1 This project does not expect")
    assert body.read() == b""


# --- trouble on our side ----------------------------------------------------------------------------------------------


def test_a_full_disk_lets_the_client_try_again(studio: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    make_task("t", studio)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1, 1, incoming.SPARE_NBYTES))
    assert post(upload_body("t_0", CONTENT)) == "1 The disk of this project is full. Your client will try again."
    monkeypatch.undo()
    assert post(upload_body("t_0", CONTENT)) == "0"


def test_a_disk_that_fills_up_in_mid_upload_keeps_what_was_written(studio: Host) -> None:
    make_task("t", studio)

    def read(_: int) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UploadError, match="full") as caught:
        sync_driver.run(receive.receive(asked_of(upload_body("t_0", CONTENT)), CONTENT[:100]), read)
    assert caught.value.status == 1
    assert receive.received_nbytes("t_0") == 100


def test_two_uploads_of_one_file_do_not_mix(studio: Host) -> None:
    make_task("t", studio)
    path = incoming.path("t_0")
    path.parent.mkdir(parents=True)
    with path.open("wb") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        assert post(upload_body("t_0", CONTENT)) == "1 Another upload of this file is in progress."
    assert post(upload_body("t_0", CONTENT)) == "0"
    assert stored("t_0") == CONTENT


def test_an_upload_killed_before_its_row_was_written_is_taken_once_more(studio: Host) -> None:
    make_task("t", studio)
    assert post(upload_body("t_0", CONTENT)) == "0"
    Upload.objects.update(completed_at=None, path="")
    assert post(upload_body("t_0", CONTENT)) == "0"
    folder = Path(default_storage.path(Upload.objects.get().path)).parent
    assert [path.name.partition(".")[0] for path in folder.iterdir()] == ["t_0", "t_0"]


@pytest.mark.parametrize("ending", ["", ".whole"])
def test_what_a_server_leaves_that_is_killed_after_its_row_was_written_goes_with_the_next_request(
    studio: Host, settings: Settings, ending: str
) -> None:
    make_task("t", studio)
    body = upload_body("t_0", CONTENT)
    assert post(body) == "0"
    path = incoming.path("t_0")
    path.with_name(path.name + ending).hardlink_to(default_storage.path(Upload.objects.get().path))
    assert post(body) == "0"
    assert left_over(settings) == []
    assert stored("t_0") == CONTENT


# --- what a result delivered ------------------------------------------------------------------------------------------


def test_a_result_is_complete_when_all_files_but_optional_ones_are_here(studio: Host) -> None:
    task = make_task("t", studio, nfiles=3)
    files = [*task.workunit.output_files[:2], {"open_name": "log", "max_nbytes": 9, "optional": True}]
    post(upload_body("t_1", b"one"))
    received = expected_and_received(files, "t", task.uploads.all())
    assert (received.is_complete, received.missing) == (False, ["t_0"])
    post(upload_body("t_0", b"zero"))
    received = expected_and_received(files, "t", task.uploads.all())
    assert received.is_complete
    assert [output["name"] for output in received.outputs] == ["t_0", "t_1"]


def test_results_with_equal_files_have_equal_digests(studio: Host) -> None:
    first, second, third = (make_task(name, studio, nfiles=2) for name in "abc")
    for name in ("a_0", "b_0", "c_1"):
        post(upload_body(name, b"zero"))
    for name in ("a_1", "b_1", "c_0"):
        post(upload_body(name, b"one"))
    files = first.workunit.output_files
    digests = [expected_and_received(files, task.name, task.uploads.all()).digest for task in (first, second, third)]
    assert digests[0] == digests[1] != digests[2]
    assert len(digests[0]) == 16


def test_a_file_that_is_not_compared_makes_no_difference(studio: Host) -> None:
    first, second = (make_task(name, studio, nfiles=2) for name in "ab")
    for name, content in (("a_0", b"same"), ("b_0", b"same"), ("a_1", b"one"), ("b_1", b"other")):
        post(upload_body(name, content))
    files = [first.workunit.output_files[0], {**first.workunit.output_files[1], "no_validate": True}]
    received = [expected_and_received(files, task.name, task.uploads.all()) for task in (first, second)]
    assert received[0].digest == received[1].digest
    assert len(received[0].outputs) == 2

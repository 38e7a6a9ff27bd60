"""Files of tasks that another server had sent before its project moved here: by its names and its certificates."""

from __future__ import annotations

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from credit.models import Outcome, Result, ServerState
from portal.models import Host
from portal.wire import signing
from scheduler.engine.outputs import own_upload_name
from scheduler.models import FormerOutput, FormerUploadKey, PendingFile, Upload
from tests.support.upload_requests import make_task, post, stored, upload_body

pytestmark = pytest.mark.django_db

KEY = signing.generate_key()
CONTENT = b"forty-two\n" * 100
NAME = "fold_7_0_r1193428123_0"
NOT_OURS = "-1 The certificate of this file was not issued by this project."


def certificate(name: str = NAME, max_nbytes: int = 100_000, key: signing.PrivateKey = KEY) -> str:
    return signing.sign(f"<name>{name}</name><max_nbytes>{max_nbytes}</max_nbytes>".encode(), key)


@pytest.fixture
def result(studio: Host) -> Result:
    """A task that is out, with two output files; the other server has signed their certificates."""
    result = make_task("fold_7_0", studio, nfiles=2)
    key = FormerUploadKey.objects.create(text=signing.public_key_text(KEY))
    for number in range(2):
        name = f"fold_7_0_r1193428123_{number}"
        FormerOutput.objects.create(name=name, result=result, number=number, key=key)
    return result


def test_a_file_with_the_other_servers_name_and_certificate_is_the_tasks_output(result: Result) -> None:
    assert post(upload_body(NAME, CONTENT, certificate=certificate())) == "0"
    assert stored("fold_7_0_0") == CONTENT
    assert post(upload_body(NAME, CONTENT, certificate=certificate())) == "0"  # the reply was lost
    assert post(upload_body(NAME[:-1] + "1", b"", certificate=certificate(NAME[:-1] + "1"))) == "0"
    assert sorted(Upload.objects.values_list("name", "result")) == [
        ("fold_7_0_0", result.pk),
        ("fold_7_0_1", result.pk),
    ]


@pytest.mark.parametrize(
    ("name", "signed", "answer"),
    [
        (NAME, certificate(key=signing.generate_key()), "-1 This project does not expect this file."),
        (NAME, certificate(max_nbytes=1_000_000), "-1 This project does not expect this file."),
        (NAME, certificate("fold_7_1_r1193428123_0"), "-1 This project does not expect this file."),
        (NAME, "no signature", "-1 This project does not expect this file."),
        ("fold_7_0_r2_0", certificate("fold_7_0_r2_0"), "-1 This project does not expect this file."),
        # Our own name of the file has a certificate of our own.
        ("fold_7_0_0", certificate("fold_7_0_0"), NOT_OURS),
    ],
)
def test_the_other_servers_key_is_good_for_the_names_of_its_open_tasks_alone(
    result: Result, name: str, signed: str, answer: str
) -> None:
    assert post(upload_body(name, CONTENT, certificate=signed)) == answer
    assert not Upload.objects.exists()


def test_without_certificates_the_name_with_its_random_number_is_enough(result: Result) -> None:
    FormerOutput.objects.update(key=None)
    assert post(upload_body("fold_7_0_r1193428124_0", CONTENT, certificate="")) != "0"
    assert post(upload_body(NAME, CONTENT, certificate="")) == "0"
    assert stored("fold_7_0_0") == CONTENT


def test_a_file_without_a_random_number_is_known_by_its_certificate(studio: Host) -> None:
    result = make_task("old_3_1", studio)
    key = FormerUploadKey.objects.create(text=signing.public_key_text(KEY))
    FormerOutput.objects.create(name="old_3_1_0", result=result, number=0, key=key)
    assert post(upload_body("old_3_1_0", CONTENT, certificate=certificate("old_3_1_0"))) == "0"
    assert stored("old_3_1_0") == CONTENT


@pytest.mark.parametrize("is_reported", [False, True])
def test_what_came_there_in_part_makes_way_for_the_whole_until_the_task_is_reported(
    result: Result, is_reported: bool
) -> None:
    path = default_storage.save("outputs/part", ContentFile(CONTENT[:50]))
    Upload.objects.create(
        result=result, name="fold_7_0_0", path=path, nbytes=50, md5="0" * 32, completed_at=timezone.now()
    )
    if is_reported:
        over = {"server_state": ServerState.OVER, "outcome": Outcome.SUCCESS, "received_at": timezone.now()}
        Result.objects.filter(pk=result.pk).update(**over)
    answer = post(upload_body(NAME, CONTENT, certificate=certificate()))
    assert answer == ("-1 Another file has been uploaded under this name." if is_reported else "0")
    assert (stored("fold_7_0_0") == CONTENT) is not is_reported
    assert [*PendingFile.objects.values_list("path", flat=True)] == ([] if is_reported else [path])


def test_a_file_that_is_too_large_replaces_nothing(result: Result) -> None:
    """The other server's certificate is for 2 MB, and the task here takes 100,000 bytes."""
    assert post(upload_body(NAME, CONTENT, certificate=certificate())) == "0"
    large = upload_body(NAME, bytes(200_000), max_nbytes=2_000_000, certificate=certificate(max_nbytes=2_000_000))
    assert post(large).startswith("-1 The file has 200000 bytes; the limit is ")
    assert stored("fold_7_0_0") == CONTENT
    assert not PendingFile.objects.exists()


def test_a_task_that_is_late_may_still_deliver(studio: Host, result: Result) -> None:
    Result.objects.filter(pk=result.pk).update(server_state=ServerState.OVER, outcome=Outcome.NO_REPLY)
    assert post(upload_body(NAME, CONTENT, certificate=certificate())) == "0"
    Result.objects.filter(pk=result.pk).update(outcome=Outcome.CLIENT_ERROR)
    other = NAME[:-1] + "1"
    assert post(upload_body(other, CONTENT, certificate=certificate(other))).startswith(
        "-1 The task of this file is over"
    )


def test_an_upload_by_a_certificate_of_ours_asks_for_no_former_output(studio: Host) -> None:
    make_task("t", studio)
    with CaptureQueriesContext(connection) as queries:
        assert post(upload_body("t_0", CONTENT)) == "0"
    assert not [query for query in queries if "formeroutput" in query["sql"]]


def test_in_reports_the_other_servers_names_mean_our_files() -> None:
    assert own_upload_name("fold_7_0", NAME) == "fold_7_0_0"
    for name in ("fold_7_0_1", "fold_7_0_r_0", "fold_7_0_r12345678901_0", "fold_7_00_r1_0", "other_r1_0"):
        assert own_upload_name("fold_7_0", name) == name

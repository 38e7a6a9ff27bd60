"""Staged files and outputs: which stay, which are deleted, who gets which."""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import zipfile
from typing import Any
from xml.etree import ElementTree

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from credit.engine.states import Outcome
from credit.models import App, Batch, Result, Workunit
from extras.remote_jobs import staging
from extras.remote_jobs.models import JobTemplate, StagedFile
from extras.remote_jobs.tests.test_jobs import INLINE, ONE_INPUT, call, submit_batch
from portal.models import Host, User
from scheduler.files.store import store_file
from scheduler.lifecycle import assimilator, file_deleter, purge, transitioner
from scheduler.models import KeptOutput, StoredFile, VersionFile
from scheduler.submission import batches
from scheduler.submission.submit import submit
from tests.support.credit_factories import NOON, make_version
from tests.support.finished_jobs import DEFAULTS, send_and_report, validate

pytestmark = pytest.mark.django_db
QUORUM = "<job_params><min_quorum>2</min_quorum></job_params>"
DAY = dt.timedelta(days=1)
STAGED = "<input_file><mode>local_staged</mode><source>in.dat</source></input_file>"


@pytest.fixture
def plain(app: App) -> App:
    JobTemplate.objects.filter(kind="in").update(text=ONE_INPUT)
    return app


def stage(
    owner: User,
    name: str = "in.dat",
    content: bytes = b"1\n",
    batch: Batch | None = None,
    delete_at: dt.datetime | None = None,
) -> StoredFile:
    staging.stage(name, ContentFile(content), owner, batch, delete_at)
    return StoredFile.objects.get(name=name)


def is_here(file: StoredFile) -> bool:
    file.refresh_from_db()
    assert (file.deleted_at is None) == default_storage.exists(file.path)
    return file.deleted_at is None


def let_jobs_end(now: dt.datetime) -> None:
    for step in (transitioner, assimilator, transitioner, file_deleter):
        step.run(now)


def test_a_file_stays_as_long_as_a_batch_needs_it(client: Client, key: str, plain: App, submitter: User) -> None:
    file = stage(submitter)
    now = timezone.now()
    number = int(submit_batch(client, key, f"<app_name>fold</app_name><job>{STAGED}</job>"))
    other = stage(submitter, "unused.dat")
    for wait in (DAY, 30 * DAY):
        staging.reap(now + wait)
        assert is_here(file)
    assert not is_here(other)  # no batch has named it for a week
    batches.give_up(Batch.objects.get(pk=number), now)
    staging.reap(now + DAY)
    assert is_here(file)  # a computer may still be fetching it
    let_jobs_end(now)
    assert staging.reap(now) == 0
    assert is_here(file)  # a program that was told within the hour that it is present may still submit jobs with it
    assert staging.reap(now + DAY) == 1
    assert not is_here(file)
    # The same content may come again under this name, and no other.
    assert is_here(stage(submitter))
    with pytest.raises(staging.StagingError, match=r"file immutability violation for in.dat"):
        stage(submitter, content=b"2\n")


@pytest.mark.parametrize("is_staged_for_a_batch", [True, False])
def test_a_file_stays_for_jobs_that_came_another_way(plain: App, submitter: User, is_staged_for_a_batch: bool) -> None:
    first = Batch.objects.create(app=plain, owner=submitter, name="x")
    file = stage(submitter, batch=first if is_staged_for_a_batch else None)
    job = {"input_files": [{"open_name": "in", "name": "in.dat"}]}
    other, _ = submit(plain, DEFAULTS, [job], owner=None, now=NOON)
    now = timezone.now()
    batches.give_up(first, now)
    assert staging.reap(now + 30 * DAY) == 0
    assert is_here(file)
    batches.give_up(other, now)
    let_jobs_end(now)
    assert staging.reap(now + 30 * DAY) == 1


def test_a_file_that_a_version_has_stays(plain: App, submitter: User) -> None:
    file = stage(submitter)
    VersionFile.objects.create(app_version=make_version(plain), file=file)
    assert staging.reap(timezone.now() + 30 * DAY) == 0
    assert is_here(file)


@pytest.mark.parametrize("end", [f"in_{'a' * 32}", "first_0_0"])
def test_names_that_the_site_makes_up_are_not_taken(plain: App, end: str) -> None:
    with pytest.raises(staging.StagingError, match="bad filename"):
        staging.check_names(["in.dat", f"{plain.name}_7_{end}"])


def test_a_file_that_the_reaper_has_deleted_meanwhile_is_stored_again(submitter: User) -> None:
    stage(submitter)
    staging.reap(timezone.now() + 30 * DAY)
    file = stage(submitter)
    assert is_here(file)
    assert StagedFile.objects.filter(file=file).exists()


def upload(client: Client, key: str, content: bytes) -> ElementTree.Element:
    request = f"<upload_files><authenticator>{key}</authenticator><phys_name>in.dat</phys_name></upload_files>"
    form = {"request": request, "file_0": SimpleUploadedFile("x", content)}
    reply = client.post("/project/job_file.php", form)
    assert reply.status_code == 200
    return ElementTree.fromstring(reply.content)


def test_a_long_upload_is_stored_whole_and_a_strangers_is_not_read(client: Client, key: str) -> None:
    content = bytes(range(256)) * 1000
    refused = upload(client, "nobody", content)
    # As root, so it was refused because of its beginning.
    assert (refused.tag, refused.findtext("error_msg")) == ("error", "bad authenticator")
    assert upload(client, key, content).find("success") is not None
    with default_storage.open(StoredFile.objects.get().path) as file:
        assert file.read() == content


@pytest.mark.parametrize(
    "form", ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=é"]
)
@pytest.mark.parametrize("page", ["job_file", "submit_rpc_handler"])
def test_a_form_that_is_none_is_answered_in_xml(client: Client, db: None, page: str, form: str) -> None:
    reply = client.post(f"/project/{page}.php", b"x", form)
    assert reply.status_code == 200
    assert (ElementTree.fromstring(reply.content).findtext("error_msg") or "").startswith("can't parse request message")


def test_without_absent_files_the_list_is_a_line_feed(client: Client, key: str, plain: App, submitter: User) -> None:
    stage(submitter)
    inside = "<batch_id>0</batch_id><delete_time>0</delete_time><phys_name>in.dat</phys_name>"
    request = f"<query_files><authenticator>{key}</authenticator>{inside}</query_files>"
    reply = client.post("/project/job_file.php", {"request": request})
    assert ElementTree.fromstring(reply.content).findtext("absent_files") == "\n"


def test_a_file_stays_until_the_time_that_was_asked_for(submitter: User) -> None:
    file = stage(submitter, delete_at=NOON + DAY)
    staging.absent(["in.dat"], submitter, None, NOON + 2 * DAY)
    staging.absent(["in.dat"], submitter, None, NOON)
    StagedFile.objects.update(asked_at=NOON)
    staging.reap(NOON + DAY)
    assert is_here(file)
    staging.reap(NOON + 2 * DAY)
    assert not is_here(file)


def test_files_of_operators_and_of_other_batches_are_not_taken_over(app: App, submitter: User) -> None:
    kept = store_file("table.csv", ContentFile(b"1\n"))
    batch = Batch.objects.create(app=app, name="x")
    store_file("of_a_batch", ContentFile(b"1\n"), batch=batch)
    stage(submitter, "table.csv")
    assert staging.absent(["table.csv", "of_a_batch"], submitter, None, None) == [1]
    with pytest.raises(staging.StagingError, match="immutability"):
        stage(submitter, "of_a_batch")
    assert not StagedFile.objects.exists()
    staging.reap(timezone.now() + 365 * DAY)
    assert is_here(kept)


def test_another_ones_file_under_a_forged_md5_is_not_taken_for_ones_own(submitter: User, bob: User) -> None:
    right, forged = f"{md5('1')}.dat", f"jf_{md5('2')}"
    stage(bob, right, b"1")
    stage(bob, forged, b"something else")
    stage(bob, "by_no_md5.dat", b"3")
    names = [right, forged, "by_no_md5.dat"]
    assert staging.absent(names, bob, None, None) == []
    assert staging.absent(names, submitter, None, None) == [1]
    with pytest.raises(staging.StagingError, match="file immutability violation"):
        stage(submitter, forged, b"2")


@pytest.fixture
def done(client: Client, key: str, plain: App, studio: Host) -> Workunit:
    """A job whose two results agree, and whose outputs are stored."""
    number = int(submit_batch(client, key, f"<app_name>fold</app_name>{QUORUM}<job><name>#tune@1</name>{INLINE}</job>"))
    workunit = Workunit.objects.get(batch=number)
    for result in workunit.results.all():
        send_and_report(result, studio)
    for step in (validate, lambda _: assimilator.run(NOON)):
        transitioner.run(NOON)
        step(workunit)
    workunit.refresh_from_db()
    return workunit


def md5(text: object) -> str:
    return hashlib.md5(str(text).encode(), usedforsecurity=False).hexdigest()


def fetch(client: Client, **parameters: Any) -> tuple[int, bytes]:
    reply = client.get("/project/get_output.php", parameters)
    return reply.status_code, reply.getvalue()


def test_outputs_are_given_to_who_has_the_key(client: Client, key: str, done: Workunit) -> None:
    instance = f"{done.name}_0"
    proof = {"cmd": "result_file", "result_name": instance, "auth_str": md5(f"{key}{instance}")}
    assert fetch(client, file_num=0, **proof) == (200, b"42\n")
    by_key = {"cmd": "workunit_file", "wu_name": done.name, "auth_str": key}
    assert fetch(client, file_num=0, **by_key) == (200, b"42\n")
    for given in (
        {"cmd": "batch_files", "batch_id": done.batch_id, "auth_str": md5(f"{key}{done.batch_id}")},
        {"cmd": "workunit_files", "wu_id": done.pk, "auth_str": md5(f"{key}{done.pk}")},
    ):
        status, body = fetch(client, **given)
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            assert (status, archive.namelist(), archive.read(f"{instance}_0")) == (200, [f"{instance}_0"], b"42\n")


def test_what_is_wrong_with_a_request_for_outputs_is_a_line_of_text(client: Client, key: str, done: Workunit) -> None:
    instance = f"{done.name}_0"
    right = {"cmd": "result_file", "result_name": instance, "auth_str": md5(f"{key}{instance}"), "file_num": 0}
    table: list[tuple[dict[str, object], int, str]] = [
        ({"cmd": "x"}, 404, "bad command"),
        ({"auth_str": md5(instance)}, 403, "bad auth str"),
        ({"result_name": "none_0"}, 404, "no job instance none_0"),
        ({"file_num": 7}, 404, "bad file num: 7 > 0"),
        ({"file_num": -1}, 404, "bad file num: not a number"),
        (
            {"result_name": f"{done.name}_1", "auth_str": md5(f"{key}{done.name}_1")},
            404,
            f"no such file: {done.name}_1",
        ),
        ({"cmd": "workunit_file", "wu_name": done.name, "auth_str": "x"}, 403, "bad authenticator"),
        ({"cmd": "workunit_file", "wu_name": "none", "auth_str": key}, 404, "no workunit none"),
        ({"cmd": "batch_files", "batch_id": done.batch_id, "auth_str": key}, 403, "bad auth str"),
        ({"cmd": "batch_files", "batch_id": 10**9 - 1}, 404, "no batch 999999999"),
        ({"cmd": "batch_files", "batch_id": 10**18}, 404, "no batch 1000000000000000000"),
        ({"cmd": "workunit_file", "wu_name": "\0", "auth_str": key}, 404, "no workunit "),
        ({"cmd": "workunit_file", "wu_name": "../a", "auth_str": key}, 404, "no workunit ../a"),
        ({"result_name": "\0_0"}, 404, "no job instance "),
        ({"auth_str": "é" * 32}, 403, "bad auth str"),
    ]
    for change, status, message in table:
        given = fetch(client, **{**right, **change})
        assert (given[0], given[1].decode().startswith(f"ERROR: {message}")) == (status, True), given
    assert client.get("/project/get_output2.php").status_code == 403


def test_archived_jobs_stay_visible(client: Client, key: str, done: Workunit) -> None:
    Result.objects.update(cpu_secs=10.5, elapsed_secs=12.5, exit_status=0)
    transitioner.run(NOON)
    file_deleter.run(NOON)
    assert purge.run(NOON + 100 * DAY) == 1
    inside = f"<batch_id>{done.batch_id}</batch_id><get_cpu_time>1</get_cpu_time><get_job_details>1</get_job_details>"
    batch = call(client, key, "query_batch", inside)
    values = [batch.findtext(tag) for tag in ("state", "fraction_done", "credit_canonical", "total_cpu_time")]
    assert values == ["2", "1.0", "2.5", "10.5"]
    assert [batch.findtext(f"job/{tag}") for tag in ("name", "status", "cpu_time")] == [done.name, "done", "10.5"]
    job = call(client, key, "query_completed_job", f"<job_name>{done.name}</job_name>")
    assert job.findtext("completed_job/canonical_resultid") == str(done.canonical_result_id)
    assert job.findtext("completed_job/elapsed_time") == "12.5"
    by_key = {"cmd": "workunit_file", "wu_name": done.name, "auth_str": key}
    assert fetch(client, file_num=0, **by_key) == (200, b"42\n")


def test_a_failed_job_tells_of_the_result_that_came_back_last(
    client: Client, key: str, plain: App, studio: Host
) -> None:
    submit_batch(client, key, f"<app_name>fold</app_name><job><name>bad</name>{INLINE}</job>")
    [result] = Result.objects.all()
    send_and_report(result, studio, outcome=Outcome.CLIENT_ERROR)
    Result.objects.update(exit_status=195, stderr_text="\x1b[31m5 < 6 €\x1b[0m ]]>\uffff")
    Workunit.objects.update(error_mask=2)
    job = call(client, key, "query_completed_job", "<job_name>bad</job_name>")
    assert [job.findtext(f"completed_job/{tag}") for tag in ("error_mask", "error_resultid", "exit_status")] == [
        "2",
        str(result.pk),
        "195",
    ]
    # Escaped once more than XML requires, as programs expect it; without characters that XML cannot have.
    assert job.findtext("completed_job/stderr_out", "").strip() == "[31m5 &lt; 6 &#8364;[0m ]]&gt;"
    assert not KeptOutput.objects.exists()

"""Batches in the browser: uploaded, reviewed, submitted once; cancelled, retried, fetched as an archive."""

from __future__ import annotations

import gzip
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from credit.models import App, Batch, HostAppVersion, Outcome, Workunit, WorkunitError
from portal.models import Host, User
from scheduler.lifecycle import assimilator, file_deleter, transitioner
from scheduler.lifecycle import sql as lifecycle_sql
from scheduler.models import KeptOutput, StoredFile, SubmissionDraft
from scheduler.submission import drafts, output_archive, retry
from scheduler.submission.submit import submit
from scheduler.wire.job_fields import JobError
from tests.scheduler.submission.test_archives import packed
from tests.support.credit_factories import NOON, make_version
from tests.support.finished_jobs import DAY, DEFAULTS, finish, send_and_report, validate
from tests.support.scheduler_clients import computer_of, result_xml
from tests.support.sessions import sign_in_lately

pytestmark = pytest.mark.django_db
NEW = "/project/batches/new/"
TABLE = "name,command_line\na,--from 1\nb,--from 2\n"


@pytest.fixture
def browser(client: Client, submitter: User) -> Client:
    client.force_login(submitter)
    return client


def upload(browser: Client, app: App, **fields: Any) -> Any:
    """What is shown after the form was sent."""
    return browser.post(NEW, {"app": app.pk, "fpops_est": "1e9", "output_files": "out:1000", **fields}, follow=True)


def archive(*files: tuple[Any, bytes], name: str = "jobs.zip") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, packed(*files).getvalue())


def text(response: Any) -> str:
    return str(response.content.decode())


# --- the dry run ------------------------------------------------------------------------------------------------------


def test_a_table_is_looked_at_and_then_submitted_once(browser: Client, app: App, submitter: User) -> None:
    page = upload(browser, app, name="Pairs", table=TABLE)
    assert "Nothing has been submitted yet" in text(page) and "--from 2" in text(page)
    assert not Batch.objects.exists()
    draft = SubmissionDraft.objects.get()
    for _ in range(2):
        reply = browser.post(f"/project/batches/drafts/{draft.pk}/submit/")
        batch = Batch.objects.get()
        assert reply.headers["Location"] == f"/project/batches/{batch.pk}/"
    assert (batch.name, batch.owner, batch.nworkunits) == ("Pairs", submitter, 2)
    rows = batch.workunits.order_by("id").values_list("name", "command_line", "fpops_est")
    assert list(rows) == [
        (f"alpine_{batch.pk}_a", "--from 1", 1e9),
        (f"alpine_{batch.pk}_b", "--from 2", 1e9),
    ]
    assert browser.get(f"/project/batches/drafts/{draft.pk}/").status_code == 302


def test_the_dry_run_shows_what_the_submission_makes(browser: Client, app: App, submitter: User) -> None:
    table = b"name,input_files,min_quorum,fpops_est\nx,in=a/1.bin,1,2e9\ny,in=a/2.bin more=a/1.bin,3,3e9\nz,,,\n"
    files = archive(("jobs.csv", table), ("a/1.bin", b"\xff\0\1"), ("a/2.bin", b"22"))
    upload(browser, app, file=files)
    draft = SubmissionDraft.objects.get()
    run = drafts.dry_run(draft, timezone.now())
    batch = drafts.submit_draft(draft, NOON)
    made = list(batch.workunits.order_by("id"))
    results = sum(workunit.results.count() for workunit in made)
    assert (run.faults, run.njobs, run.nresults) == ([], len(made), results) == ([], 3, 1 + 3 + 2)
    assert run.fpops_est == sum(workunit.fpops_est for workunit in made) == 6e9
    stored = StoredFile.objects.filter(batch=batch)
    assert (run.nfiles, run.files_nbytes) == (stored.count(), sum(file.nbytes for file in stored)) == (2, 5)
    for shown, workunit in zip(run.first, made, strict=True):
        assert workunit.name == f"alpine_{batch.pk}_{shown.name}"
        assert {name: getattr(workunit, name) for name in shown.fields} == shown.fields
        assert [file["open_name"] for file in workunit.input_files] == shown.inputs
    with default_storage.open(stored.get(nbytes=3).path) as content:
        assert content.read() == b"\xff\0\1"


def test_each_file_of_an_archive_is_a_job(browser: Client, app: App) -> None:
    upload(browser, app, file=archive(("one", b"1"), ("two", b"2"), ("folder/", b"")), open_name="table")
    batch = drafts.submit_draft(SubmissionDraft.objects.get(), NOON)
    inputs = [workunit.input_files for workunit in batch.workunits.order_by("id")]
    assert [[file["open_name"] for file in files] for files in inputs] == [["table"], ["table"]]
    assert len({files[0]["name"] for files in inputs}) == 2


def test_a_form_with_faults_comes_back_filled_and_nothing_is_kept(browser: Client, app: App) -> None:
    table = "name,min_quorum,input_files\na,0,\nb,1,in=nothing\na,1,\n"
    shown = upload(browser, app, name="Pairs", table=table, command_line="--all")
    form = shown.context["form"]
    assert shown.status_code == 422 and (form["name"].value(), form["table"].value()) == ("Pairs", table)
    assert 'value="--all"' in text(shown) and "Nothing was submitted" in text(shown)
    # Of the second a nothing is said: the first was refused, so this one has the name alone.
    assert form.errors == {"table": ["line 2: min_quorum: not a whole number from 1 to 100"]}
    assert not SubmissionDraft.objects.exists() and default_storage.listdir("drafts")[1] == []


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        ({"fpops_est": "many"}, {"fpops_est": "not a number from 1 to below 1e+25"}),
        ({"output_files": "out:1 log:many"}, {"output_files": "[1].max_nbytes: not a whole number"}),
        ({"table": "input_files\nin=nothing\n"}, {"table": "there is no stored file nothing"}),
        ({"table": "a,b\n1,2\n"}, {"table": "line 1: a: unknown"}),
        ({"table": "", "file": "name,min_quorum\na,0\n"}, {"file": "line 2: min_quorum: not a whole number"}),
        ({"table": "", "file": "name\na\n", "priority": "low"}, {"priority": "not a whole number"}),
    ],
)
def test_each_fault_is_told_at_its_field(
    browser: Client, app: App, fields: dict[str, str], errors: dict[str, str]
) -> None:
    given: dict[str, Any] = {"table": TABLE, **fields}
    if "file" in given:
        given["file"] = SimpleUploadedFile("jobs.csv", given["file"].encode())
    form = upload(browser, app, **given).context["form"]
    assert set(form.errors) == set(errors)
    assert all(said in form.errors[field][0] for field, said in errors.items())
    assert not SubmissionDraft.objects.exists()


def test_what_became_wrong_since_the_dry_run_is_not_submitted(browser: Client, app: App) -> None:
    upload(browser, app, table=TABLE)
    draft = SubmissionDraft.objects.get()
    App.objects.update(is_deprecated=True)
    assert "These jobs cannot be submitted" in text(browser.get(f"/project/batches/drafts/{draft.pk}/"))
    reply = browser.post(f"/project/batches/drafts/{draft.pk}/submit/", follow=True)
    assert "Nothing was submitted. app:" in text(reply)
    assert not Batch.objects.exists() and not StoredFile.objects.exists()


def test_a_hostile_archive_is_named_by_its_entry(browser: Client, app: App) -> None:
    assert "leads out of the archive" in text(upload(browser, app, file=archive(("../in", b"1"))))
    raw = bytearray(packed(("in", b"0123456789" * 100)).getvalue())
    raw[50] ^= 0xFF
    assert "damaged in the archive" in text(upload(browser, app, file=SimpleUploadedFile("a.zip", bytes(raw))))
    assert "not UTF-8 text" in text(upload(browser, app, file=SimpleUploadedFile("a.csv", b"name\n\xff\n")))


def test_an_entry_that_is_called_like_a_job_is_no_job(browser: Client, app: App) -> None:
    raw = bytearray(packed(("jobs[99].name", b"0123456789" * 100)).getvalue())
    raw[60] ^= 0xFF
    assert "damaged in the archive" in text(upload(browser, app, file=SimpleUploadedFile("a.zip", bytes(raw))))


@pytest.mark.parametrize("number", ["1e999", "-1e999", "nan", "1" * 30])
def test_a_number_beyond_all_limits_is_a_fault_of_the_dry_run(browser: Client, app: App, number: str) -> None:
    assert "not a number from 1 to below 1e+25" in text(upload(browser, app, table=TABLE, fpops_est=number))
    assert "not a whole number" in text(upload(browser, app, table=TABLE, priority=number))


def test_a_table_has_a_limit_however_it_comes(browser: Client, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.submission.drafts.MAX_TABLE_NBYTES", 10)
    assert "the limit is 10 bytes" in text(upload(browser, app, file=SimpleUploadedFile("jobs.csv", TABLE.encode())))


@pytest.mark.parametrize("fields", [{}, {"table": TABLE, "file": "both"}])
def test_one_of_the_two_is_given(browser: Client, app: App, fields: dict[str, Any]) -> None:
    if "file" in fields:
        fields = {**fields, "file": archive(("in", b"1"))}
    assert "Either enter the jobs here or choose a file." in text(upload(browser, app, **fields))
    assert not SubmissionDraft.objects.exists()


def test_a_file_that_is_too_large_is_not_kept(browser: Client, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler.submission.forms.MAX_UPLOAD_NBYTES", 10)
    assert "the limit is 10" in text(upload(browser, app, file=archive(("in", b"1"))))


def test_drafts_are_ones_own_and_forgotten_after_a_week(browser: Client, app: App, bob: User) -> None:
    upload(browser, app, table=TABLE)
    draft = SubmissionDraft.objects.get()
    bob.user_permissions.add(Permission.objects.get(codename="add_batch"))
    other = Client()
    other.force_login(User.objects.get(pk=bob.pk))
    for address in ("", "submit/", "discard/"):
        assert other.post(f"/project/batches/drafts/{draft.pk}/{address}").status_code in (404, 405)
    assert drafts.discard_old(timezone.now()) == 0
    assert drafts.discard_old(timezone.now() + 8 * DAY) == 1
    assert not default_storage.exists(draft.path)


def test_a_person_has_few_drafts_at_once(browser: Client, app: App, bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafts, "MAX_DRAFTS", 2)
    common = {"fpops_est": 1e9, "output_files": []}
    of_others = drafts.keep(
        bob, app, ContentFile(b"name\na\n"), is_archive=False, name="", open_name="in", defaults=common, now=NOON
    )
    for _ in range(3):
        upload(browser, app, table=TABLE)
    first, *rest = SubmissionDraft.objects.order_by("pk")
    assert first == of_others and len(rest) == 2
    assert len(default_storage.listdir("drafts")[1]) >= 3 and all(default_storage.exists(each.path) for each in rest)


# --- cancel and retry -------------------------------------------------------------------------------------------------


def test_single_jobs_are_cancelled(browser: Client, app: App, submitter: User) -> None:
    batch = submit(app, DEFAULTS, [{}] * 3, owner=submitter, now=NOON)[0]
    first, *others = batch.workunits.order_by("id")
    foreign = submit(app, DEFAULTS, [{}], owner=None, now=NOON)[0].workunits.get()
    browser.post(f"/project/batches/{batch.pk}/jobs/cancel/", {"job": [first.pk, foreign.pk, "x", "9" * 30]})
    assert Workunit.objects.filter(error_mask=WorkunitError.CANCELLED).get() == first
    page = text(browser.get(f"/project/batches/{batch.pk}/jobs/?state=cancelled"))
    assert page.count("<tr>") == 2
    assert text(browser.get(f"/project/batches/{batch.pk}/jobs/?state=open")).count("<tr>") == 3
    odd = text(browser.get(f"/project/batches/{batch.pk}/jobs/?state=odd&after=x"))
    assert "no jobs in the state “odd”" in odd and "“x” is not the number of a job" in odd
    batch.refresh_from_db()
    assert batch.cancelled_at is None
    assert others


def test_a_submitter_reads_that_an_input_does_not_have_its_checksum(
    browser: Client, app: App, submitter: User, settings: Settings
) -> None:
    settings.REMOTE_INPUT_HOSTS = ["*.example.org"]
    make_version(app)
    remote = {"open_name": "in", "url": "https://data.example.org/map", "nbytes": 4, "md5": "a" * 32}
    fields = {"input_files": [remote], "min_quorum": 1, "max_error_results": 1}
    batch = submit(app, DEFAULTS | fields, [{}], owner=submitter, now=timezone.now())[0]
    # As BOINC's client reports it
    stderr = (
        "<core_client_version>8.0.4</core_client_version>\n<![CDATA[\n<message>\nWU download error: couldn't get input "
        "files:\n<file_xfer_error>\n  <file_name>map</file_name>\n  <error_code>-119 (md5 checksum failed for file)"
        "</error_code>\n  <error_message>MD5 check failed</error_message>\n</file_xfer_error>\n</message>\n]]>"
    )
    for number in range(2):
        computer = computer_of(User.objects.create_user(f"{number}@example.org", "secret"))
        computer.ask(0, 1)
        [name] = computer.jobs
        computer.ask(results=result_xml(name, state=1, exit_status=-186, final_elapsed_time=0, stderr_out=stderr))
        transitioner.run(timezone.now())
        reason = "a required file could not be downloaded or was damaged: a file did not match its checksum"
        assert reason in text(browser.get(f"/project/batches/{batch.pk}/jobs/"))
    workunit = batch.workunits.get()
    assert workunit.error_mask == WorkunitError.TOO_MANY_ERROR_RESULTS
    assert set(workunit.results.values_list("outcome", flat=True)) == {Outcome.CLIENT_ERROR}
    # It costs the computers none of their jobs a day.
    assert not HostAppVersion.objects.filter(max_jobs_per_day__lt=app.max_jobs_per_day_init).exists()


@pytest.fixture
def half_failed(app: App, submitter: User, studio: Host) -> Batch:
    """The first job is done, the second and third have failed."""
    jobs = [{}, {"name": "bad", "command_line": "--bad"}, {"input_files": []}]
    batch = submit(app, {**DEFAULTS, "min_quorum": 1, "max_error_results": 1}, jobs, owner=submitter, now=NOON)[0]
    good, *bad = batch.workunits.order_by("id")
    for workunit in bad:
        for _ in range(2):
            send_and_report(workunit.results.latest("id"), studio, outcome=Outcome.CLIENT_ERROR)
            transitioner.run(NOON)
    finish_one(good, studio)
    assimilator.run(NOON)
    transitioner.run(NOON)
    file_deleter.run(NOON)
    return batch


def finish_one(workunit: Workunit, host: Host) -> None:
    send_and_report(workunit.results.get(), host)
    transitioner.run(NOON)
    validate(workunit)
    transitioner.run(NOON)


def test_failed_jobs_are_submitted_again_once(browser: Client, half_failed: Batch, submitter: User) -> None:
    address = f"/project/batches/{half_failed.pk}/"
    assert "Submit the failed jobs again" in text(browser.get(address))
    for _ in range(2):
        browser.post(f"{address}retry/")
    again = Batch.objects.exclude(pk=half_failed.pk).get()
    assert (again.owner, again.nworkunits) == (submitter, 2)
    before = half_failed.workunits.filter(canonical_result=None).order_by("id")
    for old, new in zip(before, again.workunits.order_by("id"), strict=True):
        assert new.name.removeprefix(f"alpine_{again.pk}_") == old.name.removeprefix(f"alpine_{half_failed.pk}_")
        same = ("command_line", "fpops_est", "fpops_bound", "min_quorum", "output_files", "max_error_results")
        assert [getattr(new, name) for name in same] == [getattr(old, name) for name in same]
        assert [file["md5"] for file in new.input_files] == [file["md5"] for file in old.input_files]
    # The copy stays when the first batch goes.
    copy = StoredFile.objects.get(batch=again)
    assert copy.path != StoredFile.objects.get(batch=half_failed).path
    with default_storage.open(copy.path) as content:
        assert content.read() == b"1 2\n"


def archive_one(workunit: Workunit) -> None:
    now = NOON + 400 * DAY
    Workunit.objects.exclude(pk=workunit.pk).update(transition_at=now)
    with connection.cursor() as cursor:
        for statement in (lifecycle_sql.ARCHIVE_WORKUNITS, lifecycle_sql.ARCHIVE_TASKS, *lifecycle_sql.DELETE_ARCHIVED):
            cursor.execute(statement, {"ids": [workunit.pk], "now": now})


def test_a_retry_that_is_repeated_while_the_batch_is_archived_finds_the_first(
    browser: Client, half_failed: Batch
) -> None:
    first = retry.retry_failed(half_failed, NOON)
    for workunit in retry.failed(half_failed):
        archive_one(workunit)
        assert retry.retry_failed(half_failed, NOON) == first
    reply = browser.post(f"/project/batches/{half_failed.pk}/retry/")
    assert reply.headers["Location"] == f"/project/batches/{first.pk}/"


def test_failed_jobs_that_are_archived_are_not_left_out_silently(browser: Client, half_failed: Batch) -> None:
    archive_one(retry.failed(half_failed)[0])
    reply = browser.post(f"/project/batches/{half_failed.pk}/retry/", follow=True)
    assert "1 of 2 failed jobs" in text(reply)


def test_nobody_can_take_the_request_id_of_a_retry(browser: Client, half_failed: Batch, app: App, bob: User) -> None:
    with pytest.raises(JobError, match="must not begin with retry-"):
        submit(app, DEFAULTS, [{}], owner=bob, request_id=f"retry-{half_failed.pk}", now=NOON)
    browser.post(f"/project/batches/{half_failed.pk}/retry/")
    again = Batch.objects.latest("pk")
    assert (again.owner, again.nworkunits) == (half_failed.owner, 2)


def test_who_may_no_longer_submit_cannot_retry(browser: Client, half_failed: Batch, submitter: User) -> None:
    submitter.user_permissions.set([Permission.objects.get(codename="view_batch")])
    address = f"/project/batches/{half_failed.pk}/"
    assert "Submit the failed jobs again" not in text(browser.get(address))
    assert browser.post(f"{address}retry/").status_code == 404
    assert Batch.objects.count() == 1


def test_inputs_of_failed_jobs_stay_until_these_are_archived(half_failed: Batch) -> None:
    assert StoredFile.objects.get(batch=half_failed).deleted_at is None
    half_failed.workunits.filter(error_mask__gt=0).update(error_mask=WorkunitError.CANCELLED)
    file_deleter.run(NOON)
    assert StoredFile.objects.get(batch=half_failed).deleted_at is not None


def test_a_batch_with_open_jobs_is_not_retried(browser: Client, app: App, submitter: User) -> None:
    batch = submit(app, DEFAULTS, [{}], owner=submitter, now=NOON)[0]
    reply = browser.post(f"/project/batches/{batch.pk}/retry/", follow=True)
    assert "Nothing was submitted" in text(reply) and Batch.objects.count() == 1


def test_who_may_view_batches_sees_all_and_changes_none(app: App, submitter: User, bob: User) -> None:
    batch = submit(app, DEFAULTS, [{}], owner=submitter, now=NOON)[0]
    viewer = Client()
    viewer.force_login(bob)
    assert viewer.get(f"/project/batches/{batch.pk}/").status_code == 404
    bob.user_permissions.add(Permission.objects.get(codename="view_batch"))
    viewer.force_login(User.objects.get(pk=bob.pk))
    page = viewer.get(f"/project/batches/{batch.pk}/")
    assert page.status_code == 200 and "Cancel the batch" not in text(page)
    for address in ("cancel/", "jobs/cancel/", "retry/", "retire/"):
        assert viewer.post(f"/project/batches/{batch.pk}/{address}").status_code == 404
    assert viewer.get(NEW).status_code == 404


def test_the_progress_is_renewed_by_itself_until_all_is_over(browser: Client, half_failed: Batch, app: App) -> None:
    open_ = submit(app, DEFAULTS, [{}], owner=half_failed.owner, now=NOON)[0]
    for batch, is_over in ((half_failed, True), (open_, False)):
        part = text(browser.get(f"/project/batches/{batch.pk}/", headers={"HX-Request": "true"}))
        assert part.lstrip().startswith("<div") and ("every 5s" in part) is not is_over


# --- outputs ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def finished(app: App, submitter: User, studio: Host) -> Batch:
    batch = submit(app, DEFAULTS, [{}] * 3, owner=submitter, now=NOON)[0]
    finish(batch, studio)
    assimilator.run(NOON)
    return batch


def fetched(browser: Client, batch: Batch) -> zipfile.ZipFile:
    reply = browser.get(f"/project/batches/{batch.pk}/outputs.zip")
    assert reply.headers["Content-Type"] == "application/zip"
    return zipfile.ZipFile(BytesIO(b"".join(reply)))


def test_the_outputs_come_as_one_archive(browser: Client, finished: Batch) -> None:
    archive = fetched(browser, finished)
    assert archive.testzip() is None
    assert {name: archive.read(name) for name in archive.namelist()} == {
        f"alpine_{finished.pk}_{n}/out": b"42\n" for n in range(3)
    }


def test_what_is_lost_or_damaged_is_named_and_the_rest_is_there(browser: Client, finished: Batch) -> None:
    lost, damaged, good = KeptOutput.objects.order_by("id")
    default_storage.delete(lost.path)
    Path(default_storage.path(damaged.path)).write_bytes(b"43\n")
    found = fetched(browser, finished)
    assert found.testzip() is None
    assert found.read(f"{good.workunit_name}/out") == b"42\n"
    missing = found.read("MISSING.txt").decode().splitlines()
    assert missing[0].startswith(f"{lost.workunit_name}/out: missing from the storage")
    assert missing[1].startswith(f"{damaged.workunit_name}/out: damaged in the storage")
    assert len(missing) == 2


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", "a\\..\\b", ""])
def test_no_name_leads_out_of_the_archive(browser: Client, finished: Batch, name: str) -> None:
    first = KeptOutput.objects.order_by("id")[0]
    KeptOutput.objects.filter(pk=first.pk).update(name=name, workunit_name=name or "wu")
    folder = "other" if name else "wu"
    assert f"{folder}/output_{first.pk}" in fetched(browser, finished).namelist()


def test_an_archive_takes_no_more_memory_for_larger_files(finished: Batch) -> None:
    first = KeptOutput.objects.order_by("id")[0]
    path = default_storage.save("large", ContentFile(b"\1" * 30_000_000))
    KeptOutput.objects.filter(pk=first.pk).update(path=path)
    parts: Iterator[bytes] = output_archive.stream(output_archive.of_batch(finished))
    tracemalloc.start()
    assert sum(len(part) for part in parts) > 30_000_000
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_outputs_are_deleted_on_request(browser: Client, finished: Batch) -> None:
    browser.post(f"/project/batches/{finished.pk}/retire/")
    assert not KeptOutput.objects.exists()


def test_what_somebody_uploaded_goes_a_week_after_their_account(browser: Client, app: App, submitter: User) -> None:
    upload(browser, app, table=TABLE)
    draft = SubmissionDraft.objects.get()
    submitter.delete()
    drafts.discard_old(timezone.now() + 8 * DAY)
    assert not SubmissionDraft.objects.exists() and not default_storage.exists(draft.path)


# --- input files that many jobs share ---------------------------------------------------------------------------------


def test_an_input_that_many_jobs_share_is_stored_in_the_admin(desk: Client, bob: User) -> None:
    address = "/admin/scheduler/storedfile/add/"
    for _ in range(2):
        reply = desk.post(address, {"file": SimpleUploadedFile("table.csv", b"1 2\n"), "is_gzipped": "on"})
        assert reply.status_code == 302, reply.content.decode()
    stored, packed = StoredFile.objects.order_by("name")
    with default_storage.open(packed.path) as file:
        assert (packed.name, gzip.decompress(file.read())) == ("table.csv.gz", b"1 2\n")
    assert (stored.name, stored.nbytes, stored.batch, stored.is_executable) == ("table.csv", 4, None, False)
    again = desk.post(address, {"file": SimpleUploadedFile("x", b"3\n"), "stored_name": "table.csv"})
    assert "was stored before, with other content" in text(again)
    assert "is not a name of at most 200" in text(desk.post(address, {"file": SimpleUploadedFile("-x", b"3")}))
    assert desk.get(f"/admin/scheduler/storedfile/{stored.pk}/change/").status_code == 200
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    sign_in_lately(desk, User.objects.get(pk=bob.pk))
    assert desk.get(address).status_code == 403


# --- at once ----------------------------------------------------------------------------------------------------------


def at_once(number: int, step: Callable[[], Batch]) -> list[Batch]:
    def run(_: int) -> Batch:
        try:
            return step()
        finally:
            connection.close()

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(run, range(number)))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("filled_once")
def test_of_four_clicks_at_once_one_submits(browser: Client, app: App) -> None:
    upload(browser, app, file=archive(("one", b"1"), ("two", b"2")))
    draft = SubmissionDraft.objects.get()
    created = at_once(4, lambda: drafts.submit_draft(SubmissionDraft.objects.get(pk=draft.pk), NOON))
    assert set(created) == set(Batch.objects.all()) and len(set(created)) == 1
    assert Workunit.objects.count() == 2 and StoredFile.objects.count() == 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("filled_once")
def test_of_four_retries_at_once_one_submits(half_failed: Batch) -> None:
    created = at_once(4, lambda: retry.retry_failed(Batch.objects.get(pk=half_failed.pk), NOON))
    assert set(created) == set(Batch.objects.exclude(pk=half_failed.pk)) and len(set(created)) == 1
    assert Workunit.objects.count() == 3 + 2

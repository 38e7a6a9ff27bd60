"""The steps after a decision: assimilation, file deletion, the archive, and a batch from beginning to end."""

from __future__ import annotations

import datetime as dt
from io import StringIO
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import connection
from django.forms.models import model_to_dict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from credit.models import (
    App,
    AssimilateState,
    Batch,
    FileDeleteState,
    Outcome,
    Result,
    ResultPart,
    ServerState,
    Workunit,
    WorkunitError,
)
from portal.models import Host, User
from scheduler.lifecycle import assimilator, file_deleter, purge, transitioner
from scheduler.lifecycle.assimilator import Finished
from scheduler.models import (
    ArchivedTask,
    ArchivedWorkunit,
    KeptOutput,
    RetryEntry,
    Step,
    StoredFile,
    TrickleDown,
    Upload,
)
from scheduler.submission import batches
from scheduler.submission.submit import submit
from tests.support.credit_factories import NOON, make_app
from tests.support.finished_jobs import DAY, DEFAULTS, finish, send_and_report, validate
from tests.support.upload_requests import post, upload_body

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("registered_functions")]

MINUTE = dt.timedelta(minutes=1)
taken: list[Finished] = []


def take(finished: Finished) -> None:
    taken.append(finished)


def take_no_failures(finished: Finished) -> None:
    if finished.canonical is None:
        raise ValueError("cannot be used")


@pytest.fixture
def batch(db: None, alice: User) -> Batch:
    return submit(make_app(), DEFAULTS, [{}, {}], owner=alice, name="Pairs", now=NOON)[0]


def test_a_batch_goes_from_submission_to_its_outputs(batch: Batch, studio: Host, tmp_path: Path) -> None:
    [progress] = batches.read_progress([batch])
    assert progress == batches.Progress(nworkunits=2, nunsent=4)
    finish(batch, studio)
    assert assimilator.run(NOON) == 2
    [progress] = batches.read_progress([batch])
    assert progress == batches.Progress(nworkunits=2, ndone=2, nfinished=2, nover=4, noutputs=2)
    assert progress.is_finished
    out = StringIO()
    call_command("batch", batch.pk, "--fetch", tmp_path, stdout=out)
    assert out.getvalue().splitlines()[1] == f"2 files copied to {tmp_path}."
    fetched = sorted(tmp_path.rglob("out"))
    assert [path.parent.name for path in fetched] == [f"alpine_{batch.pk}_0", f"alpine_{batch.pk}_1"]
    assert {path.read_text() for path in fetched} == {"42\n"}


def test_fetching_a_batch_names_what_is_lost_and_fetches_the_rest(batch: Batch, studio: Host, tmp_path: Path) -> None:
    finish(batch, studio)
    assimilator.run(NOON)
    lost, _ = batches.read_outputs(batch, limit=2)
    default_storage.delete(lost.path)
    out, errors = StringIO(), StringIO()
    for copied in (1, 0):
        with pytest.raises(CommandError, match="1 files could not be fetched") as caught:
            call_command("batch", batch.pk, "--fetch", tmp_path / "to", "--retire", stdout=out, stderr=errors)
        assert caught.value.returncode == 1
        assert out.getvalue().splitlines()[-1] == f"{copied} files copied to {tmp_path / 'to'}."
        assert errors.getvalue().splitlines()[-1] == f"{lost} ({lost.path}): missing"
    assert [path.parent.name for path in (tmp_path / "to").rglob("*") if path.is_file()] == [f"alpine_{batch.pk}_1"]
    # Nothing was retired.
    assert KeptOutput.objects.count() == 2


def test_only_the_kept_outputs_stay(batch: Batch, studio: Host) -> None:
    finish(batch, studio)
    [stored] = StoredFile.objects.all()
    assimilator.run(NOON)
    transitioner.run(NOON)
    assert file_deleter.run(NOON) == 2
    paths = set(KeptOutput.objects.values_list("path", flat=True))
    uploaded = set(Upload.objects.values_list("path", flat=True))
    assert (len(paths), len(uploaded)) == (2, 4)
    assert {path for path in uploaded if default_storage.exists(path)} == paths
    stored.refresh_from_db()
    assert stored.deleted_at == NOON
    assert not default_storage.exists(stored.path)
    assert set(Workunit.objects.values_list("file_delete_state", flat=True)) == {FileDeleteState.DONE}
    assert set(Result.objects.values_list("file_delete_state", flat=True)) == {FileDeleteState.DONE}
    assert file_deleter.run(NOON) == 0


def test_inputs_stay_as_long_as_one_job_of_their_batch_needs_them(batch: Batch, studio: Host) -> None:
    first = batch.workunits.order_by("id")[0]
    for result in first.results.all():
        send_and_report(result, studio)
    validate(first)
    transitioner.run(NOON)
    assimilator.run(NOON)
    transitioner.run(NOON)
    assert file_deleter.run(NOON) == 1
    [stored] = StoredFile.objects.all()
    assert stored.deleted_at is None


def test_a_file_that_cannot_be_deleted_marks_its_workunit_only(
    batch: Batch, studio: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(batch, studio)
    assimilator.run(NOON)
    transitioner.run(NOON)
    bad = Upload.objects.exclude(path__in=KeptOutput.objects.values("path")).order_by("id")[0]
    default_storage.delete(bad.path)
    Path(default_storage.path(bad.path), "not_empty").mkdir(parents=True)  # as good as undeletable
    file_deleter.run(NOON)
    states = dict(Workunit.objects.values_list("pk", "file_delete_state"))
    assert states[bad.result.workunit_id] == FileDeleteState.ERROR
    assert sorted(states.values()) == [FileDeleteState.DONE, FileDeleteState.ERROR]
    assert "could not be deleted" in RetryEntry.objects.get(workunit=bad.result.workunit).fault
    # Later it can be.
    Path(default_storage.path(bad.path), "not_empty").rmdir()
    assert file_deleter.run(NOON + 9 * MINUTE) == 0
    assert file_deleter.run(NOON + 10 * MINUTE) == 1
    assert not default_storage.exists(bad.path)
    assert set(Workunit.objects.values_list("file_delete_state", flat=True)) == {FileDeleteState.DONE}
    assert not RetryEntry.objects.exists()


def test_an_app_takes_its_results_itself(studio: Host, alice: User) -> None:
    taken.clear()
    app = make_app(assimilation_function="tests.scheduler.lifecycle.test_finished_workunits.take")
    batch = submit(app, DEFAULTS, [{}], owner=alice, now=NOON)[0]
    finish(batch, studio)
    assert assimilator.run(NOON) == 1
    [finished] = taken
    assert finished.canonical is not None
    assert finished.canonical.outputs[0]["nbytes"] == 3
    assert finished.batch == batch
    assert not KeptOutput.objects.exists()


@pytest.mark.parametrize(
    "function", ["tests.scheduler.lifecycle.test_finished_workunits.take_no_failures", "no.such.function"]
)
def test_a_function_that_fails_is_tried_again_and_holds_up_nobody(studio: Host, function: str) -> None:
    app = make_app(assimilation_function=function)
    batch = submit(app, DEFAULTS, [{}, {}], owner=None, now=NOON)[0]
    failed, good = batch.workunits.order_by("id")
    Workunit.objects.filter(pk=failed.pk).update(error_mask=WorkunitError.TOO_MANY_TOTAL_RESULTS, transition_at=NOON)
    for result in good.results.all():
        send_and_report(result, studio)
    validate(good)
    transitioner.run(NOON)
    exists = function.startswith("tests.")
    assert assimilator.run(NOON) == exists
    failed.refresh_from_db()
    assert failed.assimilate_state == AssimilateState.READY
    entry = RetryEntry.objects.get()
    assert (entry.workunit, entry.step, entry.retry_at) == (failed, Step.ASSIMILATE, NOON + 10 * MINUTE)
    assert ("cannot be used" if exists else "is not registered on this server") in entry.fault
    # Repaired: what made no trouble goes at once, the other one when its time has come.
    App.objects.update(assimilation_function="")
    assert assimilator.run(NOON + 9 * MINUTE) == 1 - exists
    assert assimilator.run(NOON + 10 * MINUTE) == 1
    assert not RetryEntry.objects.exists()


def test_a_cancelled_batch_ends_and_keeps_what_was_done(batch: Batch, studio: Host) -> None:
    first, second = batch.workunits.order_by("id")
    for result in first.results.all():
        send_and_report(result, studio)
    validate(first)
    out, unsent = second.results.order_by("id")
    Result.objects.filter(pk=out.pk).update(
        server_state=ServerState.IN_PROGRESS, host=studio, sent_at=NOON, deadline_at=NOON + DAY
    )
    assert batches.cancel(batch, NOON) == 1
    unsent.refresh_from_db()
    assert unsent.outcome == Outcome.DIDNT_NEED  # before anybody asks for work again
    assert batches.cancel(batch, NOON + DAY) == 0
    transitioner.run(NOON)
    for row in (batch, second, unsent, out):
        row.refresh_from_db()
    assert (batch.cancelled_at, second.error_mask) == (NOON, WorkunitError.CANCELLED)
    assert (unsent.outcome, out.server_state) == (Outcome.DIDNT_NEED, ServerState.IN_PROGRESS)
    assert assimilator.run(NOON) == 2
    assert post(upload_body(f"{out.name}_0", b"x", max_nbytes=1000)).startswith("-1 The task of this file is over")
    [progress] = batches.read_progress([batch])
    assert (progress.ndone, progress.nfailed, progress.noutputs, progress.is_finished) == (1, 1, 1, True)


def test_a_batch_is_retired_only_when_it_is_finished(batch: Batch, studio: Host) -> None:
    with pytest.raises(CommandError, match="still has jobs to do"):
        call_command("batch", batch.pk, "--retire", stdout=StringIO())
    finish(batch, studio)
    assimilator.run(NOON)
    paths = list(KeptOutput.objects.values_list("path", flat=True))
    assert batches.retire(batch, NOON) == 2
    assert not any(default_storage.exists(path) for path in paths)
    assert batches.retire(batch, NOON) == 0


def test_a_batch_that_expires_is_cancelled_and_retired(batch: Batch, studio: Host) -> None:
    first, second = batch.workunits.order_by("id")
    for result in first.results.all():
        send_and_report(result, studio)
    validate(first)
    Batch.objects.filter(pk=batch.pk).update(expires_at=NOON + DAY)
    assert batches.expire(NOON) == 0
    assert batches.expire(NOON + DAY) == 1
    batch.refresh_from_db()
    second.refresh_from_db()
    assert (batch.cancelled_at, batch.retired_at) == (NOON + DAY, NOON + DAY)
    assert second.error_mask == WorkunitError.CANCELLED
    # What finishes now is not kept any more.
    transitioner.run(NOON)
    assert assimilator.run(NOON) == 2
    assert not KeptOutput.objects.exists()


def test_what_was_kept_while_a_batch_was_retired_goes_later(batch: Batch, studio: Host) -> None:
    finish(batch, studio)
    assimilator.run(NOON)
    Batch.objects.filter(pk=batch.pk).update(retired_at=NOON)
    batches.expire(NOON)
    assert not KeptOutput.objects.exists()


# --- the archive ------------------------------------------------------------------------------------------------------


@pytest.fixture
def done(batch: Batch, studio: Host) -> Batch:
    """A batch with its files deleted, ready to be purged in a month."""
    finish(batch, studio)
    assimilator.run(NOON)
    transitioner.run(NOON)
    file_deleter.run(NOON)
    return batch


def test_tasks_are_archived_whole_after_the_grace_period(done: Batch, studio: Host, alice: User) -> None:
    before = list(Result.objects.select_related("workunit", "app", "host").order_by("-id"))
    assert purge.run(NOON + 30 * DAY) == 0
    assert purge.run(NOON + 30 * DAY + dt.timedelta(seconds=1)) == 2
    assert not Workunit.objects.exists() and not Result.objects.exists() and not Upload.objects.exists()
    archived = purge.read_archived(alice, before=None, limit=10)
    dropped = {"stderr_text", "outputs", "output_digest"}
    for old, new in zip(before, archived, strict=True):
        for field in Result._meta.concrete_fields:
            if field.name not in dropped:
                assert getattr(new, field.attname) == getattr(old, field.attname), field.name
        assert (new.workunit.name, new.workunit.fpops_est, new.app, new.host) == (
            old.workunit.name, old.workunit.fpops_est, old.app, studio
        )  # fmt: skip
    assert [task.pk for task in purge.read_archived(alice, before=archived[1].pk, limit=1)] == [archived[2].pk]
    [progress] = batches.read_progress([done])
    assert (progress.ndone, progress.nfinished, progress.noutputs) == (2, 2, 2)


def test_an_archived_task_is_its_owners_alone(done: Batch, alice: User, bob: User, operator: User) -> None:
    purge.run(NOON + 31 * DAY)
    pk = ArchivedTask.objects.order_by("pk")[0].pk
    assert purge.read_archived(bob, before=None, limit=10) == []
    assert purge.read_archived_task(bob, pk) is None
    for user in (alice, operator):
        task = purge.read_archived_task(user, pk)
        assert task is not None and task.granted_credit == 2.5
    alice.delete()
    assert ArchivedTask.objects.filter(user=None, host=None).count() == 4


def test_parts_of_a_job_are_archived_with_it(done: Batch, client: Client, alice: User) -> None:
    task = Result.objects.filter(user=alice).order_by("pk")[0]
    for begin, end in ((0.0, 100.0), (100.0, 300.0)):
        ResultPart.objects.create(
            result=task, granted_at=NOON, from_secs=begin, to_secs=end, credit=1.25, claim_rule=11, raw_pfc=5e11,
            claimed_pfc=5.4e11, claimed_credit=1.25, is_approximate=False, version_scale=1.08, host_scale=1.0,
            version_pfc_n=412, version_pfc_avg=1.31, host_pfc_n=12, host_pfc_avg=1.31,
        )  # fmt: skip
    Result.objects.filter(pk=task.pk).update(partial_elapsed_secs=300, partial_credit=2.5)
    before = [model_to_dict(part, exclude=["id", "result"]) for part in ResultPart.objects.order_by("-id")]
    purge.run(NOON + 31 * DAY)
    assert not ResultPart.objects.exists()
    archived = [model_to_dict(part, exclude=["id", "result"]) for part in purge.read_archived_parts(task.pk)]
    assert archived == before != []
    client.force_login(alice)
    assert "Credited while running" in client.get(f"/tasks/archived/{task.pk}/").content.decode()
    other = ArchivedTask.objects.exclude(pk=task.pk)[0]
    assert purge.read_archived_parts(other.pk) == []


def test_messages_to_a_job_go_with_it(done: Batch, alice: User) -> None:
    task = Result.objects.filter(user=alice).order_by("pk")[0]
    for told_at in (None, NOON):
        TrickleDown.objects.create(result=task, text="go on", told_deadline_at=told_at, acknowledged_at=told_at)
    purge.run(NOON + 31 * DAY)
    assert not TrickleDown.objects.exists()
    assert ArchivedTask.objects.filter(pk=task.pk).exists()


def test_pages_show_archived_tasks_to_their_owner(done: Batch, client: Client, alice: User, bob: User) -> None:
    purge.run(NOON + 31 * DAY)
    task = ArchivedTask.objects.order_by("pk")[0]
    name, address = task.facts["name"], f"/tasks/archived/{task.pk}/"
    client.force_login(alice)
    listed = client.get("/tasks/archived/").content.decode()
    assert name in listed and address in listed
    page = client.get(address).content.decode()
    assert name in page and task.workunit.name in page
    assert client.get("/tasks/archived/?before=1").status_code == 200
    assert "“x” is not the number of a task." in client.get("/tasks/archived/?before=x").content.decode()
    client.force_login(bob)
    assert name not in client.get("/tasks/archived/").content.decode()
    assert client.get(address).status_code == 404


def test_what_can_still_change_is_not_purged(done: Batch, studio: Host, settings: Settings) -> None:
    settings.JOBS_KEPT_DAYS = 0
    first, second = Workunit.objects.order_by("id")
    Result.objects.filter(workunit=first).update(
        server_state=ServerState.IN_PROGRESS, outcome=0, validate_state=0, deadline_at=NOON + 99 * DAY
    )
    Workunit.objects.filter(pk=second.pk).update(transition_at=NOON)
    assert purge.run(NOON + DAY) == 0
    Workunit.objects.filter(pk=second.pk).update(transition_at=None)
    assert purge.run(NOON + DAY) == 1
    assert [row.name for row in ArchivedWorkunit.objects.all()] == [second.name]


def test_statements_do_not_depend_on_the_number_of_workunits(studio: Host) -> None:
    app = make_app()
    counts = []
    for njobs in (1, 8):
        batch = submit(app, DEFAULTS, [{}] * njobs, owner=None, now=NOON)[0]
        finish(batch, studio)
        with CaptureQueriesContext(connection) as captured:
            assimilator.run(NOON)
            transitioner.run(NOON)
            file_deleter.run(NOON)
            assert purge.run(NOON + 31 * DAY) == njobs
        counts.append(len(captured))
    assert counts[0] == counts[1]

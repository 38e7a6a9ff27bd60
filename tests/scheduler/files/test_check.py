"""check_files finds each way in which a file can be lost or damaged, and nothing else."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command

from credit.models import Batch
from portal.models import Host, User
from scheduler.files import check
from scheduler.files.store import store_file
from scheduler.lifecycle import assimilator, file_deleter, transitioner
from scheduler.models import KeptOutput, StoredFile, Upload
from scheduler.submission import batches
from scheduler.submission.submit import submit
from tests.support.credit_factories import NOON, make_app
from tests.support.finished_jobs import DEFAULTS, finish
from tests.support.upload_requests import make_task, post, upload_body

pytestmark = pytest.mark.django_db


def run() -> tuple[int, list[str]]:
    """Exit code and lines of the command."""
    output = io.StringIO()
    try:
        call_command("check_files", stdout=output)
    except CommandError as error:
        return error.returncode, output.getvalue().splitlines()
    return 0, output.getvalue().splitlines()


def path_of(row: StoredFile | Upload | KeptOutput) -> Path:
    return Path(default_storage.path(row.path))


@pytest.fixture
def upload(studio: Host) -> Upload:
    make_task("t", studio)
    assert post(upload_body("t_0", b"forty-two")) == "0"
    return Upload.objects.get()


@pytest.fixture
def program(db: None) -> StoredFile:
    return store_file("program", ContentFile(b"#!/bin/sh"))


def test_a_project_without_files_is_in_order() -> None:
    assert run() == (0, ["All files are there."])


def test_what_is_there_is_in_order(upload: Upload, program: StoredFile) -> None:
    assert run() == (0, ["All files are there."])


def test_what_is_missing_is_named(upload: Upload, program: StoredFile) -> None:
    for row in (upload, program):
        path_of(row).unlink()
    assert run() == (
        1,
        [f"program or input program ({program.path}): missing", f"upload t_0 ({upload.path}): missing"],
    )


def test_what_is_cut_short_is_named(upload: Upload) -> None:
    path_of(upload).write_bytes(b"forty")
    assert run() == (1, [f"upload t_0 ({upload.path}): has 5 bytes instead of 9"])


def test_what_has_another_content_is_named(program: StoredFile) -> None:
    path_of(program).write_bytes(b"#!/bin/zz")
    code, [line] = run()
    assert code == 1
    assert line.startswith(f"program or input program ({program.path}): has the MD5 ")
    assert line.endswith(f" instead of {program.md5}")


def test_what_cannot_be_read_is_named(program: StoredFile) -> None:
    path_of(program).unlink()
    path_of(program).mkdir()
    assert run() == (1, [f"program or input program ({program.path}): cannot be read: Is a directory"])


@pytest.fixture
def finished(db: None, alice: User, studio: Host) -> Batch:
    """A batch that is done; all its files but the kept outputs are deleted."""
    batch = submit(make_app(), DEFAULTS, [{}, {}], owner=alice, now=NOON)[0]
    finish(batch, studio)
    assert run()[0] == 0
    assimilator.run(NOON)
    transitioner.run(NOON)
    assert file_deleter.run(NOON) == 2
    return batch


def test_what_was_deleted_because_it_is_done_is_not_missing(finished: Batch) -> None:
    assert run() == (0, ["All files are there."])
    batches.retire(finished, NOON)
    assert run() == (0, ["All files are there."])


def test_a_kept_output_that_is_lost_is_named(finished: Batch) -> None:
    kept = KeptOutput.objects.order_by("pk")[1]
    path_of(kept).unlink()
    assert run() == (1, [f"kept output {kept} ({kept.path}): missing"])


def test_a_file_that_is_deleted_while_it_is_looked_at_is_not_missing(
    finished: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = check.fault

    def delete_and_look(row: KeptOutput) -> str:
        batches.retire(finished, NOON)
        return fault(row)

    monkeypatch.setattr(check, "fault", delete_and_look)
    assert run() == (0, ["All files are there."])

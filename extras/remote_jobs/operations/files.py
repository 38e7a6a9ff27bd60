"""The operations of job_file.php: report which files are missing, and accept uploads."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.core.files import File

from credit.models import Batch
from extras.remote_jobs import staging
from extras.remote_jobs.keys import Caller
from extras.remote_jobs.operations.objects import JobsError, Reply, check_owner, numbered_batch
from extras.remote_jobs.wire.xml_tree import Element


def query_files(caller: Caller, request: Element, _now: dt.datetime) -> Reply:
    batch, delete_at = _for(caller, request)
    absent = staging.absent(_names(request), caller.user, batch, delete_at)
    # A program compares the text of an empty list with a line feed.
    return [("absent_files", [("file", number) for number in absent] or "\n")]


def upload_files(caller: Caller, request: Element, files: Sequence[File[bytes]]) -> Reply:
    """Upload files, which come in the order of their names. Safe to repeat: a file with the same content stays."""
    names = _names(request)
    if len(files) != len(names):
        raise JobsError(f"# of uploaded files ({len(files)}) doesn't agree with request ({len(names)})")
    staging.check_names(names)
    batch, delete_at = _for(caller, request)
    for name, file in zip(names, files, strict=True):
        staging.stage(name, file, caller.user, batch, delete_at)
    return [("success", True)]


def _names(request: Element) -> list[str]:
    return [element.text for element in request.all("phys_name")]


def _for(caller: Caller, request: Element) -> tuple[Batch | None, dt.datetime | None]:
    number = request.integer("batch_id")
    batch = numbered_batch(number) if number else None
    if number and batch is None:
        raise JobsError(f"no batch {number}")
    if batch is not None:
        check_owner(caller, batch, "not owner of batch")
    return batch, request.time("delete_time")

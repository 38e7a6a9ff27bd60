"""Submits failed jobs again, as a separate batch."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import F, QuerySet

from credit.engine.states import WorkunitError
from credit.models import Batch, Workunit
from portal.languages.messages import Message, MessageError
from scheduler.engine.lanes import Lane
from scheduler.models import ArchivedWorkunit, StoredFile
from scheduler.submission import batches, targets
from scheduler.submission.submit import submit
from scheduler.wire.job_fields import FIELDS, TARGETS, JobError, KeptContent

_COLUMNS: Final = tuple(
    name for name in FIELDS if name not in ("name", "input_files", "program_files", "broadcast", *TARGETS)
)
_HOW: Final = ("open_name", "sticky", "executable", "plan_class", "cpu")


class NothingToRetry(MessageError):
    """The batch has open jobs, or no failed ones whose inputs and targets still exist."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """An input of the first batch, which is deleted with it: the new one gets a copy. A `KeptContent`."""

    path: str
    nbytes: int

    def read(self) -> bytes:
        try:
            with default_storage.open(self.path, "rb") as file:
                return bytes(file.read())
        except FileNotFoundError as error:
            raise JobError("input_files", Message("storage_lost", name=self.path)) from error


def failed(batch: Batch) -> QuerySet[Workunit]:
    """Return the workunits that ended without a result, were not cancelled, and are not archived yet."""
    cancelled = int(WorkunitError.CANCELLED)
    workunits = Workunit.objects.filter(batch=batch, error_mask__gt=0, canonical_result_id=None).order_by("id")
    return workunits.alias(cancelled=F("error_mask").bitand(cancelled)).filter(cancelled=0)


def count_archived(batch: Batch) -> int:
    """Count the failed jobs that are archived: too little of them is kept to submit them again."""
    cancelled = int(WorkunitError.CANCELLED)
    archived = ArchivedWorkunit.objects.filter(batch=batch, error_mask__gt=0)
    return archived.alias(cancelled=F("error_mask").bitand(cancelled)).filter(cancelled=0).count()


@transaction.atomic
def retry_failed(batch: Batch, now: dt.datetime) -> Batch:
    """Submit the failed jobs of a finished batch again; return the new batch. If repeated, return the one of the first
    time.

    Locks the batch, so that the second of two clicks waits: the jobs may be archived between them. Raises
    NothingToRetry, and JobError if the app takes no more jobs or an input is lost.
    """
    Batch.objects.select_for_update(no_key=True).get(pk=batch.pk)
    request_id = f"{batches.RETRY}{batch.pk}"
    if (first := Batch.objects.filter(request_id=request_id).first()) is not None:
        return first
    if not batches.read_progress([batch])[0].is_finished:
        raise NothingToRetry(Message("batch_unfinished", number=str(batch.pk)))
    jobs = _jobs(batch)
    if not jobs:
        raise NothingToRetry(Message("batch_without_failures", number=str(batch.pk)))
    again, _ = submit(
        batch.app,
        {},
        jobs,
        owner=batch.owner,
        name=f"{batch.name[:80]}, failed jobs again",
        request_id=request_id,
        is_retry=True,
        now=now,
    )
    return again


def _jobs(batch: Batch) -> list[dict[str, Any]]:
    prefix = f"{batch.app.name}_{batch.pk}_"
    stored = {file.name: file for file in StoredFile.objects.filter(batch=batch)}
    contents: dict[str, KeptContent] = {name: _Stored(file.path, file.nbytes) for name, file in stored.items()}
    workunits = list(failed(batch))
    gone = targets.gone({workunit.lane for workunit in workunits})
    return [
        {
            **{name: getattr(workunit, name) for name in _COLUMNS},
            **_name(workunit.name, prefix),
            **_target(workunit.lane),
            "input_files": [_input(file, contents) for file in workunit.input_files],
        }
        for workunit in workunits
        if workunit.lane not in gone
    ]


def _name(name: str, prefix: str) -> dict[str, str]:
    """Return the name for the new job: an exact name belongs to the first job, so the new one is numbered."""
    return {"name": name.removeprefix(prefix)} if name.startswith(prefix) else {}


def _target(lane: int) -> dict[str, int]:
    target = Lane.of(lane)
    return {name: target.target_id for name, kind in TARGETS.items() if kind == target.kind}


def _input(file: dict[str, Any], contents: dict[str, KeptContent]) -> dict[str, Any]:
    how: dict[str, Any] = {name: file[name] for name in _HOW if name in file}
    if "gzipped_nbytes" in file and "urls" not in file:
        how["gzip"] = True
    if file["name"] in contents:
        return {**how, "content": contents[file["name"]]}
    if "urls" in file:
        fields = {"urls": "url", "nbytes": "nbytes", "md5": "md5", "gzipped_urls": "gzipped_url"}
        fields["gzipped_nbytes"] = "gzipped_nbytes"
        return how | {field: file[name] for name, field in fields.items() if name in file}
    return {**how, "name": file["name"]}

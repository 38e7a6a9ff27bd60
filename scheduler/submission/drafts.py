"""Jobs from the browser: an upload is kept, can be reviewed any number of times, and is submitted once.

The review (the dry run) and the submission read the same file with the same code, so they find the same jobs and
faults.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction

from credit.models import App, Batch
from portal.languages.messages import Message, MessageError
from portal.models import User
from scheduler.models import SubmissionDraft
from scheduler.submission import archives, submit
from scheduler.submission.forecasts import BatchForecast, of_jobs
from scheduler.wire.job_fields import FIELDS, JobError, SubmittedJob
from scheduler.wire.job_table import MAX_TABLE_NBYTES, Fault, JobTable, read_table

MAX_UPLOAD_NBYTES: Final = 60 * 1024 * 1024
"""Below the limit of a request to the site; larger ones by the REST API, or as stored files."""
MAX_FAULTS: Final = 20
SHOWN_JOBS: Final = 10
KEPT_DAYS: Final = 7
MAX_DRAFTS: Final = 20
"""The limit for one person: the oldest is discarded for a new one, because each may take 60 MiB of the disk."""
DEFAULT_FIELDS: Final = tuple(name for name in FIELDS if name not in ("name", "input_files", "program_files"))
_JOB: Final = re.compile(r"jobs\[(\d+)\]\.?(.*)", re.DOTALL)


class DraftError(MessageError):
    """The draft cannot be submitted: it has faults."""


class UploadRefused(Exception):
    """What was uploaded has faults, so that nothing of it is kept."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(*map(str, faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class ShownJob:
    """A job of the dry run. ``place``: where it is in the upload."""

    place: str | Message
    name: str
    fields: Mapping[str, Any]
    inputs: list[str]


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a submission would create; nothing if there are faults. Sizes in bytes, FLOPs of one result each."""

    njobs: int
    nresults: int
    fpops_est: float
    nfiles: int
    files_nbytes: int
    first: list[ShownJob]
    faults: list[Fault]
    forecast: BatchForecast


def keep(
    owner: User,
    app: App,
    upload: File[bytes],
    *,
    is_archive: bool,
    name: str,
    open_name: str,
    defaults: dict[str, Any],
    now: dt.datetime,
) -> SubmissionDraft:
    """Store an upload if jobs can be made from it. ``defaults``: fields that all jobs have in common.

    Raises UploadRefused, which names the faults; then nothing is stored.
    """
    draft = SubmissionDraft(
        owner=owner, app=app, name=name, is_archive=is_archive, open_name=open_name, defaults=defaults
    )
    upload.seek(0)
    draft.path = default_storage.save(f"drafts/{draft.request_id}", upload)
    draft.save()
    if faults := dry_run(draft, now).faults:
        discard(draft)
        raise UploadRefused(faults)
    for old in SubmissionDraft.objects.filter(owner=owner).order_by("-pk")[MAX_DRAFTS:]:
        discard(old)
    return draft


def dry_run(draft: SubmissionDraft, now: dt.datetime) -> DryRun:
    """Return what submitting this draft would create. Changes nothing."""
    with _table(draft, checks=True) as table:
        jobs: list[SubmittedJob] = []
        faults = table.faults[:MAX_FAULTS]
        if not faults:
            jobs, problems = submit.check(draft.app, draft.defaults, table.jobs, MAX_FAULTS, owner=draft.owner)
            faults = [_fault(error, table.places) for error in problems]
        contents = {file.content: file.nbytes for job in jobs for file in job.inputs if file.content is not None}
        return DryRun(
            njobs=len(jobs),
            nresults=sum(job.fields["target_nresults"] for job in jobs),
            fpops_est=sum(job.fields["fpops_est"] for job in jobs),
            nfiles=len(contents),
            files_nbytes=sum(contents.values()),
            first=[
                ShownJob(place, job.name, job.fields, [file.open_name for file in job.inputs])
                for place, job in zip(table.places[:SHOWN_JOBS], jobs, strict=False)
            ],
            faults=faults,
            forecast=of_jobs(draft.app_id, draft.owner_id, jobs, now),
        )


@transaction.atomic
def submit_draft(draft: SubmissionDraft, now: dt.datetime) -> Batch:
    """Submit the jobs, once: if repeated, return the batch of the first time. Raises DraftError.

    Locks the draft, so that the second of two clicks waits.
    """
    locked = SubmissionDraft.objects.select_for_update(of=("self",)).select_related("app", "owner").get(pk=draft.pk)
    if locked.batch is not None:
        return locked.batch
    with _table(locked, checks=False) as table:
        if table.faults:
            raise DraftError(table.faults[0].whole())
        try:
            locked.batch, _ = submit.submit(
                locked.app,
                locked.defaults,
                table.jobs,
                owner=locked.owner,
                name=locked.name,
                request_id=locked.request_id,
                now=now,
            )
        except JobError as error:
            raise DraftError(_fault(error, table.places).whole()) from error
    locked.save(update_fields=["batch"])
    return locked.batch


def discard(draft: SubmissionDraft) -> None:
    """Discard a draft and its upload. Anything that was submitted from it stays."""
    default_storage.delete(draft.path)
    draft.delete()


def discard_old(now: dt.datetime) -> int:
    """Discard old drafts; return how many."""
    old = list(SubmissionDraft.objects.filter(created_at__lt=now - dt.timedelta(days=KEPT_DAYS)))
    for draft in old:
        discard(draft)
    return len(old)


@contextmanager
def _table(draft: SubmissionDraft, *, checks: bool) -> Iterator[JobTable]:
    """Yield the jobs of the upload; their files can be read inside the block.

    ``checks``: also unpack each file, because damage is only found this way.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(default_storage.open(draft.path, "rb"))
        except FileNotFoundError:
            yield JobTable(faults=[Fault("", "", Message("upload_gone"))])
            return
        if not draft.is_archive:
            yield _of_text(file.read(MAX_TABLE_NBYTES + 1))
            return
        archive = stack.enter_context(archives.opened(file))
        yield _of_archive(archive, draft.open_name, checks=checks)


def _of_text(raw: bytes) -> JobTable:
    if len(raw) > MAX_TABLE_NBYTES:
        return JobTable(faults=[Fault("", "", Message("table_limit", nbytes=MAX_TABLE_NBYTES))])
    try:
        return read_table(raw.decode("utf-8-sig"), {})
    except UnicodeDecodeError as error:
        return JobTable(faults=[Fault("", "", Message("table_no_text", reason=error))])


def _of_archive(archive: archives.Archive, open_name: str, *, checks: bool) -> JobTable:
    faults = list(archive.faults)
    if checks and not faults:
        checked = ((path, entry.check()) for path, entry in archive.files.items() if isinstance(entry, archives.Entry))
        faults = [Fault(path, "", message) for path, message in checked if message]
    if faults:
        return JobTable(faults=faults)
    if archive.table is not None:
        return read_table(archive.table, archive.files)
    jobs = [{"input_files": [{"open_name": open_name, "content": entry}]} for entry in archive.files.values()]
    return JobTable(jobs=jobs, places=list(archive.files))


def _fault(error: JobError, places: list[str | Message]) -> Fault:
    """Convert an error into a fault, located in the upload."""
    match = _JOB.fullmatch(error.field)
    if match is None:
        return Fault("", error.field, error.message)
    return Fault(places[int(match[1])], match[2], error.message)

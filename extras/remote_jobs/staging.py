"""Input files that programs stage: stored under the names that they give, for as long as an open batch needs them.

Locks: rows of staged files by number. A submission locks the stored files that its jobs name, and the reaper checks
again once it has the locks of both: so no file is deleted that a batch has just come to need.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Sequence
from typing import Final

import structlog
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from credit.models import Batch
from extras.remote_jobs.models import StagedFile
from portal.models import User
from portal.object_storage.errors import StorageUnreachable
from scheduler.engine.limits import is_job_name
from scheduler.files import sql
from scheduler.files.inputs import is_referred_to, reserved
from scheduler.files.store import StoringError, store_file
from scheduler.models import StoredFile

log = structlog.get_logger(__name__)
MAX_NAMES: Final = 10_000
MAX_STAGED_FILES: Final = 100_000
"""The most staged files of one person."""
UNUSED_FOR: Final = dt.timedelta(days=7)
"""A file that no batch has named yet may still be on its way into one."""
ASKED_FOR: Final = dt.timedelta(hours=1)
"""A program that was told that a file is present may submit jobs with it for this long, in any batch."""
_MD5_NAME: Final = re.compile(r"(?:jf_)?([0-9a-f]{32})(?![0-9A-Za-z])")
_AT_ONCE: Final = 1000


class StagingError(Exception):
    """A file that cannot be staged, in BOINC's words where it has some."""


def check_names(names: Sequence[str]) -> None:
    if len(names) > MAX_NAMES:
        raise StagingError(f"{len(names)} files; the limit is {MAX_NAMES}")
    if not all(map(is_job_name, names)) or reserved(names):
        raise StagingError("bad filename")


@transaction.atomic
def absent(names: Sequence[str], owner: User, batch: Batch | None, delete_at: dt.datetime | None) -> list[int]:
    """Return the positions of the missing files; the others stay for this batch, and until ``delete_at`` at least."""
    check_names(names)
    rows = _locked(names)
    here = _inputs(names, owner)
    for row in rows:
        _keep(row, batch, delete_at)
    return [number for number, name in enumerate(names) if name not in here]


def stage(name: str, content: File[bytes], owner: User, batch: Batch | None, delete_at: dt.datetime | None) -> None:
    """Store a file; does nothing if it is present with the same content. Raises StagingError."""
    if StagedFile.objects.filter(owner=owner)[:MAX_STAGED_FILES].count() == MAX_STAGED_FILES:
        raise StagingError(f"{name}: you have {MAX_STAGED_FILES} files here, which is the limit; retire batches")
    try:
        with transaction.atomic():
            staged = _locked([name])  # or the reaper has it, and is then done
            before = StoredFile.objects.filter(name=name).first()
            if before is not None and before.batch_id is not None:
                raise StagingError(f"file immutability violation for {name}")
            file = store_file(name, content)
            if before is not None and before.deleted_at is None and not staged:
                return  # an operator's: it stays
            row, _ = StagedFile.objects.get_or_create(file=file, defaults={"owner": owner, "delete_at": delete_at})
            _keep(row, batch, delete_at)
    except StoringError as error:
        raise StagingError(f"file immutability violation for {name}") from error


def need(names: Iterable[str], batch: Batch) -> None:
    """Keep these files for as long as the batch is open."""
    through = StagedFile.batches.through
    rows = StagedFile.objects.filter(file__name__in=names).values_list("pk", flat=True)
    through.objects.bulk_create(
        [through(stagedfile_id=row, batch_id=batch.pk) for row in rows], ignore_conflicts=True, batch_size=_AT_ONCE
    )


def reap(now: dt.datetime) -> int:
    """Delete the files that no open batch needs; return how many."""
    after = count = 0
    while True:
        with transaction.atomic():
            unneeded = _unneeded(now).filter(pk__gt=after).order_by("pk")[:_AT_ONCE]
            locked = unneeded.select_related("file").select_for_update(skip_locked=True, of=("self", "file"))
            ids = [row.pk for row in locked]
            if not ids:
                return count
            after = ids[-1]
            # A batch may have come to need one between the first check and the lock.
            rows = list(_unneeded(now).filter(pk__in=ids).select_related("file"))
            used = _used_names([row.file.name for row in rows])
            unused = [row for row in rows if row.file.name not in used and not is_referred_to(row.file)]
            count += sum(_delete(row, now) for row in unused)


def _unneeded(now: dt.datetime) -> QuerySet[StagedFile]:
    through = StagedFile.batches.through
    of_this = through.objects.filter(stagedfile_id=OuterRef("pk"))
    is_needed = of_this.filter(batch__retired_at=None, batch__cancelled_at=None)
    is_due = Q(delete_at__lte=now) | Q(delete_at=None) & (Exists(of_this) | Q(asked_at__lte=now - UNUSED_FOR))
    return StagedFile.objects.filter(is_due, ~Exists(is_needed), asked_at__lte=now - ASKED_FOR)


def _used_names(names: Sequence[str]) -> set[str]:
    """Return the names that unfinished jobs use, however these were submitted: also over REST, or as retried
    failures.
    """
    with connection.cursor() as cursor:
        cursor.execute(sql.USED_NAMES, [list(names)])
        return {name for (name,) in cursor.fetchall()}


def _delete(row: StagedFile, now: dt.datetime) -> int:
    try:
        default_storage.delete(row.file.path)
    except StorageUnreachable as error:
        log.warning("staged_files_not_deleted", reason=str(error))
        return 0
    StoredFile.objects.filter(pk=row.pk).update(deleted_at=now)
    row.delete()
    return 1


def _locked(names: Iterable[str]) -> list[StagedFile]:
    rows = StagedFile.objects.filter(file__name__in=list(names)).order_by("pk")
    return list(rows.select_for_update(no_key=True, of=("self",)))


def _inputs(names: Sequence[str], owner: User) -> set[str]:
    """Return those of these names that are present and stay until somebody deletes them.

    Programs name files by MD5s of their content. If somebody else staged different content under such a name, it is not
    the requested file: then uploading it fails, instead of jobs computing something else.
    """
    files = StoredFile.objects.filter(name__in=names, batch=None, deleted_at=None)
    return {
        name
        for name, md5, staged_by in files.values_list("name", "md5", "staged__owner")
        if staged_by in (None, owner.pk) or (named := _MD5_NAME.match(name)) is None or named[1] == md5
    }


def _keep(row: StagedFile, batch: Batch | None, delete_at: dt.datetime | None) -> None:
    if batch is not None:
        row.batches.add(batch)
    if row.delete_at is not None and delete_at is not None and delete_at > row.delete_at:
        row.delete_at = delete_at
    row.asked_at = timezone.now()
    row.save(update_fields=["delete_at", "asked_at"])

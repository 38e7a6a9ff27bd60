"""Deletes what uploads leave in the storage: files that no row names, because a server died or lost a race.

Safe alongside uploads, and to interrupt: an upload whose pending file is gone stores the file again. A row is deleted
only after its file. Files on a server's own disk are deleted there (`scheduler.files.incoming`).

Locks: the rows of pending files, SKIP LOCKED.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import structlog
from django.core.files.storage import default_storage
from django.db import transaction

from portal.object_storage import storage
from portal.object_storage.errors import StorageError
from scheduler.models import PendingFile

log = structlog.get_logger(__name__)

UNUSED_KEPT: Final = dt.timedelta(days=1)
"""No request takes this long to put a file into the storage."""
BATCH: Final = 100
MOST: Final = 10_000
"""The number of files deleted per run; the next run continues."""


def delete(now: dt.datetime) -> int:
    """Delete the leftovers; return how many. Files that the storage cannot delete now wait for the next run."""
    before = now - UNUSED_KEPT
    number = 0
    while number < MOST and (done := _delete_batch(before)):
        number += done
    if storage.is_bucket(default_storage):
        try:
            for folder in storage.FOLDERS:
                default_storage.end_unfinished(folder, before)
        except StorageError as error:
            log.warning("storage_unfinished_not_ended", reason=str(error))
    return number


def _delete_batch(before: dt.datetime) -> int:
    """Delete a batch; return how many were deleted, 0 also if the storage cannot delete them."""
    with transaction.atomic():
        unused = PendingFile.objects.select_for_update(skip_locked=True).filter(begun_at__lt=before)
        files = list(unused.order_by("begun_at")[:BATCH])
        if not storage.forget([file.path for file in files]):
            return 0
        PendingFile.objects.filter(pk__in=[file.pk for file in files]).delete()
        return len(files)

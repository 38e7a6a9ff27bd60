"""Delete what uploads leave in the storage: files that no row names, as a server died or had lost the race.

Safe beside uploads, and to be cut off anywhere: an upload whose pending file is gone stores the file once more. A row
goes only after its file has. What lies on the disk of a server is deleted there (`scheduler.files.incoming`).

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
"""No request puts a file into the storage for this long."""
BATCH: Final = 100
MOST: Final = 10_000
"""Files that one run deletes; the next run goes on."""


def delete(now: dt.datetime) -> int:
    """Delete them; how many. What the storage does not let go of now stays for the next run."""
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
    """How many were deleted; 0 also if the storage does not let go of them."""
    with transaction.atomic():
        unused = PendingFile.objects.select_for_update(skip_locked=True).filter(begun_at__lt=before)
        files = list(unused.order_by("begun_at")[:BATCH])
        if not storage.forget([file.path for file in files]):
            return 0
        PendingFile.objects.filter(pk__in=[file.pk for file in files]).delete()
        return len(files)

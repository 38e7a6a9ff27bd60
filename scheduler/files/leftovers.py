"""Delete what uploads in parts leave in the storage: parts of files that nobody goes on with, and unused objects.

Safe beside uploads, and to be cut off anywhere. A part is taken out of force with its upload's row locked, and not
while a request may write; what is out of force is deleted when whoever began to write it must be done. A row goes only
after its object has.

Locks: the upload's row, or those of parts, SKIP LOCKED.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import structlog
from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Max

from portal.object_storage.backend import ObjectStorage, StorageError
from scheduler.files import in_parts, storage
from scheduler.models import IncomingPart

log = structlog.get_logger(__name__)

UNUSED_KEPT: Final = dt.timedelta(days=1)
"""No request writes an object for this long."""
BATCH: Final = 100
MOST: Final = 10_000
"""Objects that one run deletes, and uploads that it forgets; the next run goes on."""


def delete(now: dt.datetime) -> int:
    """Delete them; how many objects. What the storage does not let go of now stays for the next run."""
    _forget_abandoned(now - dt.timedelta(days=settings.UPLOADS_KEPT_DAYS))
    number = 0
    while number < MOST and (done := _delete_batch(now - UNUSED_KEPT)):
        number += done
    if isinstance(default_storage, ObjectStorage):
        try:
            for folder in storage.FOLDERS:
                default_storage.end_unfinished(folder, now - UNUSED_KEPT)
        except StorageError as error:
            log.warning("storage_unfinished_not_ended", reason=str(error))
    return number


def _forget_abandoned(before: dt.datetime) -> None:
    """Uploads of which no part has come since then: their parts are out of force."""
    names = (
        IncomingPart.objects.filter(is_in_force=True)
        .values("name")
        .annotate(last=Max("begun_at"))
        .filter(last__lt=before)
        .values_list("name", flat=True)[:MOST]
    )
    for name in names:
        with transaction.atomic():
            if in_parts.discard(name):
                # Of an upload, too, that was purged with its job or completed.
                IncomingPart.objects.filter(name=name, is_in_force=True, begun_at__lt=before).update(is_in_force=False)


def _delete_batch(before: dt.datetime) -> int:
    """How many were deleted; 0 also if the storage does not let go of them."""
    with transaction.atomic():
        unused = IncomingPart.objects.select_for_update(skip_locked=True).filter(is_in_force=False, begun_at__lt=before)
        parts = list(unused.order_by("begun_at")[:BATCH])
        if not storage.forget([part.path for part in parts]):
            return 0
        IncomingPart.objects.filter(pk__in=[part.pk for part in parts]).delete()
        return len(parts)

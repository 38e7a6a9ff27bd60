"""Delete files that no image has any more, once no unfinished job needs them.

Locks stored files by id, SKIP LOCKED: a file that somebody is storing again or submitting jobs with is kept.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import structlog
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from extras.containers.models import ImageFile
from portal.object_storage.errors import StorageUnreachable
from scheduler.files import sql
from scheduler.files.inputs import is_referred_to
from scheduler.models import StoredFile

log = structlog.get_logger(__name__)
AT_ONCE: Final = 500


def delete(files: QuerySet[StoredFile], now: dt.datetime) -> int:
    """Delete the unneeded ones among these files; return how many there were. Safe to repeat."""
    after = count = 0
    named = ImageFile.objects.filter(file=OuterRef("pk"))
    unnamed = files.filter(~Exists(named), name__startswith="image_", batch=None, deleted_at=None).order_by("pk")
    while True:
        with transaction.atomic():
            rows = list(unnamed.filter(pk__gt=after).select_for_update(skip_locked=True, of=("self",))[:AT_ONCE])
            if not rows:
                return count
            after = rows[-1].pk
            with connection.cursor() as cursor:
                cursor.execute(sql.USED_NAMES, [[row.name for row in rows]])
                used = {name for (name,) in cursor.fetchall()}
            # Checked again: an image may have started to use the file before it was locked.
            count += sum(_delete(row, now) for row in rows if row.name not in used and not is_referred_to(row))


def _delete(file: StoredFile, now: dt.datetime) -> bool:
    try:
        default_storage.delete(file.path)
    except StorageUnreachable as error:
        log.warning("image_files_not_deleted", reason=str(error))
        return False
    StoredFile.objects.filter(pk=file.pk).update(deleted_at=now)
    return True

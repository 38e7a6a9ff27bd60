"""The file deleter: removes files of finished workunits, and input files of finished batches.

Files kept by the default assimilation stay. A file that cannot be deleted marks its workunit, which is retried later
(`scheduler.lifecycle.retry_queue`). Locks: workunits by id, SKIP LOCKED. Deleting a file twice does no harm, so a pass
may be interrupted anywhere.

An upload in progress leaves nothing behind. It names what it stored (`scheduler.files.incoming`) only with a lock on
the workunit's row, and only if its files were not deleted; otherwise the file is deleted as a leftover.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import structlog
from django.core.files.storage import default_storage
from django.db import connection, transaction

from credit.engine.states import FileDeleteState
from portal.object_storage.errors import StorageUnreachable
from scheduler.lifecycle import retry_queue, sql
from scheduler.lifecycle.retry_queue import StepBatch, run_batches
from scheduler.models import Step, StoredFile

log = structlog.get_logger(__name__)
BATCH: Final = 1000


def run(now: dt.datetime) -> int:
    """Delete the files that are no longer needed; return the number of their workunits.

    While the object storage cannot be reached, all of them wait for a later pass.
    """
    try:
        return _delete_all(now)
    except StorageUnreachable as error:
        log.warning("files_not_deleted", reason=str(error))
        return 0


def _delete_all(now: dt.datetime) -> int:
    after = 0

    def run_one(batch: StepBatch) -> int:
        nonlocal after
        done = _delete_outputs(batch, after, now)
        after = batch.ids[-1] if batch.ids else after
        return done

    total = run_batches(Step.DELETE_FILES, now, BATCH, run_one)
    after = 0
    while last := _delete_inputs(after, now):
        after = last
    with connection.cursor() as cursor:
        cursor.execute(sql.DELETE_UNNEEDED_STICKY_FILES)
    return total


def _delete_outputs(batch: StepBatch, after: int, now: dt.datetime) -> int:
    """Delete outputs of workunits after the id ``after``; return how many were examined."""
    with connection.cursor() as cursor:
        cursor.execute(
            sql.LOCK_TO_DELETE, {"limit": batch.limit, "after": after, "now": now, "step": Step.DELETE_FILES.value}
        )
        batch.ids = [row[0] for row in cursor.fetchall()]
        cursor.execute(sql.UPLOADED_PATHS, {"ids": batch.ids})
        failed = {workunit_id: path for workunit_id, path in cursor.fetchall() if not _delete(path)}
        deleted = [id_ for id_ in batch.ids if id_ not in failed]
        cursor.execute(sql.MARK_RESULTS_DELETED, {"ids": deleted})
        states = [FileDeleteState.ERROR if id_ in failed else FileDeleteState.DONE for id_ in batch.ids]
        cursor.execute(sql.MARK_WORKUNITS_DELETED, {"ids": batch.ids, "states": [int(state) for state in states]})
        faults = {id_: f"{path} could not be deleted; the log says why." for id_, path in failed.items()}
        retry_queue.enqueue(Step.DELETE_FILES, faults, now)
        retry_queue.remove(cursor, Step.DELETE_FILES, deleted)
        return len(batch.ids)


def _delete_inputs(after: int, now: dt.datetime) -> int:
    """Delete inputs after the id ``after``; return the last id examined, 0 if there was none."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.LOCK_INPUTS_TO_DELETE, {"after": after, "limit": BATCH})
        rows = cursor.fetchall()
        gone = [id_ for id_, path in rows if _delete(path)]
        StoredFile.objects.filter(pk__in=gone).update(deleted_at=now)
        return rows[-1][0] if rows else 0


def _delete(path: str) -> bool:
    try:
        default_storage.delete(path)
    except StorageUnreachable:
        raise
    except Exception:
        # Storages may raise anything, and one file must not hold up all others.
        log.exception("file_not_deleted", path=path)
        return False
    return True

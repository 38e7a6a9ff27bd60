"""The file deleter: removes files of workunits that are done, and input files of batches that are.

What the default assimilation keeps stays. A file that cannot be deleted marks its workunit, which is tried again later
(`scheduler.lifecycle.retry_queue`). Locks: workunits by id, SKIP LOCKED. Deleting a file twice does no harm, so a pass
may be cut off anywhere. An upload that is going on leaves nothing behind: it holds its file's lock from a moment on at
which the workunit's files were needed (`scheduler.files.receive`), and here such a workunit waits for the next pass.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import structlog
from django.core.files.storage import default_storage
from django.db import connection, transaction

from credit.engine.states import FileDeleteState
from scheduler.files import receive
from scheduler.lifecycle import retry_queue
from scheduler.lifecycle.retry_queue import IS_SET_ASIDE, Batch, run_batches
from scheduler.models import Step, StoredFile, Upload

log = structlog.get_logger(__name__)
BATCH: Final = 1000
_READY: Final = f"""
SELECT id FROM credit_workunit WHERE id IN (
       (SELECT id FROM credit_workunit q
         WHERE file_delete_state = 1 AND id > %(after)s AND NOT {IS_SET_ASIDE.format(workunit="q.id")}
         ORDER BY id LIMIT %(limit)s)
        UNION ALL
       (SELECT q.workunit_id FROM scheduler_setaside q
         WHERE q.step = %(step)s AND q.retry_at <= %(now)s AND q.workunit_id > %(after)s
         ORDER BY q.workunit_id LIMIT %(limit)s))
   AND file_delete_state IN (1, 3)
 ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
"""
# Outputs that were uploaded but never reported are known by their uploads only.
_PATHS: Final = """
SELECT r.workunit_id, u.path
  FROM credit_result r JOIN scheduler_upload u ON u.result_id = r.id
 WHERE r.workunit_id = ANY(%(ids)s) AND u.path <> ''
   AND NOT EXISTS (SELECT 1 FROM scheduler_keptoutput k WHERE k.path = u.path)
"""
_MARK_RESULTS: Final = """
UPDATE credit_result SET file_delete_state = 2 WHERE workunit_id = ANY(%(ids)s)
"""
_MARK_WORKUNITS: Final = """
UPDATE credit_workunit w SET file_delete_state = n.state
  FROM unnest(%(ids)s::bigint[], %(states)s::smallint[]) AS n(id, state) WHERE w.id = n.id
"""
# Inputs of a batch none of whose workunits may still be sent or downloaded.
_INPUTS: Final = """
SELECT f.id, f.path FROM scheduler_storedfile f
 WHERE f.batch_id IS NOT NULL AND f.deleted_at IS NULL AND f.id > %(after)s
   AND NOT EXISTS (SELECT 1 FROM credit_workunit w WHERE w.batch_id = f.batch_id AND w.file_delete_state < 2)
 ORDER BY f.id LIMIT %(limit)s FOR UPDATE OF f SKIP LOCKED
"""


def run(now: dt.datetime) -> int:
    """Delete what may go; how many workunits that concerned."""
    after = 0

    def run_one(batch: Batch) -> int:
        nonlocal after
        done = _delete_outputs(batch, after, now)
        after = batch.ids[-1] if batch.ids else after
        return done

    total = run_batches(Step.DELETE_FILES, now, BATCH, run_one)
    after = 0
    while last := _delete_inputs(after, now):
        after = last
    return total


def _delete_outputs(batch: Batch, after: int, now: dt.datetime) -> int:
    """How many workunits were looked at, behind the id ``after``."""
    with connection.cursor() as cursor:
        cursor.execute(_READY, {"limit": batch.limit, "after": after, "now": now, "step": Step.DELETE_FILES.value})
        batch.ids = [row[0] for row in cursor.fetchall()]
        # First the uploads that are not complete: what becomes complete while we look is then among the paths.
        parts = Upload.objects.filter(result__workunit__in=batch.ids, completed_at=None).order_by("id")
        names = parts.values_list("result__workunit_id", "name")
        coming = {workunit_id for workunit_id, name in names if not receive.discard(name)}
        ids = [id_ for id_ in batch.ids if id_ not in coming]
        cursor.execute(_PATHS, {"ids": ids})
        failed = {workunit_id: path for workunit_id, path in cursor.fetchall() if not _delete(path)}
        deleted = [id_ for id_ in ids if id_ not in failed]
        cursor.execute(_MARK_RESULTS, {"ids": deleted})
        states = [FileDeleteState.ERROR if id_ in failed else FileDeleteState.DONE for id_ in ids]
        cursor.execute(_MARK_WORKUNITS, {"ids": ids, "states": [int(state) for state in states]})
        faults = {id_: f"{path} could not be deleted; the log says why." for id_, path in failed.items()}
        retry_queue.set_aside(Step.DELETE_FILES, faults, now)
        retry_queue.end(cursor, Step.DELETE_FILES, deleted)
        return len(batch.ids)


def _delete_inputs(after: int, now: dt.datetime) -> int:
    """The last id that was looked at, behind ``after``; 0 if there was none."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_INPUTS, {"after": after, "limit": BATCH})
        rows = cursor.fetchall()
        gone = [id_ for id_, path in rows if _delete(path)]
        StoredFile.objects.filter(pk__in=gone).update(deleted_at=now)
        return rows[-1][0] if rows else 0


def _delete(path: str) -> bool:
    try:
        default_storage.delete(path)
    except Exception:
        # Whatever the storage's backend raises: one file must not hold up all others.
        log.exception("file_not_deleted", path=path)
        return False
    return True

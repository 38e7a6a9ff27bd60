"""The file deleter: removes files of workunits that are done, and input files of batches that are.

What the default assimilation keeps stays. A file that cannot be deleted marks its workunit, which is then left alone.
Locks: workunits by id, SKIP LOCKED. Deleting a file twice does no harm, so a pass may be cut off anywhere.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import structlog
from django.core.files.storage import default_storage
from django.db import connection, transaction

from credit.models import FileDeleteState
from scheduler import receiving
from scheduler.models import StoredFile, Upload

log = structlog.get_logger(__name__)
BATCH: Final = 1000
_READY: Final = """
SELECT id FROM credit_workunit WHERE file_delete_state = 1 ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
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
 WHERE f.batch_id IS NOT NULL AND f.deleted_at IS NULL
   AND NOT EXISTS (SELECT 1 FROM credit_workunit w WHERE w.batch_id = f.batch_id AND w.file_delete_state < 2)
 ORDER BY f.id LIMIT %(limit)s FOR UPDATE OF f SKIP LOCKED
"""


def run(now: dt.datetime) -> int:
    """Delete what may go; how many workunits that concerned."""
    total = 0
    while done := _delete_outputs():
        total += done
    while _delete_inputs(now):
        pass
    return total


def _delete_outputs() -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_READY, {"limit": BATCH})
        ids = [row[0] for row in cursor.fetchall()]
        cursor.execute(_PATHS, {"ids": ids})
        failed = {workunit_id for workunit_id, path in cursor.fetchall() if not _delete(path)}
        parts = Upload.objects.filter(result__workunit__in=ids, completed_at=None)
        for name in parts.values_list("name", flat=True):
            receiving.discard(name)
        cursor.execute(_MARK_RESULTS, {"ids": [id_ for id_ in ids if id_ not in failed]})
        states = [FileDeleteState.ERROR if id_ in failed else FileDeleteState.DONE for id_ in ids]
        cursor.execute(_MARK_WORKUNITS, {"ids": ids, "states": [int(state) for state in states]})
        return len(ids)


def _delete_inputs(now: dt.datetime) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_INPUTS, {"limit": BATCH})
        rows = cursor.fetchall()
        gone = [id_ for id_, path in rows if _delete(path)]
        StoredFile.objects.filter(pk__in=gone).update(deleted_at=now)
        return len(gone)


def _delete(path: str) -> bool:
    try:
        default_storage.delete(path)
    except Exception:
        # Whatever the storage's backend raises: one file must not hold up all others.
        log.exception("file_not_deleted", path=path)
        return False
    return True

"""SQL of uploads that changes or locks something."""

from __future__ import annotations

from typing import Final

from credit.engine.states import FileDeleteState

BEGIN: Final = f"""
INSERT INTO scheduler_upload (result_id, name, path, nbytes, md5, sent_md5, started_at)
SELECT %(result)s, %(name)s, '', %(nbytes)s, %(md5)s, '', now()
  FROM credit_workunit WHERE id = %(workunit)s AND file_delete_state = {FileDeleteState.INIT} FOR SHARE
    ON CONFLICT (name) DO UPDATE SET nbytes = EXCLUDED.nbytes, md5 = EXCLUDED.md5, sent_nbytes = NULL, sent_md5 = ''
 WHERE scheduler_upload.completed_at IS NULL
"""
"""Records what is announced, unless the file is complete or no longer needed. Locks the workunit, then the upload."""
LOCK_WORKUNIT: Final = f"""
SELECT 1 FROM credit_workunit WHERE id = %s AND file_delete_state <> {FileDeleteState.DONE} FOR SHARE
"""
"""Waits for a file deleter that has the workunit, and sees its changes. Until the transaction ends, others skip it."""
USED_NAMES: Final = f"""
SELECT DISTINCT file->>'name' FROM credit_workunit CROSS JOIN jsonb_array_elements(input_files) AS file
 WHERE file_delete_state < {FileDeleteState.DONE} AND file->>'name' = ANY(%s)
"""
"""Those of these names that are files of unfinished jobs, however they were submitted. Locks nothing."""

"""SQL of the background steps, by step.

Locks are taken in the order of the whole project server: workunits by id, results by id, (host, version) records by id.
A statement that takes workunits from a queue locks them with SKIP LOCKED, so steps never wait for one another. States
are literals here: the conditions of partial indexes need them.
"""

from __future__ import annotations

from typing import Final

from credit.app_history.sql import COUNT
from credit.engine.states import AssimilateState, FileDeleteState, Outcome, ServerState, WorkunitError

# --- The retry queue --------------------------------------------------------------------------------

IS_QUEUED: Final = """coalesce((SELECT s.retry_at FROM scheduler_retryentry s
        WHERE s.workunit_id = {workunit} AND s.step = %(step)s) > %(now)s, false)"""
"""Part of a step's condition: the workunit waits in the retry queue.

A value and not a join, so that the planner sticks to the index of the step's own queue.
"""
# Locks workunits by id. A separate statement, so that the next one sees what the last holder of the lock committed.
LOCK_WORKUNITS_TO_RETRY: Final = "SELECT FROM credit_workunit WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE"
ENQUEUE: Final = f"""
INSERT INTO scheduler_retryentry AS s (workunit_id, step, fault, ntries, since, retry_at)
SELECT n.id, %(step)s, n.fault, 1, %(now)s, %(now)s::timestamptz + make_interval(secs => %(first)s)
  FROM unnest(%(ids)s::bigint[], %(faults)s::text[]) AS n(id, fault) JOIN credit_workunit w ON w.id = n.id
 -- Another worker may have completed the step since it failed here; then nothing would ever remove the row.
 WHERE CASE %(step)s
       WHEN 'transition' THEN w.transition_at IS NOT NULL OR EXISTS (SELECT FROM credit_result r
            WHERE r.workunit_id = w.id AND r.server_state = {ServerState.IN_PROGRESS} AND r.deadline_at < %(now)s)
       WHEN 'assimilate' THEN w.assimilate_state = {AssimilateState.READY}
       WHEN 'delete_files' THEN w.file_delete_state IN ({FileDeleteState.READY}, {FileDeleteState.ERROR})
       ELSE true END
 ORDER BY n.id
    ON CONFLICT (workunit_id, step) DO UPDATE
   SET fault = excluded.fault, ntries = least(s.ntries + 1, 1000000), retry_at = %(now)s::timestamptz
       + make_interval(secs => least(%(first)s * power(2, least(s.ntries, 30)), %(last)s))
"""
"""Puts workunits into the retry queue, or back with a longer delay. They are already locked."""

# --- The transitioner -------------------------------------------------------------------------------

LOCK_DUE_WORKUNITS: Final = f"""
SELECT w.id, w.min_quorum, w.target_nresults, w.max_error_results, w.max_total_results, w.max_success_results,
       w.error_mask, w.canonical_result_id IS NOT NULL, w.assimilate_state, w.file_delete_state, w.confirm_until,
       w.hr_class > 0 OR w.bound_version_id IS NOT NULL, w.lane, w.app_version_num, w.size_class
  FROM credit_workunit w
 WHERE w.id IN (
       (SELECT id FROM credit_workunit q
         WHERE transition_at IS NOT NULL AND NOT {IS_QUEUED.format(workunit="q.id")}
         ORDER BY transition_at LIMIT %(limit)s)
        UNION ALL
       (SELECT workunit_id FROM credit_result q
         WHERE server_state = {ServerState.IN_PROGRESS} AND deadline_at < %(now)s
           AND NOT {IS_QUEUED.format(workunit="q.workunit_id")}
         ORDER BY deadline_at LIMIT %(limit)s))
 ORDER BY w.id LIMIT %(limit)s
   FOR NO KEY UPDATE OF w SKIP LOCKED
"""
"""Locks workunits by id, SKIP LOCKED: those to be examined, or with a result in progress past its deadline.

A requested check is due at once: the time says which has waited longest, perhaps by a clock that was ahead.
"""
COUNT_RESULTS: Final = """
SELECT workunit_id, count(*) FROM credit_result WHERE workunit_id = ANY(%(ids)s) GROUP BY workunit_id
"""
LOCK_RESULTS: Final = """
SELECT workunit_id, id, server_state, outcome, validate_state, deadline_at
  FROM credit_result WHERE workunit_id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
"""
"""Locks results by id, SKIP LOCKED, after their workunits."""
CHANGE_RESULTS: Final = """
UPDATE credit_result r SET server_state = n.server_state, outcome = n.outcome, validate_state = n.validate_state
  FROM unnest(%(ids)s::bigint[], %(server_states)s::smallint[], %(outcomes)s::smallint[],
              %(validate_states)s::smallint[])
       AS n(id, server_state, outcome, validate_state)
 WHERE r.id = n.id
"""
FREE_WORKUNITS: Final = f"""
WITH freed AS (
  UPDATE credit_workunit w SET hr_class = 0, bound_version_id = NULL, lane = n.lane
    FROM unnest(%(ids)s::bigint[], %(lanes)s::bigint[]) AS n(id, lane) WHERE w.id = n.id
  RETURNING w.id, w.lane)
UPDATE credit_result r SET lane = freed.lane FROM freed
 WHERE r.workunit_id = freed.id AND r.server_state = {ServerState.UNSENT}
"""
"""Unbinds workunits from class and version, and moves their waiting results. All of these are already locked."""
# Like credit.engine.probation at a time-out (count_error, count_crash), once for each time-out of a record, and for the
# records of newer versions (count_failing). A quota of 0 is not set yet: the scheduler will set it, because it knows
# how many instances the host has.
PENALISE_HOSTS: Final = """
WITH late AS (
  SELECT r.host_id, r.app_version_id, r.app_id, r.processor_type, count(*) AS n, max(w.delay_bound_secs) AS bound_secs
    FROM credit_result r JOIN credit_workunit w ON w.id = r.workunit_id
   WHERE r.id = ANY(%(ids)s) AND r.host_id IS NOT NULL
   GROUP BY r.host_id, r.app_version_id, r.app_id, r.processor_type),
own AS (
  SELECT v.id, late.n, 0 AS nolder, late.bound_secs
    FROM late JOIN credit_hostappversion v ON v.host_id = late.host_id
         AND (v.app_version_id = late.app_version_id
              OR (late.app_version_id IS NULL AND v.app_version_id IS NULL AND v.app_id = late.app_id
                  AND v.processor_type = late.processor_type))),
newer AS (
  SELECT v.id, 0 AS n, late.n AS nolder, 0 AS bound_secs
    FROM late JOIN credit_appversion o ON o.id = late.app_version_id
    JOIN credit_appversion r ON r.app_id = o.app_id AND r.platform_id = o.platform_id AND r.plan_class = o.plan_class
         AND r.version_num > o.version_num
    JOIN credit_hostappversion v ON v.host_id = late.host_id AND v.app_version_id = r.id),
counts AS (
  SELECT id, sum(n) AS n, sum(nolder) AS nolder, max(bound_secs) AS bound_secs
    FROM (TABLE own UNION ALL TABLE newer) each GROUP BY id),
records AS (
  SELECT v.id, c.n, c.nolder, c.bound_secs
    FROM counts c JOIN credit_hostappversion v ON v.id = c.id ORDER BY v.id FOR NO KEY UPDATE OF v)
UPDATE credit_hostappversion v
   SET scale_probation = v.scale_probation OR records.n > 0,
       host_scale_at = CASE records.n WHEN 0 THEN v.host_scale_at
                            ELSE GREATEST(v.host_scale_at, %(now)s + make_interval(secs => records.bound_secs)) END,
       error_rate = LEAST(1, v.error_rate + %(step)s * records.n),
       consecutive_valid = CASE records.n WHEN 0 THEN v.consecutive_valid ELSE 0 END,
       failing_share = 1 - (1 - v.failing_share) * power(1 - %(weight)s::float8, (records.n + records.nolder)::float8),
       max_jobs_per_day = CASE v.max_jobs_per_day WHEN 0 THEN 0
                               ELSE GREATEST(1, v.max_jobs_per_day - records.n::int) END
  FROM records WHERE v.id = records.id
"""
"""Locks (host, version) records by id, after the results."""
CHANGE_WORKUNITS: Final = """
UPDATE credit_workunit w
   SET transition_at = NULL, need_validate = (w.need_validate OR n.need_validate) AND n.error_mask = 0,
       -- The result that it waited for has come.
       validate_after = CASE WHEN n.need_validate AND w.validate_fault = '' THEN NULL ELSE w.validate_after END,
       error_mask = n.error_mask,
       assimilate_state = n.assimilate_state, file_delete_state = n.file_delete_state
  FROM unnest(%(ids)s::bigint[], %(need_validate)s::boolean[], %(error_mask)s::smallint[],
              %(assimilate_state)s::smallint[], %(file_delete_state)s::smallint[])
       AS n(id, need_validate, error_mask, assimilate_state, file_delete_state)
 WHERE w.id = n.id
"""

# --- Jobs that can never be sent --------------------------------------------------------------------

LOCK_UNSENDABLE: Final = f"""
SELECT id FROM credit_workunit WHERE id IN (
       (SELECT workunit_id FROM credit_result
         WHERE app_id = %(app)s AND server_state = {ServerState.UNSENT} AND lane = 0 LIMIT %(limit)s)
        UNION ALL
       (SELECT workunit_id FROM credit_result
         WHERE app_id = %(app)s AND server_state = {ServerState.UNSENT} AND lane <> 0 LIMIT %(limit)s))
 ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
"""
"""Locks workunits by id, SKIP LOCKED."""
END_UNSENDABLE: Final = f"""
WITH ended AS (
  UPDATE credit_result SET server_state = {ServerState.OVER}, outcome = {Outcome.COULD_NOT_SEND}
   WHERE workunit_id = ANY (%(ids)s) AND server_state = {ServerState.UNSENT} RETURNING workunit_id)
UPDATE credit_workunit w SET transition_at = least(w.transition_at, %(now)s)
 WHERE w.id IN (SELECT workunit_id FROM ended)
"""
"""Changes results of workunits that are locked."""

# --- The assimilator --------------------------------------------------------------------------------

# The app is a range: with a constant, the planner would consider the order by id sufficient, and walk through all
# workunits by their primary key, including those assimilated years ago, instead of the few that wait.
LOCK_TO_ASSIMILATE: Final = f"""
SELECT id FROM credit_workunit w
 WHERE app_id >= %(app)s AND app_id <= %(app)s AND assimilate_state = {AssimilateState.READY}
   AND NOT {IS_QUEUED.format(workunit="w.id")}
 ORDER BY app_id, id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
"""
"""Locks workunits by id, SKIP LOCKED."""
KEEP_OUTPUTS: Final = """
INSERT INTO scheduler_keptoutput (batch_id, workunit_name, number, name, path, nbytes, md5, kept_at)
SELECT w.batch_id, w.name, file.number - 1, w.output_files->(file.number::int - 1)->>'open_name', o.value->>'path',
       (o.value->>'nbytes')::bigint, o.value->>'md5', %(now)s
  FROM credit_workunit w
  JOIN credit_result r ON r.id = w.canonical_result_id
  LEFT JOIN credit_batch b ON b.id = w.batch_id,
       jsonb_array_elements(w.output_files) WITH ORDINALITY AS file(value, number),
       jsonb_array_elements(r.outputs) AS o(value)
 WHERE w.id = ANY(%(ids)s) AND b.retired_at IS NULL AND o.value->>'name' = r.name || '_' || (file.number - 1)
 ORDER BY w.id, file.number
    ON CONFLICT (workunit_name, number) DO NOTHING
"""
MARK_ASSIMILATED: Final = f"""
UPDATE credit_workunit SET assimilate_state = {AssimilateState.DONE}, assimilated_at = %(now)s, transition_at = %(now)s
 WHERE id = ANY(%(ids)s)
"""

# --- The file deleter -------------------------------------------------------------------------------

LOCK_TO_DELETE: Final = f"""
SELECT id FROM credit_workunit WHERE id IN (
       (SELECT id FROM credit_workunit q
         WHERE file_delete_state = {FileDeleteState.READY} AND id > %(after)s
           AND NOT {IS_QUEUED.format(workunit="q.id")}
         ORDER BY id LIMIT %(limit)s)
        UNION ALL
       (SELECT q.workunit_id FROM scheduler_retryentry q
         WHERE q.step = %(step)s AND q.retry_at <= %(now)s AND q.workunit_id > %(after)s
         ORDER BY q.workunit_id LIMIT %(limit)s))
   AND file_delete_state IN ({FileDeleteState.READY}, {FileDeleteState.ERROR})
 ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
"""
"""Locks workunits by id, SKIP LOCKED."""
# Outputs that were uploaded but never reported are only known by their uploads.
UPLOADED_PATHS: Final = """
SELECT r.workunit_id, u.path
  FROM credit_result r JOIN scheduler_upload u ON u.result_id = r.id
 WHERE r.workunit_id = ANY(%(ids)s) AND u.path <> ''
   AND NOT EXISTS (SELECT 1 FROM scheduler_keptoutput k WHERE k.path = u.path)
"""
MARK_RESULTS_DELETED: Final = f"""
UPDATE credit_result SET file_delete_state = {FileDeleteState.DONE} WHERE workunit_id = ANY(%(ids)s)
"""
MARK_WORKUNITS_DELETED: Final = """
UPDATE credit_workunit w SET file_delete_state = n.state
  FROM unnest(%(ids)s::bigint[], %(states)s::smallint[]) AS n(id, state) WHERE w.id = n.id
"""
_NO_JOB_NEEDS_IT: Final = f"""
       NOT EXISTS (SELECT 1 FROM credit_workunit w
                    WHERE w.batch_id = f.batch_id
                      AND (w.file_delete_state < {FileDeleteState.DONE}
                           OR w.error_mask > 0 AND w.error_mask & {int(WorkunitError.CANCELLED)} = 0
                              AND w.canonical_result_id IS NULL))
"""
LOCK_INPUTS_TO_DELETE: Final = f"""
SELECT f.id, f.path FROM scheduler_storedfile f
 WHERE f.batch_id IS NOT NULL AND f.deleted_at IS NULL AND f.id > %(after)s AND {_NO_JOB_NEEDS_IT}
 ORDER BY f.id LIMIT %(limit)s FOR UPDATE OF f SKIP LOCKED
"""
"""Locks input files by id, SKIP LOCKED: those of a batch without workunits that may still be sent or downloaded, or
submitted again after a failure (`scheduler.submission.retry`), which is possible until they are archived.
"""
DELETE_UNNEEDED_STICKY_FILES: Final = f"""
DELETE FROM scheduler_stickyfile WHERE id IN (
  SELECT f.id FROM scheduler_stickyfile f WHERE {_NO_JOB_NEEDS_IT} FOR UPDATE SKIP LOCKED)
"""
"""Makes computers delete the files that they kept for these batches. Locks the rows, SKIP LOCKED."""

# --- The purge --------------------------------------------------------------------------------------

# Nothing may still come for a purged task: neither a report that counts nor a transition.
LOCK_TO_ARCHIVE: Final = f"""
SELECT w.id FROM credit_workunit w
 WHERE w.file_delete_state = {FileDeleteState.DONE} AND w.assimilated_at < %(before)s
   AND w.transition_at IS NULL AND NOT w.need_validate
   AND NOT EXISTS (SELECT 1 FROM credit_result r WHERE r.workunit_id = w.id AND r.server_state <> {ServerState.OVER})
   AND NOT {IS_QUEUED.format(workunit="w.id")}
 ORDER BY w.assimilated_at LIMIT %(limit)s FOR UPDATE OF w SKIP LOCKED
"""
"""Locks workunits in the order of their assimilation, SKIP LOCKED, so that it waits for nobody."""
ARCHIVE_WORKUNITS: Final = """
INSERT INTO scheduler_archivedworkunit (id, app_id, batch_id, name, error_mask, facts, archived_at)
SELECT w.id, w.app_id, w.batch_id, w.name, w.error_mask,
       to_jsonb(w) - 'input_files' - 'output_files' - 'lane', %(now)s
  FROM credit_workunit w WHERE w.id = ANY(%(ids)s)
"""
ARCHIVE_TASKS: Final = """
INSERT INTO scheduler_archivedtask (id, workunit_id, user_id, host_id, app_version_id, facts)
SELECT r.id, r.workunit_id, r.user_id, r.host_id, r.app_version_id,
       to_jsonb(r) - 'user_id' - 'host_id' - 'app_version_id' - 'lane' - 'stderr_text' - 'outputs' - 'output_digest'
       || coalesce((SELECT jsonb_build_object('parts', jsonb_agg(to_jsonb(p) - 'id' - 'result_id' ORDER BY p.id))
                      FROM credit_resultpart p WHERE p.result_id = r.id HAVING count(*) > 0), '{}')
  FROM credit_result r WHERE r.workunit_id = ANY(%(ids)s)
"""
# Adds tasks to the days that histories by app read.
_COUNTED: Final = """
WITH counted AS (
  UPDATE scheduler_archivedtask t SET is_counted = true FROM scheduler_archivedworkunit w
   WHERE w.id = t.workunit_id AND {tasks} RETURNING t.user_id, w.app_id, t.host_id, t.facts)"""
COUNT_ARCHIVED: Final = _COUNTED.format(tasks="t.workunit_id = ANY(%(ids)s)") + COUNT.format(counted="counted")
# Counts the tasks imported with a moved project.
LOCK_UNCOUNTED: Final = """
SELECT id FROM scheduler_archivedtask WHERE NOT is_counted ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED"""
COUNT_TASKS: Final = _COUNTED.format(tasks="t.id = ANY(%(ids)s)") + COUNT.format(counted="counted")
# One by one, because the database has no cascades. The canonical result may go before its workunit, because no
# constraint refers to it.
DELETE_ARCHIVED: Final = (
    "DELETE FROM scheduler_upload u USING credit_result r WHERE u.result_id = r.id AND r.workunit_id = ANY(%(ids)s)",
    "DELETE FROM scheduler_formeroutput f USING credit_result r"
    " WHERE f.result_id = r.id AND r.workunit_id = ANY(%(ids)s)",
    "DELETE FROM scheduler_trickle t USING credit_result r WHERE t.result_id = r.id AND r.workunit_id = ANY(%(ids)s)",
    "DELETE FROM scheduler_trickledown d USING credit_result r"
    " WHERE d.result_id = r.id AND r.workunit_id = ANY(%(ids)s)",
    "DELETE FROM credit_resultpart p USING credit_result r WHERE p.result_id = r.id AND r.workunit_id = ANY(%(ids)s)",
    "DELETE FROM scheduler_retryentry WHERE workunit_id = ANY(%(ids)s)",
    "DELETE FROM credit_result WHERE workunit_id = ANY(%(ids)s)",
    "DELETE FROM credit_workunit WHERE id = ANY(%(ids)s)",
)

"""The statements of submission and of batches."""

from __future__ import annotations

from typing import Final

from credit.engine.states import AssimilateState, Outcome, ServerState

READ_PROGRESS: Final = f"""
SELECT b.id, coalesce(w.ndone, 0) + coalesce(a.ndone, 0), coalesce(w.nfailed, 0) + coalesce(a.nfailed, 0),
       coalesce(w.nready, 0) + coalesce(a.ndone, 0) + coalesce(a.nfailed, 0),
       coalesce(r.nunsent, 0), coalesce(r.nout, 0), coalesce(r.nover, 0),
       (SELECT count(*) FROM scheduler_keptoutput k WHERE k.batch_id = b.id)
  FROM credit_batch b
  LEFT JOIN LATERAL (
       SELECT count(*) FILTER (WHERE canonical_result_id IS NOT NULL) AS ndone,
              count(*) FILTER (WHERE error_mask > 0 AND canonical_result_id IS NULL) AS nfailed,
              count(*) FILTER (WHERE assimilate_state = {AssimilateState.DONE}) AS nready
         FROM credit_workunit WHERE batch_id = b.id) w ON true
  LEFT JOIN LATERAL (
       SELECT count(*) FILTER (WHERE error_mask = 0) AS ndone, count(*) FILTER (WHERE error_mask > 0) AS nfailed
         FROM scheduler_archivedworkunit WHERE batch_id = b.id) a ON true
  LEFT JOIN LATERAL (
       SELECT count(*) FILTER (WHERE r.server_state = {ServerState.UNSENT}) AS nunsent,
              count(*) FILTER (WHERE r.server_state = {ServerState.IN_PROGRESS}) AS nout,
              count(*) FILTER (WHERE r.server_state = {ServerState.OVER}) AS nover
         FROM credit_result r JOIN credit_workunit w ON w.id = r.workunit_id WHERE w.batch_id = b.id) r ON true
 WHERE b.id = ANY(%(ids)s)
"""
# Locks workunits by id, then their results. Unsent results are withdrawn at once, as thousands that nobody wants must
# not be sent before the transitioner comes by. The scheduler has those in progress aborted.
CANCEL: Final = f"""
WITH open AS (
  SELECT id FROM credit_workunit
   WHERE batch_id = %(batch)s AND canonical_result_id IS NULL AND error_mask = 0
     AND (%(workunits)s::bigint[] IS NULL OR id = ANY(%(workunits)s))
   ORDER BY id FOR NO KEY UPDATE),
withdrawn AS (
  UPDATE credit_result r SET server_state = {ServerState.OVER}, outcome = {Outcome.DIDNT_NEED} FROM open
   WHERE r.workunit_id = open.id AND r.server_state = {ServerState.UNSENT})
UPDATE credit_workunit w SET error_mask = %(cancelled)s, need_validate = false, transition_at = %(now)s
  FROM open WHERE w.id = open.id
"""
# Locks the files that jobs name, so that none is deleted before the jobs are there. What a batch brought goes with it.
NAMED_FILES: Final = """
SELECT * FROM scheduler_storedfile
 WHERE name = ANY(%s) AND deleted_at IS NULL AND batch_id IS NULL ORDER BY id FOR KEY SHARE
"""
MARK: Final = "coalesce((SELECT '_r' || mark FROM scheduler_generation ORDER BY id DESC LIMIT 1), '')"
"""What the names of results end in since the last restore of the database."""
MIN_WINDOW: Final = 256
"""Places beyond the newest result over which even a short queue is shuffled."""
# For {columns} and {values}: those of `scheduler.submission.create_work`. Locks nothing; the caller has the workunits
# locked, or nobody else sees them yet.
#
# The place of each result is drawn at random from the head of its queue to as far beyond the newest result as the head
# is before it. So copies of a workunit do not lie side by side, nobody knows which one comes when, and nothing that
# waits is overtaken for longer than the queue then was. The queue is measured once, before the first row is there:
# measured for each row, it would lead through all rows that the statement has inserted by then.
CREATE_RESULTS: Final = f"""
        INSERT INTO credit_result ({{columns}})
        WITH w AS (
          SELECT w.id, w.app_id, w.name, number, row_number() OVER (ORDER BY w.id, number) AS nth,
                 -- A replacement goes out before new work, so that its workunit ends soon.
                 LEAST(32767, w.priority + CASE WHEN number >= w.target_nresults THEN 1 ELSE 0 END) AS priority
            FROM unnest(%(ids)s::bigint[], %(firsts)s::int[], %(counts)s::int[]) AS wanted(id, first, n)
            JOIN credit_workunit w ON w.id = wanted.id,
                 generate_series(wanted.first, wanted.first + wanted.n - 1) AS number),
        newest AS (SELECT coalesce(max(id), 0) AS id FROM credit_result),
        queue AS MATERIALIZED (
          SELECT k.app_id, k.priority, newest.id - LEAST(newest.id, (
                   SELECT r.id + r.queue_shift FROM credit_result r
                    WHERE r.app_id = k.app_id AND r.server_state = {ServerState.UNSENT}
                      AND r.priority * -1 = k.priority * -1
                    ORDER BY r.id + r.queue_shift LIMIT 1)) AS length
            FROM (SELECT DISTINCT app_id, priority FROM w) k CROSS JOIN newest)
        SELECT {{values}}
          FROM w JOIN queue USING (app_id, priority)
         ORDER BY w.id, number
        """
SHIFT: Final = (
    f"floor(random() * (length + GREATEST(length, {MIN_WINDOW}) + (SELECT count(*) FROM w)))::bigint - length - nth"
)
"""From the place that a new result would have by its id to the place that was drawn for it."""
# Locks results that are not sent. Computers may have got them before the database was restored.
RENAME_UNSENT: Final = f"""
UPDATE credit_result SET name = regexp_replace(name, '_r[0-9a-f]{{8}}$', '') || {MARK}
 WHERE server_state = {ServerState.UNSENT}
"""

"""SQL of submission and of batches."""

from __future__ import annotations

from typing import Final

from credit.engine.states import AssimilateState, Outcome, ServerState, ValidateState
from scheduler.engine.lanes import FIRST_OF_SIZES, RELIABLE
from scheduler.engine.submission.fair_queue import FPOPS_PER_PLACE, LONGEST_JOB, MIN_WINDOW

_SIZE: Final = f"coalesce({FIRST_OF_SIZES} + w.size_class, 0)"
"""The lane of the queue that a workunit's results initially go into (`engine.submission.fair_queue`)."""
# Joins the positions of the first and the last job of a queue (k).
_ENDS: Final = f"""
  LEFT JOIN LATERAL (
       (SELECT id + queue_shift AS place FROM credit_result
         WHERE k.lane = 0 AND app_id = {{app}} AND server_state = {ServerState.UNSENT} AND lane = 0
           AND priority * -1 = k.priority * -1
         ORDER BY id + queue_shift LIMIT 1)
        UNION ALL
       (SELECT id + queue_shift FROM credit_result
         WHERE k.lane <> 0 AND app_id = {{app}} AND server_state = {ServerState.UNSENT} AND lane <> 0 AND lane = k.lane
           AND priority * -1 = k.priority * -1
         ORDER BY id + queue_shift LIMIT 1)) head ON true
  LEFT JOIN LATERAL (
       (SELECT id + queue_shift AS place FROM credit_result
         WHERE k.lane = 0 AND app_id = {{app}} AND server_state = {ServerState.UNSENT} AND lane = 0
           AND priority * -1 = k.priority * -1
         ORDER BY app_id DESC, priority * -1 DESC, id + queue_shift DESC LIMIT 1)
        UNION ALL
       (SELECT id + queue_shift FROM credit_result
         WHERE k.lane <> 0 AND app_id = {{app}} AND server_state = {ServerState.UNSENT} AND lane <> 0 AND lane = k.lane
           AND priority * -1 = k.priority * -1
         ORDER BY app_id DESC, lane DESC, priority * -1 DESC, id + queue_shift DESC LIMIT 1)) last ON true
"""
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
# Locks workunits by id, their results, and the ends of the submitter's work. Unsent results are withdrawn at once,
# because thousands that nobody needs must not be sent before the transitioner handles them. The scheduler has those in
# progress aborted. Withdrawn work is taken off the ends (`engine.submission.fair_queue`), so that a submission that
# corrects a mistake does not wait behind it. Replacements lie in another queue, where nobody has an end for them.
CANCEL: Final = f"""
WITH open AS (
  SELECT id FROM credit_workunit
   WHERE batch_id = %(batch)s AND canonical_result_id IS NULL AND error_mask = 0
     AND (%(workunits)s::bigint[] IS NULL OR id = ANY(%(workunits)s))
   ORDER BY id FOR NO KEY UPDATE),
withdrawn AS (
  UPDATE credit_result r SET server_state = {ServerState.OVER}, outcome = {Outcome.DIDNT_NEED} FROM open
   WHERE r.workunit_id = open.id AND r.server_state = {ServerState.UNSENT}
  RETURNING r.workunit_id, r.priority),
given_back AS (
  UPDATE scheduler_submitterplace e SET "end" = e."end" - freed.places / s.share
    FROM (SELECT b.owner_id, b.app_id, w.priority, {_SIZE} AS lane,
                 sum(LEAST(GREATEST(w.fpops_est / {FPOPS_PER_PLACE}, 1), {LONGEST_JOB})) AS places
            FROM withdrawn JOIN credit_workunit w ON w.id = withdrawn.workunit_id AND w.priority = withdrawn.priority
            JOIN credit_batch b ON b.id = w.batch_id
           GROUP BY 1, 2, 3, 4) freed
    JOIN scheduler_submitter s ON s.user_id = freed.owner_id
   WHERE (e.submitter_id, e.app_id, e.priority, e.lane)
         = (freed.owner_id, freed.app_id, freed.priority, freed.lane))
UPDATE credit_workunit w SET error_mask = %(cancelled)s, need_validate = false, transition_at = %(now)s
  FROM open WHERE w.id = open.id
"""
# Locks the files that jobs name, so that none is deleted before the jobs exist. A batch's own files are deleted with
# it.
NAMED_FILES: Final = """
SELECT * FROM scheduler_storedfile
 WHERE name = ANY(%s) AND deleted_at IS NULL AND batch_id IS NULL ORDER BY id FOR KEY SHARE
"""
# Reads the files whose names begin with the name of a job and "_", by the index for LIKE, whatever the collation is.
FILES_NAMED_AFTER: Final = """
SELECT f.* FROM unnest(%s::varchar[]) AS n(name)
  JOIN scheduler_storedfile f ON f.name ~>=~ (n.name || '_') AND f.name ~<~ (n.name || '`') AND f.deleted_at IS NULL
"""
_SEQUENCE: Final = "pg_get_serial_sequence('credit_result', 'id')"
_NEWEST: Final = f"(SELECT coalesce(pg_sequence_last_value({_SEQUENCE}::regclass), 0) AS id)"
MARK: Final = "coalesce((SELECT '_r' || mark FROM scheduler_generation ORDER BY id DESC LIMIT 1), '')"
"""The suffix of results' names since the last restore of the database."""
# Reads, for each of these queues of an app (by priority and size class), the id after the newest result's, the
# positions of the first and last job, and where the submitter's work ends. Locks nothing; the caller has the
# submitter's row locked.
READ_PLACES: Final = f"""
SELECT k.priority, k.lane, newest.id + 1, head.place, last.place, e.end
  FROM unnest(%(priorities)s::int[], %(lanes)s::bigint[]) AS k(priority, lane)
 CROSS JOIN {_NEWEST} newest
{_ENDS.format(app="%(app)s")}
  LEFT JOIN scheduler_submitterplace e
         ON e.submitter_id = %(submitter)s AND e.app_id = %(app)s AND e.priority = k.priority AND e.lane = k.lane
"""
# Deletes the ends of a submitter's work in the queues of an app that are empty now: they no longer count.
FORGET_PLACES: Final = f"""
DELETE FROM scheduler_submitterplace e
 WHERE e.submitter_id = %(submitter)s AND e.app_id = %(app)s
   AND NOT EXISTS (SELECT FROM credit_result r
                    WHERE e.lane = 0 AND r.app_id = %(app)s AND r.server_state = {ServerState.UNSENT}
                      AND r.lane = 0 AND r.priority * -1 = e.priority * -1)
   AND NOT EXISTS (SELECT FROM credit_result r
                    WHERE e.lane <> 0 AND r.app_id = %(app)s AND r.server_state = {ServerState.UNSENT}
                      AND r.lane <> 0 AND r.lane = e.lane AND r.priority * -1 = e.priority * -1)
"""
# A person's undecided workunits, and the FLOPs of their copies. Locks nothing.
UNDER_WAY: Final = """
SELECT count(w.id), coalesce(sum(w.fpops_est * w.target_nresults), 0)::float8
  FROM credit_batch b JOIN credit_workunit w ON w.batch_id = b.id
 WHERE b.owner_id = %(owner)s AND b.retired_at IS NULL AND w.canonical_result_id IS NULL AND w.error_mask = 0
"""
# For {columns} and {values}: those of `scheduler.submission.create_work`. Locks nothing; the caller has the workunits
# locked, or nobody else sees them yet.
CREATE_RESULTS: Final = f"""
        INSERT INTO credit_result ({{columns}})
        WITH w AS (
          SELECT w.id, w.app_id, w.name, number, {_SIZE} AS size,
                 CASE WHEN w.lane = {_SIZE} AND number >= w.target_nresults AND a.reliable_turnaround_secs IS NOT NULL
                      THEN {RELIABLE} ELSE w.lane END AS lane,
                 -- A replacement is sent before new work, so that its workunit ends soon.
                 LEAST(32767, w.priority + CASE WHEN number >= w.target_nresults THEN 1 ELSE 0 END) AS priority
            FROM unnest(%(ids)s::bigint[], %(firsts)s::int[], %(counts)s::int[]) AS wanted(id, first, n)
            JOIN credit_workunit w ON w.id = wanted.id JOIN credit_app a ON a.id = w.app_id,
                 generate_series(wanted.first, wanted.first + wanted.n - 1) AS number),
        newest AS {_NEWEST},
        queue AS MATERIALIZED (
          SELECT k.app_id, k.priority, k.lane AS size, coalesce(f.start, head.place, newest.id + 1) AS start,
                 coalesce(f.width, GREATEST(last.place - head.place, {MIN_WINDOW}) + k.n, {MIN_WINDOW} + k.n) AS width
            FROM (SELECT app_id, priority, size AS lane, count(*) AS n FROM w GROUP BY 1, 2, 3) k CROSS JOIN newest
            LEFT JOIN unnest(%(priorities)s::int[], %(sizes)s::bigint[], %(starts)s::bigint[], %(widths)s::bigint[])
                      AS f(priority, lane, start, width) ON f.priority = k.priority AND f.lane = k.lane
{_ENDS.format(app="k.app_id")})
        SELECT {{values}}
          FROM (SELECT nextval({_SEQUENCE}) AS result_id, w.*
                  FROM (SELECT * FROM w ORDER BY id, number) w
                 -- Wherever the planner begins, this makes it measure the queue before the first number is drawn.
                 WHERE EXISTS (SELECT FROM queue)) w
          JOIN queue USING (app_id, priority, size)
        """
SHIFT: Final = "start + floor(random() * width)::bigint - result_id"
"""The difference between a new result's position by its id and the position drawn for it."""
# Locks results that are not sent. Computers may have got them before the database was restored.
RENAME_UNSENT: Final = f"""
UPDATE credit_result SET name = regexp_replace(name, '_r[0-9a-f]{{8}}$', '') || {MARK}
 WHERE server_state = {ServerState.UNSENT}
"""
# For an app, from the newest results of all apps: those that were granted credit (how long ago they came, their FLOPs,
# how long they were out), how far back they reach, and how many came to nothing, including those that timed out. Locks
# nothing.
GRANTED_LATELY: Final = f"""
WITH newest AS MATERIALIZED (
  SELECT id, app_id, workunit_id, outcome, validate_state, sent_at, received_at FROM credit_result
   WHERE received_at > %(now)s - make_interval(secs => %(span_secs)s)
   ORDER BY received_at DESC LIMIT %(most)s),
since AS (
  SELECT CASE WHEN (SELECT count(*) FROM newest) = %(most)s THEN min(received_at)
              ELSE %(now)s - make_interval(secs => %(span_secs)s) END AS at FROM newest)
SELECT (SELECT json_agg(json_build_array(date_part('epoch', %(now)s - n.received_at), w.fpops_est,
                                         date_part('epoch', n.received_at - n.sent_at)))
          FROM newest n JOIN credit_workunit w ON w.id = n.workunit_id
         WHERE n.app_id = %(app)s AND n.validate_state = {ValidateState.VALID}
           AND n.sent_at < n.received_at AND n.received_at <= %(now)s),
       date_part('epoch', %(now)s - since.at),
       (SELECT count(*) FROM newest n
         WHERE n.app_id = %(app)s AND (n.outcome IN ({Outcome.CLIENT_ERROR}, {Outcome.VALIDATE_ERROR})
                                       OR n.validate_state = {ValidateState.INVALID}))
       + (SELECT count(*) FROM credit_result r
           WHERE r.app_id = %(app)s AND r.outcome = {Outcome.NO_REPLY} AND r.deadline_at BETWEEN since.at AND %(now)s)
  FROM since
"""
# For an app: the FLOPs of the waiting results of a priority and above; and a submitter's share, as below. Locks
# nothing.
WAITING: Final = f"""
WITH shares AS (
  SELECT sum(coalesce(s.share, 1)) AS total, sum(coalesce(s.share, 1)) FILTER (WHERE b.owner_id = %(owner)s) AS own
    FROM (SELECT DISTINCT owner_id FROM credit_batch
           WHERE app_id = %(app)s AND owner_id IS NOT NULL
             AND created_at > %(now)s - make_interval(secs => %(span_secs)s)
           UNION SELECT %(owner)s::bigint) b
    LEFT JOIN scheduler_submitter s ON s.user_id = b.owner_id)
SELECT coalesce((SELECT sum(w.fpops_est) FROM credit_result r JOIN credit_workunit w ON w.id = r.workunit_id
                  WHERE r.app_id = %(app)s AND r.server_state = {ServerState.UNSENT} AND r.priority >= %(priority)s
                 ), 0)::float8,
       coalesce((SELECT own / total FROM shares), 1)::float8
"""
# For a batch: the FLOPs of its waiting results, and of all up to its last one; its submitter's share among all who
# submitted batches of the app within the period; how many wait, and how long the others have been out; its longest
# delay bound. Locks nothing.
LEFT: Final = f"""
WITH own AS MATERIALIZED (
  SELECT r.server_state, r.sent_at, r.priority * -1 AS rank, r.id + r.queue_shift AS place, w.fpops_est,
         w.delay_bound_secs, CASE WHEN r.lane = {_SIZE} THEN r.lane ELSE 0 END AS lane
    FROM credit_workunit w JOIN credit_result r ON r.workunit_id = w.id
   WHERE w.batch_id = %(batch)s AND r.server_state IN ({ServerState.UNSENT}, {ServerState.IN_PROGRESS})),
-- The last job of the batch in each queue.
last AS (
  SELECT DISTINCT ON (lane) lane, rank, place FROM own
   WHERE server_state = {ServerState.UNSENT} ORDER BY lane, rank DESC, place DESC),
shares AS (
  SELECT sum(coalesce(s.share, 1)) AS total, sum(coalesce(s.share, 1)) FILTER (WHERE b.owner_id = %(owner)s) AS own
    FROM (SELECT DISTINCT owner_id FROM credit_batch
           WHERE app_id = %(app)s AND owner_id IS NOT NULL
             AND (id = %(batch)s OR created_at > %(now)s - make_interval(secs => %(span_secs)s))) b
    LEFT JOIN scheduler_submitter s ON s.user_id = b.owner_id)
SELECT coalesce(sum(fpops_est) FILTER (WHERE server_state = {ServerState.UNSENT}), 0)::float8,
       coalesce((SELECT sum(w.fpops_est) FROM credit_result r JOIN credit_workunit w ON w.id = r.workunit_id, last
                  WHERE last.lane = 0 AND r.app_id = %(app)s AND r.server_state = {ServerState.UNSENT} AND r.lane = 0
                    AND (r.app_id, r.priority * -1, r.id + r.queue_shift) <= (%(app)s, last.rank, last.place)
                  ), 0)::float8
       + coalesce((SELECT sum(w.fpops_est) FROM credit_result r JOIN credit_workunit w ON w.id = r.workunit_id, last
                    WHERE last.lane <> 0 AND r.app_id = %(app)s AND r.server_state = {ServerState.UNSENT}
                      AND r.lane <> 0 AND r.lane = last.lane
                      AND (r.priority * -1, r.id + r.queue_shift) <= (last.rank, last.place)
                    ), 0)::float8,
       coalesce((SELECT own / total FROM shares), 1)::float8,
       count(*) FILTER (WHERE server_state = {ServerState.UNSENT}),
       coalesce(array_agg(date_part('epoch', %(now)s - sent_at))
                FILTER (WHERE server_state = {ServerState.IN_PROGRESS}), '{{}}'),
       coalesce(max(delay_bound_secs), 0)
  FROM own
"""

-- Locks the computer of each request, the jobs to send to it, and their workunits, and returns the computers whose
-- requests got all of theirs: nobody else has locked any of these rows, and all of the jobs wait and are for everybody
-- (lane 0, or the lane of a size class). Never waits.
--
-- A computer is locked, before its jobs, if its row is unchanged since it was read (version). "+ 0": as in read.sql.
WITH computers AS MATERIALIZED (
  SELECT q.host_id, q.jobs
    FROM jsonb_to_recordset(%(requests)s::jsonb) AS q(host_id bigint, version xid, jobs bigint[])
    JOIN portal_host h ON h.id = ANY (ARRAY[q.host_id]) AND h.xmin = q.version AND q.host_id = q.host_id + 0
     FOR NO KEY UPDATE OF h SKIP LOCKED),
jobs AS MATERIALIZED (
  SELECT r.id FROM credit_result r JOIN credit_workunit w ON w.id = ANY (ARRAY[r.workunit_id])
   WHERE r.id = ANY (ARRAY(SELECT unnest(jobs) FROM computers)) AND r.server_state = :UNSENT
   AND (r.lane = 0 OR r.lane >= :FIRST_OF_SIZES AND r.lane < :FIRST_TARGETED)
     FOR NO KEY UPDATE OF w, r SKIP LOCKED)
SELECT host_id FROM computers WHERE jobs <@ ARRAY(SELECT id FROM jobs)

-- Assigns to a copy the jobs that it reports as done, in one transaction. Afterwards the original is no longer trusted:
-- otherwise a trusted computer could hand in made-up outputs as a copy. For the failing share of its (host, version)
-- records each job counts as lost, except those that counted when they timed out or were given up.
--
-- Locks the original's computer, which it also writes, so that requests that have read its jobs are answered again;
-- then the workunits of the named jobs, by id, these jobs, and the original's (host, version) records by id.
UPDATE portal_host SET last_contact_at = last_contact_at WHERE id = %(original)s;

SELECT FROM credit_workunit w
 WHERE w.id IN (SELECT workunit_id FROM credit_result WHERE name = ANY (%(names)s) AND host_id = %(original)s)
 ORDER BY w.id FOR NO KEY UPDATE;

SELECT FROM credit_result WHERE name = ANY (%(names)s) AND host_id = %(original)s ORDER BY id FOR NO KEY UPDATE;

SELECT FROM credit_hostappversion WHERE host_id = %(original)s ORDER BY id FOR NO KEY UPDATE;

WITH moved AS (
  UPDATE credit_result r SET host_id = %(copy)s
   WHERE r.name = ANY (%(names)s) AND r.host_id = %(original)s AND r.partial_credit = 0
     AND (r.server_state = :IN_PROGRESS
          OR (r.server_state = :OVER AND r.outcome IN (:NO_REPLY, :CLIENT_DETACHED)))
  RETURNING r.app_id, r.app_version_id, r.processor_type, r.workunit_id, r.server_state),
programs AS (
  SELECT m.app_id, m.app_version_id, m.processor_type, max(w.delay_bound_secs) AS bound_secs,
         count(*) FILTER (WHERE m.server_state = :IN_PROGRESS) AS n
    FROM moved m JOIN credit_workunit w ON w.id = m.workunit_id GROUP BY 1, 2, 3)
UPDATE credit_hostappversion v
   SET scale_probation = true, consecutive_valid = 0,
       host_scale_at = greatest(v.host_scale_at, %(now)s + m.bound_secs * interval '1 second'),
       failing_share = 1 - (1 - v.failing_share) * power(1 - %(weight)s::float8, m.n)
  FROM programs m
 WHERE v.host_id = %(original)s AND v.app_id = m.app_id AND v.processor_type = m.processor_type
   AND v.app_version_id IS NOT DISTINCT FROM m.app_version_id

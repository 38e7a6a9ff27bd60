-- Locks these jobs and their workunits, and returns those that nobody else has locked, that wait, and that are for all.
SELECT r.id FROM credit_result r JOIN credit_workunit w ON w.id = ANY (ARRAY[r.workunit_id])
 WHERE r.id = ANY (%(jobs)s::bigint[]) AND r.server_state = :UNSENT
   AND (r.lane = 0 OR r.lane >= :FIRST_OF_SIZES AND r.lane < :FIRST_TARGETED)
   FOR NO KEY UPDATE OF w, r SKIP LOCKED

-- Leases the first jobs for all computers in an app's queue, those without a size (lane 0) or, if SIZED, those of one
-- size class, in blocks of neighbouring positions that nobody else has leased.
--
-- "head" is read only as far as needed, because each of its rows is in another page of the table. "last": the position
-- of the last job examined; NULL at the end of the queue.
--
-- Locks leases by block; leases that ended long ago are deleted with SKIP LOCKED. A lease that ends in more than a
-- minute was created while the database's clock was wrong.
WITH head AS MATERIALIZED (
  SELECT id, (priority * -1) AS rank, (id + queue_shift) AS place, name, workunit_id,
         (id + queue_shift) / :BLOCK AS block
    FROM credit_result
\if :SIZED
   WHERE app_id = %(app_id)s::bigint AND server_state = :UNSENT AND lane = %(lane)s::bigint AND lane <> 0
     AND (app_id, lane, (priority * -1), (id + queue_shift))
         >= (%(app_id)s::bigint, %(lane)s::bigint, %(rank)s::integer, %(begin)s::bigint)
   ORDER BY app_id, lane, (priority * -1), (id + queue_shift) LIMIT %(looked_at)s::integer),
\else
   WHERE app_id = %(app_id)s::bigint AND server_state = :UNSENT AND lane = 0
     AND (app_id, (priority * -1), (id + queue_shift)) >= (%(app_id)s::bigint, %(rank)s::integer, %(begin)s::bigint)
   ORDER BY (priority * -1), (id + queue_shift) LIMIT %(looked_at)s::integer),
\endif
free AS MATERIALIZED (
  SELECT * FROM head
   WHERE block NOT IN (SELECT s.block FROM scheduler_joblease s
                        WHERE s.app_id = %(app_id)s::bigint AND s.lane = %(lane)s::bigint AND s.holder <> %(holder)s::bigint
                          AND s.until BETWEEN now() AND now() + interval '1 minute')
   ORDER BY rank, place LIMIT %(most)s::integer),
leased AS (
  INSERT INTO scheduler_joblease AS s (app_id, lane, block, holder, until)
  SELECT DISTINCT %(app_id)s::bigint, %(lane)s::bigint, block, %(holder)s::bigint,
         now() + make_interval(secs => %(lease_secs)s::float8)
    FROM free ORDER BY block
      ON CONFLICT (app_id, lane, block) DO UPDATE SET holder = excluded.holder, until = excluded.until
         WHERE s.holder = excluded.holder OR s.until NOT BETWEEN now() AND now() + interval '1 minute'
  RETURNING block),
expired AS (
  DELETE FROM scheduler_joblease WHERE id IN (
    SELECT id FROM scheduler_joblease
     WHERE app_id = %(app_id)s::bigint AND lane = %(lane)s::bigint AND until < now() - interval '1 minute'
       AND block NOT IN (SELECT block FROM free) FOR UPDATE SKIP LOCKED)),
jobs AS (
  SELECT workunit_id, json_agg(json_build_object('id', id, 'rank', rank, 'place', place, 'name', name)) AS copies
    FROM free WHERE block IN (SELECT block FROM leased) GROUP BY workunit_id)
SELECT json_build_object(
         'last', CASE WHEN (SELECT count(*) FROM free) = %(most)s::integer
                      THEN (SELECT max(ARRAY[rank, place]) FROM free)
                      WHEN (SELECT count(*) FROM head) = %(looked_at)s::integer
                      THEN (SELECT max(ARRAY[rank, place]) FROM head) END,
         'nahead', (SELECT count(*) FROM (SELECT FROM head LIMIT %(near_end)s::integer) ahead),
         'workunits', (
           SELECT json_agg(workunit) FROM (
             SELECT w.id, c.copies, ARRAY(SELECT unnest(o.ties || coalesce(o.user_id, 0)) FROM credit_result o
                                           WHERE o.workunit_id = w.id) AS holders,
                    w.fpops_est, w.fpops_bound, w.memory_bound_bytes AS memory_bytes, w.disk_bound_bytes AS disk_bytes,
                    w.delay_bound_secs, w.min_quorum, w.name, w.command_line, w.input_files, w.output_files
               FROM jobs c JOIN credit_workunit w ON w.id = ANY (ARRAY[c.workunit_id])) workunit))::text

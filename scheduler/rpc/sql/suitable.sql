-- Part of pick.sql and pick_elsewhere.sql: an app's waiting jobs that suit a query (a), from a position in its queue
-- (f) on. At most WINDOW jobs are examined. Locks the workunits and then the jobs, and skips those that others have
-- locked: a workunit's copies belong to the holder of its lock, because binding it moves those that wait (write.sql).
--
-- Only the first of a workunit's copies from that position on is examined, because one person gets one. The holders of
-- copies are selected as an array, so that a workunit's results are read and never all of a person's, whatever the
-- statistics are.
--
-- With LANES, also jobs in lanes that are for this computer (scheduler/engine/lanes.py), from the beginning of each lane:
-- first those for the computer itself, its owner or their team, then all others in the queue's order. Jobs of size
-- classes come in the order in which this computer gets them: within a priority, those of its own class come along with
-- those for all computers, then those of other classes.
SELECT r.id, w.id AS workunit_id, r.name, w.name AS workunit_name, w.fpops_est, w.fpops_bound,
       w.memory_bound_bytes, w.disk_bound_bytes, w.delay_bound_secs, w.min_quorum, w.command_line,
       w.input_files, w.output_files
\if :LANES
       , w.hr_class, w.app_version_num, w.bound_version_id, c.lane
  -- Sorted before anything is joined, so that no more is read than needed.
  FROM (SELECT u.*, u.lane < :FIRST_TARGETED AS is_shared FROM (
        SELECT l.*, key.step
          FROM (SELECT lane, 0 AS step, :LANE_WINDOW AS most FROM unnest(a.lanes) AS key(lane)
                 UNION ALL
                SELECT lane, number - 1, :WINDOW FROM unnest(a.sizes) WITH ORDINALITY AS key(lane, number)) key
         CROSS JOIN LATERAL (
               SELECT id, lane, (priority * -1) AS rank, (id + queue_shift) AS place FROM credit_result
                WHERE app_id = a.app_id AND lane = key.lane AND lane <> 0 AND server_state = :UNSENT
                ORDER BY app_id, lane, (priority * -1), (id + queue_shift) LIMIT key.most) l
        UNION ALL
       (SELECT id, lane, (priority * -1) AS rank, (id + queue_shift) AS place, 0 FROM credit_result
         WHERE app_id = a.app_id AND server_state = :UNSENT AND lane = 0
           AND (app_id, (priority * -1), (id + queue_shift)) >= (a.app_id, f.rank, f.place)
         ORDER BY (priority * -1), (id + queue_shift) LIMIT :WINDOW)) u
         ORDER BY is_shared, u.rank, u.step, u.place LIMIT 1000000) c
\else
  FROM (SELECT id, lane, (priority * -1) AS rank, (id + queue_shift) AS place FROM credit_result
         WHERE app_id = a.app_id AND server_state = :UNSENT AND lane = 0
           AND (app_id, (priority * -1), (id + queue_shift)) >= (a.app_id, f.rank, f.place)
         ORDER BY (priority * -1), (id + queue_shift) LIMIT :WINDOW) c
\endif
  JOIN credit_result r ON r.id = ANY (ARRAY[c.id]) AND r.server_state = :UNSENT AND r.lane = c.lane
  JOIN credit_workunit w ON w.id = ANY (ARRAY[r.workunit_id])
 WHERE w.memory_bound_bytes <= a.memory_bytes AND w.disk_bound_bytes <= a.disk_bytes
   AND w.fpops_est <= a.flops * (w.delay_bound_secs - a.delay_secs)
\if :ELSEWHERE
   AND r.id <> ALL (%(locked)s::bigint[])
\endif
   AND %(user_id)s::bigint <> ALL (ARRAY(
       SELECT CASE WHEN o.server_state = :UNSENT
                    AND (o.priority * -1, o.id + o.queue_shift, o.id) < (c.rank, c.place, c.id)
                    AND (c.lane <> 0 OR (o.priority * -1, o.id + o.queue_shift) >= (f.rank, f.place))
                   THEN %(user_id)s::bigint
\if :ELSEWHERE
                   -- Not before the holder has had the copy for as long as the delay bound, if it is strict.
                   WHEN (a.avoids_ties
                         OR a.is_strict
                            AND o.sent_at > %(now)s::timestamptz - make_interval(secs => w.delay_bound_secs))
                        AND (o.ties && a.ties OR o.user_id = ANY (a.ties))
\else
                   WHEN a.avoids_ties AND (o.ties && a.ties OR o.user_id = ANY (a.ties))
\endif
                   THEN %(user_id)s::bigint
\if :LANES
                   -- Nobody else may have a job for one person: they get it again if it failed.
                   WHEN w.min_quorum = 1 AND c.lane >= :FIRST_TARGETED AND c.lane < :FIRST_OF_TEAMS THEN 0
\endif
                   WHEN a.one_per_user THEN coalesce(o.user_id, 0) ELSE 0 END
         FROM credit_result o WHERE o.workunit_id = w.id))
\if :LANES
 ORDER BY c.is_shared, c.rank, c.step, c.place LIMIT a.most
\else
 ORDER BY c.rank, c.place LIMIT a.most
\endif
   FOR NO KEY UPDATE OF w, r SKIP LOCKED

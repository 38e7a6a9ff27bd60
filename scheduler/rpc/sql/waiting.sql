-- Part of diagnose.sql and pick_elsewhere.sql: what waits at the heads of apps' queues, and what the jobs lack there.
-- Locks nothing.
SELECT json_build_object('njobs', count(*),
       'memory_nbytes', min(w.memory_bound_bytes - a.memory_bytes) FILTER (WHERE w.memory_bound_bytes > a.memory_bytes),
       'disk_nbytes', min(w.disk_bound_bytes - a.disk_bytes) FILTER (WHERE w.disk_bound_bytes > a.disk_bytes),
       'deadline', count(*) FILTER (WHERE w.fpops_est > a.flops * (w.delay_bound_secs - a.delay_secs)))
  FROM jsonb_to_recordset(%(apps)s::jsonb)
       AS a(app_id bigint, flops float8, delay_secs float8, memory_bytes float8, disk_bytes float8,
            lanes bigint[], sizes bigint[])
 CROSS JOIN LATERAL ((SELECT workunit_id FROM credit_result
                       WHERE app_id = a.app_id AND server_state = :UNSENT AND lane = 0
                       ORDER BY (priority * -1), (id + queue_shift) LIMIT :WINDOW)
                      UNION ALL
                      SELECT l.workunit_id FROM unnest(a.lanes || a.sizes) AS key(lane) CROSS JOIN LATERAL (
                             SELECT workunit_id FROM credit_result
                              WHERE app_id = a.app_id AND lane = key.lane AND lane <> 0 AND server_state = :UNSENT
                              ORDER BY app_id, lane, (priority * -1), (id + queue_shift) LIMIT :LANE_WINDOW) l) c
  JOIN credit_workunit w ON w.id = c.workunit_id

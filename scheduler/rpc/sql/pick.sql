-- Picks suitable jobs at the heads of apps' queues, and returns where each of these queues now begins. For the locks
-- see suitable.sql.
--
-- For one app (ONE) the parameters are those of its query: the planner treats them as constants, a fifth less work than
-- a list. "+ 0": as in read.sql.
SELECT json_agg(json_build_object('rank', f.rank, 'place', f.place, 'job',
\ir job.sql
  ))::text
\if :ONE
  FROM (VALUES (%(app_id)s::bigint, %(most)s::integer, %(flops)s::float8, %(delay_secs)s::float8,
                %(memory_bytes)s::float8, %(disk_bytes)s::float8, %(one_per_user)s::boolean, %(rank)s::integer,
                %(begin)s::bigint, %(ties)s::bigint[], %(avoids_ties)s::boolean, %(lanes)s::bigint[],
                %(sizes)s::bigint[]))
       AS a(app_id, most, flops, delay_secs, memory_bytes, disk_bytes, one_per_user, rank, begin, ties, avoids_ties,
            lanes, sizes)
\else
  FROM (SELECT * FROM jsonb_to_recordset(%(queries)s::jsonb)
               AS q(app_id bigint, most integer, flops float8, delay_secs float8, memory_bytes float8,
                    disk_bytes float8, one_per_user boolean, rank integer, begin bigint, ties bigint[],
                    avoids_ties boolean, lanes bigint[], sizes bigint[])
         WHERE q.app_id = q.app_id + 0) a
\endif
 LEFT JOIN LATERAL (
       SELECT (priority * -1) AS rank, (id + queue_shift) AS place FROM credit_result
        WHERE app_id = a.app_id AND server_state = :UNSENT AND lane = 0
          AND (app_id, (priority * -1), (id + queue_shift)) >= (a.app_id, a.rank, a.begin)
        ORDER BY (priority * -1), (id + queue_shift) LIMIT 1) f ON true
 CROSS JOIN LATERAL (
\ir suitable.sql
 ) p

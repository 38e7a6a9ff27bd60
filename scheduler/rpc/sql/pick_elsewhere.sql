-- Used if the heads of the queues have too few jobs: picks suitable jobs from a random position in a queue, and counts
-- what waits, to tell the client why if it gets nothing. For the locks see suitable.sql.
SELECT json_build_object('jobs', (
  SELECT json_agg(
\ir job.sql
    )
    FROM jsonb_to_recordset(%(short)s::jsonb)
         AS a(app_id bigint, most integer, flops float8, delay_secs float8, memory_bytes float8, disk_bytes float8,
              one_per_user boolean, rank integer, begin bigint, ties bigint[], avoids_ties boolean, is_strict boolean,
              lanes bigint[], sizes bigint[])
   CROSS JOIN LATERAL (SELECT a.rank AS rank, a.begin AS place) f
   CROSS JOIN LATERAL (
\ir suitable.sql
   ) p), 'waiting', (
\ir waiting.sql
  ))::text

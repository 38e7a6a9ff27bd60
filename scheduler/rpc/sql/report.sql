-- Stores what became of results, wakes their workunits, and returns which of them counted: those that were open or
-- late. If there are any, also returns the computer's (host, version) records.
--
-- The computer is already locked. Locks the workunits by id, then the results, those that get another deadline by id,
-- and the records last, as everywhere.
WITH n AS (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS n(id bigint, workunit_id bigint, outcome smallint,
         received_at timestamptz, client_state smallint, exit_status integer, elapsed_secs float8, cpu_secs float8,
         fpops_cumulative float8, fpops_per_cpu_sec float8, peak_working_set_bytes bigint, peak_swap_bytes bigint,
         peak_disk_bytes bigint, stderr_text text, report_faults jsonb, outputs jsonb, output_digest text)),
own AS (
  SELECT owner_id, p_fpops FROM portal_host WHERE id = %(host_id)s::bigint),
locked AS (
  SELECT w.id FROM credit_workunit w WHERE w.id IN (SELECT workunit_id FROM n) ORDER BY w.id FOR NO KEY UPDATE),
done AS (
  UPDATE credit_result r
     SET server_state = :OVER, outcome = n.outcome, validate_state = :INIT,
         received_at = n.received_at, client_state = n.client_state, exit_status = n.exit_status,
         elapsed_secs = n.elapsed_secs, cpu_secs = n.cpu_secs, fpops_cumulative = n.fpops_cumulative,
         fpops_per_cpu_sec = n.fpops_per_cpu_sec,
         peak_working_set_bytes = n.peak_working_set_bytes, peak_swap_bytes = n.peak_swap_bytes,
         peak_disk_bytes = n.peak_disk_bytes, stderr_text = n.stderr_text, report_faults = n.report_faults,
         outputs = n.outputs, output_digest = decode(n.output_digest, 'hex'),
         host_id = %(host_id)s::bigint,
         -- No longer than it has run, nor longer than the workunit has existed.
         sent_at = CASE WHEN r.sent_at IS NULL
                        THEN greatest(n.received_at - make_interval(secs => n.elapsed_secs),
                                      (SELECT created_at FROM credit_workunit WHERE id = r.workunit_id))
                        ELSE r.sent_at END,
         user_id = CASE WHEN r.sent_at IS NULL THEN (SELECT owner_id FROM own) ELSE r.user_id END,
         peak_flops = CASE WHEN r.sent_at IS NULL THEN (SELECT p_fpops FROM own) ELSE r.peak_flops END,
         p_fpops = CASE WHEN r.sent_at IS NULL THEN (SELECT p_fpops FROM own) ELSE r.p_fpops END
    FROM n
   WHERE r.id = ANY (ARRAY[n.id]) AND (SELECT count(*) FROM locked) > 0
     -- Its own, or one that a restored database has forgotten, and whose outputs have come.
     AND (r.host_id = %(host_id)s::bigint
          OR (r.host_id IS NULL AND r.sent_at IS NULL AND NOT EXISTS (
              SELECT FROM credit_result o WHERE o.workunit_id = r.workunit_id AND o.user_id = (SELECT owner_id FROM own))
              -- The first of a workunit's copies in one report.
              AND NOT EXISTS (SELECT FROM n m JOIN credit_result o ON o.id = m.id
                               WHERE o.workunit_id = r.workunit_id AND o.id < r.id)))
     AND (r.server_state = :IN_PROGRESS
          OR (r.server_state = :OVER AND r.outcome IN (:NO_REPLY, :CLIENT_DETACHED)
              AND n.outcome <> :CLIENT_DETACHED AND r.validate_state = :INIT))
  RETURNING r.id, r.workunit_id),
woken AS (
  UPDATE credit_workunit w SET transition_at = least(w.transition_at, %(now)s::timestamptz)
   WHERE w.id IN (SELECT workunit_id FROM done)),
extended AS MATERIALIZED (
  SELECT id FROM credit_result
   WHERE id = ANY (%(extended)s::bigint[]) AND host_id = %(host_id)s::bigint AND (SELECT count(*) FROM done) > 0
   ORDER BY id FOR NO KEY UPDATE),
v AS MATERIALIZED (
  -- Locked last, as everywhere.
  SELECT * FROM credit_hostappversion
   WHERE host_id = %(host_id)s::bigint AND (SELECT count(*) FROM done) > 0 AND (SELECT count(*) FROM extended) >= 0
   ORDER BY id FOR NO KEY UPDATE)
SELECT json_build_object('counted', ARRAY(SELECT id FROM done), 'records', (
  SELECT json_agg(record) FROM (
    SELECT v.id, v.app_id, coalesce(v.app_version_id, 0) AS version_id, v.processor_type, v.et_n, v.et_avg,
           v.scale_probation, date_part('epoch', v.host_scale_at) AS host_scale_at, v.error_rate, v.consecutive_valid,
           v.max_jobs_per_day, v.failing_share, v.turnaround_n, v.turnaround_avg FROM v) record))::text

-- Writes the changes of several requests: only the parts that are needed, because one with nothing to do costs as much
-- as one with something. Each part gets the rows of all the requests. Returns JSON of `scheduler.rpc.rows.WrittenRow`
-- for each computer.
--
-- The computers and the jobs are already locked. Locks everything else that it writes: the jobs' workunits, if copies
-- are added or they are bound to a class or version, these workunits' waiting results, results that get another
-- deadline, then (host, version) records, messages, the computers' records.
--
-- "+ 0": as in read.sql. The rows are not jsonb, which would first convert all numbers to numerics.
WITH
\if :SENT
sent AS (
  UPDATE credit_result r
     SET server_state = :IN_PROGRESS, host_id = n.host_id, user_id = n.user_id,
         app_version_id = n.app_version_id, processor_type = n.processor_type, peak_flops = n.peak_flops,
         p_fpops = n.p_fpops, projected_flops = n.projected_flops, ninstances = n.ninstances, sent_at = n.sent_at,
         deadline_at = n.deadline_at, ties = n.ties
    FROM (SELECT * FROM json_to_recordset(%(sent)s::json)
                 AS n(id bigint, host_id bigint, user_id bigint, app_version_id bigint, processor_type text,
                      peak_flops float8, p_fpops float8, projected_flops float8, ninstances float8,
                      sent_at timestamptz, deadline_at timestamptz, one_per_user boolean, must_replicate boolean,
                      ties bigint[], is_strict boolean, hr_class smallint, bound_version_id bigint,
                      bound_lane bigint)
           WHERE n.host_id = n.host_id + 0) n
   WHERE r.id = ANY (ARRAY[n.id]) AND r.server_state = :UNSENT
     -- Between the snapshot and the lock of the picking, another computer of this person may have got a copy.
     AND NOT (n.one_per_user AND n.user_id = ANY (ARRAY(
              SELECT coalesce(o.user_id, 0) FROM credit_result o WHERE o.workunit_id = r.workunit_id)))
     -- Or somebody with a tie to this person.
     AND NOT (n.is_strict AND EXISTS (
              SELECT FROM credit_result o JOIN credit_workunit w ON w.id = o.workunit_id
               WHERE o.workunit_id = r.workunit_id AND (o.ties && n.ties OR o.user_id = n.user_id)
                 AND o.sent_at > n.sent_at - make_interval(secs => w.delay_bound_secs)))
  RETURNING r.id, r.name, r.host_id, r.workunit_id, r.sent_at, n.must_replicate, n.hr_class, n.bound_version_id,
            n.bound_lane),
\endif
\if :REPLICATED
replicated AS (
  UPDATE credit_workunit w
     SET transition_at = sent.sent_at, min_quorum = greatest(w.min_quorum, 2),
         target_nresults = greatest(w.target_nresults, 2), max_success_results = greatest(w.max_success_results, 2),
         max_total_results = greatest(w.max_total_results, least(:MAX_RESULTS, 1 + (
           SELECT count(*) FROM credit_result o WHERE o.workunit_id = w.id))),
         hr_class = coalesce(sent.hr_class, w.hr_class),
         bound_version_id = coalesce(sent.bound_version_id, w.bound_version_id),
         lane = coalesce(sent.bound_lane, w.lane)
    FROM sent WHERE w.id = ANY (ARRAY[sent.workunit_id]) AND sent.must_replicate),
\endif
\if :BOUND
-- The first result of a workunit whose results all go to one class of computers, or one version: those that still wait
-- move into its lane. Nobody else has them locked, because schedulers lock the workunit first.
bound AS (
  UPDATE credit_workunit w
     SET hr_class = sent.hr_class, bound_version_id = sent.bound_version_id, lane = sent.bound_lane
    FROM sent
   WHERE w.id = ANY (ARRAY[sent.workunit_id]) AND sent.bound_lane IS NOT NULL AND NOT sent.must_replicate),
moved AS (
  UPDATE credit_result o SET lane = sent.bound_lane
    FROM sent
   WHERE o.workunit_id = sent.workunit_id AND sent.bound_lane IS NOT NULL AND o.id <> sent.id
     AND o.server_state = :UNSENT),
\endif
\if :EXTENDED
-- Later deadlines of jobs on the computer. Before the records, in the order of locks everywhere.
extended AS (
  UPDATE credit_result r SET deadline_at = greatest(r.deadline_at, n.deadline_at)
    FROM (SELECT * FROM json_to_recordset(%(extended)s::json)
                 AS n(host_id bigint, result_id bigint, deadline_at timestamptz)
           WHERE n.host_id = n.host_id + 0) n
   WHERE r.id = ANY (ARRAY[n.result_id]) AND r.host_id = n.host_id AND r.server_state = :IN_PROGRESS
  RETURNING r.id),
nextended AS (SELECT count(*) AS n FROM extended),
\else
nextended AS (SELECT 0 AS n),
\endif
\if :BEGUN
-- The first job of a spell of probation was sent, unless the spell has ended since the record was read; or there was no
-- quota yet.
begun AS (
  UPDATE credit_hostappversion v
     SET host_scale_at = CASE WHEN v.scale_probation THEN coalesce(v.host_scale_at, n.host_scale_at)
                              ELSE v.host_scale_at END,
         max_jobs_per_day = CASE v.max_jobs_per_day WHEN 0 THEN n.max_jobs_per_day ELSE v.max_jobs_per_day END
    FROM (SELECT * FROM json_to_recordset(%(begun)s::json)
                 AS n(id bigint, host_id bigint, host_scale_at timestamptz, max_jobs_per_day integer)
           WHERE n.host_id = n.host_id + 0) n
   WHERE v.id = ANY (ARRAY[n.id]) AND v.host_id = n.host_id
     AND (SELECT n FROM nextended) >= 0),
\endif
\if :JUDGED
-- Reports came, and the records were locked with them.
judged AS (
  UPDATE credit_hostappversion v
     SET scale_probation = n.scale_probation, host_scale_at = n.host_scale_at, error_rate = n.error_rate,
         consecutive_valid = n.consecutive_valid, max_jobs_per_day = n.max_jobs_per_day,
         failing_share = n.failing_share
    FROM (SELECT * FROM json_to_recordset(%(judged)s::json)
                 AS n(id bigint, host_id bigint, scale_probation boolean, host_scale_at timestamptz, error_rate float8,
                      consecutive_valid integer, max_jobs_per_day integer, failing_share float8)
           WHERE n.host_id = n.host_id + 0) n
   WHERE v.id = ANY (ARRAY[n.id]) AND v.host_id = n.host_id),
\endif
\if :ADDED
added AS (
  INSERT INTO credit_hostappversion (host_id, app_id, app_version_id, processor_type, scale_probation, host_scale_at,
         error_rate, consecutive_valid, max_jobs_per_day, pfc_n, pfc_avg, et_n, et_avg, et_var, et_q,
         turnaround_n, turnaround_avg, turnaround_var, turnaround_q, clean_pfc_n, clean_pfc_avg,
         recent_pfc_n, recent_pfc_avg, waiting_pfc_n, waiting_pfc_avg, samples_at, failing_share, peak_flops,
         lead_jobs)
  SELECT n.host_id, n.app_id, n.app_version_id, n.processor_type, n.scale_probation, n.host_scale_at,
         n.error_rate, n.consecutive_valid, n.max_jobs_per_day, coalesce(o.pfc_n, 0), o.pfc_avg, coalesce(o.et_n, 0),
         o.et_avg, o.et_var, coalesce(o.et_q, 0), coalesce(o.turnaround_n, 0), o.turnaround_avg, o.turnaround_var,
         coalesce(o.turnaround_q, 0), coalesce(o.clean_pfc_n, 0), o.clean_pfc_avg,
         coalesce(o.recent_pfc_n, 0), o.recent_pfc_avg, coalesce(o.waiting_pfc_n, 0), o.waiting_pfc_avg, o.samples_at,
         greatest(n.failing_share, o.failing_share), o.peak_flops, coalesce(o.lead_jobs, 0)
    FROM (SELECT * FROM json_to_recordset(%(added)s::json)
                 AS n(host_id bigint, app_id bigint, app_version_id bigint, processor_type text, inherits bigint,
                      scale_probation boolean, host_scale_at timestamptz, error_rate float8, consecutive_valid integer,
                      max_jobs_per_day integer, failing_share float8)
           WHERE n.host_id = n.host_id + 0) n
    LEFT JOIN credit_hostappversion o ON o.host_id = ANY (ARRAY[n.host_id]) AND o.app_version_id = n.inherits
  ON CONFLICT DO NOTHING),
\endif
\if :TRICKLES
-- New messages, and whether earlier ones fill a job's daily limit: one is always accepted. Those above the limit are
-- dropped, and so are messages of jobs that were reported more than a day ago, as a computer may have had thousands.
weighed AS (
  SELECT n.*, n.most_nbytes <= coalesce((
           SELECT sum(octet_length(t.text) + 100) FROM scheduler_trickle t
            WHERE t.result_id = n.result_id AND t.received_at > n.received_at - interval '24 hours'), 0) + coalesce(
           sum(octet_length(n.text) + 100) OVER (
             PARTITION BY n.result_id ORDER BY n.number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
           OR EXISTS (SELECT FROM credit_result r
                       WHERE r.id = n.result_id AND r.received_at < n.received_at - interval '24 hours')
         AS is_dropped
    FROM (SELECT * FROM json_to_recordset(%(trickles)s::json)
                 AS n(host_id bigint, user_id bigint, result_id bigint, variety text, text text, digest text,
                      written_at timestamptz, received_at timestamptz, number integer, most_nbytes bigint)
           WHERE n.host_id = n.host_id + 0) n
   WHERE NOT EXISTS (
         SELECT FROM scheduler_trickle t WHERE t.host_id = n.host_id AND t.digest = decode(n.digest, 'hex'))),
trickles AS (
  INSERT INTO scheduler_trickle (host_id, user_id, result_id, variety, text, digest, written_at, received_at)
  SELECT n.host_id, n.user_id, n.result_id, n.variety, n.text, decode(n.digest, 'hex'), n.written_at, n.received_at
    FROM weighed n WHERE NOT n.is_dropped
  ON CONFLICT DO NOTHING),
\endif
\if :TOLD
told AS (
  UPDATE scheduler_trickledown d SET told_deadline_at = n.deadline_at
    FROM (SELECT * FROM json_to_recordset(%(told)s::json) AS n(host_id bigint, id bigint, deadline_at timestamptz)
           WHERE n.host_id = n.host_id + 0) n
   WHERE d.id = ANY (ARRAY[n.id]) AND d.told_deadline_at IS NULL),
\endif
\if :ACKNOWLEDGED
acknowledged AS (
  UPDATE scheduler_trickledown d SET acknowledged_at = n.now
    FROM (SELECT * FROM json_to_recordset(%(acknowledged)s::json) AS n(host_id bigint, id bigint, now timestamptz)
           WHERE n.host_id = n.host_id + 0) n
   WHERE d.id = ANY (ARRAY[n.id]) AND d.acknowledged_at IS NULL),
\endif
record AS (
\if :FIRST_RECORD
  INSERT INTO scheduler_hostrecord
         (host_id, rpc_seqno, cpids, named_jobs_until, repeated_seqno, repeated_times, work_asked_at, last_rpc_at,
          on_frac, active_frac, gpu_active_frac, connected_frac, cpu_and_network_available_frac,
          duration_correction_factor, statistics, hardware_digest, last_messages, jobs_day, jobs_of_day)
  SELECT n.host_id, n.rpc_seqno, n.cpids, n.named_jobs_until, n.repeated_seqno, n.repeated_times, n.work_asked_at,
         n.last_rpc_at, n.on_frac, n.active_frac, n.gpu_active_frac, n.connected_frac,
         n.cpu_and_network_available_frac, n.duration_correction_factor, n.statistics, n.hardware_digest,
         n.last_messages, n.jobs_day, n.jobs_of_day
\else
  UPDATE scheduler_hostrecord s
     SET rpc_seqno = n.rpc_seqno, cpids = n.cpids, named_jobs_until = n.named_jobs_until,
         repeated_seqno = n.repeated_seqno, repeated_times = n.repeated_times, work_asked_at = n.work_asked_at,
         last_rpc_at = n.last_rpc_at, on_frac = n.on_frac, active_frac = n.active_frac,
         gpu_active_frac = n.gpu_active_frac, connected_frac = n.connected_frac,
         cpu_and_network_available_frac = n.cpu_and_network_available_frac,
         duration_correction_factor = n.duration_correction_factor, statistics = n.statistics,
         hardware_digest = n.hardware_digest, last_messages = n.last_messages, jobs_day = n.jobs_day,
         jobs_of_day = n.jobs_of_day
\endif
    FROM (SELECT * FROM json_to_recordset(%(record)s::json)
                 AS n(host_id bigint, rpc_seqno bigint, cpids text[], named_jobs_until timestamptz,
                      repeated_seqno bigint, repeated_times smallint, work_asked_at timestamptz,
                      last_rpc_at timestamptz, on_frac float8, active_frac float8, gpu_active_frac float8,
                      connected_frac float8, cpu_and_network_available_frac float8, duration_correction_factor float8,
                      statistics jsonb, hardware_digest bytea, last_messages jsonb, jobs_day date, jobs_of_day jsonb)
           WHERE n.host_id = n.host_id + 0) n
\if :FIRST_RECORD
  ON CONFLICT (host_id) DO UPDATE
     SET rpc_seqno = excluded.rpc_seqno, cpids = excluded.cpids, named_jobs_until = excluded.named_jobs_until,
         repeated_seqno = excluded.repeated_seqno, repeated_times = excluded.repeated_times,
         work_asked_at = excluded.work_asked_at, last_rpc_at = excluded.last_rpc_at, on_frac = excluded.on_frac,
         active_frac = excluded.active_frac, gpu_active_frac = excluded.gpu_active_frac,
         connected_frac = excluded.connected_frac,
         cpu_and_network_available_frac = excluded.cpu_and_network_available_frac,
         duration_correction_factor = excluded.duration_correction_factor, statistics = excluded.statistics,
         hardware_digest = excluded.hardware_digest, last_messages = excluded.last_messages,
         jobs_day = excluded.jobs_day, jobs_of_day = excluded.jobs_of_day
\else
   WHERE s.host_id = ANY (ARRAY[n.host_id])
\endif
),
host AS (
  UPDATE portal_host h
     SET last_contact_at = n.now, retired_at = NULL
\if :DESCRIBED
         , (:"HOST_COLUMNS") = (SELECT :"HOST_COLUMNS" FROM jsonb_populate_record(h, n.description))
\endif
    FROM (SELECT * FROM json_to_recordset(%(host)s::json)
                 AS n(host_id bigint, now timestamptz, description jsonb)
           WHERE n.host_id = n.host_id + 0) n
   WHERE h.id = ANY (ARRAY[n.host_id])
  RETURNING h.id AS host_id)
SELECT json_build_object('host_id', c.host_id, 'sent',
\if :SENT
         (SELECT json_object_agg(id, name) FROM sent WHERE sent.host_id = c.host_id),
\else
         NULL,
\endif
         'has_dropped_trickles',
\if :TRICKLES
         EXISTS (SELECT FROM weighed WHERE is_dropped AND host_id = c.host_id)
\else
         false
\endif
       )::text
  FROM host c

"""The SQL of a scheduler RPC; scheduler/store.py runs it and says in which order locks are taken."""

from __future__ import annotations

from typing import Final

from portal.prepared import Prepared

WINDOW: Final = 200
"""Waiting jobs that are looked at, per app, from the head of the queue and, if that is not enough, from a random place:
a request that nothing suits must not read the whole queue."""

LOCK: Final = Prepared("SELECT id FROM portal_host WHERE id = %(host_id)s::bigint FOR NO KEY UPDATE")
_RECORDS: Final = """
SELECT json_agg(json_build_array(v.id, v.app_id, coalesce(v.app_version_id, 0), v.processor_type, v.et_n, v.et_avg,
       v.scale_probation, extract(epoch FROM v.host_scale_at), v.error_rate, v.consecutive_valid, v.max_jobs_per_day,
       v.n_jobs_today, v.jobs_day) ORDER BY v.id)
"""
_READ: Final = f"""
WITH u AS (
  SELECT u.id, u.name, u.email, u.cross_project_id, u.created_at, k.id AS key_id, k.last_used_at
    FROM portal_clientkey k JOIN portal_user u ON u.id = k.user_id AND u.is_active
   WHERE k.revoked_at IS NULL AND {{key}} LIMIT 1),
h AS (
  SELECT h.id, h.created_at, h.venue, s.rpc_seqno, s.hardware_digest
    FROM u JOIN portal_host h ON h.owner_id = u.id AND h.id = %(host_id)s::bigint AND h.merged_into_id IS NULL
    LEFT JOIN scheduler_hostrecord s ON s.host_id = h.id),
known AS (
  -- By the parameter: joined by h.id, the whole index is read where statistics know of no jobs in progress yet.
  SELECT r.id FROM credit_result r
   WHERE r.host_id = %(host_id)s::bigint AND r.server_state = 4 AND EXISTS (SELECT FROM h)
   UNION
  SELECT r.id FROM credit_result r WHERE r.name = ANY (%(names)s::text[]))
SELECT u.id, u.name, u.email, u.cross_project_id, extract(epoch FROM u.created_at), u.key_id,
       extract(epoch FROM u.last_used_at), c.total_credit, c.expavg_credit, extract(epoch FROM c.expavg_at),
       h.id, extract(epoch FROM h.created_at), h.venue, h.rpc_seqno, encode(h.hardware_digest, 'hex'),
       d.total_credit, d.expavg_credit, extract(epoch FROM d.expavg_at),
       (SELECT json_agg(json_build_array(r.id, r.name, r.host_id, r.workunit_id, r.app_id, r.app_version_id,
               r.processor_type, r.server_state, r.outcome, extract(epoch FROM r.sent_at),
               extract(epoch FROM r.deadline_at), r.projected_flops, r.peak_flops, w.error_mask,
               w.canonical_result_id IS NOT NULL OR w.assimilate_state > 0, w.delay_bound_secs,
               CASE WHEN r.name <> ALL (%(names)s::text[]) THEN json_build_array(w.name, w.command_line, w.input_files,
                    w.output_files, w.fpops_est, w.fpops_bound, w.memory_bound_bytes, w.disk_bound_bytes,
                    w.min_quorum) END,
               CASE WHEN r.name = ANY (%(reported)s::text[]) THEN w.output_files END,
               CASE WHEN r.name = ANY (%(reported)s::text[]) THEN
                    (SELECT json_agg(json_build_array(f.name, f.path, f.nbytes, f.md5))
                       FROM scheduler_upload f WHERE f.result_id = r.id AND f.completed_at IS NOT NULL) END))
          FROM known JOIN credit_result r ON r.id = known.id JOIN credit_workunit w ON w.id = r.workunit_id),
       ({_RECORDS} FROM credit_hostappversion v WHERE v.host_id = h.id),
       p.mod_time, CASE WHEN p.mod_time > %(preferences_at)s::float8 THEN p.text END
  FROM u LEFT JOIN h ON true
  LEFT JOIN scheduler_userpreferences p ON p.user_id = u.id
  LEFT JOIN credit_usercredit c ON c.user_id = u.id LEFT JOIN credit_hostcredit d ON d.host_id = h.id
"""
READ_BY_KEY: Final = Prepared(_READ.format(key="k.key_hash = %(key_hash)s::bytea"))
# The weak form of a key: the account's number, and a digest that only this site can make (portal/credentials.py).
READ_BY_WEAK_KEY: Final = Prepared(
    _READ.format(
        key="k.user_id = %(weak_user)s::bigint"
        " AND md5(encode(k.key_hash, 'hex') || %(pepper)s::text) = %(weak_digest)s::text"
    )
)

REPORT: Final = Prepared("""
WITH n AS (
  SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS n(id bigint, workunit_id bigint, outcome smallint,
         received_at timestamptz, client_state smallint, exit_status integer, elapsed_secs float8, cpu_secs float8,
         fpops_cumulative float8, fpops_per_cpu_sec float8, peak_working_set_bytes bigint, peak_swap_bytes bigint,
         peak_disk_bytes bigint, stderr_text text, report_faults jsonb, outputs jsonb, output_digest text)),
locked AS (
  SELECT w.id FROM credit_workunit w WHERE w.id IN (SELECT workunit_id FROM n) ORDER BY w.id FOR NO KEY UPDATE),
done AS (
  UPDATE credit_result r
     SET server_state = 5, outcome = n.outcome, validate_state = 0, received_at = n.received_at,
         client_state = n.client_state, exit_status = n.exit_status, elapsed_secs = n.elapsed_secs,
         cpu_secs = n.cpu_secs, fpops_cumulative = n.fpops_cumulative, fpops_per_cpu_sec = n.fpops_per_cpu_sec,
         peak_working_set_bytes = n.peak_working_set_bytes, peak_swap_bytes = n.peak_swap_bytes,
         peak_disk_bytes = n.peak_disk_bytes, stderr_text = n.stderr_text, report_faults = n.report_faults,
         outputs = n.outputs, output_digest = decode(n.output_digest, 'hex')
    FROM n
   WHERE r.id = n.id AND r.host_id = %(host_id)s::bigint AND (SELECT count(*) FROM locked) > 0
     AND (r.server_state = 4 OR (r.server_state = 5 AND r.outcome IN (4, 7) AND n.outcome <> 7
          AND r.validate_state = 0))
  RETURNING r.id, r.workunit_id),
woken AS (
  UPDATE credit_workunit w SET transition_at = least(w.transition_at, %(now)s::timestamptz)
   WHERE w.id IN (SELECT workunit_id FROM done))
SELECT json_agg(id) FROM done
""")

# As an array, so that a workunit's results are looked at and never all of a person's, whatever statistics say.
_HAS_COPY: Final = """%(user_id)s::bigint = ANY (ARRAY(
                SELECT coalesce(o.user_id, 0) FROM credit_result o WHERE o.workunit_id = {workunit}))"""
# The order of the queue, with the id: the index of unsent results has it, so a place in the queue is found at once.
_RANK: Final = "(priority * -1)"
# Copies of a workunit lie side by side in the queue: only the first of them is looked at, as one person gets one.
_PICKED: Final = f"""
         SELECT r.id, w.id AS workunit_id, r.name, w.name AS workunit_name, w.fpops_est, w.fpops_bound,
                w.memory_bound_bytes, w.disk_bound_bytes, w.delay_bound_secs, w.min_quorum, w.command_line,
                w.input_files, w.output_files, {{head}}
           FROM (SELECT id, rank, first_rank, first_id FROM (
                   SELECT id, {_RANK} AS rank, workunit_id, lag(workunit_id) OVER queue AS one_before,
                          first_value({_RANK}) OVER queue AS first_rank, first_value(id) OVER queue AS first_id
                     FROM credit_result
                    WHERE app_id = a.app_id AND server_state = 2
                      AND (app_id, {_RANK}, id) >= (a.app_id, {{place}})
                   WINDOW queue AS (ORDER BY {_RANK}, id)
                    ORDER BY {_RANK}, id LIMIT {WINDOW}) q
                  WHERE one_before IS DISTINCT FROM workunit_id) c
           JOIN credit_result r ON r.id = c.id AND r.server_state = 2
           JOIN credit_workunit w ON w.id = r.workunit_id
          WHERE w.memory_bound_bytes <= a.memory_bytes AND w.disk_bound_bytes <= a.disk_bytes
            AND w.fpops_est <= a.flops * (w.delay_bound_secs - a.delay_secs)
            AND NOT (a.one_per_user AND {_HAS_COPY.format(workunit="w.id")})
          ORDER BY c.rank, c.id LIMIT a.most
            FOR NO KEY UPDATE OF r, w SKIP LOCKED
"""
PICK: Final = Prepared(f"""
WITH v AS MATERIALIZED (
  SELECT * FROM credit_hostappversion WHERE host_id = %(host_id)s::bigint ORDER BY id FOR NO KEY UPDATE)
SELECT ({_RECORDS} FROM v),
       (SELECT json_agg(json_build_array(p.id, p.workunit_id, a.app_id, p.name, p.fpops_est, p.fpops_bound,
               p.memory_bound_bytes, p.disk_bound_bytes, p.delay_bound_secs, p.min_quorum, p.workunit_name,
               p.command_line, p.input_files, p.output_files, p.first_rank, p.first_id))
          FROM jsonb_to_recordset(%(apps)s::jsonb) AS a(app_id bigint, most integer, flops float8, delay_secs float8,
               memory_bytes float8, disk_bytes float8, one_per_user boolean, rank integer, head_id bigint,
               random_rank integer, random_id bigint)
         CROSS JOIN LATERAL (
           SELECT * FROM ({_PICKED.format(place="a.rank, a.head_id", head="c.first_rank, c.first_id")}) head
            UNION ALL
           SELECT * FROM ({_PICKED.format(place="a.random_rank, a.random_id", head="NULL::integer, NULL::bigint")}) rest
            LIMIT a.most) p)
""")

_WRITING: Final = """
WITH jobs AS (
  SELECT * FROM jsonb_to_recordset(%(jobs)s::jsonb) AS n(id bigint, workunit_id bigint, app_version_id bigint,
         processor_type text, peak_flops float8, projected_flops float8, deadline_at timestamptz, one_per_user boolean,
         must_replicate boolean)),
sent AS (
  UPDATE credit_result r
     SET server_state = 4, host_id = %(host_id)s::bigint, user_id = %(user_id)s::bigint,
         app_version_id = n.app_version_id, processor_type = n.processor_type, peak_flops = n.peak_flops,
         projected_flops = n.projected_flops, sent_at = %(now)s::timestamptz, deadline_at = n.deadline_at
    FROM jobs n
   WHERE r.id = n.id AND r.server_state = 2
     -- Between the picking's snapshot and its lock another computer of this person may have got a copy.
     AND NOT (n.one_per_user AND {has_copy})
  RETURNING r.id, r.workunit_id, n.must_replicate),
replicated AS (
  UPDATE credit_workunit w
     SET transition_at = %(now)s::timestamptz, min_quorum = greatest(w.min_quorum, 2),
         target_nresults = greatest(w.target_nresults, 2), max_total_results = greatest(w.max_total_results, 2),
         max_success_results = greatest(w.max_success_results, 2)
   WHERE w.id IN (SELECT workunit_id FROM sent WHERE must_replicate)),
records AS (
  SELECT * FROM jsonb_to_recordset(%(records)s::jsonb) AS n(app_id bigint, app_version_id bigint, processor_type text,
         inherits bigint, scale_probation boolean, host_scale_at timestamptz, error_rate float8,
         consecutive_valid integer, max_jobs_per_day integer, n_jobs_today integer, jobs_day date)),
updated AS (
  UPDATE credit_hostappversion v
     SET scale_probation = n.scale_probation, host_scale_at = n.host_scale_at, error_rate = n.error_rate,
         consecutive_valid = n.consecutive_valid, max_jobs_per_day = n.max_jobs_per_day,
         n_jobs_today = n.n_jobs_today, jobs_day = n.jobs_day
    FROM records n
   WHERE v.host_id = %(host_id)s::bigint
     AND (v.app_version_id = n.app_version_id
          OR v.app_version_id IS NULL AND n.app_version_id IS NULL AND v.app_id = n.app_id
             AND v.processor_type = n.processor_type)
  RETURNING v.app_id, coalesce(v.app_version_id, 0) AS version_id, v.processor_type),
added AS (
  INSERT INTO credit_hostappversion (host_id, app_id, app_version_id, processor_type, scale_probation, host_scale_at,
         error_rate, consecutive_valid, max_jobs_per_day, n_jobs_today, jobs_day, pfc_n, pfc_avg, et_n,
         et_avg, et_var, et_q, turnaround_n, turnaround_avg, turnaround_var, turnaround_q)
  SELECT %(host_id)s::bigint, n.app_id, n.app_version_id, n.processor_type, n.scale_probation, n.host_scale_at,
         n.error_rate, n.consecutive_valid, n.max_jobs_per_day, n.n_jobs_today, n.jobs_day, coalesce(o.pfc_n, 0),
         o.pfc_avg, coalesce(o.et_n, 0), o.et_avg, o.et_var, coalesce(o.et_q, 0), coalesce(o.turnaround_n, 0),
         o.turnaround_avg, o.turnaround_var, coalesce(o.turnaround_q, 0)
    FROM records n
    LEFT JOIN credit_hostappversion o ON o.host_id = %(host_id)s::bigint AND o.app_version_id = n.inherits
   WHERE NOT EXISTS (SELECT FROM updated u WHERE u.version_id = coalesce(n.app_version_id, 0)
                        AND (u.version_id > 0 OR u.app_id = n.app_id AND u.processor_type = n.processor_type))
  ON CONFLICT DO NOTHING),
trickles AS (
  INSERT INTO scheduler_trickle (host_id, user_id, result_id, variety, text, digest, written_at, received_at, fault)
  SELECT %(host_id)s::bigint, %(user_id)s::bigint, n.result_id, n.variety, n.text, decode(n.digest, 'hex'),
         n.written_at, %(now)s::timestamptz, ''
    FROM jsonb_to_recordset(%(trickles)s::jsonb)
         AS n(result_id bigint, variety text, text text, digest text, written_at timestamptz)
  ON CONFLICT DO NOTHING),
record AS (
  INSERT INTO scheduler_hostrecord AS s (host_id, rpc_seqno, last_rpc_at, on_frac, active_frac, gpu_active_frac,
         connected_frac, cpu_and_network_available_frac, duration_correction_factor, statistics, hardware_digest,
         last_messages)
  SELECT %(host_id)s::bigint, n.rpc_seqno, %(now)s::timestamptz, n.on_frac, n.active_frac, n.gpu_active_frac,
         n.connected_frac, n.cpu_and_network_available_frac, n.duration_correction_factor, n.statistics,
         decode(n.hardware_digest, 'hex'), n.last_messages
    FROM jsonb_to_record(%(record)s::jsonb) AS n(rpc_seqno bigint, on_frac float8, active_frac float8,
         gpu_active_frac float8, connected_frac float8, cpu_and_network_available_frac float8,
         duration_correction_factor float8, statistics jsonb, hardware_digest text, last_messages jsonb)
  ON CONFLICT (host_id) DO UPDATE
     SET rpc_seqno = excluded.rpc_seqno, last_rpc_at = excluded.last_rpc_at, on_frac = excluded.on_frac,
         active_frac = excluded.active_frac, gpu_active_frac = excluded.gpu_active_frac,
         connected_frac = excluded.connected_frac,
         cpu_and_network_available_frac = excluded.cpu_and_network_available_frac,
         duration_correction_factor = excluded.duration_correction_factor, statistics = excluded.statistics,
         hardware_digest = excluded.hardware_digest, last_messages = excluded.last_messages),
host AS (
  UPDATE portal_host h SET last_contact_at = %(now)s::timestamptz, retired_at = NULL{described}
   WHERE h.id = %(host_id)s::bigint)
SELECT json_agg(id) FROM sent
"""
DESCRIBED: Final = (
    "p_vendor", "p_model", "p_features", "p_fpops", "p_iops", "p_membw", "m_nbytes", "m_cache", "m_swap", "d_total",
    "os_name", "os_version", "product_name", "virtualbox_version", "host_cpid", "domain_name", "client_version",
    "platform_name", "ncpus", "timezone_secs", "benchmarked_at", "coprocs", "hardware_faults",
)  # fmt: skip
"""Columns of the computer that a scheduler request may write."""
_DESCRIBED: Final = f""",
         ({", ".join(DESCRIBED)}) =
         (SELECT {", ".join(f"d.{column}" for column in DESCRIBED)}
            FROM jsonb_populate_record(h, %(description)s::jsonb) d)"""
_HAS_GOT: Final = _HAS_COPY.format(workunit="r.workunit_id")
WRITE: Final = Prepared(_WRITING.format(has_copy=_HAS_GOT, described=""))
WRITE_DESCRIBED: Final = Prepared(_WRITING.format(has_copy=_HAS_GOT, described=_DESCRIBED))
DIAGNOSE: Final = Prepared(f"""
SELECT count(*), count(*) FILTER (WHERE w.memory_bound_bytes > a.memory_bytes),
       count(*) FILTER (WHERE w.disk_bound_bytes > a.disk_bytes),
       count(*) FILTER (WHERE w.fpops_est > a.flops * (w.delay_bound_secs - a.delay_secs))
  FROM jsonb_to_recordset(%(apps)s::jsonb) AS a(app_id bigint, flops float8, delay_secs float8, memory_bytes float8,
       disk_bytes float8)
 CROSS JOIN LATERAL (SELECT workunit_id FROM credit_result
                      WHERE app_id = a.app_id AND server_state = 2 ORDER BY {_RANK}, id LIMIT {WINDOW}) c
  JOIN credit_workunit w ON w.id = c.workunit_id
""")

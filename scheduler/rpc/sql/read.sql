-- Reads for each of several requests: the account of the key, the computer and its scheduler record, its (host,
-- version) records, and the results that it has, reports or names. Locks nothing.
--
-- The key is the account's, or in its weak form the account's number with a digest that only this site can make
-- (portal/wire/credentials.py), or one from before the project moved here, by its hash. Each row is a JSON object,
-- which scheduler/rpc/rows.py reads by the names of its fields. Times are Unix seconds.
--
-- Joins by "= ANY (ARRAY[key])" look up each row by its key when needed. With "=" small tables would be hashed
-- completely. "+ 0" changes nothing, but makes the planner expect one row where it would expect a hundred from a list,
-- and look up a computer by its number, not among all of its owner's. There are no more joins than needed, each by a
-- key, because most of a statement's cost is in starting and ending it. So the parts for reported results (REPORTED),
-- files that computers keep (HELD_FILES) and messages to running jobs (TRICKLE_DOWNS) are included only if there are
-- any.
SELECT row_to_json(reading)::text
  FROM (
    SELECT q.n, u.id AS user_id, u.name AS user_name, u.email, u.cross_project_id,
           date_part('epoch', u.created_at) AS user_created_at, k.id AS key_id,
           date_part('epoch', k.created_at) AS key_created_at, date_part('epoch', k.last_used_at) AS key_used_at,
           c.total_credit AS user_total, c.expavg_credit AS user_expavg,
           date_part('epoch', c.expavg_at) AS user_expavg_at,
           h.id AS host_id, date_part('epoch', h.created_at) AS host_created_at, h.venue, h.xmin::text AS host_version,
           d.total_credit AS host_total, d.expavg_credit AS host_expavg,
           date_part('epoch', d.expavg_at) AS host_expavg_at,
           s.rpc_seqno, encode(s.hardware_digest, 'hex') AS hardware_digest, s.jobs_day, s.jobs_of_day, s.cpids,
           date_part('epoch', s.named_jobs_until) AS named_jobs_until, s.repeated_seqno, s.repeated_times,
           date_part('epoch', s.work_asked_at) AS work_asked_at,
           p.mod_time AS preferences_at, CASE WHEN p.mod_time > q.preferences_at THEN p.text END AS preferences,
           coalesce(p.of_project -> h.venue, p.of_project -> '') AS project_preferences,
           (SELECT json_agg(record) FROM (
              SELECT v.id, v.app_id, coalesce(v.app_version_id, 0) AS version_id, v.processor_type, v.et_n, v.et_avg,
                     v.scale_probation, date_part('epoch', v.host_scale_at) AS host_scale_at, v.error_rate,
                     v.consecutive_valid, v.max_jobs_per_day, v.failing_share, v.turnaround_n, v.turnaround_avg
                FROM credit_hostappversion v WHERE v.host_id = h.id) record) AS records,
           (SELECT json_agg(result) FROM (
              SELECT r.id, r.name, r.host_id, r.workunit_id, r.app_id, r.app_version_id AS version_id, r.processor_type,
                     r.server_state, r.outcome, date_part('epoch', r.sent_at) AS sent_at,
                     date_part('epoch', r.deadline_at) AS deadline_at, r.projected_flops, r.peak_flops, w.error_mask,
                     w.canonical_result_id IS NOT NULL OR w.assimilate_state > :NOT_ASSIMILATED AS is_decided,
                     w.delay_bound_secs,
                     CASE WHEN r.name <> ALL (q.names) THEN json_build_object(
                       'id', r.id, 'workunit_id', w.id, 'app_id', r.app_id, 'name', r.name, 'fpops_est', w.fpops_est,
                       'fpops_bound', w.fpops_bound, 'memory_bytes', w.memory_bound_bytes,
                       'disk_bytes', w.disk_bound_bytes, 'delay_bound_secs', w.delay_bound_secs,
                       'min_quorum', w.min_quorum, 'details', json_build_object(
                         'workunit_name', w.name, 'command_line', w.command_line, 'input_files', w.input_files,
                         'output_files', w.output_files)) END AS job
\if :REPORTED
                     , CASE WHEN r.name = ANY (q.reported) THEN w.output_files ELSE '[]' END AS output_files,
                     CASE WHEN r.name = ANY (q.reported) THEN coalesce((
                       SELECT json_agg(upload) FROM (
                         SELECT f.name, f.path, f.nbytes, f.md5, f.sent_md5 FROM scheduler_upload f
                          WHERE f.result_id = r.id AND f.completed_at IS NOT NULL) upload), '[]') ELSE '[]' END
                       AS uploads
\endif
                FROM credit_result r JOIN credit_workunit w ON w.id = ANY (ARRAY[r.workunit_id])
               -- As one array, so that each part is looked up in its own index, whatever the statistics are.
               WHERE r.id = ANY (ARRAY(
                       SELECT i.id FROM credit_result i
                        WHERE i.host_id = q.host_id AND i.server_state = :IN_PROGRESS
                        UNION ALL
                       SELECT i.id FROM credit_result i WHERE i.name = ANY (q.names)))) result) AS results
\if :HELD_FILES
           -- A file that the computer keeps is needed while it is stored here, while a batch has open jobs that use it,
           -- or while the task that it is an output of is here.
           , (SELECT json_agg(held.name) FROM unnest(q.held_files) AS held(name)
             WHERE NOT EXISTS (SELECT FROM scheduler_storedfile f WHERE f.name = held.name AND f.deleted_at IS NULL)
               AND NOT EXISTS (SELECT FROM scheduler_stickyfile f WHERE f.name = held.name)
               AND NOT EXISTS (SELECT FROM credit_result r
                                WHERE r.name = regexp_replace(held.name, '_[0-9]{1,3}$', ''))) AS unneeded_files
\endif
\if :TRICKLE_DOWNS
           , (SELECT json_agg(message ORDER BY message.id) FROM (
              SELECT d.id, d.result_id, d.text, date_part('epoch', d.told_deadline_at) AS told_deadline_at,
                     EXISTS (SELECT FROM scheduler_trickle t WHERE t.result_id = d.result_id) AS has_begun
                FROM scheduler_trickledown d
               WHERE d.acknowledged_at IS NULL AND d.result_id = ANY (ARRAY(
                       SELECT i.id FROM credit_result i
                        WHERE i.host_id = q.host_id AND i.server_state = :IN_PROGRESS))
               -- A few replies' worth, as all of a computer's may be long: first those that may have arrived.
               ORDER BY d.told_deadline_at IS NULL, has_begun DESC, d.id LIMIT :MOST_MESSAGES) message) AS trickle_downs
\endif
      FROM jsonb_to_recordset(%(askers)s::jsonb) AS q(n integer, key_hash bytea, weak_user bigint, weak_digest text,
           pepper text, host_id bigint, names text[], reported text[], preferences_at float8, held_files text[])
      JOIN portal_clientkey k ON k.id = ANY (
           CASE WHEN q.weak_user IS NULL
                THEN ARRAY(SELECT id FROM portal_clientkey WHERE key_hash = ANY (ARRAY[q.key_hash]))
                ELSE ARRAY(SELECT id FROM portal_clientkey
                            WHERE user_id = q.weak_user
                              AND (md5(encode(key_hash, 'hex') || q.pepper) = q.weak_digest
                                   OR key_hash = q.key_hash)) END)
      JOIN portal_user u ON u.id = ANY (ARRAY[k.user_id]) AND u.is_active
      LEFT JOIN portal_host h
             ON h.id = ANY (ARRAY[q.host_id]) AND h.owner_id + 0 = u.id AND h.merged_into_id IS NULL
      LEFT JOIN scheduler_hostrecord s ON s.host_id = ANY (ARRAY[h.id])
      LEFT JOIN scheduler_userpreferences p ON p.user_id = ANY (ARRAY[u.id])
      LEFT JOIN credit_usercredit c ON c.user_id = ANY (ARRAY[u.id])
      LEFT JOIN credit_hostcredit d ON d.host_id = ANY (ARRAY[h.id])
     WHERE k.revoked_at IS NULL AND q.host_id = q.host_id + 0) reading

-- Stores the settlements of several requests that came in one month. The rows: ledgers (n), projects (p), days (d), and
-- if there are any: notes (o), answers, descriptions (e) and lists of tasks (t). Returns the hosts that were written.
--
-- Locks each host's ledger and record first, then its projects by host and id, its days by host and project, its list
-- of tasks. Other code that writes these rows, such as merging, locks the host's ledger first. A host is written only
-- if its ledger's "contacts" is what was read. With SKIPS_LOCKED, hosts whose rows another transaction holds are left
-- out.
--
-- "= ANY (ARRAY[key])" as in read.sql.
WITH ledger AS MATERIALIZED (
  SELECT n.*
    FROM unnest(%(n_host_id)s::bigint[], %(n_contacts)s::bigint[], %(n_now)s::timestamptz[],
         %(n_client_now)s::float8[], %(n_level)s::text[], %(n_contact)s::text[], %(n_answer_digest)s::text[],
         %(n_answers_logged)s::integer[], %(n_same_answers)s::integer[])
         AS n(host_id, contacts, now, client_now, level, contact, answer_digest, answers_logged, same_answers)
    JOIN accounting_hostledger l ON l.host_id = ANY (ARRAY[n.host_id]) AND l.contacts = n.contacts
    JOIN portal_host h ON h.id = ANY (ARRAY[n.host_id])
\if :SKIPS_LOCKED
     FOR NO KEY UPDATE OF l SKIP LOCKED FOR NO KEY UPDATE OF h SKIP LOCKED
\else
     FOR NO KEY UPDATE OF l FOR NO KEY UPDATE OF h
\endif
),
ledgers AS (
  UPDATE accounting_hostledger l
     SET last_at = n.now, client_now = n.client_now, level = n.level::bigint[], contact = n.contact::jsonb,
         contacts = l.contacts + 1, answer_digest = n.answer_digest, answers_logged = n.answers_logged,
         same_answers = n.same_answers
    FROM ledger n WHERE l.host_id = ANY (ARRAY[n.host_id])),
hosts AS (
  UPDATE portal_host h SET last_contact_at = n.now, retired_at = NULL
    FROM ledger n WHERE h.id = ANY (ARRAY[n.host_id])
\if :DESCRIBED
     AND h.id <> ALL (%(described_ids)s::bigint[])),
described AS (
  UPDATE portal_host h
     SET last_contact_at = n.now, retired_at = NULL,
         (:"HOST_COLUMNS") = (SELECT :"HOST_COLUMNS" FROM jsonb_populate_record(h, e.description))
    FROM ledger n
    JOIN jsonb_to_recordset(%(described)s::jsonb) AS e(host_id bigint, description jsonb) ON e.host_id = n.host_id
   WHERE h.id = ANY (ARRAY[n.host_id])
\endif
),
projects AS (
  INSERT INTO accounting_hostproject AS p (host_id, project_id, reported, earlier, handed, credited, pending,
         dropped, listed, state, suspended, told_suspended, no_new_work, excluded, no_rsc, update_asked, drop_waiting,
         restart, broken)
  SELECT n.host_id, n.id, n.reported::numeric[], n.earlier::numeric[], n.handed::bigint[],
         n.credited::bigint[], n.pending::bigint[], n.dropped::numeric[], n.listed, coalesce(n.state, '{}')::jsonb,
         false, n.told_suspended, false, false, '{}', n.told_update, false, n.restart::numeric[],
         n.broken::varchar[]
    FROM unnest(%(p_host_id)s::bigint[], %(p_id)s::bigint[], %(p_reported)s::text[],
         %(p_earlier)s::text[], %(p_handed)s::text[], %(p_credited)s::text[], %(p_pending)s::text[],
         %(p_dropped)s::text[], %(p_listed)s::boolean[], %(p_state)s::text[], %(p_told_suspended)s::boolean[],
         %(p_told_update)s::boolean[], %(p_restart)s::text[], %(p_broken)s::text[])
         AS n(host_id, id, reported, earlier, handed, credited, pending, dropped, listed, state,
              told_suspended, told_update, restart, broken)
   WHERE n.host_id IN (SELECT host_id FROM ledger)
  ON CONFLICT (host_id, project_id) DO UPDATE
     SET reported = excluded.reported, earlier = excluded.earlier, restart = excluded.restart,
         broken = excluded.broken, handed = excluded.handed, credited = excluded.credited, pending = excluded.pending,
         dropped = excluded.dropped, listed = excluded.listed,
         -- The key of an account goes with the project.
         state = CASE WHEN excluded.listed THEN excluded.state ELSE p.state - 'own_key' END,
         told_suspended = excluded.told_suspended,
         -- The reply carries what was asked when this request was read; a later wish stays for the next one.
         update_asked = p.update_asked AND NOT excluded.update_asked),
-- Naming the month's own table saves the search for it, and a day of another month is refused.
days AS (
  INSERT INTO :"PARTITION" AS d (user_id, day, project_id, host_id,
         cpu_ec, gpu_ec, cpu_time, gpu_time, njobs_success, njobs_error, flags)
  SELECT n.user_id, n.day, n.id, n.host_id, n.a, n.b, n.c, n.d, n.e, n.f, n.flags
    FROM unnest(%(d_host_id)s::bigint[], %(d_user_id)s::bigint[], %(d_day)s::date[], %(d_id)s::bigint[],
         %(d_a)s::bigint[], %(d_b)s::bigint[], %(d_c)s::bigint[], %(d_d)s::bigint[], %(d_e)s::bigint[],
         %(d_f)s::bigint[], %(d_flags)s::smallint[]) AS n(host_id, user_id, day, id, a, b, c, d, e, f, flags)
   WHERE n.host_id IN (SELECT host_id FROM ledger)
  ON CONFLICT (user_id, day, project_id, host_id) DO UPDATE
     SET cpu_ec = d.cpu_ec + excluded.cpu_ec, gpu_ec = d.gpu_ec + excluded.gpu_ec,
         cpu_time = d.cpu_time + excluded.cpu_time, gpu_time = d.gpu_time + excluded.gpu_time,
         njobs_success = d.njobs_success + excluded.njobs_success, njobs_error = d.njobs_error + excluded.njobs_error,
         flags = d.flags | excluded.flags)
\if :NOTES
, notes AS (
  INSERT INTO accounting_note AS o (host_id, project_id, day, kind, detail, amount, count, first_at, last_at)
  SELECT n.host_id, nullif(n.id, 0), ledger.now::date, n.kind, n.detail, n.amount, n.count,
         ledger.now, ledger.now
    FROM jsonb_to_recordset(%(notes)s::jsonb)
         AS n(host_id bigint, id bigint, kind text, detail text, amount numeric, count integer)
    JOIN ledger ON ledger.host_id = n.host_id
   -- Their details are speeds that clients report: other ones each time, perhaps.
   WHERE n.kind <> 'speed_replaced' OR :MAX_SPEEDS_NOTED > (
         SELECT count(*) FROM accounting_note s
          WHERE s.host_id = n.host_id AND s.day = ledger.now::date AND s.kind = 'speed_replaced')
  ON CONFLICT (host_id, day, kind, project_id, detail) DO UPDATE
     SET amount = o.amount + excluded.amount, count = o.count + excluded.count, last_at = excluded.last_at)
\endif
\if :ANSWERS
-- A new answer overwrites the oldest of the host's answers.
, answers AS (
  INSERT INTO accounting_answer (host_id, slot, at, content, before_times, before_last_at)
  SELECT n.host_id, n.slot, ledger.now, n.content, n.before_times, n.before_last_at
    FROM jsonb_to_recordset(%(answers)s::jsonb)
         AS n(host_id bigint, slot smallint, content jsonb, before_times integer, before_last_at timestamptz)
    JOIN ledger ON ledger.host_id = n.host_id
  ON CONFLICT (host_id, slot) DO UPDATE
     SET at = excluded.at, content = excluded.content, before_times = excluded.before_times,
         before_last_at = excluded.before_last_at)
\endif
\if :TASKS
-- A list replaces the one before; one without tasks is written only if the one before had some.
, tasks AS (
  INSERT INTO accounting_tasklist AS t (host_id, at, tasks, left_out)
  SELECT n.host_id, ledger.now, n.tasks::jsonb, n.left_out
    FROM unnest(%(t_host_id)s::bigint[], %(t_tasks)s::text[], %(t_left_out)s::integer[]) AS n(host_id, tasks, left_out)
    JOIN ledger ON ledger.host_id = n.host_id
  ON CONFLICT (host_id) DO UPDATE
     SET at = excluded.at, tasks = excluded.tasks, left_out = excluded.left_out
   WHERE t.tasks <> '[]' OR t.left_out > 0 OR excluded.tasks <> '[]' OR excluded.left_out > 0)
\endif
SELECT host_id FROM ledger

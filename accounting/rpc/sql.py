"""SQL of the account-manager RPC: one statement that reads and one that writes, each for several requests.

The write locks the hosts' ledgers and records first. In a batch it does not wait: hosts whose rows another transaction
holds are left out, and written by a statement of their own, which waits. A host's rows are changed only if its ledger's
``contacts`` is what was read. Rows are locked in this order: the host's ledger, the host, its projects by host and id,
its days by host and project, its list of tasks. Other code that writes these rows, such as merging, locks the host's
ledger first.
"""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import Final

from accounting.ledger.partitions import partition_of
from portal.clients.effects import Statement
from portal.clients.sql_files import statement
from portal.computers.host_columns import HOST_COLUMNS

READ: Final = statement(__file__, "read")

# The columns that a request writes: ledger (n), projects (p), days (d), notes (o), answers (a), description (e), and
# tasks (t).
_WRITE: Final = """
WITH ledger AS MATERIALIZED (
  SELECT n.*
    FROM unnest(%(n_host_id)s::bigint[], %(n_contacts)s::bigint[], %(n_now)s::timestamptz[],
         %(n_client_now)s::float8[], %(n_level)s::text[], %(n_contact)s::text[], %(n_answer_digest)s::text[],
         %(n_answers_logged)s::integer[], %(n_same_answers)s::integer[])
         AS n(host_id, contacts, now, client_now, level, contact, answer_digest, answers_logged, same_answers)
    JOIN accounting_hostledger l
      ON l.host_id = ANY (ARRAY[n.host_id]) AND l.contacts = n.contacts
    JOIN portal_host h ON h.id = ANY (ARRAY[n.host_id])
     FOR NO KEY UPDATE OF l {skip} FOR NO KEY UPDATE OF h {skip}),
ledgers AS (
  UPDATE accounting_hostledger l
     SET last_at = n.now, client_now = n.client_now, level = n.level::bigint[], contact = n.contact::jsonb,
         contacts = l.contacts + 1, answer_digest = n.answer_digest, answers_logged = n.answers_logged,
         same_answers = n.same_answers
    FROM ledger n WHERE l.host_id = ANY (ARRAY[n.host_id])),
hosts AS (
  UPDATE portal_host h SET last_contact_at = n.now, retired_at = NULL
    FROM ledger n WHERE h.id = ANY (ARRAY[n.host_id]){not_described}){described},
projects AS (
  INSERT INTO accounting_hostproject AS p (host_id, project_id, reported, earlier, handed, credited, pending,
         dropped, listed, state, suspended, told_suspended, no_new_work, excluded, no_rsc, update_asked, drop_waiting,
         restart, broken)
  SELECT n.host_id, n.id, n.reported::numeric[], n.earlier::numeric[], n.handed::bigint[],
         n.credited::bigint[], n.pending::bigint[], n.dropped::numeric[], n.listed, coalesce(n.state, '{{}}')::jsonb,
         false, n.told_suspended, false, false, '{{}}', n.told_update, false, n.restart::numeric[],
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
days AS (
  INSERT INTO {partition} AS d (user_id, day, project_id, host_id,
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
         flags = d.flags | excluded.flags){notes}{answers}{tasks}
SELECT host_id FROM ledger
"""
MAX_SPEEDS_NOTED: Final = 64
"""Speeds of a computer that are noted as replaced on a day, beside those of one report."""
_NOTES: Final = f""",
notes AS (
  INSERT INTO accounting_note AS o (host_id, project_id, day, kind, detail, amount, count, first_at, last_at)
  SELECT n.host_id, nullif(n.id, 0), ledger.now::date, n.kind, n.detail, n.amount, n.count,
         ledger.now, ledger.now
    FROM jsonb_to_recordset(%(notes)s::jsonb)
         AS n(host_id bigint, id bigint, kind text, detail text, amount numeric, count integer)
    JOIN ledger ON ledger.host_id = n.host_id
   -- Their details are speeds that clients report: other ones each time, perhaps.
   WHERE n.kind <> 'speed_replaced' OR {MAX_SPEEDS_NOTED} > (
         SELECT count(*) FROM accounting_note s
          WHERE s.host_id = n.host_id AND s.day = ledger.now::date AND s.kind = 'speed_replaced')
  ON CONFLICT (host_id, day, kind, project_id, detail) DO UPDATE
     SET amount = o.amount + excluded.amount, count = o.count + excluded.count, last_at = excluded.last_at)"""
# A new answer overwrites the oldest of the host's answers.
_ANSWERS: Final = """,
answers AS (
  INSERT INTO accounting_answer (host_id, slot, at, content, before_times, before_last_at)
  SELECT n.host_id, n.slot, ledger.now, n.content, n.before_times, n.before_last_at
    FROM jsonb_to_recordset(%(answers)s::jsonb)
         AS n(host_id bigint, slot smallint, content jsonb, before_times integer, before_last_at timestamptz)
    JOIN ledger ON ledger.host_id = n.host_id
  ON CONFLICT (host_id, slot) DO UPDATE
     SET at = excluded.at, content = excluded.content, before_times = excluded.before_times,
         before_last_at = excluded.before_last_at)"""
# A list replaces the one before; one without tasks is written only if the one before had some.
_TASKS: Final = """,
tasks AS (
  INSERT INTO accounting_tasklist AS t (host_id, at, tasks, left_out)
  SELECT n.host_id, ledger.now, n.tasks::jsonb, n.left_out
    FROM unnest(%(t_host_id)s::bigint[], %(t_tasks)s::text[], %(t_left_out)s::integer[]) AS n(host_id, tasks, left_out)
    JOIN ledger ON ledger.host_id = n.host_id
  ON CONFLICT (host_id) DO UPDATE
     SET at = excluded.at, tasks = excluded.tasks, left_out = excluded.left_out
   WHERE t.tasks <> '[]' OR t.left_out > 0 OR excluded.tasks <> '[]' OR excluded.left_out > 0)"""
_DESCRIBED: Final = f""",
described AS (
  UPDATE portal_host h
     SET last_contact_at = n.now, retired_at = NULL,
         ({", ".join(HOST_COLUMNS)}) =
         (SELECT {", ".join(f"d.{column}" for column in HOST_COLUMNS)}
            FROM jsonb_populate_record(h, e.description) d)
    FROM ledger n
    JOIN jsonb_to_recordset(%(described)s::jsonb) AS e(host_id bigint, description jsonb) ON e.host_id = n.host_id
   WHERE h.id = ANY (ARRAY[n.host_id]))"""
_NOT_DESCRIBED: Final = " AND h.id <> ALL (%(described_ids)s::bigint[])"


@lru_cache(maxsize=64)
def write(month: dt.date, *, waits: bool, notes: bool, answers: bool, described: bool, tasks: bool) -> Statement:
    """The write of requests that came in one month; ``waits`` for rows that others hold, else leaves them out."""
    return Statement(
        _WRITE.format(
            # Naming the month's own table saves the search for it, and a day of another month is refused.
            partition=partition_of(month),
            skip="" if waits else "SKIP LOCKED",
            notes=_NOTES if notes else "",
            answers=_ANSWERS if answers else "",
            tasks=_TASKS if tasks else "",
            described=_DESCRIBED if described else "",
            not_described=_NOT_DESCRIBED if described else "",
        )
    )
